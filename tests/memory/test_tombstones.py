"""What was forgotten is recognised again, and cannot be read from what is kept of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.facts import tombstones
from memory.records.facts import Whose
from memory.records.messages import PersonId
from tests.memory.facts_kit import ADA, ADA_IN_GROUP, BEN, GROUP
from tests.memory.kit import START_MS, opened, rows

PILLS = "Ada takes heart pills every morning at 7."


async def bury(database: Database, text: str, of: Whose = ADA) -> None:
    await database.write(lambda c: tombstones.add(c, of, [text], now_ms=START_MS))


async def is_woken(database: Database, text: str, of: Whose = ADA) -> bool:
    return bool(await database.read(lambda c: tombstones.matching(c, of, text)))


async def call(database: Database, of: Whose, name: str) -> None:
    sql = "insert into people (id, role, name, created_ms) values (?, 'member', ?, 0)"
    await database.write(lambda c: c.execute(sql, (of.person_id, name)))


@pytest.mark.parametrize(
    "text",
    [
        PILLS,
        "Every morning at 7 Ada takes her heart pills.",
        "Ada takes her pills for the heart in the mornings at 7.",
        "Ada takes pills each morning at seven, for her heart.",
    ],
)
async def test_what_was_forgotten_is_recognised_in_other_words(
    database: Database, text: str
) -> None:
    await bury(database, PILLS)

    assert await is_woken(database, text)


@pytest.mark.parametrize(
    "text",
    [
        "Ada takes heart pills every morning at 8.",
        "Ada takes photographs every morning at 7.",
        "pills",
        "",
    ],
)
async def test_other_numbers_and_other_matters_are_not_held_back(
    database: Database, text: str
) -> None:
    await bury(database, PILLS)

    assert not await is_woken(database, text)


async def test_two_words_in_common_are_chance(database: Database) -> None:
    await bury(database, "Ada likes tea with milk.")

    assert not await is_woken(database, "Likes tea.")


async def test_the_name_of_the_person_is_no_word_of_it(database: Database) -> None:
    await call(database, ADA, "Ada Lovelace")
    await bury(database, "Ada lives in Oslo.")

    assert await is_woken(database, "The user lives in Oslo.")
    assert await is_woken(database, "Ada Lovelace lives in Oslo.")
    assert not await is_woken(database, "Ada lives in Rome.")


async def test_each_person_and_each_group_has_its_own(database: Database) -> None:
    await bury(database, PILLS)
    await bury(database, "Ada brings the cake on Friday.", ADA_IN_GROUP)

    assert not await is_woken(database, PILLS, BEN)
    assert await is_woken(database, PILLS, ADA_IN_GROUP)
    assert await is_woken(database, "Ada brings the cake on Friday.", ADA_IN_GROUP)
    assert not await is_woken(database, "Ada brings the cake on Friday.")


async def test_no_word_can_be_read_and_no_two_people_share_a_hash(path: Path) -> None:
    async with opened(path) as database:
        for person in ("p1", "p2"):
            await bury(database, PILLS, Whose(person_id=PersonId(person)))
            await bury(database, PILLS, Whose(person_id=PersonId(person), scope=GROUP))

    found = rows(path, "select whole, words from tombstones order by id")
    raw = path.read_bytes()

    assert all(word not in raw for word in (b"zebra", b"finch", b"balcon"))
    assert len({row[0] for row in found}) == 2


async def test_the_key_is_made_once_and_only_when_it_is_needed(path: Path) -> None:
    async with opened(path) as database:
        assert not await is_woken(database, PILLS)
        assert await database.read(key) is None
        await bury(database, PILLS)
        first = await database.read(key)

    async with opened(path) as database:
        await bury(database, "Ada has a dog named Rex.")

        assert await database.read(key) == first
        assert first is not None
        assert len(first) == 32
        assert await is_woken(database, PILLS)


def key(connection: sqlite3.Connection) -> bytes | None:
    row = connection.execute("select key from forgetting_key").fetchone()
    return bytes(row[0]) if row else None
