"""Upgrades: on a copy, verified, swapped in; or the old file as it was."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.database.migrate import MIGRATIONS, read_migrations
from memory.records.errors import StorageError, StorageLocked
from memory.stores.turns import SqliteJournal
from tests.memory.kit import StillClock, opened, rows, run

NEXT = "alter table texts add column kept_ms integer not null default 0;\n"
BROKEN = [
    "create table half (a); insert into half values (1); insert into nowhere values (1);",
    "this is not sql;",
    "delete from turns;",
    "pragma foreign_keys = off; update steps set run_id = 'gone';",
    "insert into texts values ('a', 'b'); insert into texts values ('a', 'b');",
]


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """The released steps and one more."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder)
    (folder / f"{newest() + 1:04}_next.sql").write_text(NEXT)
    return folder


def newest() -> int:
    return len(read_migrations(MIGRATIONS))


async def make_old(path: Path) -> None:
    """A closed file of this version, with a pending turn in it."""
    async with opened(path) as database:
        journal = SqliteJournal(database)
        await journal.submit(run("r1"))
        await journal.begin(run("r1").run_id)
        await journal.record(run("r1").run_id, 0, "model", {"text": "a"})


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


async def test_the_old_file_is_kept_until_the_next_upgrade(path: Path, migrations: Path) -> None:
    await make_old(path)
    async with Database.open(path, clock=StillClock(), migrations=migrations):
        pass
    aside = path.with_name(f"hearthbot.db.before-{newest() + 1}")
    assert rows(aside, "pragma user_version") == [(newest(),)]
    (migrations / f"{newest() + 2:04}_more.sql").write_text("create table more (a);")

    async with Database.open(path, clock=StillClock(), migrations=migrations):
        pass

    assert names(path) == ["hearthbot.db", f"hearthbot.db.before-{newest() + 2}"]


async def test_what_a_kill_left_of_an_upgrade_is_no_obstacle(path: Path, migrations: Path) -> None:
    await make_old(path)
    path.with_name("hearthbot.db.upgrading").write_bytes(b"half")
    path.with_name("hearthbot.db.upgrading-wal").write_bytes(b"half")
    shutil.copy(path, path.with_name(f"hearthbot.db.before-{newest() + 1}"))

    async with Database.open(path, clock=StillClock(), migrations=migrations) as database:
        assert await database.check() == ""

    assert names(path) == ["hearthbot.db", f"hearthbot.db.before-{newest() + 1}"]


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_failed_upgrade_leaves_the_old_file_usable(
    path: Path, migrations: Path, broken: str
) -> None:
    await make_old(path)
    (migrations / f"{newest() + 1:04}_next.sql").write_text(broken)

    with pytest.raises(StorageError, match="could not be upgraded"):
        async with Database.open(path, clock=StillClock(), migrations=migrations):
            pass

    assert names(path) == ["hearthbot.db"]
    async with opened(path) as database:
        (pending,) = await SqliteJournal(database).unfinished()
    assert pending.run.run_id == "r1"


async def test_a_file_that_another_has_open_is_not_upgraded(path: Path, migrations: Path) -> None:
    await make_old(path)

    with closing(sqlite3.connect(path)) as other:
        other.execute("select count(*) from turns").fetchone()
        with pytest.raises(StorageLocked):
            async with Database.open(
                path, clock=StillClock(), migrations=migrations, busy_timeout_s=0.1
            ):
                pass

    assert names(path) == ["hearthbot.db"]
    assert rows(path, "pragma user_version") == [(newest(),)]


async def test_migrations_are_numbered_without_a_gap(path: Path, migrations: Path) -> None:
    (migrations / "0009_far.sql").write_text("create table far (a);")

    with pytest.raises(ValueError, match="not numbered"):
        async with Database.open(path, clock=StillClock(), migrations=migrations):
            pass
