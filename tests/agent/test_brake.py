"""The anomaly brake: what trips it, what does not, and what becomes of it over a restart."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from pathlib import Path

import pytest

from agent.budget.circuit_breaker import (
    BY_HAND,
    RESUME,
    Brake,
    BrakeOptions,
    source_of,
)
from memory.records.transcript import Usage
from memory.records.usage import Charge, Pause, Paused, Purpose, Verdict
from tests.agent.spending_kit import NOON, HandClock, Purse, charge, limit, purse


@pytest.fixture
def clock() -> HandClock:
    return HandClock(up_s=30.0)


def hours_of_use(brake: Brake, clock: HandClock, *, minutes: int, tokens: int) -> list[Paused]:
    """So many tokens in each minute."""
    found = []
    for _ in range(minutes):
        if paused := brake.add(tokens):
            found.append(paused)
        clock.move(60)
    return found


# --- what trips it -------------------------------------------------------------------------------


def test_it_trips_when_the_hour_reaches_its_limit(clock: HandClock) -> None:
    brake = Brake(BrakeOptions(), clock)
    assert hours_of_use(brake, clock, minutes=49, tokens=10_000) == []

    almost = brake.add(9_999)
    tripped = brake.add(1)

    assert almost is None
    assert tripped is not None
    assert "500,000 tokens were used in the last 60 minutes" in tripped.words
    assert brake.paused == tripped


def test_it_trips_on_a_burst_over_three_times_what_is_usual(clock: HandClock) -> None:
    brake = Brake(BrakeOptions(), clock)
    hours_of_use(brake, clock, minutes=10, tokens=1_000)
    clock.move(60)

    at_the_limit = brake.add(6_000)
    beyond = brake.add(1)

    assert at_the_limit is None
    assert beyond is not None
    assert "3.0 times as many as in the active minutes before (1,000)" in beyond.words


@pytest.mark.parametrize(("minutes", "tokens"), [(10, 999), (9, 5_000), (0, 0)])
def test_a_baseline_that_is_too_thin_is_not_compared_with(
    clock: HandClock, minutes: int, tokens: int
) -> None:
    brake = Brake(BrakeOptions(), clock)
    hours_of_use(brake, clock, minutes=minutes, tokens=tokens)
    clock.move(60)

    assert brake.add(100_000, source=BY_HAND) is None
    assert brake.add(90_000, source="job news") is None
    tripped = brake.add(1, source="job news")
    assert tripped is not None
    assert "(15,000, presumed as too few are known yet)" in tripped.words


# --- people, and what runs wild ------------------------------------------------------------------


def talks(
    brake: Brake, clock: HandClock, dice: random.Random, *, every_s: float, for_s: float
) -> bool:
    """A person writes so often, and each message takes one to three requests with tools. Whether
    it tripped."""
    for _ in range(int(for_s / every_s)):
        for _ in range(dice.choice([1, 2, 2, 3])):
            if brake.add(dice.randint(2_000, 5_000), source=BY_HAND):
                return True
        clock.move(every_s)
    return False


@pytest.mark.parametrize("up_s", [0.0, 30.0, 59.0])
def test_a_person_who_writes_every_20_s_from_the_first_minute_on_does_not_trip_it(
    up_s: float,
) -> None:
    for seed in range(50):
        clock = HandClock(up_s=up_s)

        assert not talks(
            Brake(BrakeOptions(), clock), clock, random.Random(seed), every_s=20, for_s=600
        )


@pytest.mark.parametrize("tokens", [2_000, 5_000])
@pytest.mark.parametrize("up_s", [0.0, 30.0, 59.0])
@pytest.mark.parametrize("talked_s", [0, 240, 1_500])
def test_a_job_that_calls_a_model_every_2_s_is_stopped_within_2_minutes(
    up_s: float, tokens: int, talked_s: int
) -> None:
    clock = HandClock(up_s=up_s)
    brake = Brake(BrakeOptions(), clock)
    talks(brake, clock, random.Random(1), every_s=60, for_s=talked_s)
    began_s = clock.monotonic()

    while brake.add(tokens, source="job news") is None:
        clock.move(2)

    assert clock.monotonic() - began_s <= 120


def test_jobs_that_were_missed_may_come_at_once_after_the_start(clock: HandClock) -> None:
    brake = Brake(BrakeOptions(), clock)

    assert not [n for n in range(9) for _ in range(4) if brake.add(5_000, source=f"job {n}")]


def test_what_a_restart_finds_of_the_last_minute_stops_nobody(clock: HandClock) -> None:
    brake = Brake(BrakeOptions(), clock)

    assert brake.restore({int(NOON.timestamp() // 60): 200_000}, None) is None


@pytest.mark.parametrize(
    ("purpose", "job", "source"),
    [
        (Purpose.CHAT, "", BY_HAND),
        (Purpose.SUBAGENT, "", BY_HAND),
        (Purpose.SUBAGENT, "news", "job news"),
        (Purpose.JOB, "news", "job news"),
        (Purpose.EXTRACTION, "", "extraction"),
    ],
)
def test_only_what_somebody_asked_for_counts_as_done_by_hand(
    purpose: Purpose, job: str, source: str
) -> None:
    assert source_of(Charge(purpose=purpose, job=job)) == source


def test_each_rule_can_be_switched_off_and_so_can_all(clock: HandClock) -> None:
    for options in (
        BrakeOptions(hour_tokens_max=0, burst_factor=0),
        BrakeOptions(enabled=False),
    ):
        brake = Brake(options, clock)
        hours_of_use(brake, clock, minutes=10, tokens=1_000)
        assert brake.add(10_000_000) is None


# --- clocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(days=400), timedelta(hours=1)])
def test_a_clock_that_is_set_changes_nothing_while_it_runs(
    clock: HandClock, jump: timedelta
) -> None:
    brake = Brake(BrakeOptions(), clock)
    hours_of_use(brake, clock, minutes=10, tokens=4_000)

    clock.jump(jump.total_seconds())

    assert brake.rush().hour == 40_000
    assert brake.add(1_000) is None


def test_neither_the_future_nor_what_was_before_a_release_counts_after_a_restart(
    clock: HandClock,
) -> None:
    here = int(NOON.timestamp() // 60)
    minutes = {here + 90: 400_000, here - 5: 100, here - 20: 7_000, here - 70: 900_000}
    released = Paused(kind=Pause.BRAKE, since_ms=(here - 10) * 60_000, is_on=False)

    for paused, counted in ((None, 7_100), (released, 100)):
        brake = Brake(BrakeOptions(), clock)
        brake.restore(minutes, paused)

        assert brake.rush().hour == counted


# --- stopping and going on -----------------------------------------------------------------------


async def runaway(one: Purse, *, tokens: int = 510_000) -> None:
    """Spends as much as trips it."""
    await one.spend(charge(), tokens)


async def test_after_it_tripped_no_model_is_asked_and_the_owner_is_told_once(
    tmp_path: Path,
) -> None:
    async with purse(tmp_path / "bot.db", brake=BrakeOptions()) as one:
        await runaway(one)

        refused = [await one.spend(charge("p2"), 10) for _ in range(3)]
        told = await one.settled()

        assert {call.verdict for call in refused} == {Verdict.REFUSE}
        assert len(told) == 1
        assert told[0].person_id == ""
        assert told[0].buttons == (RESUME,)
        assert "510,000 tokens were used in the last 60 minutes" in told[0].text


async def test_who_talks_meanwhile_gets_a_sentence_and_the_owner_the_figures(
    tmp_path: Path,
) -> None:
    async with purse(tmp_path / "bot.db", brake=BrakeOptions()) as one:
        await runaway(one)

        member = (await one.spend(charge("p2"), 10)).words
        owner = (await one.spend(charge(is_owner=True), 10)).words

        assert "please try again later" in member
        assert "510,000" not in member
        assert "510,000" in owner
        assert "/resume" in owner


async def test_who_waits_for_room_when_it_trips_is_refused_at_once(tmp_path: Path) -> None:
    async with purse(tmp_path / "bot.db", limit(600_000), brake=BrakeOptions()) as one:
        under_way = await one.ask(charge(), tokens_in=500_000, tokens_out=90_000)
        waiting = asyncio.create_task(one.ask(charge(), tokens_in=90_000, tokens_out=90_000))
        await asyncio.sleep(0.02)

        assert under_way.reservation is not None
        await one.budget.after(under_way.reservation, Usage(prompt=501_000))

        assert "pausing for the moment" in (await waiting).words


async def test_it_goes_on_when_it_is_told_to_and_does_not_trip_at_once_again(
    tmp_path: Path,
) -> None:
    async with purse(tmp_path / "bot.db", brake=BrakeOptions()) as one:
        await runaway(one)

        lifted = await one.budget.resume()
        after = await one.spend(charge(), 3_000)
        nothing = await one.budget.resume()

        assert (lifted, nothing) == (frozenset({Pause.BRAKE}), frozenset[Pause]())
        assert after.verdict is Verdict.GO
        assert one.budget.brakes.of("default").paused is None


async def test_a_trip_that_died_before_it_was_stored_is_found_at_the_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / "bot.db"
    async with purse(path) as one:  # the brake is off, so nothing but the rows is stored
        await runaway(one)

    async with purse(path, brake=BrakeOptions()) as again:
        told = await again.settled()

        assert again.budget.brakes.of("default").paused is not None
        assert len(told) == 1


def test_switching_the_brake_off_lets_go_what_it_held(clock: HandClock) -> None:
    brake = Brake(BrakeOptions(enabled=False), clock)

    brake.restore({}, Paused(kind=Pause.BRAKE, since_ms=1, words="why"))

    assert brake.paused is None


# --- several agents ------------------------------------------------------------------------------


@pytest.mark.parametrize("gone_for", [timedelta(minutes=5), timedelta(days=3)])
async def test_an_agent_that_runs_wild_stops_no_other_also_after_a_restart(
    tmp_path: Path, gone_for: timedelta
) -> None:
    path, clock = tmp_path / "bot.db", HandClock()
    work = charge(agent="work")
    async with purse(path, brake=BrakeOptions(), clock=clock) as one:
        for _ in range(6):
            await one.spend(work, 100_000)
        told = await one.settled()
        refused = await one.spend(work, 10)
        other = await one.spend(charge(), 10)

    [paused] = one.budget.brakes.paused
    assert paused.agent == "work"
    assert "(the agent `work`)" in paused.words
    assert len(told) == 1
    assert (refused.verdict, other.verdict) == (Verdict.REFUSE, Verdict.GO)
    later = HandClock(clock.now() + gone_for)
    async with purse(path, brake=BrakeOptions(), clock=later) as again:
        assert (await again.spend(work, 10)).verdict is Verdict.REFUSE
        assert (await again.spend(charge(), 10)).verdict is Verdict.GO

        await again.budget.resume()

        assert (await again.spend(work, 10)).verdict is Verdict.GO
