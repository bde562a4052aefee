"""The numbered migrations, and how the number is kept in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MIGRATIONS = Path(__file__).parent / "migrations"

APPLICATION_ID = 0x48524254
"""Stands in the header of each of our files ("HRBT"); any other file is refused."""


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


def is_ours(connection: sqlite3.Connection) -> bool:
    """Whether the file carries our mark."""
    return bool(connection.execute("pragma application_id").fetchone()[0] == APPLICATION_ID)
