"""The one SQLite file: one connection that writes, one that reads, each on a thread of its own.

Opened by `bot.app`; the other modules of this package put their SQL through it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from memory.database.backup import daily_name, folder_of, make_backup, problems, remove_older
from memory.database.errors import is_damage, storage_error
from memory.database.migrate import MIGRATIONS, read_migrations
from memory.database.rows import first, records
from memory.database.soundness import (
    DatabasePlace,
    Soundness,
    damaged,
    harmed,
    open_reader,
    open_writer,
    put_back,
)
from memory.database.worker import QueuedWork, WorkLine
from memory.records.errors import StorageCorrupt, StorageError
from memory.records.ports import Clock

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""SQL as a plain function: it may be run a second time when the first time was rolled back."""
Values = Sequence[object] | Mapping[str, object]
"""What stands for the parameters of a statement."""

BUSY_TIMEOUT_S = 5.0
COMMITTED_MAX, READ_MAX = 200, 32
"""Works that are done together: all of them end with the last."""

BITE_ROWS = 100
"""Rows that one transaction of housekeeping removes. Another commit waits for one of these at most,
which is some milliseconds (docs/reliability.md)."""

FREE_PAGES, FREE_SHARE = 2_000, 10
"""Empty pages that the file may keep for later: 8 MB, or a tenth of it."""
# By the last row of each table, not the largest time: so a wrong clock is forgotten in time.
_NEWEST = """
select max(at_ms) from (
    select * from (select received_ms as at_ms from inbox order by id desc limit 1)
    union all select * from (select created_ms from turns order by seq desc limit 1)
    union all select * from (select created_ms from messages order by id desc limit 1)
    union all select * from (select created_ms from outbox order by id desc limit 1)
    union all select * from (select at_ms from heartbeats order by id desc limit 1)
)
"""

LOOK_EVERY_S = 25.0
"""How often the file is looked at. Damage is noticed within a minute, although it has to be found
twice, and a check may take a second."""


class Database:
    """Transactions on the file. Made by `open` only."""

    def __init__(
        self,
        opening: DatabasePlace,
        soundness: Soundness,
        *,
        clock: Clock,
        writer: WorkLine,
        reader: WorkLine,
    ) -> None:
        self._opening = opening
        self._path = opening.path
        self._soundness = soundness
        self._harm = ""
        self._harmed = asyncio.Event()
        self._clock = clock
        self._writer = writer
        self._reader = reader
        self._closed = False

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        backups: Path | None = None,
        migrations: Path = MIGRATIONS,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> AsyncIterator[Database]:
        """Opens, checks and upgrades the file, or makes it where there never was one.

        Raises StorageCorrupt (with the newest good backup named), StorageLocked,
        StorageReadOnly, StorageFull, or StorageError for a file of a newer version.
        """
        opening = DatabasePlace(
            path=path,
            backups=backups or folder_of(path),
            steps=read_migrations(migrations),
            busy_timeout_s=busy_timeout_s,
            now=clock.now(),
        )
        # The writer closes last: SQLite then moves all commits into the main file.
        writing = _Writing()
        async with (
            WorkLine.open(
                partial(open_writer, opening), writing.settle, together_max=COMMITTED_MAX
            ) as writer,
            WorkLine.open(
                partial(open_reader, opening), _read_all, together_max=READ_MAX
            ) as reader,
        ):
            soundness = writing.soundness = Soundness(path)
            database = cls(opening, soundness, clock=clock, writer=writer, reader=reader)
            try:
                yield database
            finally:
                # Saves what was written since `last_words`, and leaves no commits in a `-wal`: at
                # the next start SQLite would put them into whatever file then has our name.
                if database._harm and await asyncio.to_thread(soundness.moved):
                    with suppress(StorageError):
                        await database._saved()
                if database._harm:
                    reader.stay_open()
                    writer.stay_open()
                database._closed = True
                database._soundness.end()

    @property
    def path(self) -> Path:
        """The main file."""
        return self._path

    def now(self) -> datetime:
        """By the clock that was passed in."""
        return self._clock.now()

    def now_ms(self) -> int:
        """Epoch milliseconds by the clock that was passed in."""
        return int(self._clock.now().timestamp() * 1000)

    async def write(self, work: Work[T]) -> T:
        """Runs `work` as one transaction; it is on the disk when this returns.

        Any exception rolls it back and is raised here. Transactions run in the order of the
        calls; those that wait at the same moment share one commit. A caller that is cancelled
        while it waits has its transaction done whole all the same.
        """
        self._require_open()
        if self._harm:
            raise self._harm_found()
        return await self._run(self._writer, work)

    async def read(self, work: Work[T]) -> T:
        """Runs `work` on one consistent picture of all that is committed; it cannot write.

        Calls that wait at the same moment share one picture.
        """
        self._require_open()
        return await self._run(self._reader, work)

    async def execute(self, sql: str, values: Values = ()) -> int:
        """Run one statement as a transaction of its own; returns how many rows it changed."""
        return await self.write(lambda c: c.execute(sql, values).rowcount)

    async def execute_many(self, sql: str, values: Iterable[Values]) -> None:
        """Run one statement for each of these, in one transaction."""
        several = list(values)
        await self.write(lambda c: c.executemany(sql, several).rowcount)

    async def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a question."""
        return await self.read(lambda c: c.execute(sql, values).fetchall())

    async def value(self, sql: str, values: Values = ()) -> Any:
        """Return the first column of the first row; None if there is no row."""
        row = await self.read(lambda c: c.execute(sql, values).fetchone())
        return None if row is None else row[0]

    async def records(self, kind: type[T], sql: str, values: Values = ()) -> list[T]:
        """Return the record of each row (`memory.database.rows`)."""
        return await self.read(lambda c: records(kind, c.execute(sql, values)))

    async def first(self, kind: type[T], sql: str, values: Values = ()) -> T | None:
        """Return the record of the first row, if there is one."""
        return await self.read(lambda c: first(kind, c.execute(sql, values)))

    async def prune(self, sql: str, before_ms: int) -> int:
        """Run a statement with the parameters `before_ms` and BITE_ROWS, which removes at most so
        many rows, until nothing is left to do. Returns how many rows went."""
        return await self.in_bites(lambda c: c.execute(sql, (before_ms, BITE_ROWS)).rowcount)

    async def in_bites(self, work: Work[int]) -> int:
        """Run `work`, which removes BITE_ROWS rows at most, in one transaction after another until
        nothing is left to do; others commit in between. Returns how many rows went."""
        total = 0
        while rows := await self.write(work):
            total += rows
        return total

    async def newest_ms(self) -> int | None:
        """Return when something was last stored, by the clock of then; None if nothing ever was."""
        (found,) = await self.read(lambda c: c.execute(_NEWEST).fetchone())
        return None if found is None else int(found)

    async def shrink(self) -> int:
        """Give the empty pages of the file back to the disk; returns how many."""

        def give_back(connection: sqlite3.Connection) -> int:
            free, pages = (
                int(connection.execute(f"pragma {name}").fetchone()[0])
                for name in ("freelist_count", "page_count")
            )
            too_many = free - max(FREE_PAGES, pages // FREE_SHARE)
            if too_many <= 0:
                return 0
            # Each fetched row moves one page. A file without incremental vacuum gives no rows.
            bite = min(too_many, BITE_ROWS)
            connection.execute(f"pragma incremental_vacuum({bite})").fetchall()
            return free - int(connection.execute("pragma freelist_count").fetchone()[0])

        return await self.in_bites(give_back)

    async def between(self, work: Work[T]) -> T:
        """Runs `work` in the writer's thread between transactions, as VACUUM and checkpoints want
        it. Raises StorageError."""
        self._require_open()
        try:
            return await self._writer.run(work, alone=True)
        except sqlite3.Error as error:
            raise storage_error(error, self._path) from error

    async def harmed(self) -> None:
        """Return once the file is damaged, or is no longer the one that was opened. The file is
        looked at now and then, and any statement that meets damage counts at once."""

        async def look_on() -> None:
            while not self._harmed.is_set():
                await self._clock.sleep(LOOK_EVERY_S)
                self._note(await asyncio.to_thread(self._soundness.look))

        async with asyncio.TaskGroup() as group:
            looking = group.create_task(look_on())
            await self._harmed.wait()
            looking.cancel()

    async def last_words(self) -> StorageCorrupt:
        """Return what happened to the file after `harmed`, and how to go on. If it was deleted or
        replaced we still have it open: then all is saved first, as today's backup."""
        moved = await asyncio.to_thread(self._soundness.moved)
        opening = replace(self._opening, now=self.now())
        if not moved:
            return await asyncio.to_thread(harmed, opening, self._harm)
        try:
            to = await self._saved()
        except StorageError as error:
            what = f"{moved}, and what was in it could not be saved ({error})"
            return await asyncio.to_thread(damaged, opening, what)
        return StorageCorrupt(
            f"In {self._path.parent} {moved}. All that was stored is saved in {to}. If something "
            f"is missing after the next start, stop the bot, then: {put_back(self._path, to)}"
        )

    async def _saved(self) -> Path:
        to = self._opening.backups / daily_name(self._path, self.now())

        def save(connection: sqlite3.Connection) -> None:
            make_backup(connection, to)  # of what is open
            # What the `-wal` holds goes into the file that it belongs to.
            connection.execute("pragma wal_checkpoint(truncate)")

        await self.between(save)
        return to

    async def backup(self, to: Path) -> None:
        """Makes a verified copy at `to` while everything goes on."""
        await asyncio.to_thread(make_backup, self._path, to)

    async def backup_if_due(self, folder: Path | None = None) -> Path | None:
        """Make today's backup unless there is one. For a daily caller. Raises StorageError."""
        to = (folder or folder_of(self._path)) / daily_name(self._path, self.now())
        if await asyncio.to_thread(to.exists):
            return None
        await self.backup(to)
        return to

    async def drop_old_backups(self, folder: Path | None = None) -> None:
        """Remove all but the last three. Raises StorageError for one that cannot be removed."""
        folder = folder or folder_of(self._path)
        await asyncio.to_thread(remove_older, self._path, folder, now=self.now())

    async def check(self) -> str:
        """The first finding of a full integrity check; empty when all is well. May be slow."""
        return await self.read(partial(problems, check="integrity_check"))

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self._path} is closed: the bot is stopping.")

    def _harm_found(self) -> StorageCorrupt:
        return StorageCorrupt(f"{self._path} cannot be used: {self._harm}. Nothing was stored.")

    def _note(self, harm: str) -> None:
        if harm and not self._harm:
            self._harm = harm
            self._harmed.set()

    async def _run(self, line: WorkLine, work: Work[T]) -> T:
        try:
            return await line.run(work)
        except _Harm as error:
            self._note(str(error))
            raise self._harm_found() from None
        except sqlite3.Error as error:
            self._note(str(error) if is_damage(error) else "")
            raise storage_error(error, self._path) from error


class _Harm(Exception):
    """The files were touched by somebody else; the text says how."""


class _Writing:
    """What the writer's thread does with what waits for it."""

    soundness: Soundness

    def settle(self, connection: sqlite3.Connection, together: list[QueuedWork[Any]]) -> None:
        try:
            for alone, works in groupby(together, key=lambda work: work.alone):
                if alone:
                    for work in works:
                        work.succeed(work.function(connection))
                else:
                    self._commit(connection, list(works))
        finally:
            self.soundness.look_after()

    def _commit(self, connection: sqlite3.Connection, writes: list[QueuedWork[Any]]) -> None:
        if harm := self.soundness.look_before():
            for write in writes:
                write.fail(_Harm(harm))
        elif len(writes) == 1 or not _commit_together(connection, writes):
            for write in writes:
                _commit_alone(connection, write)


def _commit_alone(connection: sqlite3.Connection, write: QueuedWork[Any]) -> None:
    try:
        connection.execute("begin immediate")
        try:
            value = write.function(connection)
            connection.execute("commit")
        finally:
            _leave(connection)
    except Exception as error:  # noqa: BLE001 - raised again where the write was asked for
        write.fail(error)
    else:
        write.succeed(value)


def _commit_together(connection: sqlite3.Connection, writes: list[QueuedWork[Any]]) -> bool:
    """Commits all at once. When one of them fails nothing is done, and each has to go alone.

    Where the lock cannot be had, all have failed: each would wait as long again.
    """
    try:
        connection.execute("begin immediate")
    except sqlite3.Error as error:
        for write in writes:
            write.fail(error)
        return True
    try:
        values = [write.function(connection) for write in writes]
        connection.execute("commit")
    except Exception:  # noqa: BLE001 - whose it is shows when each goes alone
        return False
    finally:
        _leave(connection)
    for write, value in zip(writes, values, strict=True):
        write.succeed(value)
    return True


def _read_all(connection: sqlite3.Connection, together: list[QueuedWork[Any]]) -> None:
    """In the reader's thread: by one consistent picture."""
    try:
        for read in together:
            try:
                if not connection.in_transaction:  # some errors end it
                    connection.execute("begin")
                read.succeed(read.function(connection))
            except Exception as error:  # noqa: BLE001 - raised again where the read was asked for
                read.fail(error)
    finally:
        _leave(connection)


def _leave(connection: sqlite3.Connection) -> None:
    # Some errors (a full disk) end the transaction by themselves.
    if connection.in_transaction:
        connection.execute("rollback")
