"""What the heartbeats did, what was switched on or off by hand, and timers of conversations that
have fallen silent.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memory.database.connection import Database
from memory.database.stored_text import storable
from memory.records.messages import ConversationId
from memory.records.schedule import HeartbeatRun

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


class SqliteHeartbeats:
    """The last heartbeats of each agent. Raises StorageError."""

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

    async def last(self, agent: str, n: int) -> Sequence[HeartbeatRun]:
        """The newest first."""
        values = (agent, max(n, 0))
        return await self._database.records(HeartbeatRun, _LAST, values)


class SqliteSwitches:
    """What was switched on or off by hand. Raises StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_on(self, name: str) -> bool | None:
        """None: it was not set by hand."""
        found = await self._database.value(_IS_ON, (name,))
        return None if found is None else bool(found)

    async def set_on(self, name: str, is_on: bool) -> None:
        """Keeps it, beyond a restart."""
        await self._database.execute(_SET_ON, (name, int(is_on), self._database.now_ms()))


# --- idle timers --------------------------------------------------------------------------------
#
# The journal opens one with the end of each turn; `done_upto` belongs to `memory.stores.lines`.

_DUE = """
select conversation_id as conversation, idle_timers.lane, touched_ms, tries
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
class IdleTimer:
    """A conversation in which something is left to do. `touched_ms` is the end of its last turn,
    epoch milliseconds; `tries` how often the work on it failed since."""

    conversation: ConversationId
    lane: str
    touched_ms: int
    tries: int


class SqliteIdle:
    """Keeps one timer for each conversation; the end of a turn opens it. Raises StorageError.

    What changes a timer names the `touched_ms` that it was read with, and changes nothing once
    somebody has spoken since.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, *, now_ms: int, idle_ms: int, limit: int) -> Sequence[IdleTimer]:
        """Return open timers that need wait for nothing more, the longest silent first: untouched
        for `idle_ms`, or of a conversation that is closed. None of one in which memory is off."""
        values = (now_ms, now_ms - idle_ms, max(limit, 0))
        return await self._database.records(IdleTimer, _DUE, values)

    async def close(self, conversation: ConversationId, *, touched_ms: int) -> bool:
        """Nothing is left to do; False when somebody has spoken since."""
        return await self._database.execute(_CLOSE, (conversation, touched_ms)) > 0

    async def put_off(
        self, conversation: ConversationId, *, touched_ms: int, until_ms: int
    ) -> bool:
        """Counts a failure, and waits until then; False when somebody has spoken since."""
        values = (until_ms, conversation, touched_ms)
        return await self._database.execute(_PUT_OFF, values) > 0

    async def steady(self, *, now_ms: int, ahead_ms: int) -> int:
        """Set to now what is touched in the future, or put off for longer than `ahead_ms`: the
        clock was set back. Return how many were."""
        limits = (now_ms + _SLACK_MS, now_ms + ahead_ms + _SLACK_MS)
        # Asked at every look: a write each time would wake the disk for nothing.
        if not await self._database.value(_AHEAD, limits):
            return 0
        return await self._database.execute(_STEADY, (now_ms, limits[1], now_ms, *limits))

    async def last_touched(self, lane: str) -> int | None:
        """Return when the last turn of the open conversation of an address ended; None: there was
        none, or memory is off in it."""
        found: int | None = await self._database.value(_LAST_TOUCHED, (lane,))
        return found
