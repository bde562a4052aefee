"""Which files are opened, made or refused; an empty bot never stands in for a full one."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from memory.database.backup import APPLICATION_ID, make_backup
from memory.database.connection import Database
from memory.records.errors import StorageCorrupt, StorageError
from memory.records.messages import ConversationId
from memory.stores.conversations import SqliteConversations
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, StillClock, opened, rows, run, turn_end
from tests.thorough import rounds

CUTS = range(1, 201, rounds(19, 1))
"""Bytes that an end is cut by."""


async def fill(database: Database, *, turns: int = 20) -> ConversationId:
    conversation = await SqliteConversations(database).current(LANE)
    journal = SqliteJournal(database)
    for n in range(turns):
        await journal.submit(run(f"r{n}"))
        await journal.finish(run(f"r{n}").run_id, turn_end(f"r{n}", conversation))
    return conversation


async def make_full(path: Path) -> Path:
    """A closed file with content, and a backup of it."""
    async with opened(path) as database:
        await fill(database)
    backup = path.parent / "backups" / "hearthbot-20260731.db"
    make_backup(path, backup)
    return backup


async def refused(path: Path) -> str:
    with pytest.raises(StorageCorrupt) as caught:
        async with opened(path):
            pass
    return str(caught.value)


async def test_a_first_file_is_made_whole_and_private(path: Path) -> None:
    async with opened(path) as database:
        await fill(database, turns=1)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert rows(path, "pragma application_id") == [(APPLICATION_ID,)]
    assert [file.name for file in path.parent.iterdir()] == ["hearthbot.db"]


# --- refused ---------------------------------------------------------------------------------


@pytest.mark.case("HI-09")
@pytest.mark.parametrize("left", ["backup", "wal", "set aside"])
@pytest.mark.parametrize("size", [None, 0])
@pytest.mark.threat("T26")
async def test_a_lost_file_is_not_replaced_by_an_empty_one(
    path: Path, left: str, size: int | None
) -> None:
    backup = await make_full(path)
    beside = {
        "backup": backup,
        "wal": path.with_name("hearthbot.db-wal"),
        "set aside": path.with_name("hearthbot.db.before-2"),
    }
    backup.rename(path.with_name("elsewhere"))
    path.with_name("elsewhere").rename(beside[left])
    path.unlink()
    if size is not None:
        path.touch()

    told = await refused(path)

    assert ("it is missing" if size is None else "it is empty") in told
    assert (path.stat().st_size if path.exists() else None) == size
    assert beside[left].stat().st_size > 0
    if left != "wal":
        assert f"cp -p {beside[left]} {path}" in told


@pytest.mark.case("HI-09")
async def test_the_newest_good_backup_is_the_one_that_is_offered(path: Path) -> None:
    good = await make_full(path)
    for name, content in (("hearthbot-20260801.db", b"bad"), ("hearthbot-20260802.db", b"")):
        good.with_name(name).write_bytes(content)
    shutil.copy(good, good.with_name("hearthbot-20260730.db"))
    path.write_bytes(path.read_bytes()[:5000])

    told = await refused(path)

    assert f"cp -p {good} {path}" in told
    assert path.stat().st_size == 5000


async def test_following_the_offer_brings_everything_back(path: Path) -> None:
    backup = await make_full(path)
    path.write_bytes(b"x" * 9000)
    await refused(path)

    shutil.copy(backup, path)

    assert rows(path, "select count(*) from turns") == [(20,)]
    async with opened(path) as database:
        assert await database.check() == ""


async def test_a_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table theirs (a)")
        connection.commit()
    before = path.read_bytes()

    told = await refused(path)

    assert "not a database of Hearthbot" in told
    assert path.read_bytes() == before


async def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    async with opened(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma user_version = 999")

    with pytest.raises(StorageError, match="newer Hearthbot"):
        async with opened(path):
            pass

    assert rows(path, "pragma user_version") == [(999,)]


# --- damaged ---------------------------------------------------------------------------------


@pytest.fixture
async def killed(path: Path, tmp_path: Path) -> Path:
    """A folder as a kill leaves it: most of the content in the main file, some in the -wal."""
    await make_full(path)
    async with Database.open(path, clock=StillClock()) as database:
        journal = SqliteJournal(database)
        conversation = await SqliteConversations(database).current(LANE)
        await journal.submit(run("last"))
        await journal.finish(run("last").run_id, turn_end("last", conversation))
        folder = tmp_path / "killed"
        shutil.copytree(path.parent, folder)
    assert (folder / "hearthbot.db-wal").stat().st_size > 0
    return folder


async def open_copy(to: Path) -> tuple[str, int]:
    """What came of it ("opened" or the error's name), and how many turns are whole."""
    path = to / "hearthbot.db"
    try:
        async with opened(path) as database:
            found = await database.read(lambda c: c.execute(WHOLE_TURNS).fetchone()[0])
            half = await database.read(lambda c: c.execute(HALF_TURNS).fetchone()[0])
            assert half == 0
            return "opened", found
    except StorageError as error:
        return type(error).__name__, 0


WHOLE_TURNS = """
select count(*) from turns where status = 'done'
and (select count(*) from messages where messages.run_id = turns.run_id) = 2
and exists (select 1 from outbox where outbox.run_id = turns.run_id and state = 'ready')
"""
HALF_TURNS = """
select count(*) from turns where
(status = 'done') + ((select count(*) from messages where messages.run_id = turns.run_id) = 2)
+ exists (select 1 from outbox where outbox.run_id = turns.run_id) not in (0, 3)
"""


@pytest.mark.case("HI-09")
@pytest.mark.threat("T26")
async def test_a_main_file_cut_short_is_refused_with_an_offer(path: Path) -> None:
    backup = await make_full(path)
    whole = path.read_bytes()

    for cut in CUTS:
        path.write_bytes(whole[:-cut])

        told = await refused(path)

        assert (
            f"its end is cut off. It was left in place. The newest good backup is {backup}" in told
        )
        assert path.read_bytes() == whole[:-cut]


@pytest.mark.case("HI-09")
async def test_a_main_file_cut_short_beside_a_wal_is_refused_or_whole(
    killed: Path, tmp_path: Path
) -> None:
    for cut in CUTS:
        folder = tmp_path / f"cut{cut}"
        shutil.copytree(killed, folder)
        main = folder / "hearthbot.db"
        main.write_bytes(main.read_bytes()[:-cut])

        # The cut page may stand in the -wal as well: then nothing is missing.
        assert await open_copy(folder) in {("opened", 21), ("StorageCorrupt", 0)}

        shutil.rmtree(folder)


@pytest.mark.case("HI-09")
async def test_a_wal_without_the_lost_page_does_not_hide_the_cut(killed: Path) -> None:
    main, wal = killed / "hearthbot.db", killed / "hearthbot.db-wal"
    main.write_bytes(main.read_bytes()[:-100])
    wal.write_bytes(wal.read_bytes()[:32])

    told = await refused(main)

    assert "its end is cut off" in told
    aside = "; ".join(f"test ! -e {file} || mv {file} {file}.damaged" for file in (wal, main))
    assert f"stop the bot, then: {aside}; cp -p " in told


@pytest.mark.case("HI-09")
async def test_a_lost_beginning_that_stands_in_the_wal_costs_nothing(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    async with opened(path) as database:
        await fill(database)
        shutil.copytree(path.parent, copy)
    with (copy / path.name).open("r+b") as main:
        main.write(bytes(4096))

    assert await open_copy(copy) == ("opened", 20)


@pytest.mark.case("HI-09")
@pytest.mark.parametrize("name", ["hearthbot.db-wal", "hearthbot.db-shm"])
async def test_a_companion_cut_short_costs_no_earlier_turn(
    killed: Path, tmp_path: Path, name: str
) -> None:
    for cut in CUTS:
        folder = tmp_path / f"cut{cut}"
        shutil.copytree(killed, folder)
        companion = folder / name
        companion.write_bytes(companion.read_bytes()[:-cut])

        outcome, turns = await open_copy(folder)

        assert (outcome, turns in {20, 21}) == ("opened", True)
        shutil.rmtree(folder)


@pytest.mark.case("HI-09")
@pytest.mark.parametrize("name", ["hearthbot.db", "hearthbot.db-wal", "hearthbot.db-shm"])
@pytest.mark.threat("T26")
async def test_a_flipped_byte_never_leads_to_an_empty_bot(
    killed: Path, tmp_path: Path, name: str
) -> None:
    chance = Random(9)
    outcomes = []
    for n in range(rounds(24, 100)):
        folder = tmp_path / f"flip{n}"
        shutil.copytree(killed, folder)
        damaged = bytearray((folder / name).read_bytes())
        # Half of them in the first page, where a flip does most.
        at = chance.randrange(min(len(damaged), 4096) if n % 2 else len(damaged))
        damaged[at] ^= 1 << chance.randrange(8)
        (folder / name).write_bytes(damaged)

        try:
            async with opened(folder / "hearthbot.db") as database:
                turns = await database.read(
                    lambda c: c.execute("select count(*) from turns").fetchone()[0]
                )
            outcomes.append("opened")
            assert turns in {20, 21}
        except StorageError:
            outcomes.append("refused")
        assert (folder / "hearthbot.db").stat().st_size >= 20_000
        shutil.rmtree(folder)

    assert ("refused" in outcomes) == (name == "hearthbot.db")
