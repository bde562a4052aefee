"""The platform's limits, by a clock that moves when somebody waits."""

from __future__ import annotations

import asyncio

import pytest

from bot.channels.throttle import CHAT_BURST, CHATS_MAX, SendThrottle
from tests.memory.kit import StillClock


async def times(
    pace: SendThrottle, clock: StillClock, count: int, *, chat: str, group: bool
) -> list[float]:
    found = []
    for _ in range(count):
        await pace.wait(chat, is_group=group)
        found.append(round(clock.monotonic(), 3))
    return found


async def test_a_chat_bears_a_short_burst_and_then_one_a_second() -> None:
    clock = StillClock()
    pace = SendThrottle(clock, per_chat=1, per_group_minute=20, total=30)

    found = await times(pace, clock, CHAT_BURST + 3, chat="5", group=False)

    assert found == [0.0] * CHAT_BURST + [1.0, 2.0, 3.0]


async def test_a_group_gets_twenty_a_minute() -> None:
    clock = StillClock()
    pace = SendThrottle(clock, per_chat=1, per_group_minute=20, total=30)

    found = await times(pace, clock, 60, chat="-5", group=True)

    assert max(sum(start <= at < start + 60 for at in found) for start in found) <= 40
    assert found[-1] == 120.0


async def test_all_chats_together_stay_within_the_total() -> None:
    clock = StillClock()
    pace = SendThrottle(clock, per_chat=0, total=30)

    for number in range(90):
        await pace.wait(str(number), is_group=False)

    assert clock.monotonic() == pytest.approx(2.0)


async def test_those_who_wait_at_once_are_served_one_after_the_other() -> None:
    class Patient(StillClock):
        """Waits are noted and cost nothing: all ask at the same moment."""

        waits: list[float]

        async def sleep(self, seconds: float) -> None:
            self.waits.append(seconds)

    clock = Patient()
    clock.waits = []
    pace = SendThrottle(clock, per_chat=1, per_group_minute=20, total=0)

    await asyncio.gather(*(pace.wait("5", is_group=False) for _ in range(CHAT_BURST + 3)))

    assert clock.waits == [1.0, 2.0, 3.0]


async def test_a_pause_holds_its_chat_and_no_other() -> None:
    clock = StillClock()
    pace = SendThrottle(clock, per_chat=0, total=0)
    await pace.wait("5", is_group=False)
    pace.pause("5", 7)

    await pace.wait("6", is_group=False)
    assert clock.monotonic() == 0
    await pace.wait("5", is_group=False)
    assert clock.monotonic() == 7


async def test_the_memory_of_chats_is_bounded() -> None:
    pace = SendThrottle(StillClock(), per_chat=1, per_group_minute=20, total=0)

    for number in range(CHATS_MAX + 50):
        await pace.wait(str(number), is_group=False)

    assert len(pace._chats) == CHATS_MAX
