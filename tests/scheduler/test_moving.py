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
from memory.records.schedule import Event, JobChanges, Remind
from memory.records.zones import AssumedTime, Move, Timed
from memory.stores.people import SqliteAssumedZones
from scheduler.jobs.zone_moves import ZoneMoves
from tests.scheduler.service_kit import ANN, BEN, BERLIN, BY_ANN, LANE, Services

TOKYO, NEW_YORK, VIENNA = (
    ZoneInfo("Asia/Tokyo"),
    ZoneInfo("America/New_York"),
    ZoneInfo("Europe/Vienna"),
)


class Town:
    """A counter where all that is set up is set up by an assumed zone."""

    def __init__(self, counter: Services) -> None:
        self.counter, self.jobs = counter, counter.jobs
        self.store = SqliteAssumedZones(counter.database)
        self.moves = ZoneMoves(self.store, counter.jobs, counter.events, clock=counter.clock)

    async def job(self, when: str, **more: Any) -> Job:
        job = await self.counter.want(when, **more)
        await self.assume(Timed.JOB, job.id)
        return job

    async def event(self, when: str, *remind: Remind) -> Event:
        draft = Event(person_id=ANN, name="Dentist", remind=remind)
        recorded = await self.counter.events.record(
            draft, self.counter.time(when), words=when, deliver_to=LANE
        )
        await self.assume(Timed.EVENT, recorded.event.id)
        return recorded.event

    async def assume(self, kind: Timed, id: int) -> None:
        time = AssumedTime(person_id=ANN, kind=kind, id=id, zone=BERLIN.key)
        await self.store.assume(time)

    async def due(self, zone: ZoneInfo) -> list[str]:
        """Of all of Ann's jobs, on the clock of a zone."""
        return [
            f"{job.key} {datetime.fromtimestamp(job.next.at_ms / 1000, zone):%d %H:%M}"
            for job in await self.jobs.of(ANN)
            if job.next is not None
        ]


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with Services(tmp_path).opened() as counter:
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
    time = town.counter.time("every day at 12")
    await town.jobs.update(tokyos.key, JobChanges(time=time), by=BY_ANN)

    moves = await town.moves.of(ANN, NEW_YORK)

    assert keys(moves) == [mine.key]
    assert await town.moves.of(BEN, NEW_YORK) == []


async def test_limits_go_along_and_what_stands_still_goes_on_standing_still(town: Town) -> None:
    limited = await town.job("every day at 8:30 until 30 June")
    counted = await town.job("every day at 10, 5 times")
    paused = await town.job("every day at 11")
    await town.jobs.pause(paused.key, by=BY_ANN)

    await town.moves.make(ANN, TOKYO)
    after = {job.id: job for job in await town.jobs.of(ANN)}

    assert after[limited.id].expires_ms == _earlier(limited.expires_ms, hours=7)
    assert after[counted.id].max_runs == 5
    assert (after[paused.id].enabled, after[paused.id].when.zone) == (False, "Asia/Tokyo")


def _earlier(ms: int | None, *, hours: int) -> int:
    assert ms is not None
    return ms - hours * 3_600_000


async def test_what_was_put_off_comes_when_it_was_put_off_to(town: Town) -> None:
    job = await town.job("tomorrow at 9")
    await town.jobs.snooze(job, "1d", key="later-1")

    assert await town.moves.of(ANN, TOKYO) == []


async def test_an_event_moves_with_its_reminders(town: Town) -> None:
    await town.event("4 June at 10:00", Remind.BEFORE, Remind.ON)
    await town.event("5 June", Remind.BEFORE)

    shown = await town.moves.of(ANN, TOKYO)
    await town.moves.make(ANN, TOKYO)
    town.counter.zones[ANN] = TOKYO
    timed, day = await town.counter.events.ahead(ANN, "")

    assert keys(shown) == ["e1", "e2"]
    assert timed.at is not None
    assert f"{timed.at.astimezone(TOKYO):%d %H:%M}" == "04 10:00"
    assert day.at is not None
    assert f"{day.at.astimezone(TOKYO):%d %H:%M}" == "05 00:00"
    assert await town.due(TOKYO) == ["j1 03 09:00", "j2 04 09:00", "j3 04 09:00"]
    assert await town.moves.of(ANN, TOKYO) == []


async def test_an_event_that_would_be_over_stays(town: Town) -> None:
    await town.event("today at 14:00")

    [made] = await town.moves.make(ANN, TOKYO)

    assert made.then is None
    [event] = await town.counter.events.ahead(ANN, "")
    assert event.zone == BERLIN.key


async def test_a_zone_that_is_not_known_any_more_is_left_alone(town: Town) -> None:
    job = await town.job("every day at 8:30")
    time = AssumedTime(person_id=ANN, kind=Timed.JOB, id=job.id, zone="Mars/Olympus")
    await town.store.assume(time)

    assert await town.moves.make(ANN, TOKYO) == []
