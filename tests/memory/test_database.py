"""Transactions: whole or absent, in order, and what SQLite's troubles become."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.errors import (
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    Temporary,
)
from tests.memory.kit import opened, rows

HOLD_THE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("begin immediate")
print("held", flush=True)
sys.stdin.read()
connection.execute("rollback")
connection.close()
"""


def keep(connection: sqlite3.Connection, digest: str, body: str = "x") -> str:
    connection.execute("insert into texts (digest, body) values (?, ?)", (digest, body))
    return digest


def kept(path: Path) -> list[object]:
    return [digest for (digest,) in rows(path, "select digest from texts order by digest")]


class Unexpected(Exception):
    """What a work function may raise."""


# --- transactions ----------------------------------------------------------------------------


async def test_an_exception_rolls_the_whole_write_back(database: Database, path: Path) -> None:
    def work(connection: sqlite3.Connection) -> None:
        keep(connection, "a")
        raise Unexpected

    with pytest.raises(Unexpected):
        await database.write(work)

    assert kept(path) == []
    await database.write(lambda c: keep(c, "b"))
    assert kept(path) == ["b"]


async def test_writes_that_wait_together_are_done_in_the_order_of_the_calls(
    database: Database, path: Path
) -> None:
    await asyncio.gather(*(database.write(partial(keep, digest=f"{n:03}")) for n in range(500)))

    inserted = rows(path, "select digest from texts order by digest")
    assert len(inserted) == 500

    def append(connection: sqlite3.Connection, n: int) -> None:
        connection.execute("update texts set body = body || ? where digest = '000'", (f" {n}",))

    await asyncio.gather(*(database.write(partial(append, n=n)) for n in range(500)))
    (body,) = rows(path, "select body from texts where digest = '000'")[0]
    assert body == "x" + "".join(f" {n}" for n in range(500))


async def test_one_that_fails_among_many_fails_alone(database: Database, path: Path) -> None:
    def work(connection: sqlite3.Connection, n: int) -> str:
        keep(connection, f"{n:02}")
        if n % 10 == 3:
            raise Unexpected(n)
        return f"{n:02}"

    found = await asyncio.gather(
        *(database.write(partial(work, n=n)) for n in range(50)), return_exceptions=True
    )

    good = [f"{n:02}" for n in range(50) if n % 10 != 3]
    assert [value for value in found if isinstance(value, str)] == good
    failed = [error.args[0] for error in found if isinstance(error, Unexpected)]
    assert failed == [3, 13, 23, 33, 43]
    assert kept(path) == good


async def test_a_cancelled_caller_leaves_a_whole_transaction(
    database: Database, path: Path
) -> None:
    def work(connection: sqlite3.Connection) -> None:
        keep(connection, "a")
        keep(connection, "b")

    asking = asyncio.create_task(database.write(work))
    await asyncio.sleep(0)

    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    await database.write(lambda c: keep(c, "c"))
    assert kept(path) == ["a", "b", "c"]


async def test_a_read_sees_one_moment_and_cannot_write(database: Database) -> None:
    with pytest.raises(StorageReadOnly):
        await database.read(lambda c: keep(c, "a"))

    assert await database.read(lambda c: c.execute("select 1").fetchone()) == (1,)


async def test_durability_is_set_as_promised(database: Database) -> None:
    def settings(connection: sqlite3.Connection) -> dict[str, object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "busy_timeout")
        return {name: connection.execute(f"pragma {name}").fetchone()[0] for name in names}

    assert await database.write(settings) == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "secure_delete": 1,
        "busy_timeout": 200,
    }


async def test_closing_finishes_what_was_asked_for(path: Path) -> None:
    async with opened(path) as database:
        tasks = [
            asyncio.create_task(database.write(partial(keep, digest=f"{n}"))) for n in range(9)
        ]
        await asyncio.sleep(0)

    await asyncio.gather(*tasks)
    assert len(kept(path)) == 9
    assert not path.with_name("hearthbot.db-wal").exists()
    with pytest.raises(StorageError, match="closed"):
        await database.write(partial(keep, digest="late"))


@pytest.mark.parametrize("trouble", ["raise SystemExit(3)", "raise ValueError", "pass"])
def test_a_process_that_ends_in_any_way_does_not_hang(path: Path, trouble: str) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from tests.memory.kit import opened
async def main():
    async with opened(Path(sys.argv[1])) as database:
        {trouble}
asyncio.run(main())
"""
    codes = {"raise SystemExit(3)": 3, "raise ValueError": 1, "pass": 0}

    ended = subprocess.run(
        [sys.executable, "-c", program, str(path)], timeout=60, check=False, capture_output=True
    )

    assert ended.returncode == codes[trouble]


def test_a_process_that_cannot_open_does_not_hang(path: Path) -> None:
    path.mkdir(parents=True)
    program = """
import asyncio, sys
from pathlib import Path
from tests.memory.kit import opened
async def main():
    async with opened(Path(sys.argv[1])):
        pass
asyncio.run(main())
"""
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", program, str(path)], timeout=60, check=False, capture_output=True
        )

        assert ended.returncode == 1
        assert (
            ended.stderr.decode()
            .strip()
            .splitlines()[-1]
            .startswith("memory.records.errors.Storage")
        )
        assert "Event loop is closed" not in ended.stderr.decode()


# --- trouble ---------------------------------------------------------------------------------


async def limit_pages(database: Database, *, more: int | None) -> None:
    def work(connection: sqlite3.Connection) -> None:
        pages = connection.execute("pragma page_count").fetchone()[0]
        limit = 1_000_000 if more is None else pages + more
        connection.execute(f"pragma max_page_count = {limit}")

    await database.write(work)


async def test_a_full_disk_takes_what_fits_and_all_again_when_there_is_space(
    database: Database, path: Path
) -> None:
    await limit_pages(database, more=3)
    bodies = ["small", "x" * 100_000, "small", "x" * 100_000, "small"]

    found = await asyncio.gather(
        *(database.write(partial(keep, digest=f"{n}", body=bodies[n])) for n in range(5)),
        return_exceptions=True,
    )
    await limit_pages(database, more=None)
    await database.write(lambda c: keep(c, "after", "x" * 100_000))

    assert [isinstance(value, StorageFull) for value in found] == [False, True, False, True, False]
    assert isinstance(found[1], Temporary)
    assert str(path) in str(found[1])
    assert kept(path) == ["0", "2", "4", "after"]
    assert await database.check() == ""


@contextmanager
def lock_held_elsewhere(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the write lock until its input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


async def test_a_held_lock_is_said_and_reads_go_on(database: Database, path: Path) -> None:
    with lock_held_elsewhere(path):
        found = await asyncio.gather(
            *(database.write(partial(keep, digest=f"{n}")) for n in range(20)),
            return_exceptions=True,
        )

        assert [type(error) for error in found] == [StorageLocked] * 20
        assert str(path) in str(found[0])
        assert await database.read(lambda c: c.execute("select 1").fetchone()) == (1,)

    await database.write(lambda c: keep(c, "after"))
    assert kept(path) == ["after"]


async def test_a_file_that_somebody_holds_is_not_opened(path: Path) -> None:
    async with opened(path):
        pass

    with lock_held_elsewhere(path), pytest.raises(StorageLocked, match="write lock"):
        async with opened(path, busy_timeout_s=0.1):
            pass


# --- time ------------------------------------------------------------------------------------


async def test_reads_that_wait_together_see_one_picture_and_fail_alone(
    database: Database, path: Path
) -> None:
    await database.write(lambda c: keep(c, "a"))

    def first(connection: sqlite3.Connection) -> list[str]:
        seen = digests(connection)
        outside = sqlite3.connect(path)
        try:
            keep(outside, "b")
            outside.commit()
        finally:
            outside.close()
        return seen

    def fails(connection: sqlite3.Connection) -> list[str]:
        raise Unexpected

    reads = [first, fails, digests]
    found = await asyncio.gather(*map(database.read, reads), return_exceptions=True)

    assert [found[0], found[2]] == [["a"], ["a"]]
    assert isinstance(found[1], Unexpected)
    assert await database.read(digests) == ["a", "b"]


def digests(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("select digest from texts order by digest")]
