"""A conversation with memory off, and that nothing of it is left once it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.commands.memory.commands import (
    BEGUN,
    BEGUN_ALREADY,
    ENDED,
    ENDED_LATER,
    NOT_ON,
    PRIVATE_ELSEWHERE,
    ended,
    private,
)
from memory.database.connection import Database
from memory.database.premises import Premises
from memory.records.messages import PersonId, Role, RunId
from memory.records.rows import Person
from memory.records.transcript import Answered, Said
from memory.stores.conversations import SqliteConversations
from memory.stores.turns import SqliteJournal
from tests.bot.command_kit import asks, tools_with
from tests.memory.forgetting_kit import service_over
from tests.memory.kit import StillClock, run, turn_end

LANE = "telegram:5"
WORDS = "the marmalade is hidden behind the clock"


class Chat:
    """A private chat on a real database."""

    def __init__(self, database: Database, home: Path) -> None:
        self.home = home
        self.database = database
        self.journal = SqliteJournal(database)
        self.conversations = SqliteConversations(database)
        premises = Premises(root=home, workspace=home / "workspace", backups=home / "backups")
        self.memory = service_over(database, self.conversations, premises, clock=StillClock())
        self.store = self.memory.private
        self.tools = tools_with(memory=self.memory)

    async def says(self, rest: str = "", *, is_group: bool = False) -> str:
        person = Person(id=PersonId("p1"), role=Role.OWNER, name="Ann", addresses=(LANE,))
        return await private(self.tools, asks(person, rest, is_group=is_group))

    async def turn(self, run_id: str, words: str, *, ends: bool = True) -> None:
        await self.journal.submit(run(run_id, lane=LANE, payload={"text": words}))
        await self.journal.begin(RunId(run_id))
        await self.journal.record(RunId(run_id), 0, "begin", {"words": words})
        if ends:
            await self.end(run_id, words)

    async def end(self, run_id: str, words: str) -> None:
        conversation = await self.conversations.current(LANE)
        said = (Said(text=words), Answered(text=f"I see: {words}"))
        end = turn_end(run_id, conversation, entries=said, reply=f"I see: {words}")
        await self.journal.finish(RunId(run_id), end)

    def files_with(self, words: str) -> list[str]:
        files = [path for path in self.home.rglob("*") if path.is_file()]
        return [path.name for path in files if words.encode() in path.read_bytes()]


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    path = tmp_path / "data" / "hearthbot.db"
    async with Database.open(path, clock=StillClock(), backups=tmp_path / "backups") as database:
        yield Chat(database, tmp_path)


async def is_private(chat: Chat) -> bool:
    conversation = await chat.conversations.current(LANE)
    return (await chat.conversations.history(conversation)).is_private


async def test_it_begins_a_conversation_in_which_memory_is_off(chat: Chat) -> None:
    before = await chat.conversations.current(LANE)

    assert await chat.says() == BEGUN

    assert await chat.conversations.current(LANE) != before
    assert await is_private(chat)
    assert await chat.says() == BEGUN_ALREADY
    assert await chat.says("on") == BEGUN_ALREADY


async def test_at_its_end_nothing_of_it_is_left_in_any_file(chat: Chat) -> None:
    await chat.turn("in-1", "the kettle is old")
    await chat.says()
    await chat.turn("in-2", WORDS)
    await chat.database.backup_if_due(chat.home / "backups")
    kept = chat.home / "workspace" / "files" / "results" / "telegram+5"
    kept.mkdir(parents=True)
    for name in ("in-2-0123456789ab.txt", "in-1-0123456789ab.txt"):
        (kept / name).write_text(f"{name} {WORDS if 'in-2' in name else ''}")
    assert set(chat.files_with(WORDS)) >= {"hearthbot-20260801.db", "in-2-0123456789ab.txt"}

    assert await chat.says("off") == ENDED

    assert chat.files_with(WORDS) == []
    kettle = chat.files_with("the kettle is old")
    assert sorted(kettle) == ["hearthbot-20260801.db", "hearthbot.db"]
    assert [path.name for path in kept.iterdir()] == ["in-1-0123456789ab.txt"]
    assert not await is_private(chat)
    assert await chat.database.check() == ""


async def test_a_new_conversation_ends_it_as_well(chat: Chat) -> None:
    await chat.says()
    await chat.turn("in-1", WORDS)

    assert await chat.store.is_private(LANE)
    await chat.conversations.start_new(LANE)
    assert await ended(chat.memory) == ENDED

    assert chat.files_with(WORDS) == []


async def test_one_in_which_an_answer_is_being_made_is_erased_after_it(chat: Chat) -> None:
    await chat.says()
    await chat.turn("in-1", WORDS, ends=False)

    assert await chat.says("off") == ENDED_LATER
    assert await chat.store.sweep() == 1

    await chat.journal.finish(
        RunId("in-1"), turn_end("in-1", await chat.conversations.current(LANE), entries=())
    )
    assert await chat.store.sweep() == 0


async def test_what_a_crash_left_is_erased_at_the_next_start(chat: Chat) -> None:
    await chat.says()
    await chat.turn("in-1", WORDS)
    await chat.store.end(LANE)  # killed before it was erased
    assert chat.files_with(WORDS) != []

    assert await chat.store.sweep() == 0

    assert chat.files_with(WORDS) == []
    assert await chat.store.sweep() == 0


async def test_a_usual_conversation_is_never_erased(chat: Chat) -> None:
    await chat.turn("in-1", WORDS)
    await chat.conversations.start_new(LANE)

    assert await chat.says("off") == NOT_ON
    assert await chat.store.sweep() == 0

    assert "hearthbot.db-wal" in chat.files_with(WORDS)


async def test_in_a_group_it_is_not_done(chat: Chat) -> None:
    assert await chat.says(is_group=True) == PRIVATE_ELSEWHERE
    assert not await is_private(chat)
