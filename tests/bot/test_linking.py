"""A second address by a code: proof, one use, bounded guessing, and nobody's data is mixed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.channels.wire import link_code
from bot.people.linking import (
    ADDRESSES_MAX,
    LINK_VALID_MS,
    TRIERS_MAX,
    TRIES_MAX,
    TRIES_MS,
    LinkRefused,
    Redeemed,
    Tries,
)
from bot.people.pairing import UnknownCode
from bot.people.register import new_code
from memory.database.connection import Database
from memory.records.messages import Role
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal
from tests.bot.people_kit import GUEST, MEMBER, OWNER, STRANGER, House, housed, let_in
from tests.memory.kit import StillClock, run

PHONE = "telegram:22"
"""A second address of the member, still a stranger's."""


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    path, clock = tmp_path / "hearthbot.db", StillClock()
    async with Database.open(path, clock=clock) as database:
        house = await housed(path, database, clock)
        await let_in(house)
        yield house


async def restarted(house: House) -> House:
    return await housed(house.path, house.database, house.clock, codes=house.codes)


async def wrote(house: House, address: str) -> None:
    """Something is kept of the person who has this address."""
    whose = house.person(address).id
    await SqliteJournal(house.database).submit(
        replace(run(f"of {address}", lane=address), by=whose)
    )


# --- what is read of a stranger ----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["/link ABCD2345", "/link abcd2345", "/link@our_bot ABCD2345", "/link  ABCD2345 \n"],
)
def test_a_code_alone_is_read(text: str) -> None:
    assert link_code(text) == "ABCD2345"


@pytest.mark.parametrize(
    "other",
    [
        "",
        None,
        7,
        ["/link ABCD2345"],
        "/link",
        "/link ABCD234",
        "/link ABCD23456",
        "/link ABCD2345 please",
        "please /link ABCD2345",
        "/link\nABCD2345\nand more",
        "/linkABCD2345",
        "/link ＡＢＣＤ２３４５",
        "/link ABCDŁ345",
        "/link " + " " * 100_000 + "ABCD2345",
    ],
)
def test_whatever_else_a_stranger_writes_is_not_read(other: object) -> None:
    assert link_code(other) == ""


# --- from both sides ---------------------------------------------------------------------------


@pytest.mark.case("SE-17")
async def test_a_stranger_with_the_code_becomes_the_person_who_asked(house: House) -> None:
    member = house.person(MEMBER)
    code = await house.offered(MEMBER)

    found = await house.access.recognise(PHONE, is_group=False, link=code)
    text = await house.link(PHONE, code)

    assert found == replace(member, addresses=(MEMBER, PHONE))
    assert text.startswith(f"**{PHONE} now belongs to you too**, beside {MEMBER}.")
    ((lane, notice),) = await house.told()
    assert lane == MEMBER
    assert notice.startswith(f"**{PHONE} now belongs to you too.**")
    assert [lane for lane, _ in house.delivered] == [MEMBER]


async def test_a_code_outlives_a_restart_and_not_its_ten_minutes(house: House) -> None:
    first = await house.offered(MEMBER)
    house.clock.move(LINK_VALID_MS / 1000 - 1)
    again = await restarted(house)
    assert await again.access.recognise(PHONE, is_group=False, link=first) is not None

    second = await again.offered(MEMBER)
    house.clock.move(LINK_VALID_MS / 1000)
    late = await again.access.recognise("telegram:23", is_group=False, link=second)

    assert late is None


async def test_a_code_is_good_once_and_a_newer_one_replaces_it(house: House) -> None:
    replaced = await house.offered(MEMBER)
    code = await house.offered(MEMBER)
    linking = house.access.linking

    assert await linking.redeem(PHONE, replaced) is Redeemed.UNKNOWN
    assert await linking.redeem(PHONE, code) is Redeemed.LINKED
    assert await linking.redeem("telegram:23", code) is Redeemed.UNKNOWN
    assert await linking.redeem(OWNER, code) is Redeemed.UNKNOWN
    assert house.person(MEMBER).addresses == (MEMBER, PHONE)


async def test_an_address_that_was_taken_away_again_is_not_back_by_the_old_code(
    house: House,
) -> None:
    code = await house.offered(MEMBER)
    await house.access.recognise(PHONE, is_group=False, link=code)

    assert await house.link(MEMBER, f"remove {PHONE}") == f"{PHONE} no longer belongs to you."

    assert await house.access.recognise(PHONE, is_group=False, link=code) is None


async def test_the_code_of_a_person_who_was_removed_or_is_a_guest_now_opens_nothing(
    house: House,
) -> None:
    await house.access.approve("telegram:4")
    removed, demoted = await house.offered(MEMBER), await house.offered("telegram:4")

    await house.access.remove(MEMBER)
    await house.access.set_role("telegram:4", Role.GUEST)

    assert await house.access.recognise(PHONE, is_group=False, link=removed) is None
    assert await house.access.recognise(PHONE, is_group=False, link=demoted) is None


async def test_in_a_group_and_from_somebody_who_was_shut_out_no_code_counts(house: House) -> None:
    code = await house.offered(MEMBER)
    await house.access.deny(STRANGER)

    assert await house.access.recognise(PHONE, is_group=True, link=code) is None
    assert await house.access.recognise(STRANGER, is_group=False, link=code) is None
    assert await house.access.recognise(PHONE, is_group=False, link=code) is not None


async def test_an_open_bot_links_before_it_makes_a_guest(house: House) -> None:
    open_house = await housed(
        house.path, house.database, house.clock, policy="open", codes=house.codes
    )
    code = await open_house.offered(MEMBER)

    linked = await open_house.access.recognise(PHONE, is_group=False, link=code)
    guest = await open_house.access.recognise("telegram:23", is_group=False, link="WRONGONE")

    assert linked == open_house.person(MEMBER)
    assert guest is not None
    assert guest.role is Role.GUEST


SLACK = "slack:T0LAB:U0ANN"


async def test_an_owner_who_approved_their_own_second_channel_is_told_the_way_back(
    house: House,
) -> None:
    approved = await house.access.approve(SLACK)
    await wrote(house, SLACK)

    assert f"`hearthbot access remove {SLACK}`" in approved.text
    assert f"`/access remove {SLACK}`" in approved.text
    assert "`/hearth link CODE`" in approved.text
    await house.access.remove(SLACK)
    code = await house.offered(OWNER)
    found = await house.access.recognise(SLACK, is_group=False, link=code)
    assert found == house.person(OWNER)
    assert found.addresses == (OWNER, SLACK)


# --- addresses that are somebody's -------------------------------------------------------------


async def test_somebody_of_whom_something_is_kept_is_never_made_another(house: House) -> None:
    await wrote(house, GUEST)
    code = await house.offered(MEMBER)
    before = house.access.directory.people

    text = await house.link(GUEST, code)

    assert "two people are never made one" in text
    assert f"/access remove {GUEST}" in text
    assert house.access.directory.people == before
    assert await house.told() == []
    assert await house.access.recognise(PHONE, is_group=False, link=code), "it is still good"


async def test_somebody_who_was_just_let_in_and_never_wrote_can_still_be_linked(
    house: House,
) -> None:
    await house.access.approve(PHONE)
    code = await house.offered(MEMBER)

    text = await house.link(PHONE, code)

    assert "now belongs to you too" in text
    assert house.person(PHONE) == house.person(MEMBER)
    assert len(house.access.directory.people) == 3


async def test_the_owners_address_is_nobody_elses_by_a_code(house: House) -> None:
    code = await house.offered(MEMBER)

    assert await house.access.linking.redeem(OWNER, code) is Redeemed.TAKEN
    assert house.person(OWNER).role is Role.OWNER


async def test_a_person_has_a_bounded_number_of_addresses(house: House) -> None:
    numbers = range(100, 100 + ADDRESSES_MAX - 1)
    codes = [await house.offered(MEMBER)]
    for number in numbers:
        assert await house.access.linking.redeem(f"telegram:{number}", codes[-1]) is (
            Redeemed.LINKED
        )
        if len(house.person(MEMBER).addresses) < ADDRESSES_MAX:
            codes.append(await house.offered(MEMBER))

    assert "addresses of one person are the most" in await house.link(MEMBER)
    with pytest.raises(LinkRefused, match="are the most"):
        await house.access.link(MEMBER, "telegram:200")


# --- guessing ----------------------------------------------------------------------------------


async def test_after_three_wrong_codes_the_right_one_is_not_looked_at_for_an_hour(
    house: House,
) -> None:
    linking = house.access.linking
    with capture_logs() as logs:
        wrong = [await linking.redeem(PHONE, f"WRONG{n:03d}") for n in range(TRIES_MAX)]
        code = await house.offered(MEMBER)
        barred = await linking.redeem(PHONE, code)
        elsewhere = await linking.redeem("telegram:23", "WRONG000")
    house.clock.move(TRIES_MS / 1000)
    code = await house.offered(MEMBER)

    assert wrong == [Redeemed.UNKNOWN] * TRIES_MAX
    assert barred is Redeemed.TOO_MANY
    assert elsewhere is Redeemed.UNKNOWN
    assert await linking.redeem(PHONE, code) is Redeemed.LINKED
    used_up = [entry for entry in logs if entry["event"] == "access.link_tries_used_up"]
    assert [entry["address"] for entry in used_up] == [PHONE]


async def test_a_stranger_who_guesses_hears_no_more_than_any_other(house: House) -> None:
    for n in range(2 * TRIES_MAX):
        assert await house.access.recognise(PHONE, is_group=False, link=f"WRONG{n:03d}") is None

    assert await house.access.answer_stranger(PHONE)
    assert await house.access.answer_stranger(PHONE) is None


async def test_somebody_known_is_told_that_nothing_is_looked_at(house: House) -> None:
    texts = [await house.link(GUEST, f"WRONG{n:03d}") for n in range(TRIES_MAX + 1)]

    assert [text.partition(".")[0] for text in texts] == [
        *["That is no code that is open now"] * TRIES_MAX,
        "Too many codes were wrong",
    ]


async def test_the_side_that_asked_is_told_to_use_the_other(house: House) -> None:
    code = await house.offered(MEMBER)

    assert "send it from there, not here" in await house.link(MEMBER, code)
    assert await house.access.recognise(PHONE, is_group=False, link=code) is not None


def test_codes_are_many_and_have_no_look_alikes() -> None:
    codes = {new_code() for _ in range(1000)}

    assert len(codes) == 1000
    assert not set("0O1IL") & set("".join(codes))
    assert len(set("".join(codes))) ** min(map(len, codes)) > 10**11


def test_a_crowd_costs_bounded_memory_and_is_forgotten() -> None:
    tries = Tries()
    for number in range(TRIERS_MAX):
        tries.count(f"telegram:{number}", "WRONGONE", now_ms=number)

    assert not tries.allows("telegram:9999999", "ANYTHING", now_ms=TRIERS_MAX)
    assert tries.allows("telegram:9999999", "ANYTHING", now_ms=TRIES_MS)


async def test_a_crowd_of_strangers_does_not_shut_out_who_is_known(house: House) -> None:
    for number in range(TRIERS_MAX):
        await house.access.linking.redeem(f"telegram:{1000 + number}", "WRONGONE")
    code = await house.offered(MEMBER)

    assert await house.access.linking.redeem(PHONE, code) is Redeemed.TOO_MANY
    await house.access.approve(PHONE)
    assert await house.access.linking.redeem(PHONE, code) is Redeemed.LINKED


async def test_no_code_is_in_a_log_line(house: House) -> None:
    with capture_logs() as logs:
        code = await house.offered(MEMBER)
        for wrong in ("WRONG001", "WRONG002", "WRONG003", "WRONG004"):
            await house.access.recognise("telegram:23", is_group=False, link=wrong)
        await house.access.recognise(PHONE, is_group=False, link=code)
        await house.link(PHONE, code)
        await house.link(PHONE, "remove " + PHONE)

    assert {"access.linked", "access.unlinked"} <= {entry["event"] for entry in logs}
    assert code not in str(logs)
    assert "WRONG" not in str(logs)


# --- list, and taking away ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (MEMBER, "is your only address; it stays"),
        (OWNER, "is none of your addresses"),
        ("telegram:77", "is none of your addresses"),
    ],
)
async def test_the_last_address_and_those_of_others_stay(
    house: House, address: str, why: str
) -> None:
    before = house.access.directory

    assert why in await house.link(MEMBER, f"remove {address}")

    assert house.access.directory == before


async def test_two_at_a_time_cannot_take_the_last_two_addresses(house: House) -> None:
    await house.access.link(MEMBER, PHONE)
    stale = house.person(MEMBER)

    await house.access.linking.unlink(stale, PHONE)
    with pytest.raises(LinkRefused, match="only address"):
        await house.access.linking.unlink(stale, MEMBER)


async def test_a_guest_gets_no_code(house: House) -> None:
    assert "As a guest" in await house.link(GUEST)
    assert house.access.directory.links == ()


@pytest.mark.parametrize("nonsense", ["what", "remove", "a b c", "ABCD-2345", "remove a b"])
async def test_what_is_not_understood_shows_how(house: House, nonsense: str) -> None:
    assert "`/link CODE` is how one is sent from here" in await house.link(MEMBER, nonsense)


# --- by the owner ------------------------------------------------------------------------------


async def test_the_owner_links_without_a_code_and_both_are_told(house: House) -> None:
    text = await house.access.link(MEMBER, PHONE)
    again = await house.access.link(house.person(MEMBER).id, PHONE)

    assert text == f"{PHONE} now belongs to {MEMBER} too."
    assert again == f"{PHONE} belongs to {MEMBER} already."
    assert [lane for lane, _ in await house.told()] == [MEMBER, PHONE]


async def test_the_owner_links_by_the_code_that_the_other_side_was_given(house: House) -> None:
    answer = await house.access.answer_stranger(PHONE)
    assert answer is not None
    code = house.access.pairings.open()[0].code

    await house.access.link(MEMBER, code)

    assert house.person(PHONE) == house.person(MEMBER)
    assert house.access.pairings.open() == []


@pytest.mark.parametrize("group", ["telegram:-100", "slack:T0AB.C0CD"])
async def test_a_group_chat_is_nobodys_address(house: House, group: str) -> None:
    with pytest.raises(LinkRefused, match="group chat"):
        await house.access.link(MEMBER, group)


@pytest.mark.case("SE-01")
@pytest.mark.parametrize("name", ["@ann", "telegram:@ann", "ann", "slack:T0AB:ann", "NOSUCH22"])
@pytest.mark.threat("T1")
async def test_a_name_is_never_linked(house: House, name: str) -> None:
    with pytest.raises(UnknownCode):
        await house.access.link(MEMBER, name)


async def test_the_owner_cannot_link_to_nobody_nor_make_two_people_one(house: House) -> None:
    await wrote(house, GUEST)

    with pytest.raises(LinkRefused, match="Nobody here has the address telegram:77"):
        await house.access.link("telegram:77", PHONE)
    with pytest.raises(LinkRefused, match="never made one"):
        await house.access.link(MEMBER, GUEST)

    await house.access.remove(GUEST)
    await house.access.link(MEMBER, GUEST)
    assert house.person(GUEST) == house.person(MEMBER)


async def test_what_was_kept_of_a_removed_person_is_not_the_linked_ones(house: House) -> None:
    await wrote(house, GUEST)
    before = house.person(GUEST).id

    await house.access.remove(GUEST)
    await house.access.link(MEMBER, GUEST)

    assert house.person(GUEST).id != before
    stored = (await SqlitePeople(house.database).directory()).people
    assert before in {person.id for person in stored}, "its rows hang on it"
