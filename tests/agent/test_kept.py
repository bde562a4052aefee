"""What is found out about an entry is kept with it, and goes with it."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

from agent.policy.taint import fenced
from agent.prompt.prefix_cache import entry_parts
from agent.prompt.tokens import chars_of, tokens_of
from agent.turn.steps.plan import as_sent
from memory.records.transcript import Entry, Said, ToolResult, once, to_json


def test_something_is_found_out_once_for_each_entry() -> None:
    asked: list[Entry] = []

    @once
    def length(said: Said) -> int:
        asked.append(said)
        return len(said.text)

    entry, other = Said(text="Hello"), Said(text="Hello")

    found = [length(entry), length(entry), length(other)]

    assert found == [5, 5, 5]
    assert [id(one) for one in asked] == [id(entry), id(other)]


def test_two_questions_about_one_entry_have_an_answer_each() -> None:
    entry = Said(text="Hello there")

    assert (tokens_of(entry), chars_of(entry)) == (3, 11)
    assert (tokens_of(entry), chars_of(entry)) == (3, 11)


def test_what_was_found_out_is_no_part_of_the_entry() -> None:
    known, fresh = Said(text="Hello"), Said(text="Hello")

    entry_parts([known])

    assert known == fresh
    assert hash(known) == hash(fresh)
    assert repr(known) == repr(fresh)
    assert to_json(known) == to_json(fresh)
    assert tokens_of(replace(known, text="Something else")) != tokens_of(known)


def test_what_an_entry_is_sent_as_is_made_once_and_is_mostly_the_entry_itself() -> None:
    page = ToolResult(call_id="c1", content="From outside", untrusted=True)
    plain = Said(text="Hello")

    assert as_sent(page) == fenced(page) != page
    assert as_sent(page) is as_sent(page)
    assert as_sent(plain) is plain


def test_words_that_nobody_holds_any_more_are_gone_at_once() -> None:
    class Traced(str):
        """A text that one can see going."""

        __slots__ = ("__weakref__",)

    words = Traced("The Gloopstone lies under the oak. " * 50)
    entry, trace = Said(text=words), weakref.ref(words)
    entry_parts([entry])
    tokens_of(entry)
    as_sent(entry)
    gc.disable()
    try:
        del entry, words

        assert trace() is None
    finally:
        gc.enable()
