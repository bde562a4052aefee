"""What is remembered, looked over for its person: the `Overviews` of the core."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from agent.messages import PersonId
from agent.overview import Corrected
from agent.remembering import StoredFact, Whose
from memory.database import Database
from memory.fact_rows import Narrowed, holding, seen_by, select, select_ids

_NEWEST = "id desc"
_LAST_CLOSED = "valid_to_ms desc, id desc"
_NO_LONGER = "valid_to_ms is not null"
_INSIGHTS = """
select pins, recommendations from insights
join conversations on conversations.id = conversation_id
where lane = ? and closed_ms is null and not is_private
"""


class SqliteOverviews:
    """Implements `agent.overview.Overviews`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def facts(
        self, person_id: PersonId, *, at: datetime | None = None, past: bool = False
    ) -> Sequence[StoredFact]:
        """Those that hold or held, or those that no longer do."""
        whose = _of(person_id)
        where = whose.and_(_NO_LONGER) if past else holding(whose, at)
        order = _LAST_CLOSED if past else _NEWEST
        return await self._database.read(partial(select, where=where, order=order))

    async def fact(self, person_id: PersonId, fact_id: int) -> StoredFact | None:
        """One of this person."""
        found = await self._database.read(partial(select_ids, where=_of(person_id), ids=[fact_id]))
        return found.get(fact_id)

    async def past(self, of: Whose, *, limit: int) -> Sequence[StoredFact]:
        """The last closed first."""
        where = seen_by(of).and_(_NO_LONGER)
        return await self._database.read(
            partial(select, where=where, order=_LAST_CLOSED, limit=limit)
        )

    async def corrected(self, of: Whose, *, since_ms: int, limit: int) -> Sequence[Corrected]:
        """Each with what took its place, unless that is gone."""
        where = seen_by(of).and_("superseded_by is not null and valid_to_ms >= ?", since_ms)

        def work(connection: sqlite3.Connection) -> list[Corrected]:
            closed = select(connection, where, order=_LAST_CLOSED, limit=limit)
            after = [fact.superseded_by for fact in closed if fact.superseded_by is not None]
            new = select_ids(connection, seen_by(of), after)
            return [
                Corrected(old=fact, new=new[fact.superseded_by])
                for fact in closed
                if fact.superseded_by in new
            ]

        return await self._database.read(work)

    async def insights(self, lane: str) -> Sequence[str]:
        """Pins and recommendations, as they are told to the model."""
        row = await self._database.read(lambda c: c.execute(_INSIGHTS, (lane,)).fetchone())
        return [] if row is None else [text for part in row for text in _texts(part)]


def _of(person_id: PersonId) -> Narrowed:
    return Narrowed("person_id = ?", (person_id,))


def _texts(part: str) -> list[str]:
    """Items are texts, or objects with one."""
    items = json.loads(part)
    found = [item.get("text", "") if isinstance(item, dict) else item for item in items]
    return [text for text in found if isinstance(text, str) and text]
