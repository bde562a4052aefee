"""The file while the bot runs: damage is found, looked for from outside, and copied each day."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from memory.database.backup import connect, newest_good
from memory.database.checkup import look
from memory.database.connection import Database
from memory.database.soundness import Soundness
from memory.records.errors import StorageCorrupt
from memory.records.messages import PersonId, Role
from memory.records.rows import NewEvent, Person
from memory.stores.inbox import SqliteInbox
from memory.stores.people import SqlitePeople
from scheduler.clock.machine import SystemClock
from tests.memory.kit import StillClock, rows

# --- soundness -----------------------------------------------------------------------------------


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


# --- checkup -------------------------------------------------------------------------------------


def stamps(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


async def test_a_fresh_database_is_well_and_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "hearthbot.db"
    async with Database.open(file, clock=SystemClock()):
        pass
    before = stamps(tmp_path)

    found = look(file, limit_s=5.0, now_ms=0)

    assert (found.ours, found.version, found.trouble, found.checked) == (
        True,
        found.newest,
        "",
        True,
    )
    assert (dict(found.inbox), dict(found.outbox), found.owners) == ({}, {}, ())
    assert stamps(tmp_path) == before


async def test_it_sees_what_a_running_writer_has_committed(tmp_path: Path) -> None:
    file = tmp_path / "hearthbot.db"
    async with Database.open(file, clock=SystemClock()) as database:
        await SqliteInbox(database).store(
            [
                NewEvent(source="telegram:1", event_id="1", lane="telegram:7", payload="{}"),
                NewEvent(source="telegram:1", event_id="2"),
            ]
        )
        await SqlitePeople(database).add_person(
            Person(
                id=PersonId("p_1"),
                role=Role.OWNER,
                addresses=("telegram:7",),
                time_zone="Europe/Berlin",
            )
        )

        found = look(file, limit_s=5.0, now_ms=0)

    assert dict(found.inbox) == {"received": 1, "refused": 1}
    assert found.waiting_since_ms is not None
    assert (found.crooked, found.stranded) == (0, 0)
    assert (found.owners, found.zones) == (("telegram:7",), ("Europe/Berlin",))


async def test_a_check_that_takes_too_long_is_given_up_and_the_rest_is_told(
    tmp_path: Path,
) -> None:
    file = tmp_path / "hearthbot.db"
    async with Database.open(file, clock=SystemClock()) as database:

        def fill(connection: sqlite3.Connection) -> None:
            rows = ((str(number), "x" * 200) for number in range(20_000))
            connection.executemany("insert into texts (digest, body) values (?, ?)", rows)

        await database.write(fill)

    found = look(file, limit_s=0.0, now_ms=0)

    assert (found.checked, found.trouble) == (False, "")
    assert dict(found.inbox) == {}


@pytest.mark.parametrize("content", [b"", b"no database at all"])
def test_what_is_no_database_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "hearthbot.db"
    file.write_bytes(content)

    if content:
        with pytest.raises(StorageCorrupt):
            look(file, limit_s=5.0, now_ms=0)
    else:
        assert not look(file, limit_s=5.0, now_ms=0).ours


# --- backups -------------------------------------------------------------------------------------


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
