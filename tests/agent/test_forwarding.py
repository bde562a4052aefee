"""Words that a person passed on are outside text: in the history, for the model, for what is asked
about, and for what counts as said."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.policy.taint import is_own, own_texts, tainted_by
from agent.prompt.layers.knowledge import came_along
from memory.records.messages import (
    FORWARDED_CHARS_MAX,
    SOMEBODY_ELSE,
    Address,
    Attachment,
    ConversationId,
    IncomingMessage,
    PersonId,
    Role,
    TurnInput,
    forwarded_from,
)
from memory.records.transcript import Note, Said, entry_from_json, to_json
from tests.agent.house import FakeTool, House, model
from tests.fakes import calls

URL = "https://shop.example/pay"


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


@pytest.mark.parametrize("name", ["", " \n\t", "\u200b\u202e", "\x00"])
def test_a_name_that_shows_nothing_is_somebody_elses(name: str) -> None:
    assert forwarded_from(name) == SOMEBODY_ELSE


def test_the_note_says_from_whom_the_words_are_and_what_came_with_them() -> None:
    photo = Attachment(kind="photo", ref="r")

    alone = came_along(message(forwarded="Mallory"))
    both = came_along(message(forwarded="Mallory", attachments=(photo,)))

    assert "forwarded" in alone
    assert "«Mallory»" in alone
    assert both == f"{alone} {came_along(message(attachments=(photo,)))}"
    assert came_along(message()) == ""


# --- what is kept --------------------------------------------------------------------------------


def test_the_mark_is_stored_and_what_was_stored_before_it_has_none() -> None:
    entry = Said(text="hello", forwarded=True)
    old = {name: value for name, value in to_json(Said(text="hi")).items() if name != "forwarded"}

    assert entry_from_json(to_json(entry)) == entry
    assert entry_from_json(old) == Said(text="hi")


def test_a_turn_keeps_from_whom_its_message_was_and_old_turns_have_it_from_nobody() -> None:
    turn = TurnInput(
        message=message(forwarded="Mallory"),
        conversation=ConversationId("c1"),
        person_id=PersonId("p1"),
        role=Role.OWNER,
    )
    stored = turn.to_json()
    old = {**stored, "message": {k: v for k, v in stored["message"].items() if k != "forwarded"}}

    assert TurnInput.from_json(stored) == turn
    assert TurnInput.from_json(old).message.forwarded == ""


# --- whose words they are ------------------------------------------------------------------------


def test_forwarded_words_taint_and_ones_own_do_not() -> None:
    assert tainted_by([Said(text="hello", forwarded=True)], person_id="p1") == "forwarded text"
    assert tainted_by([Said(text="hello")], person_id="p1") == ""


def test_an_address_in_forwarded_words_was_not_said() -> None:
    passed_on, own = Said(text=f"pay at {URL}", forwarded=True), Said(text=f"see {URL}")

    assert list(own_texts([passed_on, own], "p1")) == [own.text]


def test_forwarded_words_are_nobodys_own() -> None:
    assert not is_own(Said(text="door code 4711-22", forwarded=True))
    assert is_own(Said(text="code 4711-22"))


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
