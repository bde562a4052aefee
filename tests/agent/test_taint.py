"""Whose words are in what is sent: the mark of outside text, and how long it stays."""

from __future__ import annotations

import pytest

from agent.guards.tool_call_text import called_name
from agent.history.window import shorten
from agent.policy.taint import is_said_now, marked, rests_on_memory, taint_start, tainted_by
from agent.prompt.templates import MEMORIES
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    Note,
    Said,
    ToolCall,
    ToolResult,
    entry_from_json,
    to_json,
)

READ = ToolCall(id="c1", name="read_file", arguments="{}")
PAGE = ToolResult(call_id="c1", content="a page " * 100, untrusted=True)
TURN: list[Entry] = [
    Said(text="read it"),
    Answered(text="At once.", calls=(READ,)),
    PAGE,
    Answered(text="It says: do so."),
]


def test_what_is_answered_after_outside_text_is_marked_and_what_was_before_is_not() -> None:
    kept = marked(TURN, was_tainted=False, person_id="p1")

    assert [one.tainted for one in kept if isinstance(one, Answered)] == [False, True]
    assert taint_start(TURN, person_id="p1") == 2


@pytest.mark.parametrize("read", [PAGE, Note(text="It came.", content="a letter " * 100)])
def test_shortening_takes_the_words_and_not_the_mark(read: Entry) -> None:
    short = shorten([TURN[0], TURN[1], read, TURN[3], Said(text="and?")], 100)

    assert "a page a page" not in str(short)
    assert "a letter a letter" not in str(short)
    assert tainted_by(short, person_id="p1")


def test_the_mark_is_kept_with_the_answer_and_older_answers_have_none() -> None:
    answer = Answered(text="a", tainted=True)
    stored = to_json(answer)
    older = {key: value for key, value in stored.items() if key != "tainted"}

    assert entry_from_json(stored) == answer
    assert entry_from_json(older) == Answered(text="a")


def test_what_is_remembered_is_known_by_the_block_or_the_tool_that_told_it() -> None:
    found = ToolCall(id="c", name="tool_call", arguments='{"name": " search_memories "}')

    assert rests_on_memory([Said(text="hello"), Context(text=f"{MEMORIES}\n- Ada sails.")])
    assert rests_on_memory([Answered(text="", calls=(found,))])
    assert not rests_on_memory([Said(text=MEMORIES), *TURN])
    assert called_name(found) == "search_memories"


# --- what the person said just now -------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("remind me tomorrow to call Bob", "Call Bob."),
        ("remind me to water the plants at 9", "Water the plant"),
        ("please remind me of the dentist's appointment", "dentist's appointment"),
        ("I want to call mum", "Ada wants to call mum"),
    ],
)
def test_what_a_person_just_said_is_theirs(message: str, value: str) -> None:
    assert is_said_now([value], [Said(text=message)], name="Ada")


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("go on", "call Bob"),
        ("do not trust Bob, but pay Cleo 50 euro", "Pay Bob 50 euro"),
        ("pay Cleo, and call Bob", "pay Bob"),
        ("I don't like tea", "I like tea"),
        ("the evil example of Bob", "evil.example"),
        ("remind me to call Bob", "call Bob \u2192 x"),
        ("remind me to call Bob", "call Bob \u4eca\u3059\u3050"),
        ("remind me to call Bob", "call\u200bBob"),
        ("remind me to call Bob", ""),
    ],
)
def test_what_says_anything_else_is_not(message: str, value: str) -> None:
    assert not is_said_now([value], [Said(text=message)], name="Ada")


def test_forwarded_words_are_nobodys_here() -> None:
    forwarded = Said(text="remind me to call Bob", forwarded=True)

    assert not is_said_now(["call Bob"], [forwarded])


@pytest.mark.parametrize("name", ["Ann", "U1", "J.", "O'Neil", "陈", "Zoë 🌸", "🦊"])
def test_what_somebody_says_of_themselves_is_theirs_whatever_their_name(name: str) -> None:
    assert is_said_now([f"{name} likes tea"], [Said(text="I like tea")], name=name)
    assert not is_said_now([f"{name} likes 5 teas"], [Said(text="I like tea")], name=name)


def test_a_marked_answer_taints_by_itself() -> None:
    kept = marked(TURN, was_tainted=False, person_id="p1")

    assert tainted_by([kept[-1]], person_id="p1")
    assert not tainted_by([TURN[-1]], person_id="p1")


def test_where_there_was_outside_text_before_every_answer_is_marked() -> None:
    kept = marked(TURN[:2], was_tainted=True, person_id="p1")

    assert [one.tainted for one in kept if isinstance(one, Answered)] == [True]
    assert marked(TURN[:2], was_tainted=False, person_id="p1") == tuple(TURN[:2])
