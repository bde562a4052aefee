"""What `/pair`, `/access`, `/timezone` and `/language` answer, over the real store. `/link`:
test_linking."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.messages import Role
from memory.stores.inbox import SqliteInbox
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal
from tests.bot.people_kit import GUEST, MEMBER, OWNER, STRANGER, House, housed, let_in
from tests.memory.kit import StillClock, event, run

HOUR_S = 3600


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    path, clock = tmp_path / "hearthbot.db", StillClock()
    async with Database.open(path, clock=clock) as database:
        house = await housed(path, database, clock)
        await let_in(house)
        yield house


async def asks(house: House, address: str = STRANGER) -> str:
    """A stranger wrote; the code that was given."""
    assert await house.access.answer_stranger(address)
    return next(one.code for one in house.access.pairings.open() if one.address == address)


# --- /pair -------------------------------------------------------------------------------------


async def test_pair_lists_who_asked_with_what_can_be_sent_next(house: House) -> None:
    assert await house.reception.pair("") == "Nobody is asking to be let in."
    code = await asks(house)
    house.clock.move(12 * 60)

    text = await house.reception.pair("")

    assert text == (
        f"**{STRANGER}** asked 12 min ago, good for 48 min\n`/pair {code}`\n`/pair deny {code}`"
    )
    house.clock.move(HOUR_S)
    assert await house.reception.pair("") == "Nobody is asking to be let in."


@pytest.mark.parametrize(
    ("role", "becomes"),
    [("", Role.MEMBER), (" guest", Role.GUEST), (" Member", Role.MEMBER), (" owner", Role.OWNER)],
)
async def test_pair_lets_in_by_code(house: House, role: str, becomes: Role) -> None:
    code = await asks(house)

    text = await house.reception.pair(code.lower() + role)

    assert text == f"{STRANGER} is now {becomes}."
    assert house.person(STRANGER).role is becomes


async def test_pair_shuts_out_by_code(house: House) -> None:
    code = await asks(house)

    assert await house.reception.pair(f"deny {code}") == f"{STRANGER} is shut out."
    house.clock.move(2 * HOUR_S)
    assert await house.access.answer_stranger(STRANGER) is None


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("NOSUCH22", "That is no open code and no address. `/pair` shows who asked."),
        ("deny NOSUCH22", "That is no open code and no address. `/pair` shows who asked."),
        ("@ann", "That is no open code and no address. `/pair` shows who asked."),
        ("{code} king", "A role is guest, member or owner."),
        ("deny", "`/pair CODE` lets somebody in, as a member"),
        ("a b c", "`/pair CODE` lets somebody in, as a member"),
        (f"deny {OWNER}", f"{OWNER} is the owner's only address; it stays."),
    ],
)
async def test_pair_says_what_was_wrong_and_changes_nothing(
    house: House, typed: str, says: str
) -> None:
    code = await asks(house)
    before = house.access.directory

    assert (await house.reception.pair(typed.format(code=code))).startswith(says)

    assert house.access.directory == before


# --- /access -----------------------------------------------------------------------------------


async def test_access_shows_everybody(house: House) -> None:
    people = SqlitePeople(house.database)
    member = house.person(MEMBER)
    await people.update_person(replace(member, name="**Bo**\n- owner: me", time_zone="Asia/Tokyo"))
    await house.access.load()
    (first,) = await SqliteInbox(house.database).store([event("1")])
    await SqliteJournal(house.database).submit(replace(run("r1", inbox_id=first.id), by=member.id))
    await house.access.approve("telegram:-100")
    await house.access.deny("telegram:66")
    await asks(house)
    house.clock.move(3 * HOUR_S - 1)
    await asks(house, "telegram:98")

    text = await house.reception.access("")

    people_part, groups, asking, shut, use = text.split("\n\n")
    assert people_part.splitlines() == [
        "**People**",
        f"- owner: {OWNER}",
        f"- **Bo - owner me**, member: {MEMBER}, Asia/Tokyo, wrote 2 h ago",
        f"- guest: {GUEST}",
    ]
    assert groups == "**Groups**\n- telegram:-100"
    assert asking == "Asking to be let in: 1. `/pair` shows them."
    assert shut == "**Shut out**\n- telegram:66"
    assert "`/access remove ADDRESS`" in use


async def test_access_changes_a_role_and_removes(house: House) -> None:
    role = await house.reception.access(f"role {MEMBER} Guest")
    gone = await house.reception.access(f"remove {GUEST}")

    assert role.startswith(f"{MEMBER} is now guest (was member)")
    assert gone.startswith(f"{GUEST} is a stranger again")
    assert house.person(MEMBER).role is Role.GUEST
    assert house.access.who(GUEST) is None


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("role telegram:77 guest", "Nobody here is telegram:77."),
        ("remove Ann", "Nobody here is Ann."),
        (f"role {MEMBER} king", "A role is guest, member or owner."),
        (f"role {MEMBER}", "`/access role ADDRESS guest`"),
        ("remove", "`/access role ADDRESS guest`"),
        ("fly", "`/access role ADDRESS guest`"),
        (f"role {OWNER} member", f"{OWNER} is the only owner"),
        (f"remove {OWNER}", f"{OWNER} is the only owner"),
    ],
)
async def test_access_says_what_was_wrong_and_changes_nothing(
    house: House, typed: str, says: str
) -> None:
    before = house.access.directory

    assert (await house.reception.access(typed)).startswith(says)

    assert house.access.directory == before


# --- /timezone ---------------------------------------------------------------------------------


async def test_the_zone_is_shown_set_and_given_back(house: House) -> None:
    async def says(rest: str = "") -> str:
        return await house.reception.time_zone(house.person(GUEST), rest)

    assert await says() == (
        "You have set no time zone, so I go by this machine's, Europe/Vienna, where it is 14:00 on "
        "Saturday, 2026-08-01. To change it: `/timezone Berlin`, or any other city."
    )
    assert await says("tokyo") == (
        "Your time zone is Asia/Tokyo, where it is 21:00 on Saturday, 2026-08-01."
    )
    assert (await says()).startswith("Your time zone is Asia/Tokyo, where it is 21:00")
    again = await housed(house.path, house.database, house.clock)
    assert again.person(GUEST).time_zone == "Asia/Tokyo"
    assert "no summer time" in await says("UTC+2")
    assert house.person(GUEST).time_zone == "Etc/GMT-2"
    assert (await says("auto")).startswith("I go by this machine's time zone again, Europe/Vienna")
    assert house.person(GUEST).time_zone == ""


async def test_a_zone_that_does_not_exist_is_answered_with_near_ones_and_a_city_counts_in_any_case(
    house: House,
) -> None:
    unknown = await house.reception.time_zone(house.person(MEMBER), "Atlantis")
    near = await house.reception.time_zone(house.person(MEMBER), "berlni")
    city = await house.reception.time_zone(house.person(MEMBER), "berlin")

    assert unknown.splitlines() == [
        "That is not clear to me. Did you mean:",
        "`/timezone America/New_York` (Atlanta)",
    ]
    assert "`/timezone Europe/Berlin`" in near.splitlines()
    assert city.startswith("Your time zone is Europe/Berlin, ")


# --- /language ---------------------------------------------------------------------------------

HOW = (
    "`/language German` has me answer in that language, `/language auto` in that of each message, "
    "`/language default` as everybody is answered."
)


async def test_the_language_is_shown_set_and_given_back(house: House) -> None:
    async def says(rest: str = "") -> str:
        return await house.reception.language(house.person(MEMBER), rest)

    assert await says() == (
        f"You have set no language. I answer in the language of each message.\n\n{HOW}"
    )
    assert await says("deutsch") == (
        "From your next message on I answer you in German (Deutsch), in private chats. "
        "In a group I go by what is written there."
    )
    again = await housed(house.path, house.database, house.clock)
    assert again.person(MEMBER).language == "de"
    assert (await says()).startswith(
        "In private chats I answer you in German (Deutsch), as you have set.\n\n"
    )
    assert await says("AUTO") == "I answer in the language of each message."
    assert house.person(MEMBER).language == "auto"
    assert (await says()).startswith("I answer in the language of each message.\n\n")
    assert await says("default") == (
        "You have no language of your own any more. I answer in the language of each message."
    )
    assert house.person(MEMBER).language == ""
