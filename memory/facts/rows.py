"""The table of facts: its SQL, and its rows as values. Called by the other modules about facts.

Every query is narrowed by person and place here, in SQL. What is private is that person's alone; in
a group everybody's facts of this group are read, and a person writes only their own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from memory.database.rows import storable
from memory.facts.secrets import secret_in
from memory.records.facts import EVERYWHERE, Category, FactSource, NewFact, StoredFact, Whose
from memory.records.messages import PersonId, RunId
from memory.records.text import one_line

_COLUMNS = """
id, person_id, scope, text, category, source, confidence, valid_from_ms, created_ms, valid_to_ms,
superseded_by, message_id, run_id, quote, speaker, last_used_ms, uses
"""
_SELECT = f"select {_COLUMNS} from facts where "  # noqa: S608 - the columns above
_INSERT = """
insert into facts (
    person_id, scope, text, category, source, confidence, valid_from_ms, created_ms, message_id,
    run_id, quote, speaker
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_HOLDS = "valid_to_ms is null"
_HELD = "valid_from_ms <= ? and (valid_to_ms is null or valid_to_ms > ?)"
QUOTE_CHARS_MAX = 1_000
_TIMES_MS = range(-62_135_596_800_000, 253_402_300_800_000)
"""The years 1 to 9999, which is what Python's dates know."""
_IDS = range(1, 2**63)
_AT_ONCE = 500
"""Ids in one statement; SQLite takes some thousand."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A condition in SQL, with its parameters."""

    sql: str
    values: tuple[object, ...]

    def and_(self, sql: str, *values: object) -> Narrowed:
        """Both."""
        return Narrowed(f"{self.sql} and {sql}", (*self.values, *values))


def seen_by(of: Whose) -> Narrowed:
    """Return what this person may see in this place."""
    if of.scope == EVERYWHERE:
        return Narrowed("person_id = ?", (of.person_id,))
    if of.scope:
        return Narrowed("scope = ? and scope <> ''", (of.scope,))
    return Narrowed("person_id = ? and scope = ''", (of.person_id,))


def owned_by(of: Whose) -> Narrowed:
    """Return what this person may change in this place."""
    return Narrowed("person_id = ? and scope = ?", (of.person_id, of.scope))


def holding(where: Narrowed, at: datetime | None = None) -> Narrowed:
    """Of these, what holds, or held at a moment."""
    if at is None:
        return where.and_(_HOLDS)
    at_ms = int(at.timestamp() * 1000)
    return where.and_(_HELD, at_ms, at_ms)


def select(
    connection: sqlite3.Connection, where: Narrowed, *, order: str = "id", limit: int = -1
) -> list[StoredFact]:
    """The facts of a condition. `order` is SQL of ours."""
    sql = f"{_SELECT}{where.sql} order by {order} limit ?"
    return [_fact(row) for row in connection.execute(sql, (*where.values, limit))]


def select_ids(
    connection: sqlite3.Connection, where: Narrowed, ids: Sequence[int]
) -> dict[int, StoredFact]:
    """Those of these ids that fulfil the condition."""
    found: dict[int, StoredFact] = {}
    for start in range(0, len(ids), _AT_ONCE):
        part = [fact_id for fact_id in ids[start : start + _AT_ONCE] if fact_id in _IDS]
        among = where.and_(f"id in ({', '.join('?' * len(part))})", *part)
        found.update((fact.id, fact) for fact in select(connection, among))
    return found


def insert(connection: sqlite3.Connection, new: NewFact, text: str, *, now_ms: int) -> StoredFact:
    """Adds a row. Of a quote that holds a secret nothing is kept."""
    # Not `None in range`: that would compare each number of it.
    since_ms = now_ms if new.valid_from_ms is None else new.valid_from_ms
    values = (
        new.whose.person_id,
        new.whose.scope,
        text,
        new.category,
        new.source,
        min(1.0, max(0.0, new.confidence)),
        since_ms if since_ms in _TIMES_MS else now_ms,
        now_ms,
        new.message_id,
        new.run_id or "",
        "" if secret_in(new.quote) else storable(new.quote)[:QUOTE_CHARS_MAX],
        one_line(storable(new.speaker)),
    )
    row_id = connection.execute(_INSERT, values).lastrowid
    return select(connection, Narrowed("id = ?", (row_id,)))[0]


def close(connection: sqlite3.Connection, ids: Iterable[int], *, by: int, now_ms: int) -> None:
    """From now on these hold no more; `by` took their place."""
    connection.executemany(
        "update facts set valid_to_ms = ?, superseded_by = ? where id = ?",
        [(now_ms, by, fact_id) for fact_id in ids],
    )


def refresh(
    connection: sqlite3.Connection, fact_id: int, *, confidence: float, now_ms: int
) -> StoredFact:
    """Counts as said again."""
    connection.execute(
        "update facts set last_used_ms = ?, confidence = max(confidence, ?) where id = ?",
        (now_ms, confidence, fact_id),
    )
    return select(connection, Narrowed("id = ?", (fact_id,)))[0]


def reopen(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """These hold again."""
    connection.executemany(
        "update facts set valid_to_ms = null, superseded_by = null where id = ?",
        [(fact_id,) for fact_id in ids],
    )


def erase(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Takes rows away."""
    connection.executemany("delete from facts where id = ?", [(fact_id,) for fact_id in ids])


def use(connection: sqlite3.Connection, uses: Mapping[int, int], *, now_ms: int) -> None:
    """Counts how often facts were of use."""
    connection.executemany(
        "update facts set uses = uses + ?, last_used_ms = ? where id = ?",
        [(count, now_ms, fact_id) for fact_id, count in uses.items()],
    )


def replaced_by(
    connection: sqlite3.Connection, where: Narrowed, ids: Sequence[int]
) -> list[StoredFact]:
    """Return what these replaced, and what that replaced, as far as it fulfils the condition."""
    found: dict[int, StoredFact] = {}
    latest = list(ids)
    while latest:
        marks = ", ".join("?" * len(latest[:_AT_ONCE]))
        part, latest = latest[:_AT_ONCE], latest[_AT_ONCE:]
        for fact in select(connection, where.and_(f"superseded_by in ({marks})", *part)):
            if fact.id not in found:
                found[fact.id] = fact
                latest.append(fact.id)
    return list(found.values())


# By hand, not by `memory.database.rows.record`: an index reads a hundred thousand of these at once,
# and looking up each field by its name takes three times as long.
def _fact(row: tuple[Any, ...]) -> StoredFact:
    (fact_id, person_id, scope, text, category, source, confidence, valid_from_ms, created_ms) = (
        row[:9]
    )
    valid_to_ms, superseded_by, message_id, run_id, quote, speaker, last_used_ms, uses = row[9:]
    return StoredFact(
        id=fact_id,
        whose=Whose(person_id=PersonId(person_id), scope=scope),
        text=text,
        category=cast(Category, category),
        source=FactSource(source),
        confidence=confidence,
        valid_from_ms=valid_from_ms,
        created_ms=created_ms,
        valid_to_ms=valid_to_ms,
        superseded_by=superseded_by,
        message_id=message_id,
        run_id=RunId(run_id) if run_id else None,
        quote=quote,
        speaker=speaker,
        last_used_ms=last_used_ms,
        uses=uses,
    )
