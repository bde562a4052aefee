"""What turns changed, so that the last one can be taken back, and what files said before."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memory.database.connection import Database
from memory.database.rows import records
from memory.records.erasure import (
    Done,
    FileChange,
    FormerFile,
    LastTurn,
    digest_of,
    loss_of,
    typed_in,
)
from memory.records.messages import PersonId, RunId

LOOKED_AT_MAX = 200
"""Turns, the newest first: of those that changed nothing there may be many."""

_TURNS = """
select run_id, ended_ms from turns
where person_id = ? and lane = ? and ended_ms >= ? and status <> 'joined'
order by seq desc limit ?
"""
_CHILDREN = "select run_id from children where parent_run = ?"
# No turn waits for such a key: it is a mark that stays, with the turn that it is about.
_MARK = """
insert into signals (key, value, created_ms) values (?, '{}', ?) on conflict (key) do nothing
"""
_IS_MARKED = "select exists (select 1 from signals where key = ?)"
_FACTS = "select count(*) from facts where person_id = ? and run_id = ?"
_CHANGES = """
select count(*) from profile_changes where person_id = ? and run_id = ? and undone_ms is null
"""
_TYPED = """
select run_id, created_ms from facts
where run_id <> '' and run_id > ? and run_id < ? and person_id = ? and created_ms >= ?
order by id desc limit 1
"""
_TYPED_UNDONE = """
select key, created_ms from signals where key > ? and key < ? and created_ms >= ?
order by created_ms desc limit 1
"""
_END = "\U0010ffff"
_ENTRIES = """
select body from messages where run_id = ? and kind in ('answered', 'result') order by id
"""


class SqliteTurnsDone:
    """Finds what turns, and commands that keep something, changed. Raises StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def last(self, person_id: PersonId, lane: str, *, since_ms: int) -> LastTurn | None:
        """Return the newest turn of this person at this address that ended since then and changed
        something, whether it can be taken back or not, or a command after it that stored something;
        None where there is none."""

        def work(connection: sqlite3.Connection) -> LastTurn | None:
            values = (person_id, lane, since_ms, LOOKED_AT_MAX)
            typed = _typed(connection, person_id, lane, since_ms)
            for run_id, ended_ms in connection.execute(_TURNS, values).fetchall():
                if typed is not None and typed.ended_ms >= ended_ms:
                    break
                turn = _turn(connection, person_id, RunId(run_id), ended_ms)
                if turn.is_undone or turn.facts or turn.changes or turn.done:
                    return turn
            return typed

        return await self._database.read(work)

    async def undone(self, run_ids: Sequence[RunId]) -> None:
        """Mark these as taken back. May be repeated."""
        now_ms = self._database.now_ms()
        await self._database.execute_many(_MARK, [(_mark_of(one), now_ms) for one in run_ids])


def _mark_of(run_id: RunId) -> str:
    return f"undone:{run_id}"


def _turn(
    connection: sqlite3.Connection, person_id: PersonId, run_id: RunId, ended_ms: int
) -> LastTurn:
    children = [RunId(child) for (child,) in connection.execute(_CHILDREN, (run_id,))]
    runs = (run_id, *children)
    return LastTurn(
        run_id=run_id,
        ended_ms=ended_ms,
        runs=runs,
        done=tuple(done for run in runs for done in _done(connection, run)),
        facts=sum(_count(connection, _FACTS, person_id, run) for run in runs),
        changes=sum(_count(connection, _CHANGES, person_id, run) for run in runs),
        is_undone=bool(connection.execute(_IS_MARKED, (_mark_of(run_id),)).fetchone()[0]),
    )


def _typed(
    connection: sqlite3.Connection, person_id: PersonId, lane: str, since_ms: int
) -> LastTurn | None:
    """What this person typed here last that stored something. Once it is taken back, its mark is
    all that is left of it."""
    begin = typed_in(person_id, lane)
    stored = connection.execute(_TYPED, (begin, f"{begin}{_END}", person_id, since_ms)).fetchone()
    marks = f"{_mark_of(RunId(begin))}", f"{_mark_of(RunId(begin))}{_END}", since_ms
    undone = connection.execute(_TYPED_UNDONE, marks).fetchone()
    if stored is None and undone is None:
        return None
    if undone is None or (stored is not None and stored[1] > undone[1]):
        run_id, at_ms = stored
        return replace(_turn(connection, person_id, RunId(run_id), at_ms), typed=True)
    run_id, at_ms = undone[0].removeprefix(_mark_of(RunId(""))), undone[1]
    return replace(_turn(connection, person_id, RunId(run_id), at_ms), typed=True)


def _count(connection: sqlite3.Connection, sql: str, person_id: str, run_id: str) -> int:
    return int(connection.execute(sql, (person_id, run_id)).fetchone()[0])


def _done(connection: sqlite3.Connection, run_id: RunId) -> Iterator[Done]:
    """Calls whose results say that they changed something, in order."""
    names: dict[str, str] = {}
    for (body,) in connection.execute(_ENTRIES, (run_id,)):
        entry = json.loads(body)
        for call in entry.get("calls") or ():
            names[call["id"]] = call["name"]
        if entry.get("effect"):
            tool = names.get(entry["call_id"], "")
            yield Done(tool=tool, effect=entry["effect"], file=entry.get("file", ""))


# --- former files -------------------------------------------------------------------------------
#
# What files said before something was removed from them: a few texts for each person.
#
# Tools keep them (`agent.tools.former_files.KeepFormer`), and `/undo` puts them back. Forgetting
# drops a text that holds the words (`memory.erasure.places`).

KEPT_MAX = 20
"""How many texts are kept for one person; the oldest go first."""

_FIND = "select former, becomes from former_files where run_id = ? and path = ?"
_PUT = """
insert into former_files (person_id, run_id, path, former, becomes, created_ms)
values (?, ?, ?, ?, ?, ?)
on conflict (run_id, path) do update set former = excluded.former, becomes = excluded.becomes
"""
_DROP_OLDEST = """
delete from former_files where person_id = ? and id not in (
    select id from former_files where person_id = ? order by id desc limit ?
)
"""
_OF_RUN = "select run_id, path, former, becomes from former_files where run_id = ? order by id desc"
_DROP = "delete from former_files where run_id = ? and path = ?"


class SqliteFormerFiles:
    """Stores one text for each file and run: as it was before the run's first change."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, change: FileChange) -> str:
        """See `agent.tools.former_files.KeepFormer`."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> str:
            found = connection.execute(_FIND, (change.run_id, change.path)).fetchone()
            # If somebody else wrote in between, what they wrote is what is kept.
            goes_on = found is not None and found[1] == digest_of(change.former)
            former = str(found[0]) if goes_on else change.former
            if goes_on or loss_of(former, change.becomes).gone:
                of = (change.person_id, change.run_id, change.path)
                becomes = digest_of(change.becomes)
                connection.execute(_PUT, (*of, former, becomes, now_ms))
                whose = (change.person_id, change.person_id, KEPT_MAX)
                connection.execute(_DROP_OLDEST, whose)
            return former

        return await self._database.write(work)

    async def of(self, run_ids: Sequence[RunId]) -> Sequence[FormerFile]:
        """Return what these runs changed, the newest first."""

        def work(connection: sqlite3.Connection) -> list[FormerFile]:
            return [
                file
                for run_id in run_ids
                for file in records(FormerFile, connection.execute(_OF_RUN, (run_id,)))
            ]

        return await self._database.read(work)

    async def drop(self, file: FormerFile) -> None:
        """Forget it, once it is put back. May be repeated."""
        of = (file.run_id, file.path)
        await self._database.execute(_DROP, of)
