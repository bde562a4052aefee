"""Taking back what the last turn stored, and saying what cannot be."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent.tools.workspace import Workspace
from bot.commands.memory.undo import NOT_AGAIN, NOT_AGAIN_TYPED, NOTHING, undo
from memory.database.connection import Database
from memory.database.premises import Premises
from memory.records.erasure import typed_run
from memory.records.facts import FactSource, NewFact, Whose
from memory.records.messages import ConversationId, PersonId, Role, RunId
from memory.records.rows import Person
from memory.records.transcript import Answered, Entry, Said, ToolCall, ToolResult
from memory.stores.conversations import SqliteConversations
from memory.stores.turns import SqliteJournal
from tests.bot.command_kit import asks, tools_with
from tests.memory.forgetting_kit import service_over
from tests.memory.kit import StillClock, run, turn_end

LANE = "telegram:5"
ME = PersonId("p1")
MINE = Whose(person_id=ME)


class Chat:
    """A private chat on a real database."""

    def __init__(self, database: Database, clock: StillClock) -> None:
        self.clock = clock
        self.database = database
        self.journal = SqliteJournal(database)
        folder = database.path.parent
        home = Premises(root=folder, workspace=folder, backups=folder)
        memory = service_over(database, SqliteConversations(database), home, clock=clock)
        self.facts, self.profiles = memory.facts, memory.profiles
        self.turns, self.files = memory.turns, memory.former_files
        self.workspace = Workspace(folder)
        self.tools = tools_with(
            memory=memory, workspace=self.workspace, clock=clock, host_zone="Europe/Oslo"
        )

    async def undo(self, *, by: PersonId = ME, chat: str = "5") -> str:
        person = Person(id=by, role=Role.MEMBER, name="Ann", addresses=(LANE,))
        return await undo(self.tools, asks(person, chat=chat))

    async def turn(self, run_id: str, *done: tuple[str, str], ends: bool = True) -> None:
        """A turn whose calls had these effects."""
        await self.journal.submit(run(run_id, lane=LANE))
        calls: list[Entry] = []
        for n, (name, effect) in enumerate(done):
            call = ToolCall(id=f"k{n}", name=name, arguments="{}")
            calls += [
                Answered(text="", calls=(call,)),
                ToolResult(call_id=f"k{n}", content="done", effect=effect),
            ]
        entries: Sequence[Entry] = (Said(text="do it"), *calls, Answered(text="done"))
        if ends:
            end = turn_end(run_id, ConversationId("c1"), entries=tuple(entries))
            await self.journal.finish(RunId(run_id), end)

    async def learns(self, text: str, run_id: str) -> None:
        await self.facts.store(
            NewFact(
                whose=MINE,
                text=text,
                category="background",
                source=FactSource.TOOL,
                run_id=RunId(run_id),
            )
        )

    async def known(self) -> list[str]:
        return [fact.text for fact in await self.facts.list(MINE)]


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    clock = StillClock()
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:

        def opened(connection: sqlite3.Connection) -> None:
            sql = "insert into conversations (id, lane, created_ms) values ('c1', ?, 1)"
            connection.execute(sql, (LANE,))

        await database.write(opened)
        yield Chat(database, clock)


async def test_facts_and_profile_are_as_they_were_before(chat: Chat) -> None:
    await chat.turn("in-1", ("store_fact", "person"))
    await chat.learns("Ann lives in Oslo.", "in-1")
    await chat.profiles.update(ME, "preferences.units", "metric", reason="said so")
    await chat.turn("in-2", ("store_fact", "person"), ("update_profile", "person"))
    await chat.learns("Ann moved to Bergen.", "in-2")
    await chat.profiles.update(
        ME, "preferences.units", "imperial", reason="said so", run_id=RunId("in-2")
    )

    said = await chat.undo()

    assert said == (
        "Taken back from the answer of 14:00:\n"
        "- no longer known: f2 “Ann moved to Bergen.”\n"
        "- known again: f1 “Ann lives in Oslo.”\n"
        "- profile: preferences.units is metric again"
    )
    assert await chat.known() == ["Ann lives in Oslo."]
    assert (await chat.profiles.get(ME))["preferences"] == {"units": "metric"}


async def test_a_second_time_it_does_not_go_further_back(chat: Chat) -> None:
    await chat.turn("in-1", ("store_fact", "person"))
    await chat.learns("Ann plays the oboe.", "in-1")
    await chat.turn("in-2", ("store_fact", "person"))
    await chat.learns("Ben has a boat.", "in-2")
    await chat.undo()

    assert await chat.undo() == NOT_AGAIN

    assert await chat.known() == ["Ann plays the oboe."]


async def remembers(chat: Chat, text: str, message_id: str, *, by: PersonId = ME) -> None:
    """What `/remember` stores."""
    new = NewFact(
        whose=Whose(person_id=by),
        text=text,
        category="background",
        source=FactSource.PERSON,
        run_id=typed_run(by, LANE, message_id),
    )
    await chat.facts.store(new)


async def test_what_a_command_stored_after_the_last_answer_is_taken_back_and_the_answer_stays(
    chat: Chat,
) -> None:
    await chat.turn("in-1", ("store_fact", "person"))
    await chat.learns("Ann lives in Oslo.", "in-1")
    chat.clock.move(60)
    await remembers(chat, "Ann moved to Bergen.", "7")

    said = await chat.undo()

    assert said == (
        "Taken back from what you had me keep at 14:01:\n"
        "- no longer known: f2 “Ann moved to Bergen.”\n"
        "- known again: f1 “Ann lives in Oslo.”"
    )
    chat.clock.move(60)
    assert await chat.undo() == NOT_AGAIN_TYPED
    assert await chat.known() == ["Ann lives in Oslo."]


async def test_an_answer_after_a_command_is_the_last_one_again(chat: Chat) -> None:
    await remembers(chat, "Ann plays the oboe.", "7")
    chat.clock.move(60)
    await chat.undo()
    await remembers(chat, "Ann has a dog.", "8")
    chat.clock.move(60)
    await chat.turn("in-1", ("store_fact", "person"))
    await chat.learns("Ben has a boat.", "in-1")

    assert "f2 “Ben has a boat.”" in (await chat.undo()).replace("f3", "f2")
    assert await chat.known() == ["Ann has a dog."]


async def test_a_turn_that_is_not_over_is_left(chat: Chat) -> None:
    await chat.turn("in-1", ends=False)
    await chat.learns("Ann plays the oboe.", "in-1")

    assert await chat.undo() == NOTHING


async def test_what_others_or_what_one_typed_elsewhere_stays(chat: Chat) -> None:
    await remembers(chat, "Ben plays the oboe.", "7", by=PersonId("p2"))
    await remembers(chat, "Ann has a dog.", "8")

    assert await chat.undo(chat="55") == NOTHING
    assert await chat.known() == ["Ann has a dog."]


async def test_a_crash_in_the_middle_of_taking_back_a_command_is_made_up_for(chat: Chat) -> None:
    await remembers(chat, "Ann has a dog.", "8")
    chat.clock.move(1)
    await chat.turns.undone([typed_run(ME, LANE, "8")])

    assert "“Ann has a dog.”" in await chat.undo()
    assert await chat.known() == []


async def test_what_was_done_later_can_be_taken_back_again(chat: Chat) -> None:
    await chat.turn("in-1")
    await chat.learns("Ann plays the oboe.", "in-1")
    await chat.undo()
    await chat.turn("in-2")
    await chat.learns("Ben has a boat.", "in-2")

    assert "Ben has a boat." in await chat.undo()
    assert await chat.known() == []


async def test_what_cannot_be_taken_back_is_said(chat: Chat) -> None:
    await chat.turn(
        "in-1",
        ("store_fact", "person"),
        ("write_file", "workspace"),
        ("mail__send", "outside"),
        ("forget_fact", "person"),
        ("mail__send", "outside"),
    )
    await chat.learns("Ann plays the oboe.", "in-1")

    said = await chat.undo()

    assert said.split("\n\n")[1] == (
        "What I cannot take back:\n"
        "- a file was written (`write_file`)\n"
        "- something was done outside (`mail__send`)\n"
        "- something was forgotten, which is for good (`forget_fact`)"
    )


async def test_a_turn_that_only_acted_outside_is_told_and_not_passed_over(chat: Chat) -> None:
    await chat.turn("in-1", ("store_fact", "person"))
    await chat.learns("Ann plays the oboe.", "in-1")
    await chat.turn("in-2", ("send_message", "person"))

    said = await chat.undo()

    assert said.startswith("Of the answer of 14:00 I can take nothing back:\n- a message was sent")
    assert await chat.known() == ["Ann plays the oboe."]
    assert await chat.undo() == NOT_AGAIN


async def test_answers_that_changed_nothing_are_passed_over(chat: Chat) -> None:
    await chat.turn("in-1", ("store_fact", "person"))
    await chat.learns("Ann plays the oboe.", "in-1")
    for n in range(2, 8):
        await chat.turn(f"in-{n}")

    assert "Ann plays the oboe." in await chat.undo()


async def test_what_a_subagent_stored_goes_with_its_turn(chat: Chat) -> None:
    await chat.turn("in-1")
    await chat.journal.submit(run("task-1", lane="agent:task-1"))

    def child(connection: sqlite3.Connection) -> None:
        sql = "insert into children values ('task-1', 'in-1', ?, 1, 1, 'look')"
        connection.execute(sql, (LANE,))

    await chat.database.write(child)
    await chat.learns("Ann plays the oboe.", "task-1")

    assert "Ann plays the oboe." in await chat.undo()
    assert await chat.known() == []


async def test_nothing_is_taken_back_after_a_day_elsewhere_or_for_another(chat: Chat) -> None:
    await chat.turn("in-1")
    await chat.learns("Ann plays the oboe.", "in-1")

    assert await chat.undo(chat="6") == NOTHING
    assert await chat.undo(by=PersonId("p2")) == NOTHING
    chat.clock.move(24 * 3600 + 1)
    assert await chat.undo() == NOTHING
    assert await chat.known() == ["Ann plays the oboe."]


async def test_what_a_crash_left_is_taken_back_when_it_is_asked_for_again(chat: Chat) -> None:
    await chat.turn("in-1")
    await chat.learns("Ann plays the oboe.", "in-1")
    await chat.turns.undone([RunId("in-1")])  # killed right after

    assert "Ann plays the oboe." in await chat.undo()
    assert await chat.undo() == NOT_AGAIN
