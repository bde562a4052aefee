"""What is foreseen is what the timetable then does, and is told when the notifier would tell it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memory.database.connection import Database
from memory.records.jobs import (
    At,
    Cron,
    Due,
    Every,
    Job,
    JobKind,
    MisfirePolicy,
    Notification,
    QuietPolicy,
    RecurrenceUnit,
    SetBy,
    SlotState,
    When,
)
from memory.records.messages import PersonId
from memory.records.schedule import Fate, Forecast, ForecastRun, RunCost
from memory.stores.schedule import SqliteTellings
from scheduler.clock.misfire import first_due
from scheduler.jobs.forecast import RUNS_MAX, Listener, Rules, Span, forecast, pace
from scheduler.notify.delivery import HoursOfDay, Notifier, NotifyOptions
from tests.scheduler.jobs_kit import Office, at, job
from tests.scheduler.service_kit import People
from tests.thorough import rounds

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2026, 6, 1, 4, 0, tzinfo=UTC)  # Monday, 06:00 in Berlin
ANN = PersonId("p1")
NIGHT = HoursOfDay(from_minute=22 * 60, to_minute=7 * 60)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def kept(draft: Job, number: int = 1, **more: Any) -> Job:
    kept = replace(draft, id=number, next=first_due(draft.when, after=START))
    return replace(kept, **more)


def foresee(
    *jobs: Job,
    days: float = 7,
    since: datetime = START,
    listener: Listener | None = None,
    rules: Rules | None = None,
    cost: RunCost | None = None,
) -> Forecast:
    return forecast(
        jobs,
        Span(now=START, since=since, until=since + days * DAY),
        {ANN: listener or Listener(zone=BERLIN)},
        rules=rules or Rules(),
        costs={one.id: cost for one in jobs if cost is not None},
    )


def slots(found: Forecast) -> list[str]:
    return [run.due.slot for run in found.runs]


def told(found: Forecast) -> list[tuple[str, Fate | None, str]]:
    """When it runs, what becomes of it, and when it is heard, on the wall of Berlin."""

    def wall(ms: int | None) -> str:
        return "" if ms is None else f"{datetime.fromtimestamp(ms / 1000, BERLIN):%d %H:%M}"

    return [(wall(run.runs_ms), run.fate, wall(run.told_ms)) for run in found.runs]


# --- the timetable is the measure ----------------------------------------------------------------

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC")


def any_when(chance: random.Random, start: datetime) -> When:
    zone = chance.choice(ZONES)
    begins = start + timedelta(minutes=chance.randrange(3 * 1440))
    match chance.randrange(4):
        case 0:
            return At(moment=begins, zone=zone)
        case 1:
            return Every(
                count=chance.randrange(20, 600), unit=RecurrenceUnit.MINUTE, start=begins, zone=zone
            )
        case 2:
            return Every(
                count=chance.randrange(1, 3),
                unit=RecurrenceUnit.DAY,
                start=begins,
                zone=zone,
                pattern=f"{chance.randrange(60)} {chance.randrange(4)} * * *",
            )
        case _:
            text = chance.choice(["30 2 * * *", "*/20 1-3 * * *", "0 * * * *", "15 9 * * 1-5"])
            return Cron(expression=text, zone=zone)


def any_job(chance: random.Random, number: int, start: datetime) -> Job:
    when = any_when(chance, start)
    nags = isinstance(when, At) and chance.random() < 0.5
    return job(
        f"job {number}",
        when=when,
        missed=MisfirePolicy.ONCE if nags else chance.choice(list(MisfirePolicy)),
        missed_within_s=None if nags else chance.choice([None, None, 3_600, 12 * 3_600]),
        max_runs=chance.choice([None, None, None, 1, 3]),
        nag_s=1_800 if nags else None,
        expires_ms=chance.choice([None, None, int((start + 2 * DAY).timestamp() * 1000)]),
    )


@pytest.mark.parametrize("seed", range(rounds(6, 200)))
async def test_what_is_foreseen_is_what_the_timetable_then_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    # Two days around a night in which clocks are changed, after hours in which nothing ran.
    start = chance.choice(
        [datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 3, 7, 12, tzinfo=UTC)]
    )
    office = Office(tmp_path, start=start)
    async with office.opened():
        for number in range(5):
            await office.add(any_job(chance, number, start))
        office.clock.move(chance.choice([0.0, 30.0, 5 * 3600.0, 20 * 3600.0]))
        now = office.clock.now()
        span = Span(now=now, since=now, until=now + 2 * DAY)

        foreseen = forecast(await office.store.kept(), span, {}, rules=Rules(), costs={})
        while (next_ms := await office.store.next_ms()) is not None:
            at_ms = max(next_ms, int(office.clock.now().timestamp() * 1000))
            if at_ms >= span.until.timestamp() * 1000:
                break
            await office.to(datetime.fromtimestamp(at_ms / 1000, UTC))

    gone = [(run.job.id, run.due.slot, run.fate) for run in foreseen.runs]
    assert sorted(gone) == sorted(ledger(office.path))


def ledger(path: Path) -> Iterator[tuple[int, str, Fate]]:
    """What was taken; what had expired is no run."""
    sql = "select job_id, slot, state, note from job_runs order by rowid"
    with closing(sqlite3.connect(path)) as connection:
        for job_id, slot, state, note in connection.execute(sql):
            if note != "the job had expired":
                yield job_id, slot, Fate(state)


@pytest.mark.parametrize("seed", range(rounds(4, 100)))
async def test_when_it_is_foreseen_to_be_told_is_when_it_is_told(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    start = datetime(2026, 10, 24, 10, tzinfo=UTC)  # the clocks go back that night
    quiet = chance.choice([None, NIGHT, HoursOfDay(from_minute=13 * 60, to_minute=16 * 60 + 30)])
    most = chance.choice([2, 5, 12])
    office = Office(tmp_path, start=start)
    office.kind.makes_turn = True
    async with office.opened(), Database.open(office.path, clock=office.clock) as database:
        tellings = SqliteTellings(database)
        if quiet is not None:
            await tellings.set_quiet_hours(ANN, (quiet.from_minute, quiet.to_minute))
        options = NotifyOptions(daily_max=most)
        teller = Notifier(
            tellings, office.store, People(), lambda rows: None, clock=office.clock, options=options
        )
        for number in range(4):
            when = Cron(expression=f"{chance.randrange(60)} */{chance.randrange(2, 9)} * * *",
                        zone="Europe/Berlin")  # fmt: skip
            new = job(
                f"job {number}",
                when=when,
                kind=JobKind.SKILL,
                set_by=chance.choice([SetBy.SKILL, SetBy.PERSON]),
                urgent=chance.random() < 0.2,
                quiet=chance.choice(list(QuietPolicy)),
            )
            await office.add(new)
        span = Span(now=start, since=start, until=start + 2 * DAY)
        listeners = {ANN: Listener(zone=BERLIN, quiet=quiet)}
        jobs = await office.store.kept()

        foreseen = forecast(jobs, span, listeners, rules=Rules(daily_max=most), costs={})
        waits = {
            one.told_ms
            for one in foreseen.runs
            if one.fate in {Fate.HELD, Fate.DIGEST} and one.told_ms is not None
        }
        events: list[tuple[int, ForecastRun | None]] = [(run.runs_ms, run) for run in foreseen.runs]
        for at_ms, run in sorted([*events, *((ms, None) for ms in waits)], key=in_time):
            moment = datetime.fromtimestamp(at_ms / 1000, UTC)
            if run is None:
                if office.clock.now() < moment - timedelta(seconds=20):
                    await office.to(moment - timedelta(seconds=20))
                    assert await teller.look() == 0, "not before its time"
                await office.to(moment)
                assert await teller.look() >= 1, moment
                continue
            await office.to(moment)
            await office.store.end(run.job.id, run.due.slot, SlotState.FOUND, result="x")
            found = Notification(job=run.job, due=run.due, text=f"{run.job.key} {run.due.slot}")
            assert STATES[run.fate] is await teller.tell(found), run
        assert await tellings.waiting() == []


def in_time(event: tuple[int, ForecastRun | None]) -> tuple[int, bool]:
    """Digests before what is found at the same moment."""
    return event[0], event[1] is not None


STATES: dict[Fate | None, SlotState] = {
    Fate.TOLD: SlotState.TOLD,
    Fate.HELD: SlotState.WAITING,
    Fate.DIGEST: SlotState.WAITING,
    Fate.DROPPED: SlotState.SILENT,
}


# --- DST ------------------------------------------------------------------------------------------


# --- missed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (MisfirePolicy.SKIP, [("2026-05-31T09:00", Fate.SKIPPED, 3)]),
        (MisfirePolicy.ASK, [("2026-05-31T09:00", Fate.ASKED, 3)]),
        (MisfirePolicy.ONCE, [("2026-05-31T09:00", Fate.TOLD, 3)]),
        (MisfirePolicy.ALL, [(f"2026-05-{day}T09:00", Fate.TOLD, 1) for day in (29, 30, 31)]),
    ],
)
def test_what_was_missed_stands_first_with_what_its_rule_makes_of_it(
    rule: MisfirePolicy, expected: Sequence[tuple[str, Fate, int]]
) -> None:
    friday = Due(slot="2026-05-29T09:00", at_ms=int((START - 3 * DAY + 5 * HOUR).timestamp() * 1e3))

    found = foresee(kept(job(missed=rule), next=friday), days=0.1)

    assert [(run.due.slot, run.fate, run.missed) for run in found.runs] == expected
    assert all(run.runs_ms == int(START.timestamp() * 1000) for run in found.runs)


# --- who hears of it ------------------------------------------------------------------------------


def test_a_heartbeat_stands_there_only_if_its_list_holds_something_and_in_its_hours() -> None:
    beat = Every(count=30, unit=RecurrenceUnit.MINUTE, start=START, zone="Europe/Berlin")
    new = job("heartbeat", when=beat, kind=JobKind.HEARTBEAT, set_by=SetBy.BOT)
    hours = HoursOfDay(from_minute=8 * 60, to_minute=9 * 60)

    assert foresee(kept(new), rules=Rules(heartbeats=False)).runs == ()
    assert [one[0] for one in told(foresee(kept(new), days=1, rules=Rules(hours=hours)))] == [
        "01 08:00",
        "01 08:30",
    ]


# --- bounds ---------------------------------------------------------------------------------------


def test_from_a_later_moment_on_what_ran_before_counts_but_is_not_shown() -> None:
    found = foresee(kept(job(max_runs=4)), since=START + 2 * DAY)

    assert slots(found) == ["2026-06-03T09:00", "2026-06-04T09:00"]


def test_what_stands_still_is_over_or_held_back_does_not_fire_before_it_may() -> None:
    held = int((START + 2 * DAY).timestamp() * 1000)

    assert foresee(kept(job(), enabled=False)).runs == ()
    assert foresee(kept(job(), next=None)).runs == ()
    assert foresee(kept(job(), not_before_ms=held), days=3).runs[0].runs_ms == held


def test_more_than_can_be_looked_at_is_said() -> None:
    found = foresee(kept(job(when=Cron(expression="* * * * *", zone="UTC"))), days=30)

    assert (len(found.runs), found.is_cut) == (RUNS_MAX, True)


# --- cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "runs"),
    [
        (Cron(expression="0 6 * * *", zone="Europe/Berlin"), 1.0),
        (Cron(expression="0 18 * * 0", zone="UTC"), 1 / 7),
        (Cron(expression="* * * * *", zone="UTC"), 1440.0),
        (Every(count=30, unit=RecurrenceUnit.MINUTE, start=START, zone="UTC"), 48.0),
        (at(START + DAY), 1 / 366),
    ],
)
def test_how_often_something_runs_is_an_average(when: When, runs: float) -> None:
    found = pace(when, RunCost(calls=1, tokens=1_000, dollars=0.001), now=START)

    assert found.runs == pytest.approx(runs, rel=0.01)
    assert found.tokens == pytest.approx(runs * 1_000, rel=0.01)
    assert found.dollars == pytest.approx(runs * 0.001, rel=0.01)
    assert pace(when, None, now=START).dollars is None
