"""People, codes and rights, over the real store, by a clock that is told the time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.errors import Permanent
from agent.messages import Address, Role
from bot.access import ANSWER_EVERY_MS, Access, OwnerFirst, Policy, UnknownCode
from memory.database import Database
from memory.people import SqlitePeople
from tests.memory.kit import StillClock

HOUR_S = 3600


class Codes:
    """Codes and ids in a known order."""

    def __init__(self) -> None:
        self._count = 0

    def code(self) -> str:
        self._count += 1
        return f"CODE{self._count:04d}"

    def id(self) -> str:
        self._count += 1
        return f"p{self._count}"


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def database(tmp_path: Path, clock: StillClock) -> AsyncIterator[Database]:
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        yield database


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


async def test_who_asked_long_ago_is_forgotten_but_not_who_was_shut_out(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock)
    await door.answer_stranger("telegram:1")
    await door.deny("telegram:2")
    clock.move(25 * HOUR_S)

    await door.answer_stranger("telegram:3")

    assert {p.address for p in door.directory.pairings} == {"telegram:2", "telegram:3"}


@pytest.mark.parametrize("policy", ["allowlist", "open"])
async def test_without_pairing_there_is_no_code(
    people: SqlitePeople, clock: StillClock, policy: Policy
) -> None:
    door = await access(people, clock, policy)

    assert await door.answer_stranger("telegram:9") is None


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
    assert door.as_json()["denied"] == ["telegram:9"]
    await door.approve("telegram:9")
    assert door.who("telegram:9") is not None


async def test_the_owners_only_address_stays(people: SqlitePeople, clock: StillClock) -> None:
    door = await access(people, clock)
    await door.approve("telegram:1")

    with pytest.raises(Permanent, match="only address"):
        await door.deny("telegram:1")

    assert door.who("telegram:1") is not None


# --- groups ------------------------------------------------------------------------------------


async def test_a_group_is_admitted_with_all_its_topics(
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


async def test_the_directory_is_shown_without_codes_that_are_past(
    people: SqlitePeople, clock: StillClock
) -> None:
    door = await access(people, clock, "pairing", "telegram:4")
    await door.approve("telegram:1")
    await door.approve("telegram:-5")
    await door.answer_stranger("telegram:8")
    shown = door.as_json()
    clock.move(HOUR_S + 1)

    assert [one["address"] for one in shown["asking"]] == ["telegram:8"]
    assert shown["allow_from"] == ["telegram:4"]
    assert shown["chats"] == {"telegram:-5": "admitted"}
    assert [one["role"] for one in shown["people"]] == ["owner"]
    assert door.as_json()["asking"] == []
