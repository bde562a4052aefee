"""What the clock brings beside jobs: events, timers of silent conversations, heartbeats."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.database.connection import Database
from memory.records.messages import ConversationId, PersonId, RunId
from memory.records.schedule import Event, Remind
from memory.stores.conversations import SqliteConversations
from memory.stores.schedule import (
    BEATS_MAX,
    WHY_CHARS_MAX,
    SqliteEvents,
    SqliteHeartbeats,
    SqliteIdle,
)
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, START, START_MS, StillClock, run, turn_end

# --- events --------------------------------------------------------------------------------------


DENTIST = Event(
    person_id=PersonId("p1"),
    name="Dentist",
    at=START + timedelta(days=3),
    zone="Europe/Berlin",
    note="bring the card",
    remind=(Remind.BEFORE, Remind.ON),
)
SOME_DAY = Event(person_id=PersonId("p1"), name="Move house", at=None, zone="UTC")


async def kept(events: SqliteEvents, new: Event) -> Event:
    made = await events.add(new, limit=50)
    assert made is not None
    return made


async def names(
    events: SqliteEvents, person: str = "p1", scope: str = "", *, since_ms: int = START_MS
) -> list[str]:
    found = await events.since(
        PersonId(person), scope, since_ms=since_ms, undated_since_ms=START_MS - 1000
    )
    return [one.name for one in found]


async def test_the_same_call_notes_nothing_anew(database: Database) -> None:
    events = SqliteEvents(database)

    first = await kept(events, replace(DENTIST, run_id=RunId("r1#a")))
    again = await kept(events, replace(DENTIST, name="other", run_id=RunId("r1#a")))
    other = await kept(events, replace(DENTIST, run_id=RunId("r1#b")))

    assert again == first
    assert other.id != first.id


async def test_nobody_finds_or_removes_those_of_somebody_else_or_of_another_chat(
    database: Database,
) -> None:
    events = SqliteEvents(database)
    made = await kept(events, DENTIST)
    await kept(events, replace(DENTIST, name="in the group", scope="telegram:-100"))

    assert await names(events, "p2") == []
    assert await names(events, scope="telegram:-100") == ["in the group"]
    assert await events.remove(PersonId("p2"), made.id, "") is None
    assert await events.remove(PersonId("p1"), made.id, "telegram:-100") is None
    assert await events.remove(PersonId("p1"), made.id, "") == made
    assert await events.remove(PersonId("p1"), made.id, "") is None


async def test_of_one_person_there_are_so_many_and_no_more(database: Database) -> None:
    events = SqliteEvents(database)
    past = replace(DENTIST, at=START - timedelta(days=1))

    for new in (past, DENTIST, SOME_DAY):
        assert await events.add(new, limit=2) is not None

    assert await events.add(DENTIST, limit=2) is None
    assert await events.add(replace(DENTIST, person_id=PersonId("p2")), limit=2) is not None


async def test_a_row_that_cannot_be_read_hides_no_other(database: Database) -> None:
    events = SqliteEvents(database)
    broken = await kept(events, replace(DENTIST, name="broken"))
    await kept(events, DENTIST)

    await database.write(
        lambda c: c.execute("update events set remind = '[\"never\"' where id = ?", (broken.id,))
    )

    assert await names(events) == ["Dentist"]


# --- idle ----------------------------------------------------------------------------------------


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


# --- beats ---------------------------------------------------------------------------------------


async def test_of_many_the_oldest_go(database: Database) -> None:
    beats = SqliteHeartbeats(database)
    await database.write(
        lambda c: c.executemany(
            "insert into heartbeats (agent, at_ms, outcome, why) values ('default', 1, 'told', ?)",
            [(str(n),) for n in range(BEATS_MAX)],
        )
    )

    await beats.beat("default", "told", "x" * 10_000)

    found = await beats.last("default", 10_000)
    assert len(found) == BEATS_MAX
    assert found[0].why == "x" * WHY_CHARS_MAX
    assert found[-1].why == "1"
