"""What was missed by the clock and is to be told: kept with the due times until the card is stored.

A kill in between would else lose lines of it. Rows of the table `signals`, one a job; no turn waits
for them. Used by `memory.stores.jobs`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from memory.database.connection import Database
from memory.database.stored_text import dump, storable
from memory.records.jobs import COUNTED_MAX, Due, MissedDues, SlotState
from memory.records.messages import ConversationId, OutboxId, PersonId, RunId
from memory.records.rows import NewMessage
from memory.records.schedule import NewOccasion, Occasion, Remind
from memory.stores.outbox import add_message

_FIRST, _END = "missed:", "missed;"
"""Between these lie the keys: `missed:` and the number of the job."""

_ONE = "select value from signals where key = ?"
_ALL = "select key, value from signals where key > ? and key < ?"
_KEEP = """
insert into signals (key, value, created_ms) values (?, ?, ?)
on conflict (key) do update set value = excluded.value
"""
_DROP = "delete from signals where key = ?"
_DROP_TOLD = "delete from signals where key = ? and value = ?"
_ASKED = "update job_runs set note = ? where job_id = ? and slot = ? and state = 'asked'"


def keep(connection: sqlite3.Connection, missed: MissedDues, *, now_ms: int) -> None:
    """Adds it to what is to be told of its job, in the caller's transaction."""
    key = _key(missed.job_id)
    known = connection.execute(_ONE, (key,)).fetchone()
    whole = missed if known is None else _together(_read(missed.job_id, known[0]), missed)
    connection.execute(_KEEP, (key, _written(whole), now_ms))


def drop(connection: sqlite3.Connection, job_id: int) -> None:
    """Nothing is to be told of this job any more."""
    connection.execute(_DROP, (_key(job_id),))


def kept(connection: sqlite3.Connection) -> list[MissedDues]:
    """All of it, in the order of the first due times."""
    rows = connection.execute(_ALL, (_FIRST, _END)).fetchall()
    found = [_read(int(key.removeprefix(_FIRST)), value) for key, value in rows]
    return sorted(found, key=lambda one: (one.first.at_ms, one.job_id))


def tell(
    connection: sqlite3.Connection,
    told: Sequence[MissedDues],
    cards: Sequence[NewMessage],
    *,
    asked: str,
    now_ms: int,
) -> list[OutboxId]:
    """Adds the cards and drops what they tell, unless more has come to it since it was read."""
    for one in told:
        connection.execute(_DROP_TOLD, (_key(one.job_id), _written(one)))
        if cards and one.done is SlotState.ASKED:
            connection.execute(_ASKED, (asked, one.job_id, one.last.slot))
    return [add_message(connection, card, now_ms=now_ms) for card in cards]


def _together(before: MissedDues, after: MissedDues) -> MissedDues:
    """One line for both. What a kill left of the one to be made up for is counted in it already."""
    is_new = after.first.at_ms > before.last.at_ms
    count = before.count + after.count if is_new else max(before.count, after.count)
    last = max(before.last, after.last, key=lambda due: due.at_ms)
    return replace(after, count=min(count, COUNTED_MAX), first=before.first, last=last)


def _key(job_id: int) -> str:
    return f"{_FIRST}{job_id}"


def _written(missed: MissedDues) -> str:
    dues = [[due.slot, due.at_ms] for due in (missed.first, missed.last)]
    return dump({"count": missed.count, "dues": dues, "done": missed.done.value})


def _read(job_id: int, value: str) -> MissedDues:
    row = json.loads(value)
    first, last = (Due(slot=slot, at_ms=at_ms) for slot, at_ms in row["dues"])
    return MissedDues(
        job_id=job_id, count=row["count"], first=first, last=last, done=SlotState(row["done"])
    )


# --- idle ---------------------------------------------------------------------------------------
#
# Timers of conversations that have fallen silent: the `IdleStore` that the scheduler needs.
#
# The journal opens one with the end of each turn; `done_upto` belongs to `memory.stores.lines`.

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
    """See `scheduler.clock.ports.IdleTimer`."""

    conversation: ConversationId
    lane: str
    touched_ms: int
    tries: int


class SqliteIdle:
    """Implements `scheduler.clock.ports.IdleStore`."""

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


# --- events -------------------------------------------------------------------------------------
#
# Events that people have noted: the `OccasionStore` of the core.

log = structlog.get_logger()

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_COLUMNS = "id, person_id, scope, name, at_ms, all_day, zone, note, remind, run_id, created_ms"
_MADE = f"select {_COLUMNS} from events where person_id = ? and run_id = ? and run_id <> ''"  # noqa: S608
_COUNT = "select count(*) from events where person_id = ? and (at_ms is null or at_ms >= ?)"
_ADD = f"""
insert into events (person_id, scope, name, at_ms, all_day, zone, note, remind, run_id, created_ms)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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
    """Implements `memory.records.schedule.OccasionStore`. A row that cannot be read hides no
    other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, new: NewOccasion, *, limit: int) -> Occasion | None:
        """Keeps one, or gives the one that this call made before."""
        now_ms = self._database.now_ms()
        at_ms = None if new.at is None else _ms(new.at)
        values = (
            *(new.person_id, new.scope, storable(new.name), at_ms, int(new.all_day), new.zone),
            *(storable(new.note), dump([str(one) for one in new.remind])),
            *(new.run_id or "", now_ms),
        )

        def work(connection: sqlite3.Connection) -> tuple[Any, ...] | None:
            made = connection.execute(_MADE, (new.person_id, new.run_id or "")).fetchone()
            if made is not None:
                return tuple(made)
            (count,) = connection.execute(_COUNT, (new.person_id, now_ms)).fetchone()
            return None if count >= limit else connection.execute(_ADD, values).fetchone()

        row = await self._database.write(work)
        return None if row is None else _occasion(row)

    async def since(
        self, person_id: PersonId, scope: str, *, since_ms: int, undated_since_ms: int
    ) -> Sequence[Occasion]:
        """Those from a moment on, in order, and then those without a date."""
        values = (person_id, scope, undated_since_ms, since_ms)
        rows = await self._database.read(lambda c: c.execute(_SINCE, values).fetchall())
        return [one for row in rows if (one := _readable(row)) is not None]

    async def remove(self, person_id: PersonId, occasion_id: int, scope: str) -> Occasion | None:
        """Drops one; None when this person has no such one there."""
        values = (occasion_id, person_id, scope)
        row = await self._database.write(lambda c: c.execute(_REMOVE, values).fetchone())
        return None if row is None else _readable(row)


def _readable(row: tuple[Any, ...]) -> Occasion | None:
    try:
        return _occasion(row)
    except _UNREADABLE as error:
        log.error("event.unreadable", id=row[0], why=str(error)[:200])
        return None


def _occasion(row: tuple[Any, ...]) -> Occasion:
    occasion_id, person_id, scope, name, at_ms, all_day, zone, note, remind, run_id, created = row
    new = NewOccasion(
        person_id=PersonId(person_id),
        name=name,
        at=None if at_ms is None else _EPOCH + timedelta(milliseconds=at_ms),
        zone=zone,
        all_day=bool(all_day),
        note=note,
        remind=tuple(Remind(one) for one in json.loads(remind)),
        scope=scope,
        run_id=RunId(run_id) if run_id else None,
    )
    return Occasion(id=occasion_id, new=new, created_ms=created)


def _ms(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
