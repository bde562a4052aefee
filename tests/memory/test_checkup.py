"""A look at a database: it finds what is wrong, changes nothing, and works beside a writer."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from memory.database.checkup import look
from memory.database.connection import Database
from memory.records.errors import StorageCorrupt
from memory.records.messages import PersonId, Role
from memory.records.rows import NewEvent, Person
from memory.stores.inbox import SqliteInbox
from memory.stores.people import SqlitePeople
from scheduler.clock.machine import SystemClock


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
