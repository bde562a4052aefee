"""The question of the time zone: to whom, when, and what its buttons do. Through the whole bot:
test_zone_question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from bot.channels.base import Pressed
from bot.outbox.edits import QuestionMessages
from bot.people.zone_question import (
    AGAIN,
    IN_PRIVATE,
    NOT_YOURS,
    NOTHING_LEFT,
    OVER,
    SHOWN_MAX,
    UNKNOWN,
    AssumedZones,
    ZoneQuestions,
)
from memory.database.connection import Database
from memory.records.jobs import Due, Job, SetBy
from memory.records.messages import Address, IncomingMessage, OutboxId, PersonId, RunId
from memory.records.recurrence import At, Cron
from memory.records.schedule import Event, TimeRead
from memory.records.zones import AssumedTime, Move, Timed
from memory.stores.approvals import SqliteCards
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqliteAssumedZones
from tests.bot.people_kit import GUEST, MEMBER, OWNER, House, housed, let_in
from tests.bot.schedule_kit import Chats
from tests.memory.kit import StillClock
from tests.scheduler.jobs_kit import job as new_job

VIENNA, GROUP, TERMINAL = "Europe/Vienna", "telegram:-100", "console:local"
NOON = At(moment=datetime(2026, 8, 2, 10, 0, tzinfo=UTC), zone=VIENNA)
ANYWHERE = TimeRead(when=NOON, sentence="in a day")
READ = TimeRead(when=NOON, sentence="tomorrow at noon")


class Foretold:
    """Implements Moves: what is there to be moved, once."""

    def __init__(self) -> None:
        self.moves: list[Move] = []

    async def of(self, person_id: PersonId, zone: tzinfo) -> Sequence[Move]:
        return list(self.moves)

    async def make(self, person_id: PersonId, zone: tzinfo) -> Sequence[Move]:
        made, self.moves = self.moves, []
        return made


class Hall:
    """People, the question, and what is in the outbox."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.store = SqliteAssumedZones(house.database)
        self.moves = Foretold()
        self.busy: set[str] = set()
        self.delivered: list[tuple[str, OutboxId]] = []
        self.outbox = SqliteOutbox(house.database)
        self.chats = Chats(self.outbox)
        self.start()

    def start(self) -> None:
        """As after a start of the process."""
        house = self.house
        self.assumed = AssumedZones(
            self.store, house.access, zone=VIENNA, is_anywhere=lambda time: time == ANYWHERE
        )
        self.desk = ZoneQuestions(
            self.assumed,
            house.access,
            self.moves,
            QuestionMessages(self.chats, SqliteCards(house.database)),
            clock=house.clock,
            deliver=self.delivered.extend,
            busy=lambda lane: lane in self.busy,
        )

    async def keeps(
        self, by: str, lane: str = "", *, anywhere: bool = False, **more: object
    ) -> Job:
        """A job of a person, by a time of the day unless it is the same anywhere."""
        job = kept(1, person_id=self.id(by), deliver_to=lane or by, **more)
        await self.assumed.kept(job, anywhere=anywhere)
        return job

    def id(self, address: str) -> PersonId:
        return self.house.person(address).id

    async def set_zone(self, address: str, zone: str) -> None:
        await self.house.access.set_time_zone(self.house.person(address), zone)

    async def sent(self) -> list[str]:
        """The texts of all that is in the outbox."""
        rows = await self.house.database.read(
            lambda c: c.execute("select lane, text from outbox order by id").fetchall()
        )
        return [f"{lane}: {text}" for lane, text in rows]

    async def asked(self, lane: str = OWNER) -> list[str]:
        """What is in the outbox once the answer is given in a chat."""
        await self.desk.after(lane)
        return await self.sent()

    async def press(self, data: str, by: str = OWNER) -> str:
        """Under the newest card."""
        card = self.delivered[-1][1] if self.delivered else OutboxId(0)
        pressed = Pressed(
            address=Address.parse(by),
            message_id=f"m{card}",
            sender=by,
            data=data,
            press_id="1",
        )
        return await self.desk.press(pressed, self.house.person(by))

    async def offered(self, by: str = OWNER, lane: str = "") -> tuple[str, list[str]]:
        """What `/timezone` adds, and its buttons."""
        offer = await self.desk.offer(message(lane or by, by))
        return offer.text, [button.label for row in offer.buttons for button in row]


def kept(id: int, **more: Any) -> Job:
    new = new_job(f"job {id}", when=Cron(expression="0 8 * * *", zone=VIENNA))
    at_ms = int(datetime(2026, 8, 2, 6, 0, tzinfo=UTC).timestamp() * 1000)
    return replace(new, id=id, next=Due(slot="2026-08-02T08:00", at_ms=at_ms), **more)


def event(id: int, person_id: PersonId, **more: Any) -> Event:
    new = Event(person_id=person_id, name="Dentist", at=NOON.moment, zone=VIENNA)
    return replace(new, id=id, **more)


def message(lane: str, by: str) -> IncomingMessage:
    return IncomingMessage(
        address=Address.parse(lane),
        message_id="1",
        sender_id=by.partition(":")[2],
        is_group=lane == GROUP,
    )


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Hall]:
    path, clock = tmp_path / "hearthbot.db", StillClock()
    async with Database.open(path, clock=clock) as database:
        house = await housed(path, database, clock)
        await let_in(house)
        yield Hall(house)


# --- who is asked --------------------------------------------------------------------------------


async def test_the_question_shows_what_time_it_is_by_this_machine(hall: Hall) -> None:
    await hall.keeps(OWNER)
    before = await hall.sent()

    asked = await hall.asked()
    again = await hall.asked()

    assert before == []
    assert asked == [
        f"{OWNER}: Is it **14:00** where you are? I take Europe/Vienna, this machine's zone, for "
        "you.\n`/timezone CITY` if not."
    ]
    assert again == asked
    assert [lane for lane, _ in hall.delivered] == [OWNER]


async def test_in_slack_the_command_is_named_as_it_is_typed_there(hall: Hall) -> None:
    await hall.keeps(OWNER, "slack:T1.D1")

    [asked] = await hall.asked("slack:T1.D1")

    assert asked.endswith("`/hearth timezone CITY` if not.")


@pytest.mark.parametrize(
    ("by", "lane", "more"),
    [
        (OWNER, OWNER, {"anywhere": True}),
        (OWNER, GROUP, {}),
        (OWNER, TERMINAL, {}),
        (OWNER, "slack:T1.C1", {}),
        (GUEST, GUEST, {}),
        (OWNER, OWNER, {"set_by": SetBy.SKILL}),
        (OWNER, OWNER, {"run_id": RunId(f"{AGAIN}{OWNER}-7")}),
    ],
)
async def test_nobody_is_asked_for_what_says_nothing_or_where_others_read(
    hall: Hall, by: str, lane: str, more: dict[str, object]
) -> None:
    await hall.keeps(by, lane, **more)  # type: ignore[arg-type]
    await hall.desk.start()

    assert await hall.asked(lane) == []


async def test_who_has_a_zone_is_neither_asked_nor_is_anything_assumed_of_them(hall: Hall) -> None:
    await hall.keeps(OWNER)
    assert await hall.store.assumed(hall.id(OWNER)) != []
    await hall.set_zone(OWNER, VIENNA)

    await hall.keeps(OWNER)

    assert await hall.store.assumed(hall.id(OWNER)) == []
    assert await hall.asked() == []
    hall.start()
    await hall.desk.start()
    assert await hall.sent() == []


async def test_while_an_answer_is_on_its_way_the_question_waits(hall: Hall) -> None:
    hall.busy.add(OWNER)
    await hall.keeps(OWNER)

    during = await hall.asked()
    hall.busy.clear()

    assert during == []
    assert len(await hall.asked()) == 1


async def test_each_person_is_asked_in_the_chat_where_they_set_something_up(hall: Hall) -> None:
    await hall.keeps(OWNER)
    await hall.keeps(MEMBER)
    await hall.assumed.used(hall.id(MEMBER), MEMBER)

    first = await hall.asked(MEMBER)
    both = await hall.asked(OWNER)

    assert [one.partition(": ")[0] for one in first] == [MEMBER]
    assert [one.partition(": ")[0] for one in both] == [MEMBER, OWNER]


async def test_an_event_with_a_time_asks_and_one_of_a_group_is_not_moved(hall: Hall) -> None:
    owner = hall.id(OWNER)
    await hall.assumed.noted(event(1, owner), ANYWHERE, OWNER)
    nothing = await hall.asked()
    await hall.assumed.noted(event(2, owner, scope=GROUP), READ, GROUP)
    await hall.assumed.noted(event(3, owner), READ, OWNER)

    assert nothing == []
    assert len(await hall.asked()) == 1
    assert [one.id for one in await hall.store.assumed(owner)] == [3]


# --- Yes -----------------------------------------------------------------------------------------


async def test_yes_keeps_the_zone_and_what_was_set_up_is_theirs(hall: Hall) -> None:
    await hall.keeps(OWNER)
    await hall.asked()
    await hall.chats.send(hall.delivered[-1][1])
    data = f"zone:yes:{hall.id(OWNER)}"

    first, second = await hall.press(data), await hall.press(data)

    assert first == second == "Your time zone is Europe/Vienna."
    assert hall.house.person(OWNER).time_zone == VIENNA
    assert await hall.store.assumed(hall.id(OWNER)) == []
    [text] = await hall.sent()
    assert text.endswith("if not.\n\nYour time zone is Europe/Vienna.")


async def test_a_press_is_one_persons_and_means_what_it_says(hall: Hall) -> None:
    await hall.keeps(OWNER)
    await hall.asked()
    owner, member = hall.id(OWNER), hall.id(MEMBER)

    said = [
        await hall.press(f"zone:yes:{owner}", by=MEMBER),
        await hall.press(f"zone:move:{owner}", by=MEMBER),
        await hall.press(f"zone:yes:{member}", by=MEMBER),
        await hall.press(f"zone:no:{owner}"),
        await hall.press("zone:yes"),
        await hall.press("zone:"),
        await hall.press(f"zone:move:{owner}"),
    ]

    assert said == [NOT_YOURS, NOT_YOURS, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, NOTHING_LEFT]
    assert hall.house.person(OWNER).time_zone == hall.house.person(MEMBER).time_zone == ""


# --- another zone --------------------------------------------------------------------------------


async def test_a_zone_of_their_own_answers_the_question(hall: Hall) -> None:
    await hall.keeps(OWNER)
    await hall.asked()
    await hall.chats.send(hall.delivered[-1][1])
    await hall.set_zone(OWNER, "Asia/Tokyo")

    offer = await hall.offered()
    said = await hall.press(f"zone:yes:{hall.id(OWNER)}")

    assert offer == ("", [])
    assert said == "You have set Asia/Tokyo since, and that stays."
    assert await hall.sent() == [
        f"{OWNER}: Is Europe/Vienna, this machine's zone, yours?\n\nYou have set Asia/Tokyo."
    ]
    assert await hall.store.assumed(hall.id(OWNER)) == []


async def test_what_goes_by_the_other_zone_is_shown_with_one_button(hall: Hall) -> None:
    owner = hall.id(OWNER)
    await hall.keeps(OWNER)
    await hall.set_zone(OWNER, "Asia/Tokyo")
    tomorrow = datetime(2026, 8, 1, 23, 0, tzinfo=UTC)
    hall.moves.moves = [
        Move(thing=kept(1), from_zone=VIENNA, then=tomorrow),
        Move(thing=replace(kept(2), next=None), from_zone=VIENNA, then=None),
        Move(thing=event(3, owner), from_zone=VIENNA, then=tomorrow),
        Move(thing=event(4, owner, all_day=True), from_zone=VIENNA, then=tomorrow),
    ]

    text, buttons = await hall.offered()
    in_group = await hall.offered(lane=GROUP)
    said = await hall.press(f"zone:move:{owner}")
    after = await hall.press(f"zone:move:{owner}")

    assert text.splitlines()[1:] == [
        "- j1 job 1: Sun 2 Aug 2026, 15:00; moved: Sun 2 Aug 2026, 08:00",
        f"- j2 job 2: stands still; {OVER}",
        "- e3 Dentist: Sun 2 Aug 2026, 19:00; moved: Sun 2 Aug 2026, 08:00",
        "- e4 Dentist: Sun 2 Aug 2026, all day; moved: its reminders",
    ]
    assert buttons == ["Move to Asia/Tokyo"]
    assert in_group == (IN_PRIVATE, [])
    assert (said, after) == ("Moved: j1, e3, e4.", NOTHING_LEFT)


async def test_of_very_many_some_are_named(hall: Hall) -> None:
    await hall.keeps(OWNER)
    await hall.set_zone(OWNER, "Asia/Tokyo")
    soon = hall.house.clock.now() + timedelta(hours=1)
    hall.moves.moves = [
        Move(thing=kept(n), from_zone=VIENNA, then=soon) for n in range(SHOWN_MAX + 5)
    ]

    text, _ = await hall.offered()

    assert len(text.splitlines()) == SHOWN_MAX + 2
    assert text.endswith("… and 5 more")


async def test_what_goes_alike_in_both_zones_is_theirs_from_then_on(hall: Hall) -> None:
    await hall.keeps(OWNER)
    await hall.set_zone(OWNER, "Europe/Berlin")

    offer = await hall.offered()

    assert offer == ("", [])
    assert await hall.store.assumed(hall.id(OWNER)) == []


async def test_without_a_zone_of_their_own_nothing_is_offered(hall: Hall) -> None:
    time = AssumedTime(person_id=hall.id(OWNER), kind=Timed.JOB, id=1, zone=VIENNA)
    await hall.store.assume(time)
    hall.moves.moves = [Move(thing=kept(1), from_zone=VIENNA, then=NOON.moment)]
    nowhere = await hall.offered()
    await hall.set_zone(OWNER, "Mars/Olympus")

    assert nowhere == await hall.offered() == ("", [])
    assert await hall.press(f"zone:move:{hall.id(OWNER)}") == NOTHING_LEFT
    assert await hall.store.assumed(hall.id(OWNER)) == [time]
