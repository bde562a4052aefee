"""Block Kit's rules in the Slack stand-in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.models.blocks import (
    ActionsBlock,
    ButtonElement,
    ContextBlock,
    DividerBlock,
    HeaderBlock,
    MarkdownTextObject,
    SectionBlock,
)

from bot.lab.slack_blocks import block_problems, chars, plain_text, view_problems


def words(text: str) -> dict[str, str]:
    return {"type": "mrkdwn", "text": text}


def plain(text: str) -> dict[str, str]:
    return {"type": "plain_text", "text": text}


def button(**more: Any) -> dict[str, Any]:
    return {"type": "button", "text": plain("Go"), "action_id": "go", **more}


def test_what_the_client_library_makes_is_right() -> None:
    blocks = [
        HeaderBlock(text="Title"),
        SectionBlock(text=MarkdownTextObject(text="*bold*")),
        DividerBlock(),
        ContextBlock(elements=[MarkdownTextObject(text="small")]),
        ActionsBlock(elements=[ButtonElement(text="Go", action_id="go", value="1")]),
    ]

    assert block_problems([block.to_dict() for block in blocks]) == []


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({}, "missing required field: type [json-pointer:/blocks/0]"),
        ({"type": "sectoin"}, "unsupported type: sectoin [json-pointer:/blocks/0/type]"),
        ({"type": "section"}, "missing required field: text [json-pointer:/blocks/0]"),
        (
            {"type": "section", "text": words("")},
            "must be more than 0 characters [json-pointer:/blocks/0/text/text]",
        ),
        (
            {"type": "section", "text": {"type": "html", "text": "x"}},
            "must be one of: plain_text, mrkdwn [json-pointer:/blocks/0/text/type]",
        ),
        (
            {"type": "section", "fields": [words("x")] * 11},
            "no more than 10 items allowed [json-pointer:/blocks/0/fields]",
        ),
        (
            {"type": "section", "fields": [words("x" * 2001)]},
            "must be less than 2001 characters [json-pointer:/blocks/0/fields/0/text]",
        ),
        (
            {"type": "header", "text": plain("x" * 151)},
            "must be less than 151 characters [json-pointer:/blocks/0/text/text]",
        ),
        (
            {"type": "header", "text": words("x")},
            "must be one of: plain_text [json-pointer:/blocks/0/text/type]",
        ),
        (
            {"type": "actions", "elements": [button(action_id=str(i)) for i in range(26)]},
            "no more than 25 items allowed [json-pointer:/blocks/0/elements]",
        ),
        (
            {"type": "actions", "elements": [button(text=plain("x" * 76))]},
            "must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]",
        ),
        (
            {"type": "actions", "elements": [button(value="x" * 2001)]},
            "must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]",
        ),
        (
            {"type": "context", "elements": []},
            "no fewer than 1 items allowed [json-pointer:/blocks/0/elements]",
        ),
        (
            {"type": "image", "image_url": "https://example.com/a.png"},
            "missing required field: alt_text [json-pointer:/blocks/0]",
        ),
        (
            {"type": "markdown", "text": "x" * 12_001},
            "must be less than 12001 characters [json-pointer:/blocks/0/text]",
        ),
    ],
)
def test_a_broken_block_is_named_with_its_place(block: dict[str, Any], problem: str) -> None:
    assert block_problems([block]) == [problem]


def test_ids_are_unique_and_one_table_is_enough() -> None:
    twice = [{"type": "divider", "block_id": "a"}] * 2
    tables = [{"type": "table", "rows": [[words("x")]]}] * 2
    same = {"type": "actions", "elements": [button(), button()]}

    assert "already exists" in block_problems(twice)[0]
    assert block_problems(tables) == ["only one table allowed [json-pointer:/blocks]"]
    assert "already exists" in block_problems([same])[0]


def test_a_form_wants_a_title_and_a_way_to_send_it() -> None:
    asks = {"type": "input", "label": plain("?"), "element": {"type": "plain_text_input"}}

    problems = view_problems({"type": "modal", "blocks": [asks]}, kinds=("modal",))

    assert problems == [
        "missing required field: title [json-pointer:/view]",
        "missing required field: submit [json-pointer:/view]",
    ]
    assert view_problems({"type": "home", "blocks": [{}]}, kinds=("home",)) == [
        "missing required field: type [json-pointer:/view/blocks/0]"
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "elements", "fields", "rows", "block_id", "accessory"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


_KINDS = ["section", "actions", "context", "image", "input", "table", "header", "markdown"]


@given(kind=st.sampled_from(_KINDS), fields=st.dictionaries(st.text(max_size=8), _JSON), more=_JSON)
def test_no_block_of_whatever_shape_is_too_much(kind: str, fields: Any, more: Any) -> None:
    shaped = fields | (more if isinstance(more, dict) else {}) | {"type": kind}

    for blocks in ([shaped], [more], more, [{**shaped, "elements": more, "rows": more}]):
        assert all("json-pointer" in problem for problem in block_problems(blocks))
        assert chars(blocks) >= 0
        assert isinstance(plain_text(blocks), str)
