"""Who writes faster than so many messages a minute: the rest waits, and loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.app.app import App
from bot.inbox.admission import MINUTE_S, TOO_FAST, HeldMessage, MessageRateLimiter
from memory.records.messages import PersonId
from tests.bot.kit import MEMBER, OWNER, Rig, eventually
from tests.fakes import FixedClock

ANN, BEN = PersonId("ann"), PersonId("ben")


# --- the counting ------------------------------------------------------------------------------


def held(sender: PersonId, done: list[str], what: str, *, lane: str = "a") -> HeldMessage:
    async def act() -> None:
        done.append(what)

    return HeldMessage(sender=sender, lane=lane, events=(), act=act)


def test_the_minute_slides() -> None:
    clock = FixedClock()
    flood = MessageRateLimiter(clock, per_minute=2)
    admitted = []

    for _ in range(5):
        admitted.append(flood.admits(ANN))
        clock.move(MINUTE_S / 3)

    assert admitted == [True, True, False, True, True]


async def test_what_waits_is_freed_in_order_as_the_minute_has_room() -> None:
    clock, done = FixedClock(), list[str]()
    flood = MessageRateLimiter(clock, per_minute=2)
    assert flood.admits(ANN)
    assert flood.admits(ANN)

    firsts = [flood.hold(held(ANN, done, f"{number}")) for number in range(4)]
    while (one := await flood.freed(ANN)) is not None:
        assert not flood.admits(ANN), "what is new comes behind what waits"
        await one.act()

    assert firsts == [True, False, False, False]
    assert done == ["0", "1", "2", "3"]
    assert clock.pauses == [MINUTE_S, MINUTE_S]
    clock.move(MINUTE_S)
    assert flood.admits(ANN)


def test_what_waits_in_one_chat_of_one_person_can_be_taken_away() -> None:
    done = list[str]()
    flood = MessageRateLimiter(FixedClock(), per_minute=1)
    for sender, lane in ((ANN, "a"), (ANN, "b"), (BEN, "a")):
        flood.admits(sender)
        flood.hold(held(sender, done, "", lane=lane))

    assert [one.sender for one in flood.taken_away("a", by=BEN)] == [BEN]
    assert [one.sender for one in flood.taken_away("a")] == [ANN]
    assert not flood.taken_away("a")


# --- a whole bot -------------------------------------------------------------------------------


@pytest.fixture
def paced(rig: Rig) -> Rig:
    """Three messages a minute, each a turn of its own."""
    rig.set(access__messages_per_minute=3, turns__queue="followup")
    return rig


@asynccontextmanager
async def flooded(rig: Rig, clock: FixedClock, *more: int, count: int = 6) -> AsyncIterator[App]:
    """A bot to which its owner wrote so many messages, three of which are answered; the minutes
    pass once the clock is woken."""
    clock.hold()
    async with rig.running(OWNER, *more) as bot:
        bot.intake.backlog.flood = MessageRateLimiter(clock, per_minute=3)
        for number in range(count):
            rig.says(f"{number}")
        await eventually(lambda: rig.inbox() == ["replied"] * 3 + ["received"] * (count - 3))
        yield bot


def answers(rig: Rig) -> list[str]:
    return [text.removeprefix("You said: ") for text in rig.texts() if text != TOO_FAST]


async def test_a_flood_is_answered_in_order_and_told_of_once(paced: Rig) -> None:
    clock = FixedClock()
    async with flooded(paced, clock) as bot:
        await eventually(lambda: TOO_FAST in paced.texts())
        await eventually(lambda: answers(paced) == ["0", "1", "2"])
        clock.wake()
        await bot.intake.worked_off()
        await paced.quiet(bot)

    assert answers(paced) == ["0", "1", "2", "3", "4", "5"]
    assert paced.texts().count(TOO_FAST) == 1
    assert paced.inbox() == ["replied"] * 6
    assert clock.pauses == [MINUTE_S]


async def test_others_and_commands_are_answered_meanwhile(paced: Rig) -> None:
    async with flooded(paced, FixedClock(), MEMBER):
        paced.says("hello", by=MEMBER)
        await eventually(lambda: "You said: hello" in paced.texts(MEMBER))
        paced.says("/help")
        await eventually(lambda: "/new" in paced.texts()[-1])

    assert paced.inbox()[3:] == ["received"] * 3 + ["replied", "command"]


async def test_what_waits_survives_restarts_in_its_order_and_is_not_told_of_again(
    paced: Rig,
) -> None:
    async with flooded(paced, FixedClock()):
        await eventually(lambda: TOO_FAST in paced.texts())

    paced.set(access__messages_per_minute=1)
    async with paced.running(OWNER) as bot:
        await eventually(lambda: paced.inbox() == ["replied"] * 4 + ["received"] * 2)
        await paced.quiet(bot)
    paced.set(access__messages_per_minute=0)
    async with paced.running(OWNER) as bot:
        await paced.quiet(bot)

    assert answers(paced) == ["0", "1", "2", "3", "4", "5"]
    assert paced.texts().count(TOO_FAST) == 1
    assert paced.inbox() == ["replied"] * 6


async def test_once_waits_until_all_of_a_flood_is_answered(paced: Rig) -> None:
    clock = FixedClock()
    clock.hold()
    for number in range(6):
        paced.says(f"{number}")
    async with paced.opened() as bot, asyncio.timeout(20), asyncio.TaskGroup() as group:
        await bot.access.approve(f"telegram:{OWNER}")
        bot.intake.backlog.flood = MessageRateLimiter(clock, per_minute=3)
        once = group.create_task(bot.once(asyncio.Event()))
        await eventually(lambda: answers(paced) == ["0", "1", "2"])
        await bot.settled()
        assert not once.done()
        clock.wake()
        await once

    assert answers(paced) == ["0", "1", "2", "3", "4", "5"]
    assert paced.inbox() == ["replied"] * 6
    assert clock.pauses == [MINUTE_S]


async def test_stop_ends_what_waits_too(paced: Rig) -> None:
    clock = FixedClock()
    async with flooded(paced, clock) as bot:
        paced.says("/stop")
        await eventually(lambda: paced.inbox()[3:] == ["cancelled"] * 3 + ["command"])
        clock.wake()
        await bot.intake.worked_off()
        paced.says("and now?")
        await eventually(lambda: answers(paced)[-1] == "and now?")

    assert any("Stopped 3 that waited." in text for text in paced.texts())
    assert not {"3", "4", "5"} & set(answers(paced))


async def test_what_waits_of_somebody_who_is_shut_out_is_refused(paced: Rig) -> None:
    clock = FixedClock()
    clock.hold()
    async with paced.running(OWNER, MEMBER) as bot:
        bot.intake.backlog.flood = MessageRateLimiter(clock, per_minute=1)
        for number in range(3):
            paced.says(f"{number}", by=MEMBER)
        await eventually(lambda: paced.inbox() == ["replied", "received", "received"])
        await bot.access.deny(f"telegram:{MEMBER}")
        clock.wake()
        await bot.intake.worked_off()

    assert paced.inbox() == ["replied", "refused", "refused"]


async def test_what_was_said_in_private_is_erased_with_the_rest(paced: Rig) -> None:
    async with paced.running(OWNER) as bot:
        clock = FixedClock()
        clock.hold()
        bot.intake.backlog.flood = MessageRateLimiter(clock, per_minute=1)
        paced.says("/private")
        paced.says("hello")
        paced.says("a secret")
        await eventually(lambda: paced.inbox() == ["command", "replied", "received"])
        paced.says("/private off")
        await eventually(lambda: "received" not in paced.inbox())
        await paced.quiet(bot)
        await bot.memories.service.private.sweep()

    assert "secret" not in str(paced.rows("select * from messages"))
