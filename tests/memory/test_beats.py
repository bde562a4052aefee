"""The last heartbeats are kept, and what was switched by hand stays so."""

from __future__ import annotations

from memory.database.connection import Database
from memory.stores.schedule import BEATS_MAX, WHY_CHARS_MAX, SqliteHeartbeats


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
