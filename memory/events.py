"""Events that people have noted: the `OccasionStore` of the core."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from agent.events import NewOccasion, Occasion, Remind
from agent.messages import PersonId, RunId
from memory.database import Database
from memory.stored_text import dump, storable

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
    """Implements `agent.events.OccasionStore`. A row that cannot be read hides no other."""

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
