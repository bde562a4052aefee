"""/compact and /restore: what is kept in mind, what is in the archive alone, and the way back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.commands.conversation import BUSY, NOTHING_TO_RESTORE, compact, restore
from memory.database.connection import Database
from memory.records.errors import Overloaded
from memory.records.messages import PersonId, Role
from memory.records.rows import Person
from memory.records.transcript import Entry
from memory.stores.compactions import SqliteCompactions
from memory.stores.conversations import SqliteConversations
from tests.bot.command_kit import asks, tools_with
from tests.memory.history_kit import ScriptedCheap, add_turns, compactor, detected, talk
from tests.memory.kit import LANE, StillClock

OWNER = Person(id=PersonId("p1"), role=Role.OWNER, time_zone="Europe/Berlin")


@dataclass
class Chat:
    """A chat with its history, and the command."""

    database: Database
    clock: StillClock
    cheap: ScriptedCheap
    busy: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.conversations = SqliteConversations(self.database)
        self.tools = tools_with(
            compactor=compactor(self.database, self.cheap),
            compactions=SqliteCompactions(self.database),
            conversations=self.conversations,
            engine=SimpleNamespace(busy=self.busy.__contains__),
        )

    async def said(self, *turns: list[Entry]) -> None:
        conversation = await self.conversations.current(LANE)
        await add_turns(self.database, conversation, turns)

    async def compact(self) -> str:
        return await compact(self.tools, asks(OWNER))

    async def restore(self) -> str:
        return await restore(self.tools, asks(OWNER))


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    clock = StillClock()
    cheap = ScriptedCheap(lambda prompt: detected("A trip to Lisbon.\nOpen: seats."))
    async with Database.open(tmp_path / "x.db", clock=clock) as database:
        yield Chat(database, clock, cheap)


async def test_what_is_kept_and_what_is_aside_is_told_with_times_of_the_person(chat: Chat) -> None:
    await chat.said(*[talk("some words " * 20)] * 6)
    chat.clock.move(3_600)
    await chat.said(*[talk("more words " * 20)] * 4)

    told = await chat.compact()

    saved, kept, heading, summary, aside, way_back = told.split("\n\n")
    assert saved.startswith("I summed up what is older. From your next message on that saves about")
    assert kept.startswith("Word for word I still send 2 exchanges (4 messages, about ")
    assert heading == "What I keep in mind of the rest:"
    assert summary == "> A trip to Lisbon.\n> Open: seats."
    assert aside.startswith(
        "In the archive alone: 16 messages, from 2026-08-01 14:00 to 2026-08-01 15:00."
    )
    assert way_back == "`/restore` takes this back."


async def test_where_there_is_nothing_to_do_that_is_told(chat: Chat) -> None:
    assert await chat.compact() == (
        "There is nothing to sum up here yet. What I send along: nothing."
    )
    await chat.said(talk("q"))

    told = await chat.compact()

    assert told.startswith("There is nothing to gain by summing up here yet. What I send along: 1 ")
    assert "archive" not in told
    assert await chat.restore() == NOTHING_TO_RESTORE


async def test_where_a_summary_saves_nothing_that_is_told_and_nothing_is_changed(
    chat: Chat,
) -> None:
    await chat.said(*[talk("q")] * 3)

    told = await chat.compact()

    assert len(chat.cheap.asked) == 1
    assert told.startswith("There is nothing to gain by summing up here yet. What I send along: 3 ")
    assert "/restore" not in told
    assert await chat.restore() == NOTHING_TO_RESTORE


async def test_a_new_topic_and_a_missing_model_are_told(chat: Chat) -> None:
    await chat.said(*[talk("q")] * 6)
    chat.cheap.answer = lambda prompt: detected("ignored", boundary=11)
    topic = await chat.compact()

    def refuse(prompt: str) -> str:
        raise Overloaded("The model service is overloaded.")

    chat.cheap.answer = refuse
    await chat.said(*[talk("call Heizmann, 0431 5550")] * 6)
    alone = await chat.compact()

    assert "A new topic had begun (a new aim)" in topic
    assert "What I keep in mind" not in topic
    assert "without a model to sum it up: The model service is overloaded." in alone
    assert "0431 5550" in alone


async def test_it_is_taken_back(chat: Chat) -> None:
    await chat.said(*[talk("q")] * 6)
    await chat.compact()

    told = await chat.restore()

    assert told.startswith("Taken back: from your next message on I send 12 messages along")
    assert await chat.restore() == NOTHING_TO_RESTORE


async def test_one_of_two_is_taken_back(chat: Chat) -> None:
    for _ in range(2):
        await chat.said(*[talk("q")] * 6)
        await chat.compact()

    assert "the summary before it counts again" in await chat.restore()
    assert "counts again" not in await chat.restore()


async def test_nothing_is_taken_back_while_something_is_answered(chat: Chat) -> None:
    await chat.said(*[talk("q")] * 6)
    await chat.compact()
    chat.busy.add(LANE)

    assert await chat.restore() == BUSY

    chat.busy.clear()
    assert "Taken back" in await chat.restore()
