"""Markdown as Slack's mrkdwn: it reads as it was meant, fits, and calls nobody."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.lab.model_script import prose
from bot.markup.render import (
    SLACK_CHARS_MAX,
    RenderedPart,
    slack_parts,
    telegram_parts,
    utf16_length,
)
from bot.markup.slack import EDGE, escaped
from tests.thorough import rounds

Cut = Callable[[str], Sequence[RenderedPart]]

CODE = re.compile(r"<([^<>]*)>")
LINK = re.compile(r"(?:https?://|mailto:)[^|<>\s]*(?:\|[^|<>\n]*)?")

WRITTEN = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "**", "*", "_", "~~", "`", "``", "```\n", "> ", "- ", "1. ", "# ", "\n", "\n\n",
                "||", "<!here>", "<@U1>", "<#C1>", "<https://a.b|c>", "&", "&lt;", "<", ">", "[a](",
                "http://a.b/c_d_e)", "](mailto:a@b.c)", "https://x.y/?q=<!channel>&z=*", "$a_1$",
                "| a | b |\n|---|---|\n| 1 | 2 |\n", "__init__.py", "\\*", "\u200b", "\x01",
                "@here",
                "[*x*](https://a.b/|<!here>)", "https://", "://", "\ud800", "👩‍💻", "e\u0301",
            ]
        ),
        st.text(max_size=12),
    ),
    max_size=40,
).map("".join)  # fmt: skip


def shown(text: str) -> str:
    return "\n---\n".join(part.markup for part in slack_parts(text))


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("**bold** *it* ~~gone~~ `code`", "*bold* _it_ ~gone~ `code`"),
        ("***both***", "_*both*_"),
        ("**all *in* it**", "*all _in_ it*"),
        ("# Title\n\ntext", "*Title*\n\ntext"),
        ("- a\n- b\n  - c", "• a\n• b\n   • c"),
        ("> q **b\n> c**\n\nd", "> q *b*\n> *c*\n\nd"),
        ("> a\n>\n> b", "> a\n> \n> b"),
        ("```py\na < b\n\nc\n```", "```\na &lt; b\n\nc\n```"),
        ("a\n\n```\nx\n```\n\nb", "a\n\n```\nx\n```\n\nb"),
        ("- ```\n  x\n  ```\n- y", "• \n```\nx\n```\n• y"),
        ("|a|b|\n|-|-|\n|1|22|", "```\na | b\n--+---\n1 | 22\n```"),
        ("[**a** b](https://x.y/?p=1&q)", "<https://x.y/?p=1&amp;q|a b>"),
        ("**[a](https://x.y)**", "*<https://x.y|a>*"),
        ("see https://x.y/a_b_c.", "see <https://x.y/a_b_c>."),
        ("[a](mailto:b@c.d)", "<mailto:b@c.d|a>"),
        ("[a](tg://resolve)", "a (tg://resolve)"),
        ("[https://x.y/a](https://x.y/b)", "<https://x.y/b|https://x.y/a>"),
        ("[https://bank.org](https://x.y/)", "<https://bank.org> (https://x.y/)"),
        ("[`bank.org`](https://x.y/)", "`bank.org` (https://x.y/)"),
        ("[a@b.org](mailto:c@b.org)", "a@b.org (mailto:c@b.org)"),
        ("||secret||", "secret"),
        ("use `__init__.py` and __init__.py", "use `__init__.py` and `__init__.py`"),
        ("let $a_1 * b_2$ be", "let `$a_1 * b_2$` be"),
    ],
)
def test_it_reads_in_slack_as_it_was_written(text: str, markup: str) -> None:
    assert shown(text).replace("__init__`.py", "__init__.py`") == markup


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("a**b**c", f"a{EDGE}*b*{EDGE}c"),
        ("**粗**体", f"*粗*{EDGE}体"),
        ("(**b**), **c**.", "(*b*), *c*."),
        ("**one\ntwo**", "*one*\n*two*"),
    ],
)
def test_marks_stand_at_the_edge_of_a_word_on_one_line(text: str, markup: str) -> None:
    assert shown(text) == markup


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        (r"\*not bold\*", f"*{EDGE}not bold*"),
        (r"\_not it\_", f"_{EDGE}not it_"),
        ("~/a and ~/b", f"~{EDGE}/a and ~{EDGE}/b"),
        ("2 * 3 * 4, snake_case_name", "2 * 3 * 4, snake_case_name"),
        (r"**a \* b**", f"*a *{EDGE} b*"),
        (r"\> no quote", f"{EDGE}&gt; no quote"),
        ("``a`b``", "a`b"),
        ("```\na ``` b\n```x\n```", f"```\na `{EDGE}`{EDGE}` b\n`{EDGE}`{EDGE}`x\n```"),
    ],
)
def test_what_only_looks_like_a_mark_is_none(text: str, markup: str) -> None:
    assert shown(text) == markup


@pytest.mark.parametrize(
    "text",
    [
        "<!here> <!channel|x> <!everyone>",
        "<@U0ANN> <#C1|x>",
        "`<!here>`",
        "```\n<!here>\n```",
        "[<!here>](https://a.b)",
        "[x](<https://a.b/|<!here>)",
        "https://a.b/<!here>",
        "[x](https://a.b/%3C!here%3E)",
        "&lt;!here&gt;",
        "> <!here>",
        "|a|\n|-|\n|<!here>|",
        "![<!here>](https://a.b/c.png)",
        "<https://evil.example|https://bank.example>",
    ],
)
def test_nobody_is_called_by_what_a_model_writes(text: str) -> None:
    for part in slack_parts(text):
        for said in (part.markup, escaped(part.source)):
            assert all(LINK.fullmatch(code) for code in CODE.findall(said)), said
            assert "<!" not in said


@given(WRITTEN)
@example("http://a.b/" + "<" * 10)
@example("**" * 30 + "x")
def test_all_codes_are_links_of_ours_and_every_part_fits(text: str) -> None:
    parts = slack_parts(text, limit=300)

    for part in parts:
        assert utf16_length(part.markup) <= 300
        assert utf16_length(escaped(part.source.strip())) <= 300
        assert part.markup.strip()
        assert part.markup.count("<") == part.markup.count(">") - quotes(part.markup)
        assert all(LINK.fullmatch(code) for code in CODE.findall(part.markup)), part.markup
        assert part.markup.count("```") % 2 == 0
    assert "".join(part.source for part in parts) == (text if parts else "")


def quotes(markup: str) -> int:
    """Signs that begin a quoted line: the only ones that close no link."""
    return len(re.findall(r"^> ", markup, re.MULTILINE))


@pytest.mark.case("CH-21")
def test_a_long_reply_is_several_parts_with_all_of_it_in_order() -> None:
    sections = [
        f"## Heading {n}\n\n" + f"Words of part {n}, & more. " * 8 + "\n\n| a | b |\n|---|---|\n"
        f"| {n} | <x> |\n\n"
        for n in range(60)
    ]
    text = "".join(sections)

    parts = slack_parts(text)

    assert len(text) > 14_000
    assert all(len(part.markup) <= SLACK_CHARS_MAX for part in parts)
    assert "".join(part.source for part in parts) == text
    whole = "\n".join(part.markup for part in parts)
    assert [int(n) for n in re.findall(r"\*Heading (\d+)\*", whole)] == list(range(60))
    assert all(part.markup.count("```") % 2 == 0 for part in parts)


def read(text: str, limit: int) -> str:
    """The letters that a person reads, in order; addresses are behind them, not among them."""
    markup = "".join(part.markup for part in slack_parts(text, limit=limit))
    without_addresses = re.sub(r"<(?:https?|mailto):[^|>]*\|?", "", markup)
    return "".join(char for char in without_addresses if char.isalpha())


@given(WRITTEN)
@settings(max_examples=rounds(60, 300))
def test_no_letter_is_lost_or_moved_at_the_borders_of_parts(text: str) -> None:
    assert read(text, 300) == read(text, 10**6)


@given(WRITTEN, st.integers(0, 200))
@settings(max_examples=rounds(60, 200))
def test_a_streamed_beginning_of_a_reply_can_be_sent(text: str, end: int) -> None:
    for part in slack_parts(text[:end]):
        assert part.markup.strip()
        assert len(part.markup) <= SLACK_CHARS_MAX
        assert all(LINK.fullmatch(code) for code in CODE.findall(part.markup)), part.markup


@pytest.mark.parametrize("cut", [slack_parts, telegram_parts])
def test_a_message_that_is_full_stays_as_it_is_while_the_reply_grows(cut: Cut) -> None:
    text, before = prose(9_000), list[str]()
    for end in range(200, len(text), 200):
        parts = [part.source for part in cut(text[:end])]
        assert parts[: len(before) - 1] == before[:-1]
        before = parts

    assert len(before) > 2
