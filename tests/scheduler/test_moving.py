"""Jobs and events that were set up by Berlin's clock, moved to the one of their person: Monday,
1 June 2026, 08:00 in Berlin, 15:00 in Tokyo, 02:00 in New York."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memory.records.jobs import Job
from memory.records.schedule import Occasion, OccasionWish, Remind, TimeRead
from memory.records.zones import AssumedTime, Move, Timed
from memory.stores.people import SqliteAssumedZones
from scheduler.jobs.zone_moves import ZoneMoves
from tests.scheduler.clerk_kit import ANN, BEN, BERLIN, LANE, Counter

TOKYO, NEW_YORK, VIENNA = (
    ZoneInfo("Asia/Tokyo"),
    ZoneInfo("America/New_York"),
    ZoneInfo("Europe/Vienna"),
)


class Town:
    """A counter where all that is set up is set up by an assumed zone."""

    def __init__(self, counter: Counter) -> None:
        self.counter, self.clerk = counter, counter.clerk
        self.store = SqliteAssumedZones(counter.database)
        self.moves = ZoneMoves(self.store, counter.clerk, counter.agenda, clock=counter.clock)

    async def job(self, when: str, **more: Any) -> Job:
        job = await self.counter.want(when, **more)
        await self.assume(Timed.JOB, job.id)
        return job

    async def event(self, when: str, *remind: Remind) -> Occasion:
        time = self.clerk.read(ANN, when)
        assert isinstance(time, TimeRead)
        wish = OccasionWish(
            person_id=ANN, name="Dentist", when=when, time=time, deliver_to=LANE, remind=remind
        )
        recorded = await self.counter.agenda.record(wish)
        await self.assume(Timed.EVENT, recorded.occasion.id)
        return recorded.occasion

    async def assume(self, kind: Timed, id: int) -> None:
        time = AssumedTime(person_id=ANN, kind=kind, id=id, zone=BERLIN.key)
        await self.store.assume(time)

    async def due(self, zone: ZoneInfo) -> list[str]:
        """Of all of Ann's jobs, on the clock of a zone."""
        return [
            f"{job.key} {datetime.fromtimestamp(job.next.at_ms / 1000, zone):%d %H:%M}"
            for job in await self.clerk.of(ANN)
            if job.next is not None
        ]


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with Counter(tmp_path).opened() as counter:
        yield Town(counter)


def keys(moves: list[Move] | Any) -> list[str]:
    return [move.thing.key for move in moves]


async def test_a_time_of_the_day_stays_what_it_was_on_the_other_wall(town: Town) -> None:
    for when in ("tomorrow at 9", "every day at 8:30", "every other day at 10"):
        await town.job(when)

    shown = await town.moves.of(ANN, TOKYO)
    untouched = await town.due(BERLIN)
    made = await town.moves.make(ANN, TOKYO)
    again = await town.moves.make(ANN, TOKYO)

    assert untouched == ["j2 01 08:30", "j3 01 10:00", "j1 02 09:00"]
    assert sorted(keys(shown)) == sorted(keys(made)) == ["j1", "j2", "j3"]
    assert await town.due(TOKYO) == ["j2 02 08:30", "j1 02 09:00", "j3 03 10:00"]
    assert again == []


async def test_what_would_be_over_there_stays_where_it_is(town: Town) -> None:
    await town.job("today at 14:00")

    [shown] = await town.moves.of(ANN, TOKYO)
    [made] = await town.moves.make(ANN, TOKYO)

    assert shown.then is made.then is None
    assert await town.due(BERLIN) == ["j1 01 14:00"]
    assert await town.moves.of(ANN, NEW_YORK) == []


async def test_clocks_that_go_alike_move_nothing(town: Town) -> None:
    await town.job("every day at 8:30")
    await town.job("tomorrow at 9")

    assert await town.moves.of(ANN, VIENNA) == []
    assert await town.moves.make(ANN, VIENNA) == []


async def test_only_what_was_assumed_is_moved(town: Town) -> None:
    mine = await town.job("every day at 8:30")
    await town.counter.want("every day at 10", text="by my own clock")
    tokyos = await town.job("every day at 11")
    town.counter.zones[ANN] = TOKYO
    time = town.clerk.read(ANN, "every day at 12")
    assert isinstance(time, TimeRead)
    await town.clerk.move(tokyos, time)

    moves = await town.moves.of(ANN, NEW_YORK)

    assert keys(moves) == [mine.key]
    assert await town.moves.of(BEN, NEW_YORK) == []


async def test_limits_go_along_and_what_stands_still_goes_on_standing_still(town: Town) -> None:
    limited = await town.job("every day at 8:30 until 30 June")
    counted = await town.job("every day at 10, 5 times")
    paused = await town.clerk.pause(await town.job("every day at 11"))

    await town.moves.make(ANN, TOKYO)
    after = {job.id: job for job in await town.clerk.of(ANN)}

    assert after[limited.id].new.expires_ms == _earlier(limited.new.expires_ms, hours=7)
    assert after[counted.id].new.max_runs == 5
    assert (after[paused.id].enabled, after[paused.id].new.when.zone) == (False, "Asia/Tokyo")


def _earlier(ms: int | None, *, hours: int) -> int:
    assert ms is not None
    return ms - hours * 3_600_000


async def test_what_was_put_off_comes_when_it_was_put_off_to(town: Town) -> None:
    job = await town.job("tomorrow at 9")
    until = town.counter.clock.now().replace(hour=11)
    await town.clerk.snooze(job, until, key="later-1")

    assert await town.moves.of(ANN, TOKYO) == []


async def test_an_event_moves_with_its_reminders(town: Town) -> None:
    await town.event("4 June at 10:00", Remind.BEFORE, Remind.ON)
    await town.event("5 June", Remind.BEFORE)

    shown = await town.moves.of(ANN, TOKYO)
    await town.moves.make(ANN, TOKYO)
    town.counter.zones[ANN] = TOKYO
    timed, day = await town.counter.agenda.ahead(ANN, "")

    assert keys(shown) == ["e1", "e2"]
    assert timed.new.at is not None
    assert f"{timed.new.at.astimezone(TOKYO):%d %H:%M}" == "04 10:00"
    assert day.new.at is not None
    assert f"{day.new.at.astimezone(TOKYO):%d %H:%M}" == "05 00:00"
    assert await town.due(TOKYO) == ["j1 03 09:00", "j2 04 09:00", "j3 04 09:00"]
    assert await town.moves.of(ANN, TOKYO) == []


async def test_an_event_that_would_be_over_stays(town: Town) -> None:
    await town.event("today at 14:00")

    [made] = await town.moves.make(ANN, TOKYO)

    assert made.then is None
    [event] = await town.counter.agenda.ahead(ANN, "")
    assert event.new.zone == BERLIN.key


async def test_a_zone_that_is_not_known_any_more_is_left_alone(town: Town) -> None:
    job = await town.job("every day at 8:30")
    time = AssumedTime(person_id=ANN, kind=Timed.JOB, id=job.id, zone="Mars/Olympus")
    await town.store.assume(time)

    assert await town.moves.make(ANN, TOKYO) == []
