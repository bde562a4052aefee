"""Events that people have noted."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from memory.database.connection import Database
from memory.database.rows import named, record, to_row
from memory.records.messages import PersonId
from memory.records.schedule import Event

log = structlog.get_logger()

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_COLUMNS = """
id, person_id, scope, name, at_ms, all_day, zone, note, remind, nullif(run_id, '') as run_id,
    created_ms
"""
_MADE = f"select {_COLUMNS} from events where person_id = ? and run_id = ? and run_id <> ''"  # noqa: S608
_COUNT = "select count(*) from events where person_id = ? and (at_ms is null or at_ms >= ?)"
_ADD = f"""
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
        at_ms = None if event.at is None else _ms(event.at)
        values = {**to_row(event), "at_ms": at_ms, "created_ms": now_ms}

        def work(connection: sqlite3.Connection) -> dict[str, Any] | None:
            made = connection.execute(_MADE, (event.person_id, event.run_id or ""))
            for row in named(made):
                return row
            (count,) = connection.execute(_COUNT, (event.person_id, now_ms)).fetchone()
            return None if count >= limit else next(named(connection.execute(_ADD, values)))

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


def _ms(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
