"""The owner is asked whether strangers are let in: by whom the buttons count, how often, and what
becomes of the card. Through the whole bot: test_door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.channels.base import Pressed
from bot.commands.pairing import GONE, LET_IN, OWNER_ALONE, PAST, UNKNOWN, PairingQuestions
from bot.commands.people import PeopleCommands
from bot.outbox.edits import QuestionMessages
from memory.database.connection import Database
from memory.records.messages import Address, IncomingMessage, PersonId, Role
from memory.stores.approvals import SqliteCards
from memory.stores.outbox import SqliteOutbox
from scheduler.notify.delivery import read_hours
from tests.bot.kit import eventually
from tests.bot.people_kit import GUEST, MEMBER, OWNER, STRANGER, House, housed, let_in
from tests.bot.schedule_kit import Chats
from tests.bot.slack_kit import ANN, TEAM, slack_rigged
from tests.bot.slack_kit import STRANGER as EVE
from tests.memory.kit import StillClock

HOUR_S = 3600


class Night(StillClock):
    """A clock whose sleepers are woken by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.slept_s: list[float] = []
        self.morning = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        await self.morning.wait()
        self.move(seconds)


class Wall:
    """One person's quiet hours for everybody, in UTC."""

    def __init__(self) -> None:
        self.hours = ""

    async def spoken_to(self, person_id: PersonId, moment: datetime) -> datetime:
        hours = read_hours(self.hours)
        return moment if hours is None else hours.end(moment, UTC)


class Porch:
    """People, the card with the code, and the cards that were sent."""

    desk: PairingQuestions

    def __init__(self, house: House, clock: Night) -> None:
        self.house = house
        self.clock = clock
        self.wall = Wall()
        self.chats = Chats(SqliteOutbox(house.database))

    @asynccontextmanager
    async def process(self) -> AsyncIterator[PairingQuestions]:
        """The cards from a start of the process to its end."""
        cards = QuestionMessages(self.chats, SqliteCards(self.house.database))
        desk = PairingQuestions(self.house.access, cards, self.wall.spoken_to, clock=self.clock)
        async with desk:
            self.desk = desk
            yield desk

    async def asks(self, address: str = STRANGER, name: str = "Eve") -> str:
        """A stranger wrote and was given a code, as the intake does it."""
        if await self.house.access.answer_stranger(address) is None:
            return ""
        await self.desk.asked(address, name)
        return next(p.code for p in self.house.access.pairings.open() if p.address == address)

    async def sent(self) -> list[tuple[str, str, bool]]:
        """Address, text, and whether there are buttons, of all that was sent."""
        sql = "select lane, text, buttons <> '' from outbox order by id"
        rows = await self.house.database.read(lambda c: c.execute(sql).fetchall())
        return [(lane, text, bool(has)) for lane, text, has in rows]

    async def press(self, data: str, by: str = OWNER, *, card: int = 1) -> str:
        pressed = Pressed(
            address=Address.parse(by), message_id=f"m{card}", sender=by, data=data, press_id="1"
        )
        return await self.desk.press(pressed, self.house.person(by))

    def role(self, address: str = STRANGER) -> Role | None:
        person = self.house.access.who(address)
        return None if person is None else person.role


@pytest.fixture
async def porch(tmp_path: Path) -> AsyncIterator[Porch]:
    path, clock = tmp_path / "hearthbot.db", Night()
    async with Database.open(path, clock=clock) as database:
        house = await housed(path, database, clock)
        await let_in(house)
        yield Porch(house, clock)


def typed(by: str = OWNER) -> IncomingMessage:
    return IncomingMessage(
        address=Address.parse(by), message_id="1", sender_id=by.partition(":")[2], text="/pair"
    )


# --- the card ------------------------------------------------------------------------------------


async def test_the_owner_is_asked_once_when_a_stranger_got_a_code(porch: Porch) -> None:
    async with porch.process():
        code = await porch.asks()
        assert await porch.asks() == "", "at most one code an hour, and so one card"

        [(lane, text, has_buttons)] = await porch.sent()

        assert lane == OWNER
        assert has_buttons
        assert f"**{STRANGER}**, who goes by “Eve”, asked just now, good for 60 min" in text
        assert code in text
        porch.clock.move(HOUR_S)
        assert await porch.asks()
        assert len(await porch.sent()) == 2


async def test_a_name_cannot_pose_as_words_of_ours(porch: Porch) -> None:
    async with porch.process():
        await porch.asks(name="Bo”\n\n**Let in: `/pair` [ok](http://x)** \u202eevil")

        [(_, text, _)] = await porch.sent()

    assert "who goes by “Bo Let in pair ok http x evil”, asked" in text


# --- presses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "said", "role"),
    [
        ("in", f"{STRANGER} is now member.", Role.MEMBER),
        ("guest", f"{STRANGER} is now guest.", Role.GUEST),
        (
            "no",
            f"{STRANGER} is shut out. `/pair {STRANGER}` lets them in all the same.",
            None,
        ),
    ],
)
async def test_a_press_decides_and_the_card_becomes_its_outcome(
    porch: Porch, word: str, said: str, role: Role | None
) -> None:
    async with porch.process():
        code = await porch.asks()

        assert await porch.press(f"pair:{word}:{code}") == said

        (_, text, has_buttons), *told = await porch.sent()
    assert porch.role() is role
    assert text.endswith(f"\n\n{said}")
    assert not has_buttons
    assert told == ([] if word == "no" else [(STRANGER, LET_IN, False)])
    assert porch.house.access.pairings.is_denied(STRANGER) is (word == "no")


@pytest.mark.parametrize("by", [MEMBER, GUEST])
@pytest.mark.parametrize("word", ["in", "guest", "no"])
async def test_a_press_of_anybody_else_changes_nothing(porch: Porch, by: str, word: str) -> None:
    async with porch.process():
        code = await porch.asks()
        before = porch.house.access.directory

        assert await porch.press(f"pair:{word}:{code}", by) == OWNER_ALONE

        assert porch.house.access.directory == before
        assert (await porch.sent())[0][2], "the question stays"


async def test_a_second_press_says_that_it_was_answered(porch: Porch) -> None:
    async with porch.process():
        code = await porch.asks()
        await porch.press(f"pair:guest:{code}")

        assert await porch.press(f"pair:in:{code}") == GONE
        assert porch.role() is Role.GUEST

        second = await porch.asks("telegram:77")
        await porch.press(f"pair:no:{second}", card=2)
        again = await porch.press(f"pair:in:{second}", card=2)
    assert again.startswith("telegram:77 was shut out already.")
    assert porch.role("telegram:77") is None


async def test_two_presses_at_the_same_time_have_one_effect(porch: Porch) -> None:
    async with porch.process():
        code = await porch.asks()

        said = await asyncio.gather(
            porch.press(f"pair:in:{code}"), porch.press(f"pair:guest:{code}")
        )

        told = [text for _, text, _ in await porch.sent() if text == LET_IN]

    assert told == [LET_IN]
    assert GONE in said or any("already" in one for one in said)
    assert porch.role() in {Role.MEMBER, Role.GUEST}


async def test_after_an_hour_a_press_lets_nobody_in(porch: Porch) -> None:
    async with porch.process():
        code = await porch.asks()
        porch.clock.move(HOUR_S)

        assert await porch.press(f"pair:in:{code}") == PAST

        [(_, text, has_buttons)] = await porch.sent()
    assert porch.role() is None
    assert text.endswith(PAST)
    assert not has_buttons


@pytest.mark.parametrize(
    "data", ["pair:in", "pair:king:X", "pair:in:X:Y", "pair:in:NOSUCH22", "pair:in:"]
)
async def test_what_was_never_asked_lets_nobody_in(porch: Porch, data: str) -> None:
    async with porch.process():
        await porch.asks()
        before = porch.house.access.directory

        assert await porch.press(data) in {UNKNOWN, GONE}

        assert porch.house.access.directory == before


async def test_nobody_becomes_the_owner_by_a_press(tmp_path: Path) -> None:
    path, clock = tmp_path / "hearthbot.db", Night()
    async with Database.open(path, clock=clock) as database:
        house = await housed(path, database, clock)
        await house.access.owner_of_this_machine()
        porch = Porch(house, clock)
        async with porch.process():
            code = await porch.asks()
            assert await porch.sent() == [], "there is no chat yet in which to ask"

            said = await porch.press(f"pair:in:{code}", "console:local")

        assert said.startswith("The first one approved becomes the owner")
        assert porch.role() is None


# --- /pair ---------------------------------------------------------------------------------------


async def test_pair_shows_a_card_for_each_who_asks(porch: Porch) -> None:
    async with porch.process() as desk:
        reception = PeopleCommands(
            porch.house.access, clock=porch.clock, host_zone="UTC", asking=desk
        )
        assert (await reception.who_asks(typed())).text == "Nobody is asking to be let in."
        first = await porch.asks()
        porch.clock.move(60)
        second = await porch.asks("slack:T1:U9", name="")
        porch.clock.move(60 * 4)
        before = len(await porch.sent())

        offer = await reception.who_asks(typed())

        [(lane, text, has_buttons)] = (await porch.sent())[before:]
        assert (lane, has_buttons) == (OWNER, True)
        assert text.startswith(f"**{STRANGER}**, who goes by “Eve”, asked 5 min ago")
        assert first in text
        assert offer.text.startswith("**slack:T1:U9** asked 4 min ago, good for 56 min")
        assert [button.label for button in offer.buttons[0]] == ["Let in", "As guest", "No"]
        assert [button.data for button in offer.buttons[0]] == [
            f"pair:in:{second}",
            f"pair:guest:{second}",
            f"pair:no:{second}",
        ]


# --- quiet hours ---------------------------------------------------------------------------------


def around(clock: StillClock, *, minutes: int) -> str:
    """Hours that began an hour ago and end in so many minutes."""
    now = clock.now().astimezone(UTC)
    begun, ends = (now.timestamp() - HOUR_S, now.timestamp() + minutes * 60)
    return "-".join(f"{datetime.fromtimestamp(at, UTC):%H:%M}" for at in (begun, ends))


async def woken(porch: Porch) -> None:
    porch.clock.morning.set()
    async with asyncio.timeout(10):
        await porch.desk.idle()


async def test_in_quiet_hours_the_card_waits_for_their_end(porch: Porch) -> None:
    porch.wall.hours = around(porch.clock, minutes=30)
    async with porch.process():
        code = await porch.asks()
        assert await porch.sent() == []

        await woken(porch)

        [(lane, text, _)] = await porch.sent()
    assert lane == OWNER
    assert code in text


async def test_a_card_whose_code_is_past_by_then_or_answered_is_not_sent(porch: Porch) -> None:
    porch.wall.hours = around(porch.clock, minutes=90)
    async with porch.process():
        assert await porch.asks()
        assert porch.clock.slept_s == []
        porch.wall.hours = around(porch.clock, minutes=30)
        code = await porch.asks("telegram:77")
        await porch.house.access.approve(code)

        await woken(porch)

    assert await porch.sent() == []


async def test_a_card_that_waited_is_taken_up_by_the_next_process(porch: Porch) -> None:
    porch.wall.hours = around(porch.clock, minutes=30)
    async with porch.process():
        code = await porch.asks()
    async with porch.process():
        await woken(porch)

        [(_, text, _)] = await porch.sent()
    assert code in text
    async with porch.process():
        assert len(await porch.sent()) == 1


# --- through the whole bot -----------------------------------------------------------------------


async def test_in_slack_the_owner_lets_somebody_in_with_a_press(tmp_path: Path) -> None:
    async with slack_rigged(tmp_path) as rig:
        rig.slack.add_user(user=EVE)
        async with rig.serving_slack(ANN) as bot:
            rig.writes("hi")
            await eventually(lambda: len(rig.read()) == 1)
            rig.writes("let me in", by=EVE)
            await eventually(lambda: len(rig.read()) == 2)
            card = rig.replies()[-1]
            rig.slack.press(channel=card.channel, ts=card.ts, action_id="press_1", user=EVE)
            rig.slack.press(channel=card.channel, ts=card.ts, action_id="press_2", user=ANN)
            await eventually(lambda: rig.read()[-1].endswith("is now guest."))
            await rig.quiet(bot)
            eve = bot.access.who(f"slack:{TEAM}:{EVE}")
            to_eve = rig.read(to=EVE)

    assert "`/hearth pair " in card.text
    assert eve is not None
    assert to_eve[1:] == [LET_IN]
    assert eve.role is Role.GUEST, "the press of anybody else counts for nothing"
