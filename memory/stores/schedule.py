"""What the clock brings beside jobs: notifications, told or held back, quiet hours, heartbeats,
timers of silent conversations, and events that people have noted."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from memory.database.connection import Database
from memory.database.rows import named, record, storable, to_row
from memory.records.jobs import Held, HeldNotification, Notification, SlotState
from memory.records.messages import ConversationId, OutboxId, PersonId
from memory.records.rows import NewMessage
from memory.records.schedule import Event, HeartbeatRun
from memory.stores.inbox import join_history
from memory.stores.outbox import add_message

_COUNT = """
select count(*) from tellings where person_id = ? and told_ms >= ? and told_ms <= ? and counts
"""
_FINDINGS = """
select finding from tellings
where job_id = ? and created_ms >= ? and created_ms <= ? and finding <> '' order by id desc
"""
_ADD = """
insert into tellings
    (person_id, lane, job_id, slot, text, finding, counts, why, created_ms, told_ms)
values (:person_id, :lane, :job_id, :slot, :text, :finding, :counts, :why, :now_ms, :told_ms)
"""
_END = """
update job_runs set state = ?, outbox_id = ?, result = null, ended_ms = ?
where job_id = ? and slot = ? and ended_ms is null and state <> 'waiting'
"""
_WAITING = """
select tellings.id, tellings.person_id, lane, text, why, tellings.created_ms,
    jobs.name as job_name
from tellings left join jobs on jobs.id = tellings.job_id
where told_ms is null order by tellings.id
"""
# A digest counts toward no day: it is what was too much for another one, or one message for many.
_TOLD = """
update tellings set told_ms = ?, counts = 0 where id = ? and told_ms is null
returning job_id, slot
"""
_END_WAITING = """
update job_runs set state = 'told', outbox_id = ?, ended_ms = ?
where job_id = ? and slot = ? and state = 'waiting'
"""
_DROP = "delete from tellings where id = ? and told_ms is null returning job_id, slot"
_END_DROPPED = """
update job_runs set state = 'failed', note = ?, ended_ms = ?
where job_id = ? and slot = ? and state = 'waiting'
"""
_QUIET = "select from_minute, to_minute from quiet_hours where person_id = ?"
_SET_QUIET = """
insert into quiet_hours (person_id, from_minute, to_minute, set_ms) values (?, ?, ?, ?)
on conflict (person_id) do update set
    from_minute = excluded.from_minute, to_minute = excluded.to_minute, set_ms = excluded.set_ms
"""
_DROP_QUIET = "delete from quiet_hours where person_id = ?"


class SqliteTellings:
    """Notifications, told and held back, and quiet hours, in SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, person_id: PersonId, *, since_ms: int) -> int:
        """Return how many that count were told to a person."""
        values = (person_id, since_ms, self._database.now_ms())
        return int(await self._database.value(_COUNT, values))

    async def findings(self, job_id: int, *, since_ms: int) -> Sequence[str]:
        """Return what a job told (or holds back) since then."""
        values = (job_id, since_ms, self._database.now_ms())
        return [text for (text,) in await self._database.rows(_FINDINGS, values)]

    async def tell(self, new: Notification, message: NewMessage) -> OutboxId | None:
        """Sends it; None when the slot is over."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> OutboxId | None:
            slot = (new.job.id, new.due.slot)
            ended = connection.execute(_END, (SlotState.TOLD, None, now_ms, *slot)).rowcount
            if not ended:
                return None
            outbox_id = add_message(connection, message, now_ms=now_ms)
            connection.execute(_SET_OUTBOX, (outbox_id, *slot))
            connection.execute(_ADD, _row(new, why="", now_ms=now_ms, told_ms=now_ms))
            join_history(
                connection,
                message.lane,
                run_id=f"{new.job.key}:{new.due.slot}",
                note=new.note,
                text=message.text,
                tainted=new.tainted,
                now_ms=now_ms,
            )
            return outbox_id

        return await self._database.write(work)

    async def hold(self, new: Notification, why: Held) -> bool:
        """Keeps it for later; False when the slot is over."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> bool:
            slot = (new.job.id, new.due.slot)
            held = connection.execute(_END, (SlotState.WAITING, None, None, *slot)).rowcount > 0
            if held:
                connection.execute(_ADD, _row(new, why=why, now_ms=now_ms, told_ms=None))
            return held

        return await self._database.write(work)

    async def waiting(self) -> Sequence[HeldNotification]:
        """All that waits, the oldest first."""
        return await self._database.records(HeldNotification, _WAITING)

    async def tell_waiting(
        self, those: Sequence[HeldNotification], message: NewMessage, *, note: str
    ) -> OutboxId | None:
        """Sends one message in their place; None when one of them was told before."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> OutboxId | None:
            told = [connection.execute(_TOLD, (now_ms, one.id)).fetchone() for one in those]
            if not told or None in told:
                raise _ToldBefore
            outbox_id = add_message(connection, message, now_ms=now_ms)
            connection.executemany(_END_WAITING, [(outbox_id, now_ms, *slot) for slot in told])
            run_id = f"digest:{those[0].id}"
            # What it rests on is not known of each part any more: it counts as from outside.
            join_history(
                connection,
                message.lane,
                run_id=run_id,
                note=note,
                text=message.text,
                tainted=True,
                now_ms=now_ms,
            )
            return outbox_id

        try:
            return await self._database.write(work)
        except _ToldBefore:
            return None

    async def drop(self, those: Sequence[HeldNotification], *, why: str) -> int:
        """Tells none of them any more: their slots are FAILED. How many waited still."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> int:
            rows = [connection.execute(_DROP, (one.id,)).fetchone() for one in those]
            dropped = [row for row in rows if row is not None]
            connection.executemany(_END_DROPPED, [(why, now_ms, *slot) for slot in dropped])
            return len(dropped)

        return await self._database.write(work)

    async def quiet_hours(self, person_id: PersonId) -> tuple[int, int] | None:
        """From which minute of the day to which; None: there are none."""
        rows = await self._database.rows(_QUIET, (person_id,))
        return (rows[0][0], rows[0][1]) if rows else None

    async def set_quiet_hours(self, person_id: PersonId, hours: tuple[int, int] | None) -> None:
        """Sets or drops them."""
        if hours is None:
            await self._database.execute(_DROP_QUIET, (person_id,))
        else:
            values = (person_id, *hours, self._database.now_ms())
            await self._database.execute(_SET_QUIET, values)


_SET_OUTBOX = "update job_runs set outbox_id = ? where job_id = ? and slot = ?"


class _ToldBefore(Exception):
    """Rolls a digest back of which a part was told already."""


def _row(new: Notification, *, why: str, now_ms: int, told_ms: int | None) -> dict[str, object]:
    job = new.job
    whose = {"person_id": job.person_id, "lane": job.deliver_to, "job_id": job.id}
    times = {"slot": new.due.slot, "why": why, "now_ms": now_ms, "told_ms": told_ms}
    return {**to_row(new), **whose, **times}


# --- heartbeats ---------------------------------------------------------------------------------
#
# What the heartbeats did, what was switched on or off by hand, and timers of conversations that
# have fallen silent.

BEATS_MAX = 500
"""Of all agents together: ten days of one heartbeat every half hour."""

WHY_CHARS_MAX = 500

_ADD_BEAT = "insert into heartbeats (agent, at_ms, outcome, why) values (?, ?, ?, ?)"
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
            connection.execute(_ADD_BEAT, values)
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


# --- events -------------------------------------------------------------------------------------
#
# Events that people have noted.

log = structlog.get_logger()

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_COLUMNS = """
id, person_id, scope, name, at_ms, all_day, zone, note, remind, nullif(run_id, '') as run_id,
    created_ms
"""
_MADE = f"select {_COLUMNS} from events where person_id = ? and run_id = ? and run_id <> ''"  # noqa: S608
_COUNT_EVENTS = "select count(*) from events where person_id = ? and (at_ms is null or at_ms >= ?)"
_ADD_EVENT = f"""
insert into events (person_id, scope, name, at_ms, all_day, zone, note, remind, run_id, created_ms)
values (:person_id, :scope, :name, :at_ms, :all_day, :zone, :note, :remind,
    coalesce(:run_id, ''), :created_ms)
returning {_COLUMNS}
"""  # noqa: S608
_SINCE = f"""
select {_COLUMNS} from events
where person_id = ? and scope = ?
    and case when at_ms is null then created_ms >= ? else at_ms >= ? end
order by at_ms is null, at_ms, id
"""  # noqa: S608
_REMOVE = f"delete from events where id = ? and person_id = ? and scope = ? returning {_COLUMNS}"  # noqa: S608

_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)
"""What a row that no version of ours wrote can lead to."""


class SqliteEvents:
    """Keeps events. Each method is one transaction, and raises StorageError. A row that cannot be
    read hides no other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, event: Event, *, limit: int) -> Event | None:
        """Keep one, or return the one that this call made before; None when this person has so many
        already."""
        now_ms = self._database.now_ms()
        since = None if event.at is None else event.at.astimezone(UTC) - _EPOCH
        at_ms = None if since is None else since // timedelta(milliseconds=1)
        values = {**to_row(event), "at_ms": at_ms, "created_ms": now_ms}

        def work(connection: sqlite3.Connection) -> dict[str, Any] | None:
            made = connection.execute(_MADE, (event.person_id, event.run_id or ""))
            for row in named(made):
                return row
            (count,) = connection.execute(_COUNT_EVENTS, (event.person_id, now_ms)).fetchone()
            return None if count >= limit else next(named(connection.execute(_ADD_EVENT, values)))

        row = await self._database.write(work)
        return None if row is None else _event(row)

    async def since(
        self, person_id: PersonId, scope: str, *, since_ms: int, undated_since_ms: int
    ) -> Sequence[Event]:
        """Those from a moment on, in order, and then those without a date."""
        values = (person_id, scope, undated_since_ms, since_ms)
        rows = await self._database.read(lambda c: list(named(c.execute(_SINCE, values))))
        return [one for row in rows if (one := _readable(row)) is not None]

    async def remove(self, person_id: PersonId, event_id: int, scope: str) -> Event | None:
        """Drops one; None when this person has no such one there."""
        values = (event_id, person_id, scope)
        rows = await self._database.write(lambda c: list(named(c.execute(_REMOVE, values))))
        return _readable(rows[0]) if rows else None


def _readable(row: dict[str, Any]) -> Event | None:
    try:
        return _event(row)
    except _UNREADABLE as error:
        log.error("event.unreadable", id=row["id"], why=str(error)[:200])
        return None


def _event(row: dict[str, Any]) -> Event:
    at_ms = row["at_ms"]
    return record(Event, row, at=None if at_ms is None else _EPOCH + timedelta(milliseconds=at_ms))
