"""What files said before something was removed from them: a few texts for each person.

Implements `agent.tools.former_files.KeepsFormer`, which stores it, and `agent.undoing.FormerFiles`,
which puts it back. Forgetting looks here too, and drops a text that holds the words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from agent.forgotten import Kind
from agent.messages import RunId
from agent.tools.former_files import FileChange, loss_of
from agent.undoing import FormerFile, digest_of
from memory.database import Database
from memory.places import Key, Search

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
        """See KeepsFormer."""
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
        """See FormerFiles."""

        def work(connection: sqlite3.Connection) -> list[FormerFile]:
            rows = (row for run in run_ids for row in connection.execute(_OF_RUN, (run,)))
            return [
                FormerFile(run_id=RunId(run_id), path=path, former=former, becomes=becomes)
                for run_id, path, former, becomes in rows
            ]

        return await self._database.read(work)

    async def drop(self, file: FormerFile) -> None:
        """See FormerFiles."""
        of = (file.run_id, file.path)
        await self._database.write(lambda connection: connection.execute(_DROP, of).rowcount)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerTexts:
    """The kept texts as a place of `memory.places`. One that holds the words goes as a whole: else
    `/undo` would put a text with a gap into the file."""

    kind: Kind = Kind.FORMER

    _TEXTS = "select id, path, former from former_files where person_id = :person"
    _DROP = "delete from former_files where id = ?"

    def find(self, connection: sqlite3.Connection, search: Search) -> Sequence[Key]:
        """Which texts hold it."""
        found = connection.execute(self._TEXTS, search.values)
        wording = search.wording
        return [key for key, path, former in found if wording.holds(former) or wording.says(path)]

    def erase(self, connection: sqlite3.Connection, search: Search, keys: Sequence[Key]) -> None:
        """Drops them."""
        connection.executemany(self._DROP, [(key,) for key in keys])
