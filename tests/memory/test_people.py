from __future__ import annotations

from dataclasses import replace

import pytest

from memory.database.connection import Database
from memory.records.errors import StorageError
from memory.records.messages import PersonId, Role
from memory.records.rows import NewMessage, Person
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal
from tests.memory.kit import run

ANN = Person(
    id=PersonId("p1"),
    role=Role.OWNER,
    name="Ann",
    addresses=("telegram:5", "console:local"),
    time_zone="Europe/Vienna",
    language="de",
)
BOB = Person(id=PersonId("p2"), role=Role.MEMBER, name="Bob", addresses=("telegram:6",))


@pytest.mark.case("SE-17")
async def test_an_address_never_moves_to_another_person(people: SqlitePeople) -> None:
    await people.add_person(ANN)
    await people.add_person(BOB)
    thief = Person(id=PersonId("p3"), role=Role.GUEST, addresses=("telegram:9", "telegram:5"))

    with pytest.raises(StorageError):
        await people.add_address(BOB.id, "telegram:5")
    with pytest.raises(StorageError):
        await people.add_person(thief)

    assert (await people.directory()).people == (ANN, BOB)


# --- changed later -----------------------------------------------------------------------------


@pytest.mark.case("SE-17")
async def test_an_address_of_somebody_with_a_turn_never_moves(
    people: SqlitePeople, journal: SqliteJournal, outbox: SqliteOutbox
) -> None:
    await people.add_person(ANN)
    await people.add_person(BOB)
    await journal.submit(replace(run("r1", lane="telegram:6"), by=BOB.id))

    moved = await people.link(
        ANN.id, "telegram:6", notices=[NewMessage(lane="telegram:5", text="!")]
    )

    assert moved is None
    assert (await people.directory()).people == (ANN, BOB)
    assert await outbox.open_rows() == []


async def test_a_table_that_comes_later_keeps_a_person_whole_too(
    people: SqlitePeople, database: Database
) -> None:
    await people.add_person(ANN)
    await people.add_person(BOB)
    await database.write(lambda c: c.execute("create table later (id integer, person_id text)"))
    await database.write(lambda c: c.execute("insert into later values (1, 'p2')"))

    assert await people.link(ANN.id, "telegram:6") is None


@pytest.mark.parametrize(
    "other",
    [
        replace(BOB, role=Role.OWNER),
        replace(BOB, addresses=("telegram:6", "telegram:7")),
    ],
    ids=["an owner", "of two addresses"],
)
async def test_an_owner_and_somebody_with_more_addresses_are_never_taken_apart(
    people: SqlitePeople, other: Person
) -> None:
    await people.add_person(ANN)
    await people.add_person(other)

    assert await people.link(ANN.id, "telegram:6") is None
    assert (await people.directory()).people == (ANN, other)


async def test_on_slack_a_person_reads_alone_where_they_have_written_in_private(
    people: SqlitePeople, database: Database
) -> None:
    await people.add_person(ANN)
    await people.add_person(BOB)
    journal = SqliteJournal(database)
    for number, (lane, whose) in enumerate(
        [
            ("slack:T0LAB.D0OLD", ANN),
            ("slack:T0LAB.C0GENERAL", ANN),
            ("slack:T0LAB.C0GENERAL:1700000000.000100", ANN),
            ("slack:T0LAB.D0BOB:1700000000.000100", BOB),
            ("slack:T0LAB.D0ANN:1700000000.000100", ANN),
        ]
    ):
        await journal.submit(replace(run(f"r{number}"), lane=lane, by=whose.id, inbox_id=None))

    assert await people.private_chats(ANN.id) == [
        "telegram:5",
        "slack:T0LAB.D0ANN",
        "slack:T0LAB.D0OLD",
    ]
    assert await people.private_chats(BOB.id) == ["telegram:6", "slack:T0LAB.D0BOB"]
