"""A provider's limits are kept before it has to complain."""

from __future__ import annotations

import asyncio
import random

import pytest

from agent.budget.rate_limit import RateLimit, RateLimiter
from memory.records.errors import RateLimited
from tests.agent.spending_kit import HandClock

MODEL = "gpt-4.1"


class Door:
    """Those who were let through, in order, with the second at which they were."""

    def __init__(self, pace: RateLimit, *, wait_s_max: float = 1_000.0) -> None:
        self.clock = HandClock()
        self.buckets = RateLimiter({MODEL: pace}, self.clock, wait_s_max=wait_s_max)
        self.through: list[tuple[str, float]] = []

    async def go(self, name: str, tokens: int = 0, model: str = MODEL) -> None:
        await self.buckets.take(model, tokens)
        self.through.append((name, self.clock.monotonic()))

    def later(self, name: str, tokens: int = 0) -> asyncio.Task[None]:
        return asyncio.create_task(self.go(name, tokens))

    async def pass_s(self, seconds: float, *, step_s: float = 0.5) -> None:
        for _ in range(round(seconds / step_s)):
            await settle()
            self.clock.move(step_s)
        await settle()

    @property
    def names(self) -> str:
        return "".join(name for name, _ in self.through)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_requests_go_at_once_up_to_a_minutes_worth_and_then_evenly() -> None:
    door = Door(RateLimit(requests_per_minute=6))
    tasks = [door.later(str(number)) for number in range(9)]

    await settle()
    assert door.names == "012345"
    await door.pass_s(30)

    assert door.through[6:] == [("6", 10.0), ("7", 20.0), ("8", 30.0)]
    await asyncio.gather(*tasks)


async def test_a_small_request_does_not_overtake_a_large_one() -> None:
    door = Door(RateLimit(tokens_per_minute=6_000))
    tasks = [door.later("a", 5_000), door.later("b", 6_000), door.later("c", 10)]

    await door.pass_s(120)

    assert door.names == "abc"
    await asyncio.gather(*tasks)


async def test_a_request_larger_than_a_minutes_worth_goes_once_the_bucket_is_full() -> None:
    door = Door(RateLimit(tokens_per_minute=6_000))
    tasks = [door.later("a", 3_000), door.later("b", 50_000)]

    await door.pass_s(31)

    assert door.through == [("a", 0.0), ("b", 30.0)]
    await asyncio.gather(*tasks)


async def test_a_wait_that_would_be_too_long_is_not_begun_and_says_how_long() -> None:
    door = Door(RateLimit(requests_per_minute=6), wait_s_max=25)
    tasks = [door.later(str(number)) for number in range(8)]
    await settle()

    with pytest.raises(RateLimited, match="may be asked again in 30 s") as told:
        await door.go("late")

    assert told.value.retry_after_s == pytest.approx(30)
    await door.pass_s(20)
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("who", [0, 1])
async def test_who_is_cancelled_leaves_the_place_to_the_others(who: int) -> None:
    door = Door(RateLimit(tokens_per_minute=6_000))
    await door.go("a", 6_000)
    waiting = [door.later("b", 6_000), door.later("c", 6_000), door.later("d", 600)]
    await door.pass_s(3)

    waiting.pop(who).cancel()
    await door.pass_s(70)

    assert door.names == ("acd" if who == 0 else "abd")
    assert door.through[1][1] == 60.0
    await asyncio.gather(*waiting)


async def test_what_a_call_used_beyond_its_estimate_is_waited_for() -> None:
    door = Door(RateLimit(tokens_per_minute=6_000))
    await door.go("a", 1_000)

    door.buckets.correct(MODEL, estimated=1_000, actual=7_000)
    task = door.later("b", 1_000)
    await door.pass_s(30)

    assert door.through[1] == ("b", 20.0)
    await task


async def test_what_a_call_did_not_use_is_given_back() -> None:
    door = Door(RateLimit(tokens_per_minute=6_000))
    await door.go("a", 6_000)

    door.buckets.correct(MODEL, estimated=6_000, actual=1_000)

    await asyncio.wait_for(door.go("b", 5_000), 1)
    assert door.names == "ab"


async def test_no_minute_has_more_than_its_worth_and_a_full_bucket() -> None:
    dice = random.Random(5)
    door = Door(RateLimit(requests_per_minute=30, tokens_per_minute=20_000))
    wishes = [dice.randint(1, 3_000) for _ in range(80)]
    tasks = [door.later(str(number), tokens) for number, tokens in enumerate(wishes)]

    await door.pass_s(600)
    await asyncio.gather(*tasks)

    assert [int(name) for name, _ in door.through] == list(range(80))
    for _, start in door.through[30:]:
        inside = [int(name) for name, at in door.through if start <= at < start + 60]
        assert len(inside) <= 31
        assert sum(wishes[number] for number in inside) <= 20_000 + 3_000
