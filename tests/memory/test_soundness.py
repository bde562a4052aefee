"""Damage done to the file under a running bot is found; the bot's own work on it never is."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory.backups import connect
from memory.database import Database
from memory.soundness import Soundness
from tests.memory.kit import StillClock


async def fill(database: Database) -> None:
    def put(connection: sqlite3.Connection) -> None:
        connection.execute("create table if not exists extra (body text)")
        connection.executemany("insert into extra values (?)", [("x" * 500,)] * 400)

    await database.write(put)


async def told(database: Database) -> str:
    async with asyncio.timeout(30):
        await database.harmed()
        return str(await database.last_words())


async def test_pages_that_are_overwritten_are_found_and_the_backup_is_named(
    path: Path, database: Database
) -> None:
    await fill(database)
    backup = await database.backup_if_due(path.parent / "backups")
    with closing(connect(path)) as other:
        other.execute("pragma wal_checkpoint(truncate)")
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(os.urandom(path.stat().st_size - 4096 * 3))

    said = await told(database)

    assert str(path) in said
    assert f"cp -p {backup} {path}" in said


@pytest.mark.parametrize("name", ["-wal", ""])
async def test_a_file_that_is_deleted_is_found_and_all_is_saved(
    path: Path, database: Database, name: str
) -> None:
    await fill(database)
    path.with_name(f"{path.name}{name}").unlink()

    said = await told(database)

    assert "was deleted while the bot ran" in said
    (saved,) = (path.parent / "backups").glob("*.db")
    assert str(saved) in said
    with closing(sqlite3.connect(saved)) as copy:
        assert copy.execute("select count(*) from extra").fetchone() == (400,)


async def test_a_file_that_is_replaced_is_found(path: Path, database: Database) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)

    assert "was replaced by another file" in await told(database)


async def test_own_work_on_the_file_is_no_harm(
    path: Path, database: Database, clock: StillClock
) -> None:
    soundness = Soundness(path)
    await fill(database)
    assert not soundness.look()
    await database.backup(path.parent / "copy.db")
    assert not soundness.look()
    with closing(connect(path)) as other:
        other.execute("vacuum")
        other.execute("pragma wal_checkpoint(truncate)")
    assert not soundness.look()
