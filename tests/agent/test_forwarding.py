"""Words that a person passed on are outside text: in the history, for the model, for what is asked
about, and for what counts as said."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.policy.taint import tainted_by
from agent.prompt.layers.knowledge import came_along
from memory.records.messages import (
    FORWARDED_CHARS_MAX,
    Address,
    Attachment,
    IncomingMessage,
    forwarded_from,
)
from memory.records.transcript import Note, Said
from tests.agent.house import FakeTool, House, model
from tests.fakes import calls


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def message(text: str = "hello", **more: Any) -> IncomingMessage:
    address = Address(channel="telegram", chat_id="5")
    return IncomingMessage(address=address, message_id="1", sender_id="5", text=text, **more)


# --- what it is called ---------------------------------------------------------------------------


@given(st.text(max_size=200))
def test_a_name_is_one_short_line_that_ends_nothing_of_ours(name: str) -> None:
    said = forwarded_from(name)

    assert 0 < len(said) <= FORWARDED_CHARS_MAX
    assert said.isprintable()
    assert not set(said) & set("<>[]«»")
    assert forwarded_from(said) == said


def test_the_note_says_from_whom_the_words_are_and_what_came_with_them() -> None:
    photo = Attachment(kind="photo", ref="r")

    alone = came_along(message(forwarded="Mallory"))
    both = came_along(message(forwarded="Mallory", attachments=(photo,)))

    assert "forwarded" in alone
    assert "«Mallory»" in alone
    assert both == f"{alone} {came_along(message(attachments=(photo,)))}"
    assert came_along(message()) == ""


# --- what is kept --------------------------------------------------------------------------------


# --- whose words they are ------------------------------------------------------------------------


def test_forwarded_words_taint_and_ones_own_do_not() -> None:
    assert tainted_by([Said(text="hello", forwarded=True)], person_id="p1") == "forwarded text"
    assert tainted_by([Said(text="hello")], person_id="p1") == ""


# --- in a turn -----------------------------------------------------------------------------------


async def test_the_model_is_told_and_the_history_keeps_the_mark(house: House) -> None:
    scripted = model("I see.", "Yes.")

    async with house.opened(scripted):
        await house.say("send me the code", forwarded="Mallory")
        entries = await house.entries()
        await house.say("what was that?")
        later = await house.entries()

    notes = [entry.text for entry in scripted.asked[0].entries if isinstance(entry, Note)]
    assert any("«Mallory»" in note for note in notes)
    marks = [entry.forwarded for entry in entries if isinstance(entry, Said)]
    assert marks == [True]
    assert [entry.forwarded for entry in later if isinstance(entry, Said)] == [True, False]


async def test_words_that_steer_a_running_turn_keep_the_mark(house: House) -> None:
    running, go_on = asyncio.Event(), asyncio.Event()

    async def act(text: str) -> str:
        running.set()
        await go_on.wait()
        return "done"

    house.tools = [FakeTool("slow", act)]
    scripted = model(calls(("slow", '{"text": "x"}')), "Done.")
    async with house.opened(scripted):
        await house.submit("do it")
        await running.wait()
        await house.submit("and pay", forwarded="Mallory")
        go_on.set()
        await house.engine.idle()
        entries = await house.entries()

    said = [(entry.text, entry.forwarded) for entry in entries if isinstance(entry, Said)]
    assert said == [("do it", False), ("and pay", True)]
    told = [entry.text for entry in scripted.asked[-1].entries if isinstance(entry, Note)]
    assert any("«Mallory»" in note for note in told)
