"""What is sent: deterministic, append-only, in the shape that servers expect."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models import chat_request
from agent.models.chat_request import Dialect
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    ModelRequest,
    ModelTraits,
    Note,
    Said,
    ToolCall,
    ToolResult,
    ToolSpec,
)

TOOL = ToolSpec(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


def sent(*entries: Entry, **settings: Any) -> list[chat_request.Message]:
    return chat_request.messages("", entries, **settings)


def test_a_quote_and_a_sender_stand_before_the_words() -> None:
    said = Said(text="Why?", sender="Ann\nSmith", quote="see «this»")

    assert chat_request.words_of(said) == "[In reply to: «see ‹this›»]\nAnn Smith: Why?"


def test_calls_and_results_keep_their_ids_and_empty_content_is_left_out() -> None:
    call = ToolCall(id="c1", name="look", arguments='{"at": 1}')

    messages = sent(
        Answered(text="", calls=(call,), finish="tool_calls"), ToolResult(call_id="c1", content="x")
    )

    assert messages == [
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"at": 1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ]


@pytest.mark.case("AG-01")
@pytest.mark.parametrize("arguments", ['{"path": "no', "", "[1]", "null"])
def test_arguments_that_are_no_object_do_not_spoil_the_next_request(arguments: str) -> None:
    call = ToolCall(id="c1", name="look", arguments=arguments)

    (message,) = sent(Answered(text="", calls=(call,)))

    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.case("AG-05")
def test_an_empty_answer_is_never_sent() -> None:
    messages = sent(Said(text="a"), Answered(text=" \n"), Said(text="b"), plain=True)

    assert messages == [{"role": "user", "content": "a\n\nb"}]


def test_a_model_without_tools_reads_results_as_text() -> None:
    call = ToolCall(id="c1", name="look", arguments="{}")
    entries = (
        Said(text="?"),
        Answered(text="", calls=(call,)),
        ToolResult(call_id="c1", content="42"),
    )

    assert sent(*entries, tools=False, plain=True) == [
        {"role": "user", "content": "?\n\n[look: 42]"}
    ]


def test_neighbours_of_one_role_are_joined() -> None:
    messages = sent(Said(text="a"), Said(text="b"), Answered(text="c"), Answered(text="d"))

    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert messages[1]["content"] == "c\n\nd"


def body(name: str, request: ModelRequest, **more: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(chat_request.body(name, request, **more))
    return data


def test_a_request_is_written_as_its_model_and_server_take_it() -> None:
    request = ModelRequest(
        system="S",
        entries=(Said(text="Hi"), Context(text="Monday"), Note(text="It was edited")),
        tools=(TOOL,),
        max_output_tokens=7,
        extra={"seed": 1, "n": 1},
    )

    usual = body("gpt-4o", request, traits=ModelTraits())
    thinks = body("gpt-5-mini", request, traits=ModelTraits())
    demo = ModelTraits(tools=False, demo=True)
    small = body("m", request, traits=demo, dialect=Dialect(stream_usage=False))

    assert " ".join(usual) == (
        "model stream stream_options temperature max_tokens n seed tools messages"
    )
    parts = [{"type": "text", "text": text} for text in ("Hi", "Monday", "[It was edited]")]
    assert usual["messages"][1] == {"role": "user", "content": parts}
    assert thinks["max_completion_tokens"] == 7
    assert not {"temperature", "max_tokens"} & set(thinks)
    assert small["messages"][1] == {"role": "user", "content": "Hi\n\nMonday\n\n[It was edited]"}
    assert not {"tools", "stream_options"} & set(small)


def test_half_a_surrogate_pair_does_not_stop_a_request() -> None:
    request = ModelRequest(system="", entries=(Said(text="a\ud83d"),))

    assert "a?" in chat_request.body("m", request, traits=ModelTraits()).decode()


words = st.text(max_size=12)
steps = st.builds(
    lambda text, results: (
        Answered(
            text=text,
            calls=tuple(
                ToolCall(id=f"c{n}", name="look", arguments='{"a":"é"}')
                for n in range(len(results))
            ),
        ),
        *(ToolResult(call_id=f"c{n}", content=result) for n, result in enumerate(results)),
    ),
    words,
    st.lists(words, max_size=3),
)
histories = st.lists(
    st.one_of(
        st.builds(lambda t, q: (Said(text=t, quote=q),), words, words),
        st.builds(lambda t: (Context(text=t),), words),
        st.builds(lambda t: (Note(text=t),), words),
        steps,
    ),
    max_size=12,
).map(lambda groups: tuple(entry for group in groups for entry in group))


@given(entries=histories, plain=st.booleans(), tools=st.booleans(), data=st.data())
def test_a_grown_history_has_the_bytes_of_the_former_one_as_its_prefix(
    entries: tuple[Entry, ...], plain: bool, tools: bool, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(entries)))
    traits = ModelTraits(tools=tools)

    def bytes_of(part: tuple[Entry, ...]) -> bytes:
        request = ModelRequest(system="Sys «ü»", entries=part, tools=(TOOL,))
        return chat_request.body("m", request, traits=traits, dialect=Dialect(plain=plain))

    former, later = bytes_of(entries[:cut]), bytes_of(entries)

    # The closing brackets and quotes of the former one are where the later one goes on.
    assert later.startswith(former.rstrip(b'"]}'))
    assert bytes_of(entries) == later


@given(entries=histories, plain=st.booleans(), tools=st.booleans())
def test_no_two_neighbours_but_results_have_the_same_role_and_none_is_empty(
    entries: tuple[Entry, ...], plain: bool, tools: bool
) -> None:
    messages = chat_request.messages("", entries, plain=plain, tools=tools)

    for one, next_one in pairwise(messages):
        if one["role"] == next_one["role"] == "assistant":
            assert "tool_calls" in one
        else:
            assert one["role"] != next_one["role"] or one["role"] == "tool"
    for message in messages:
        assert message["role"] == "tool" or message.get("content") or message.get("tool_calls")


# --- marks for a provider's cache ----------------------------------------------------------------


def marks(name: str, dialect: Dialect, *entries: Entry) -> list[str]:
    """What is marked in a request, as paths."""
    request = ModelRequest(system="S", entries=entries, tools=(TOOL,))
    body = json.loads(chat_request.body(name, request, traits=ModelTraits(), dialect=dialect))

    def found(node: Any, path: str) -> list[str]:
        if isinstance(node, dict):
            here = [path] if "cache_control" in node else []
            return here + [p for key, value in node.items() for p in found(value, f"{path}/{key}")]
        if isinstance(node, list):
            return [p for n, value in enumerate(node) for p in found(value, f"{path}/{n}")]
        return []

    return found(body, "")


HISTORY = (Said(text="One"), Answered(text="Two"), Said(text="Three"), Context(text="Four"))


def test_claude_behind_a_server_that_hands_marks_on_gets_three() -> None:
    found = marks("anthropic/claude-sonnet-4", Dialect(cache_marks=True), *HISTORY)

    assert found == ["/tools/0", "/messages/0/content/0", "/messages/3/content/1"]


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("anthropic/claude-sonnet-4", Dialect()),
        ("openai/gpt-4.1-mini", Dialect(cache_marks=True)),
    ],
)
def test_nobody_else_gets_marks(name: str, dialect: Dialect) -> None:
    assert marks(name, dialect, *HISTORY) == []
