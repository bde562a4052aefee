"""Backups: made beside the running bot, verified, three of them."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from functools import partial
from pathlib import Path

import pytest

from memory.database.backup import newest_good
from memory.database.connection import Database
from memory.records.errors import StorageCorrupt
from tests.memory.kit import StillClock, rows

DAY_S = 86_400


def keep_pair(connection: sqlite3.Connection, n: int) -> None:
    for half in ("a", "b"):
        connection.execute("insert into texts values (?, 'x')", (f"{n:05}{half}",))


async def test_a_backup_made_amid_writes_has_whole_transactions_only(
    database: Database, tmp_path: Path
) -> None:
    writing = [asyncio.create_task(database.write(partial(keep_pair, n=n))) for n in range(300)]
    to = tmp_path / "far" / "copy.db"

    await database.backup(to)
    await asyncio.gather(*writing)

    assert rows(to, "select count(*) % 2 from texts") == [(0,)]
    assert rows(to, "pragma integrity_check") == [("ok",)]
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    assert [file.name for file in to.parent.iterdir()] == ["copy.db"]


async def test_one_backup_a_day_and_the_last_three_are_kept(
    database: Database, clock: StillClock, path: Path
) -> None:
    folder = path.parent / "backups"
    folder.mkdir()
    others = ["hearthbot-2026.db", "hearthbot-old.db", "notes.txt"]
    for name in others:
        (folder / name).touch()
    made = []
    for _ in range(5):
        made.append(await database.backup_if_due())
        assert await database.backup_if_due() is None
        await database.drop_old_backups()
        clock.move(DAY_S)

    assert made[0] == folder / "hearthbot-20260801.db"
    kept = [f"hearthbot-2026080{day}.db" for day in (3, 4, 5)]
    assert sorted(file.name for file in folder.iterdir()) == sorted([*kept, *others])
    assert await asyncio.to_thread(newest_good, path, folder) == folder / kept[-1]


async def test_a_backup_that_does_not_verify_replaces_nothing(
    database: Database, path: Path, tmp_path: Path
) -> None:
    to = tmp_path / "copy.db"
    to.write_bytes(b"the former one")

    def damage(connection: sqlite3.Connection) -> None:
        # The pages of an index that nothing refers to any more: SQLite reads on, yet it is wrong.
        connection.execute("pragma writable_schema = on")
        connection.execute("delete from sqlite_schema where name = 'turns_open'")

    await database.write(damage)

    with pytest.raises(StorageCorrupt, match="did not verify"):
        await database.backup(to)

    assert to.read_bytes() == b"the former one"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "data"]
