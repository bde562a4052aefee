"""Timers of conversations that have fallen silent: the `IdleStore` that the scheduler needs.

The journal opens one with the end of each turn; `done_upto` belongs to `memory.lines`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from agent.messages import ConversationId
from memory.database import Database

_DUE = """
select conversation_id, idle_timers.lane, touched_ms, tries
from idle_timers join conversations on conversations.id = conversation_id
where is_open and not is_private and not_before_ms <= ?
    and (touched_ms <= ? or closed_ms is not null)
order by touched_ms, conversation_id limit ?
"""
_CLOSE = """
update idle_timers set is_open = 0, tries = 0, not_before_ms = 0
where conversation_id = ? and touched_ms = ? and is_open
"""
_PUT_OFF = """
update idle_timers set tries = tries + 1, not_before_ms = ?
where conversation_id = ? and touched_ms = ? and is_open
"""
_AHEAD = "select count(*) from idle_timers where is_open and (touched_ms > ? or not_before_ms > ?)"
_STEADY = """
update idle_timers set touched_ms = min(touched_ms, ?),
    not_before_ms = case when not_before_ms > ? then ? else not_before_ms end
where is_open and (touched_ms > ? or not_before_ms > ?)
"""
_LAST_TOUCHED = """
select touched_ms from conversations join idle_timers on conversation_id = conversations.id
where conversations.lane = ? and closed_ms is null and not is_private
"""

_SLACK_MS = 60_000
"""A clock that is corrected by less than this was not set back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTimer:
    """See `scheduler.ports.IdleTimer`."""

    conversation: ConversationId
    lane: str
    touched_ms: int
    tries: int


class SqliteIdle:
    """Implements `scheduler.ports.IdleStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, *, now_ms: int, idle_ms: int, limit: int) -> Sequence[OpenTimer]:
        """Open timers that need wait for nothing more, the longest silent first."""
        values = (now_ms, now_ms - idle_ms, max(limit, 0))
        rows = await self._database.read(lambda c: c.execute(_DUE, values).fetchall())
        return [
            OpenTimer(conversation=ConversationId(which), lane=lane, touched_ms=ms, tries=tries)
            for which, lane, ms, tries in rows
        ]

    async def close(self, conversation: ConversationId, *, touched_ms: int) -> bool:
        """Nothing is left to do; False when somebody has spoken since."""
        return await self._change(_CLOSE, (conversation, touched_ms)) > 0

    async def put_off(
        self, conversation: ConversationId, *, touched_ms: int, until_ms: int
    ) -> bool:
        """Counts a failure, and waits until then; False when somebody has spoken since."""
        return await self._change(_PUT_OFF, (until_ms, conversation, touched_ms)) > 0

    async def steady(self, *, now_ms: int, ahead_ms: int) -> int:
        """Sets to now what is touched in the future, or put off for too long."""
        limits = (now_ms + _SLACK_MS, now_ms + ahead_ms + _SLACK_MS)
        # Asked at every look: a write each time would wake the disk for nothing.
        (ahead,) = await self._database.read(lambda c: c.execute(_AHEAD, limits).fetchone())
        if not ahead:
            return 0
        return await self._change(_STEADY, (now_ms, limits[1], now_ms, *limits))

    async def last_touched(self, lane: str) -> int | None:
        """When the last turn of the open conversation of an address ended."""
        row = await self._database.read(lambda c: c.execute(_LAST_TOUCHED, (lane,)).fetchone())
        return None if row is None else int(row[0])

    async def _change(self, sql: str, values: tuple[object, ...]) -> int:
        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(sql, values).rowcount

        return await self._database.write(work)
