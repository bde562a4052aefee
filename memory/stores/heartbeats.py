"""What the heartbeats did, the last ones, and what was switched on or off by hand: `Beats` and
`Switches` of the core.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memory.database.connection import Database
from memory.database.stored_text import storable
from memory.records.schedule import Beat

BEATS_MAX = 500
"""Of all agents together: ten days of one heartbeat every half hour."""

WHY_CHARS_MAX = 500

_ADD = "insert into heartbeats (agent, at_ms, outcome, why) values (?, ?, ?, ?)"
_TRIM = """
delete from heartbeats where id <= (select id from heartbeats order by id desc limit 1 offset ?)
"""
_LAST = """
select at_ms, outcome, why from heartbeats where agent = ? order by id desc limit ?
"""
_IS_ON = "select is_on from switches where name = ?"
_SET_ON = """
insert into switches (name, is_on, set_ms) values (?, ?, ?)
on conflict (name) do update set is_on = excluded.is_on, set_ms = excluded.set_ms
"""


class SqliteBeats:
    """Implements `memory.records.schedule.Beats`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def beat(self, agent: str, outcome: str, why: str) -> None:
        """Writes one; beyond BEATS_MAX the oldest go."""
        texts = (storable(outcome), storable(why[:WHY_CHARS_MAX]))
        values = (agent, self._database.now_ms(), *texts)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD, values)
            connection.execute(_TRIM, (BEATS_MAX,))

        await self._database.write(work)

    async def last(self, agent: str, n: int) -> Sequence[Beat]:
        """The newest first."""
        values = (agent, max(n, 0))
        rows = await self._database.read(lambda c: c.execute(_LAST, values).fetchall())
        return [Beat(at_ms=at_ms, outcome=outcome, why=why) for at_ms, outcome, why in rows]


class SqliteSwitches:
    """Implements `memory.records.schedule.Switches`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_on(self, name: str) -> bool | None:
        """None: it was not set by hand."""
        row = await self._database.read(lambda c: c.execute(_IS_ON, (name,)).fetchone())
        return None if row is None else bool(row[0])

    async def set_on(self, name: str, is_on: bool) -> None:
        """Keeps it, beyond a restart."""
        values = (name, int(is_on), self._database.now_ms())

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SET_ON, values)

        await self._database.write(work)
