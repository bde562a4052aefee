"""The numbered migrations: how the number is kept in the file, and how a file of an older version
is brought up to date, on a copy that is verified and then swapped in."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memory.database.backup import (
    connect,
    new_file,
    problems,
    remove_with_companions,
    sync_file,
    sync_folder,
)
from memory.records.errors import StorageError

MIGRATIONS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step from `number - 1` to `number`. Never edited once released."""

    number: int
    sql: str


def read_migrations(folder: Path) -> tuple[Migration, ...]:
    """All steps in order. Raises ValueError unless they are numbered 1, 2, 3, ..."""
    files = sorted(folder.glob("[0-9]*.sql"))
    steps = tuple(
        Migration(number=int(file.name.split("_")[0]), sql=file.read_text("utf-8"))
        for file in files
    )
    if [step.number for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"the migrations in {folder} are not numbered from 1 without a gap")
    return steps


def apply(connection: sqlite3.Connection, steps: Sequence[Migration]) -> None:
    """Runs the steps, each in a transaction together with its number."""
    for step in steps:
        connection.executescript(
            f"begin;\n{step.sql}\n;pragma user_version = {step.number};\ncommit;"
        )


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last step that the file has had."""
    return int(connection.execute("pragma user_version").fetchone()[0])


def upgrade(path: Path, steps: Sequence[Migration], *, timeout_s: float) -> None:
    """Leaves the old file as it was unless the new one is complete and verified.

    The old file stays as `<name>.before-<number of the first step>` until the next upgrade.
    Raises StorageError, sqlite3.Error or OSError.
    """
    copy = path.with_name(f"{path.name}.upgrading")
    try:
        with closing(connect(path, timeout_s=timeout_s)) as connection:
            # Without a `-wal` it stands alone; that fails where another has it open.
            connection.execute("pragma journal_mode = delete")
            old = version_of(connection)
            # A fresh copy as of one moment: without free pages, and able to give pages back to the
            # disk in small steps (`Database.shrink`), which SQLite sets by rewriting the file only.
            new_file(copy)
            connection.execute("pragma auto_vacuum = incremental")
            connection.execute("vacuum into ?", (str(copy),))
        _migrate(path, copy, steps[old:])
        sync_file(copy)
        aside = path.with_name(f"{path.name}.before-{old + 1}")
        for older in path.parent.glob(f"{path.name}.before-*"):
            older.unlink()
        try:
            os.link(path, aside)
        except OSError:  # file systems without hard links
            shutil.copy2(path, aside)
            sync_file(aside)
        # At each moment there is a whole file under the name: the old one, then the new one.
        copy.replace(path)
        sync_folder(path.parent)
    finally:
        remove_with_companions(copy)


def _migrate(path: Path, copy: Path, steps: Sequence[Migration]) -> None:
    with closing(connect(copy)) as connection:
        connection.execute("pragma synchronous = off")
        before = _row_counts(connection)
        try:
            apply(connection, steps)
        except (sqlite3.OperationalError, sqlite3.IntegrityError) as error:
            if error.sqlite_errorcode & 0xFF not in {
                sqlite3.SQLITE_ERROR,
                sqlite3.SQLITE_CONSTRAINT,
            }:
                raise
            raise _failed(path, str(error)) from error
        if found := problems(connection, "integrity_check"):
            raise _failed(path, found)
        if connection.execute("pragma foreign_key_check").fetchone() is not None:
            raise _failed(path, "a row refers to one that is gone")
        after = _row_counts(connection)
        shrunk = [name for name, rows in before.items() if after.get(name, rows) < rows]
        if shrunk:
            raise _failed(path, f"rows would be lost in {', '.join(shrunk)}")


def _row_counts(connection: sqlite3.Connection) -> dict[str, int]:
    names = connection.execute(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"
    ).fetchall()
    return {
        name: connection.execute(f'select count(*) from "{name}"').fetchone()[0]  # noqa: S608
        for (name,) in names
    }


def _failed(path: Path, why: str) -> StorageError:
    return StorageError(
        f"{path} could not be upgraded ({why}). The old file is in place and whole: the former "
        "version of the bot can go on with it. Please report this."
    )
