"""Damage done to the file under a running bot is found; the bot's own work on it never is."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory.database.backup import connect
from memory.database.connection import Database
from memory.database.soundness import Soundness
from memory.records.errors import StorageCorrupt
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


@pytest.mark.parametrize("share", [0, 0.5, 0.95])
async def test_a_wal_that_is_cut_leaves_the_main_file_whole_and_nothing_more_is_stored(
    path: Path, tmp_path: Path, clock: StillClock, share: float
) -> None:
    async with Database.open(path, clock=clock) as database:
        await fill(database)
        with closing(connect(path)) as other:
            other.execute("pragma wal_checkpoint(truncate)")
        await fill(database)
        wal = path.with_name(f"{path.name}-wal")
        os.truncate(wal, int(wal.stat().st_size * share))

        with pytest.raises(StorageCorrupt, match="Nothing was stored"):
            await fill(database)
        said = str(await database.last_words())

    assert f"{path} itself is whole. Start the bot again" in said
    left = tmp_path / "left"  # as the next process finds it
    shutil.copytree(path.parent, left, ignore=shutil.ignore_patterns("*-shm"))
    async with Database.open(left / path.name, clock=clock) as again:
        assert not await again.check()
        count = "select count(*) from extra"
        assert await again.read(lambda c: c.execute(count).fetchone()) == (400,)


async def test_what_comes_after_the_file_was_deleted_is_refused_at_once(
    path: Path, database: Database
) -> None:
    await fill(database)
    path.unlink()

    with pytest.raises(StorageCorrupt, match=r"was deleted while the bot ran\. Nothing was stored"):
        await fill(database)
    with pytest.raises(StorageCorrupt):
        await fill(database)


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
