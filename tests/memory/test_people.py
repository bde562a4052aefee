from __future__ import annotations

from dataclasses import replace

import pytest

from agent.errors import StorageError
from agent.messages import PersonId, Role
from agent.stored import Pairing, Person
from memory.people import SqlitePeople

ANN = Person(
    id=PersonId("p1"),
    role=Role.OWNER,
    name="Ann",
    addresses=("telegram:5", "console:local"),
    time_zone="Europe/Vienna",
    language="de",
)
BOB = Person(id=PersonId("p2"), role=Role.MEMBER, name="Bob", addresses=("telegram:6",))


def pairing(address: str, *, code: str = "1234") -> Pairing:
    return Pairing(
        address=address,
        channel="telegram",
        code=code,
        state="pending",
        created_ms=1,
        expires_ms=2,
        answered_ms=3,
    )


async def test_an_empty_directory_has_nobody(people: SqlitePeople) -> None:
    directory = await people.directory()

    assert (directory.people, directory.chats, directory.pairings) == ((), {}, ())


async def test_people_read_back_equal_in_order_of_arrival(people: SqlitePeople) -> None:
    await people.add_person(BOB)
    await people.add_person(ANN)

    assert (await people.directory()).people == (BOB, ANN)


async def test_whoever_is_let_in_is_no_longer_asking(people: SqlitePeople) -> None:
    await people.put_pairing(pairing("telegram:6"))
    await people.put_pairing(pairing("telegram:7"))
    await people.put_pairing(pairing("telegram:8"))

    await people.add_person(BOB)
    await people.add_address(BOB.id, "telegram:7")

    directory = await people.directory()
    assert directory.pairings == (pairing("telegram:8"),)
    assert directory.people == (replace(BOB, addresses=("telegram:6", "telegram:7")),)


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


async def test_an_address_needs_a_person(people: SqlitePeople) -> None:
    with pytest.raises(StorageError):
        await people.add_address(PersonId("nobody"), "telegram:1")


async def test_a_removed_address_leaves_the_person(people: SqlitePeople) -> None:
    await people.add_person(BOB)

    await people.remove_address("telegram:6")

    assert (await people.directory()).people == (replace(BOB, addresses=()),)


async def test_a_chat_is_admitted_and_shut(people: SqlitePeople) -> None:
    await people.set_chat("telegram:-100", "admitted")
    await people.set_chat("telegram:-200", "admitted")
    await people.set_chat("telegram:-100", "denied")

    chats = (await people.directory()).chats
    assert chats == {"telegram:-100": "denied", "telegram:-200": "admitted"}


async def test_a_pairing_is_replaced_and_forgotten(people: SqlitePeople) -> None:
    for address in ("telegram:1", "telegram:2", "telegram:3"):
        await people.put_pairing(pairing(address))

    await people.put_pairing(pairing("telegram:1", code="9999"))
    await people.remove_pairings("telegram:2", "telegram:3", "telegram:4")

    assert (await people.directory()).pairings == (pairing("telegram:1", code="9999"),)
