"""The last heartbeats are kept, and what was switched by hand stays so."""

from __future__ import annotations

from memory.database.connection import Database
from memory.stores.heartbeats import BEATS_MAX, WHY_CHARS_MAX, SqliteHeartbeats, SqliteSwitches
from tests.memory.kit import START_MS, StillClock


async def test_the_newest_heartbeats_of_an_agent_come_first(
    database: Database, clock: StillClock
) -> None:
    beats = SqliteHeartbeats(database)

    for why in ("nothing to do", "a task"):
        await beats.beat("default", "skipped", why)
        clock.move(1)
    await beats.beat("work", "told", "else")

    found = await beats.last("default", 10)
    assert [(beat.at_ms - START_MS, beat.outcome, beat.why) for beat in found] == [
        (1000, "skipped", "a task"),
        (0, "skipped", "nothing to do"),
    ]
    assert [beat.why for beat in await beats.last("default", 1)] == ["a task"]


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


async def test_a_switch_says_nothing_until_it_was_set(database: Database) -> None:
    switches = SqliteSwitches(database)

    assert await switches.is_on("heartbeat") is None
    await switches.set_on("heartbeat", False)
    assert await switches.is_on("heartbeat") is False
    await switches.set_on("heartbeat", True)
    assert await switches.is_on("heartbeat") is True
    assert await switches.is_on("other") is None
