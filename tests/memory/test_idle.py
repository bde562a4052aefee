"""Timers of silent conversations: opened by turns, closed by work, kept through everything else."""

from __future__ import annotations

import pytest

from memory.database.connection import Database
from memory.records.messages import ConversationId
from memory.stores.conversations import SqliteConversations
from memory.stores.schedule import SqliteIdle
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, START_MS, StillClock, run, turn_end

IDLE_MS = 300_000
DAY_MS = 86_400_000


@pytest.fixture
def idle(database: Database) -> SqliteIdle:
    return SqliteIdle(database)


class Talk:
    """Turns that end, in one conversation or another."""

    def __init__(self, database: Database) -> None:
        self.conversations = SqliteConversations(database)
        self._journal = SqliteJournal(database)
        self._n = 0

    async def turn(self, lane: str = LANE) -> ConversationId:
        self._n += 1
        conversation = await self.conversations.current(lane)
        await self._journal.submit(run(f"r{self._n}", lane=lane))
        await self._journal.finish(run(f"r{self._n}").run_id, turn_end(f"r{self._n}", conversation))
        return conversation


@pytest.fixture
def talk(database: Database) -> Talk:
    return Talk(database)


async def due(idle: SqliteIdle, now_ms: int, *, limit: int = 10) -> list[ConversationId]:
    found = await idle.due(now_ms=now_ms, idle_ms=IDLE_MS, limit=limit)
    return [timer.conversation for timer in found]


async def test_a_conversation_is_due_once_it_was_silent_for_long_enough(
    idle: SqliteIdle, talk: Talk
) -> None:
    conversation = await talk.turn()

    assert await due(idle, START_MS + IDLE_MS - 1) == []
    assert await due(idle, START_MS + IDLE_MS) == [conversation]
    (timer,) = await idle.due(now_ms=START_MS + IDLE_MS, idle_ms=IDLE_MS, limit=1)
    assert (timer.lane, timer.touched_ms, timer.tries) == (LANE, START_MS, 0)


async def test_where_memory_is_off_nothing_is_due(
    idle: SqliteIdle, talk: Talk, database: Database
) -> None:
    await talk.turn()
    await database.write(lambda c: c.execute("update conversations set is_private = 1"))

    assert await due(idle, START_MS + IDLE_MS) == []
    assert await idle.last_touched(LANE) is None


async def test_a_turn_that_came_meanwhile_keeps_it_open(
    idle: SqliteIdle, talk: Talk, clock: StillClock
) -> None:
    conversation = await talk.turn()
    clock.move(400)
    await talk.turn()

    closed = await idle.close(conversation, touched_ms=START_MS)
    put_off = await idle.put_off(conversation, touched_ms=START_MS, until_ms=START_MS + DAY_MS)

    assert (closed, put_off) == (False, False)
    assert await due(idle, START_MS + 400_000 + IDLE_MS) == [conversation]


async def test_what_was_put_off_waits_and_counts_its_failures_until_a_turn_comes(
    idle: SqliteIdle, talk: Talk, clock: StillClock
) -> None:
    conversation = await talk.turn()
    until_ms = START_MS + 2 * IDLE_MS

    for _ in range(2):
        await idle.put_off(conversation, touched_ms=START_MS, until_ms=until_ms)

    assert await due(idle, until_ms - 1) == []
    (timer,) = await idle.due(now_ms=until_ms, idle_ms=IDLE_MS, limit=1)
    assert timer.tries == 2
    clock.move(1)
    await talk.turn()
    (timer,) = await idle.due(now_ms=START_MS + 1_000 + IDLE_MS, idle_ms=IDLE_MS, limit=1)
    assert timer.tries == 0


async def test_times_ahead_of_a_clock_that_was_set_back_are_taken_for_now(
    idle: SqliteIdle, talk: Talk
) -> None:
    conversation = await talk.turn()
    year_ago_ms = START_MS - 365 * DAY_MS

    moved = await idle.steady(now_ms=year_ago_ms, ahead_ms=DAY_MS)

    assert moved == 1
    assert await idle.steady(now_ms=year_ago_ms, ahead_ms=DAY_MS) == 0
    assert await due(idle, year_ago_ms) == []
    assert await due(idle, year_ago_ms + IDLE_MS) == [conversation]
