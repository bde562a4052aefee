"""People, codes and rights, over the real store, by a clock that is told the time."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.people.access import (
    ANSWER_EVERY_MS,
    CONSOLE_ADDRESS,
    Access,
    LastOwner,
    OwnerFirst,
    Policy,
    UnknownCode,
    UnknownPerson,
)
from memory.database.connection import Database
from memory.records.messages import Address, PersonId, Role
from memory.records.rows import Person
from memory.stores.people import SqlitePeople
from tests.bot.people_kit import Codes
from tests.memory.kit import StillClock

HOUR_S = 3600


@pytest.fixture
def people(database: Database) -> SqlitePeople:
    return SqlitePeople(database)


async def access(
    people: SqlitePeople, clock: StillClock, policy: Policy = "pairing", *allowed: str
) -> Access:
    codes = Codes()
    made = Access(
        people,
        policy=policy,
        allowed=allowed,
        clock=clock,
        new_id=codes.id,
        new_code=codes.code,
    )
    await made.load()
    return made


# --- strangers ---------------------------------------------------------------------------------


async def test_a_stranger_is_answered_once_an_hour(people: SqlitePeople, clock: StillClock) -> None:
    door = await access(people, clock)

    first = await door.answer_stranger("telegram:9")
    again = await door.answer_stranger("telegram:9")
    clock.move(HOUR_S - 1)
    still = await door.answer_stranger("telegram:9")
    clock.move(2)
    later = await door.answer_stranger("telegram:9")

    assert first is not None
    assert later is not None
    assert (again, still) == (None, None)
    assert "CODE0001" in first
    assert "CODE0002" in later


@pytest.mark.parametrize("policy", ["allowlist", "open"])
async def test_without_pairing_there_is_no_code(
    people: SqlitePeople, clock: StillClock, policy: Policy
) -> None:
    door = await access(people, clock, policy)

    assert await door.answer_stranger("telegram:9") is None


async def test_who_asked_long_ago_is_forgotten_but_not_who_was_shut_out(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    await door.answer_stranger("telegram:1")
    await door.deny("telegram:2")
    clock.move(25 * HOUR_S)

    await door.answer_stranger("telegram:3")

    assert {p.address for p in door.directory.pairings} == {"telegram:2", "telegram:3"}


async def test_the_hour_is_kept_over_a_restart(people: SqlitePeople, clock: StillClock) -> None:
    await (await access(people, clock)).answer_stranger("telegram:9")

    assert await (await access(people, clock)).answer_stranger("telegram:9") is None


async def test_three_codes_are_open_in_a_channel_and_a_past_one_makes_room(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    for number in (1, 2, 3):
        assert await door.answer_stranger(f"telegram:{number}")
        clock.move(60)

    with capture_logs() as logs:
        assert await door.answer_stranger("telegram:4") is None
        assert await door.answer_stranger("telegram:5") is None
    elsewhere = await door.answer_stranger("slack:4")
    clock.move(HOUR_S - 60)
    room = await door.answer_stranger("telegram:4")

    assert elsewhere is not None
    assert room is not None
    assert [entry["event"] for entry in logs] == ["access.too_many_pending"]


async def test_an_open_bot_takes_guests_in_private_chats_alone(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock, "open")

    assert await door.recognise("telegram:9", is_group=True) is None
    guest = await door.recognise("telegram:9", is_group=False)

    assert guest is not None
    assert guest.role is Role.GUEST


# --- approving ---------------------------------------------------------------------------------


async def test_before_there_is_an_owner_nobody_gets_another_role(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)

    with pytest.raises(OwnerFirst, match="Approve your own address first"):
        await door.approve("telegram:9", role=Role.GUEST)

    assert door.who("telegram:9") is None


async def test_the_first_address_is_the_owners_and_later_ones_are_members(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    terminal = await door.owner_of_this_machine()

    first = await door.approve("telegram:1")
    second = await door.approve("telegram:2")
    guest = await door.approve("telegram:3", role=Role.GUEST)
    again = await door.approve("telegram:2", role=Role.GUEST)

    assert first.person is not None
    assert first.person.id == terminal.id
    assert first.person.role is Role.OWNER
    assert (second.person and second.person.role) is Role.MEMBER
    assert (guest.person and guest.person.role) is Role.GUEST
    assert again.text == "telegram:2 is member already."


async def test_a_code_is_good_for_an_hour_and_once(people: SqlitePeople, clock: StillClock) -> None:
    door = await access(people, clock)
    await door.approve("telegram:1")
    await door.answer_stranger("telegram:8")
    await door.answer_stranger("telegram:9")

    done = await door.approve(" code0002 ")
    with pytest.raises(UnknownCode):
        await door.approve("CODE0002")
    clock.move(HOUR_S)
    with pytest.raises(UnknownCode, match="is past"):
        await door.approve("CODE0003")

    assert done.address == "telegram:8"
    assert door.who("telegram:9") is None


@pytest.mark.parametrize(
    "wrong",
    ["", " ", "@ann", "telegram:@ann", "telegram:", "telegram:--5", "telegram:٣", ":5", "5"],
)
async def test_a_name_or_nonsense_approves_nobody(
    people: SqlitePeople, clock: StillClock, wrong: str
) -> None:
    door = await access(people, clock)
    await door.deny("telegram:7")  # its row has no code: an empty one must not find it

    with pytest.raises(UnknownCode):
        await door.approve(wrong)

    assert door.directory.people == ()


async def test_who_was_shut_out_has_no_code_no_answer_and_no_way_by_the_list(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock, "pairing", "telegram:9")
    await door.recognise("telegram:9", is_group=False)

    await door.deny("telegram:9")
    clock.move(2 * HOUR_S)

    assert await door.recognise("telegram:9", is_group=False) is None
    assert await door.answer_stranger("telegram:9") is None
    assert (await door.overview())["denied"] == ["telegram:9"]
    await door.approve("telegram:9")
    assert door.who("telegram:9") is not None


# --- roles changed later, and people who go ----------------------------------------------------


async def with_two_owners(people: SqlitePeople, clock: StillClock) -> Access:
    """telegram:1, who has the terminal, and telegram:2."""
    door = await access(people, clock)
    await door.owner_of_this_machine()
    await door.approve("telegram:1")
    await door.approve("telegram:2", role=Role.OWNER)
    return door


def role_of(door: Access, address: str) -> Role | None:
    person = door.who(address)
    return None if person is None else person.role


async def test_a_role_is_changed_for_all_addresses_and_outlives_a_restart(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    await door.approve("telegram:1")
    await door.approve("telegram:2")
    await door.link("telegram:2", "telegram:22")

    text = await door.set_role("telegram:22", Role.GUEST)
    again = await door.set_role("telegram:2", Role.GUEST)

    assert text == "telegram:2 is now guest (was member), from the next message on."
    assert again == "telegram:2 is guest already."
    anew = await access(people, clock)
    assert [role_of(anew, one) for one in ("telegram:2", "telegram:22")] == [Role.GUEST] * 2


@pytest.mark.parametrize("role", [Role.MEMBER, Role.GUEST])
async def test_the_last_owner_stays_one(
    people: SqlitePeople, clock: StillClock, role: Role
) -> None:
    door = await access(people, clock)
    await door.owner_of_this_machine()
    await door.approve("telegram:1")
    before = door.directory

    with pytest.raises(LastOwner, match="only owner and cannot be a"):
        await door.set_role("telegram:1", role)
    with pytest.raises(LastOwner, match="only owner and cannot be removed"):
        await door.remove("telegram:1")

    assert door.directory == before


async def test_an_owner_who_steps_down_leaves_the_terminal_to_the_other(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await with_two_owners(people, clock)

    await door.set_role("telegram:1", Role.MEMBER)

    at_the_terminal = await door.owner_of_this_machine()
    assert at_the_terminal == door.who("telegram:2")
    assert role_of(door, "telegram:1") is Role.MEMBER


async def test_two_owners_who_demote_each_other_at_once_leave_one(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await with_two_owners(people, clock)

    done = await asyncio.gather(
        door.set_role("telegram:1", Role.GUEST),
        door.remove("telegram:2"),
        door.set_role("telegram:2", Role.GUEST),
        return_exceptions=True,
    )

    assert [type(one) for one in done] == [str, LastOwner, LastOwner]
    owners = [one for one in door.directory.people if one.role is Role.OWNER]
    assert [one.addresses for one in owners] == [("telegram:2",)]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("role"), st.integers(1, 4), st.sampled_from(list(Role))),
            st.tuples(st.just("remove"), st.integers(1, 4), st.none()),
            st.tuples(st.just("approve"), st.integers(1, 4), st.none()),
            st.tuples(st.just("deny"), st.integers(1, 4), st.none()),
            st.tuples(st.just("terminal"), st.none(), st.none()),
        ),
        max_size=25,
    )
)
@settings(max_examples=60, deadline=None)
async def test_whatever_is_changed_there_is_an_owner_once_there_was_one(
    changes: list[tuple[str, int | None, Role | None]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Database.open(Path(folder) / "hearthbot.db", clock=StillClock()) as database:
            door = await access(SqlitePeople(database), StillClock())
            await door.approve("telegram:1")
            for what, number, role in changes:
                who = f"telegram:{number}"
                with contextlib.suppress(LastOwner, UnknownPerson):
                    match what:
                        case "role":
                            assert role is not None
                            await door.set_role(who, role)
                        case "remove":
                            await door.remove(who)
                        case "approve":
                            await door.approve(who)
                        case "deny":
                            await door.deny(who)
                        case _:
                            await door.owner_of_this_machine()

                people = door.directory.people
                assert any(one.role is Role.OWNER for one in people)
                terminal = door.who(CONSOLE_ADDRESS)
                assert terminal is None or terminal.role is Role.OWNER
                addresses = [address for one in people for address in one.addresses]
                assert len(addresses) == len(set(addresses))


async def test_who_was_removed_is_a_stranger_and_may_ask_again(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    await door.approve("telegram:1")
    await door.approve("telegram:2")
    await door.link("telegram:2", "telegram:22")
    gone = door.who("telegram:2")
    assert gone is not None

    text = await door.remove("telegram:22")

    assert text == (
        "telegram:2 is a stranger again, from the next message on. What is remembered of them is "
        f"kept, and what they said in groups is still known there: `hearthbot memory list --person "
        f"{gone.id}` shows it, and `hearthbot memory forget everything --person {gone.id}` erases "
        "it."
    )
    assert await door.recognise("telegram:2", is_group=False) is None
    assert await door.recognise("telegram:22", is_group=False) is None
    assert await door.answer_stranger("telegram:2") is not None
    back = await door.approve("telegram:2")
    assert gone is not None
    assert back.person is not None
    assert back.person.id != gone.id, "a number may be another's by now: nothing is handed over"


async def test_who_was_removed_is_not_let_in_again_by_the_settings(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock, "pairing", "telegram:2")
    await door.approve("telegram:1")
    await door.recognise("telegram:2", is_group=False)

    text = await door.remove("telegram:2")

    assert "The settings would let telegram:2 in, so that is shut out." in text
    assert await door.recognise("telegram:2", is_group=False) is None
    assert await door.answer_stranger("telegram:2") is None


async def test_one_address_that_is_shut_out_leaves_the_others_and_says_so(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    await door.approve("telegram:1")
    await door.approve("telegram:2")
    await door.link("telegram:2", "telegram:22")

    text = await door.deny("telegram:22")

    assert "Its person still has telegram:2" in text
    assert role_of(door, "telegram:2") is Role.MEMBER
    assert role_of(door, "telegram:22") is None


@pytest.mark.case("SE-01")
@pytest.mark.parametrize("nobody", ["", " ", "@ann", "Ann", "telegram:77", "telegram:-100", "p99"])
@pytest.mark.threat("T1")
async def test_nobody_is_found_by_a_name(
    people: SqlitePeople, clock: StillClock, nobody: str
) -> None:
    ann = Person(id=PersonId("p1"), role=Role.OWNER, name="Ann", addresses=("telegram:1",))
    await people.add_person(ann)
    door = await access(people, clock)

    with pytest.raises(UnknownPerson):
        await door.set_role(nobody, Role.GUEST)
    with pytest.raises(UnknownPerson):
        await door.remove(nobody)


# --- groups ------------------------------------------------------------------------------------


async def test_a_group_is_admitted_with_all_its_topics_until_it_is_shut_out(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    topic = Address(channel="telegram", chat_id="-100", thread_id="7")
    assert not door.is_admitted(topic)

    await door.approve("telegram:-100")
    assert door.is_admitted(topic)

    await door.deny("telegram:-100")
    assert not door.is_admitted(topic)


async def test_the_hint_about_a_chat_comes_once_an_hour_and_not_for_one_that_was_shut(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    chat = Address(channel="telegram", chat_id="-100", thread_id="7")
    same = Address(channel="telegram", chat_id="-100")
    other = Address(channel="telegram", chat_id="-200")

    assert [door.hint_is_due(one) for one in (chat, same, other)] == [True, False, True]
    clock.move(ANSWER_EVERY_MS / 1000)
    assert door.hint_is_due(same)
    await door.deny("telegram:-200")
    assert not door.hint_is_due(other)
