"""Misfires that are to be told, kept with their due times until the card is stored.

A kill in between would else lose lines of it. Rows of the table `signals`, one a job; no turn waits
for them. Used by `memory.stores.jobs`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from memory.database.stored_text import dump
from memory.records.jobs import COUNTED_MAX, Due, Misfires, SlotState
from memory.records.messages import OutboxId
from memory.records.rows import NewMessage
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


def keep(connection: sqlite3.Connection, missed: Misfires, *, now_ms: int) -> None:
    """Adds it to what is to be told of its job, in the caller's transaction."""
    key = _key(missed.job_id)
    known = connection.execute(_ONE, (key,)).fetchone()
    whole = missed if known is None else _together(_read(missed.job_id, known[0]), missed)
    connection.execute(_KEEP, (key, _written(whole), now_ms))


def drop(connection: sqlite3.Connection, job_id: int) -> None:
    """Nothing is to be told of this job any more."""
    connection.execute(_DROP, (_key(job_id),))


def kept(connection: sqlite3.Connection) -> list[Misfires]:
    """All of it, in the order of the first due times."""
    rows = connection.execute(_ALL, (_FIRST, _END)).fetchall()
    found = [_read(int(key.removeprefix(_FIRST)), value) for key, value in rows]
    return sorted(found, key=lambda one: (one.first.at_ms, one.job_id))


def tell(
    connection: sqlite3.Connection,
    told: Sequence[Misfires],
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


def _together(before: Misfires, after: Misfires) -> Misfires:
    """One line for both. What a kill left of the one to be made up for is counted in it already."""
    is_new = after.first.at_ms > before.last.at_ms
    count = before.count + after.count if is_new else max(before.count, after.count)
    last = max(before.last, after.last, key=lambda due: due.at_ms)
    return replace(after, count=min(count, COUNTED_MAX), first=before.first, last=last)


def _key(job_id: int) -> str:
    return f"{_FIRST}{job_id}"


def _written(missed: Misfires) -> str:
    dues = [[due.slot, due.at_ms] for due in (missed.first, missed.last)]
    return dump({"count": missed.count, "dues": dues, "done": missed.done.value})


def _read(job_id: int, value: str) -> Misfires:
    row = json.loads(value)
    first, last = (Due(slot=slot, at_ms=at_ms) for slot, at_ms in row["dues"])
    return Misfires(
        job_id=job_id, count=row["count"], first=first, last=last, done=SlotState(row["done"])
    )
