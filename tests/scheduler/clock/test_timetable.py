"""Each due time is taken once, at its time or by its rule, whatever restarts and clocks do."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.errors import StorageFull
from memory.records.jobs import (
    Cron,
    Due,
    Every,
    Job,
    JobKind,
    MisfirePolicy,
    NotTaken,
    RecurrenceUnit,
    SlotState,
    Taken,
    Taking,
)
from memory.stores.jobs import SqliteJobs
from scheduler.clock.machine import SystemClock
from scheduler.clock.misfire import first_due
from scheduler.clock.timetable import LOOK_EVERY_S, Timetable, TimetableHooks
from tests.scheduler.jobs_kit import Broken, KeptKind, Office, at, job

MORNING = datetime(2026, 6, 1, 6, 0, tzinfo=UTC)
NINE = MORNING.replace(hour=9)
DAY = timedelta(days=1)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path, start=MORNING)


async def test_a_due_time_is_taken_once_and_the_next_one_is_set(office: Office) -> None:
    async with office.opened():
        made = await office.add(job("tea"))

        assert await office.to(NINE - timedelta(seconds=1)) == 0
        assert await office.to(NINE) == 1
        assert await office.to(NINE + timedelta(seconds=30)) == 0

        stands = await office.store.get(made.id)
        assert stands is not None
        assert stands.next == Due(slot="2026-06-02T09:00", at_ms=_ms(NINE + DAY))
        assert (stands.runs, office.taken, office.texts()) == (1, ["tea"], ["tea"])


@pytest.mark.case("SC-13")
async def test_a_restart_neither_runs_a_job_early_nor_again(office: Office) -> None:
    chance = random.Random(13)
    moments = sorted(MORNING + timedelta(seconds=chance.randrange(86_400)) for _ in range(20))
    async with office.opened():
        await office.add(job("tea"))
    for moment in [*moments, NINE + timedelta(seconds=20)]:
        async with office.opened():
            if moment > office.clock.now():
                await office.to(moment)
            else:
                await office.timetable.look()

    assert office.slots() == [("2026-06-01T09:00", "told")]


@pytest.mark.case("SC-07")
async def test_a_reminder_that_was_late_for_two_seconds_is_on_time(office: Office) -> None:
    async with office.opened():
        await office.add(job("tea", when=at(NINE)))
        await office.to(NINE + timedelta(seconds=2.5))
        await office.add(job("bread", when=at(NINE + timedelta(seconds=10))))
        await office.to(NINE + timedelta(seconds=100))

    assert office.texts() == ["tea", "bread (late by 90 s)"]
    assert office.missed[0][1][0][1].done is SlotState.TAKEN


@pytest.mark.parametrize(
    ("rule", "slots"),
    [
        (MisfirePolicy.SKIP, [("2026-06-04T09:00", "skipped")]),
        (MisfirePolicy.ONCE, [("2026-06-04T09:00", "told")]),
        (MisfirePolicy.ASK, [("2026-06-04T09:00", "asked")]),
        (
            MisfirePolicy.ALL,
            [(f"2026-06-0{day}T09:00", "told") for day in (1, 2, 3, 4)],
        ),
    ],
)
async def test_what_was_missed_is_made_up_for_by_the_rule_of_the_job(
    office: Office, rule: MisfirePolicy, slots: list[tuple[str, str]]
) -> None:
    async with office.opened():
        await office.add(job("tea", missed=rule))
    async with office.opened():
        await office.to(NINE + 3 * DAY + timedelta(hours=2))
        await office.to(NINE + 4 * DAY)

        ((person, ((_, missed),)),) = office.missed
        assert (person, missed.count, missed.first.slot, missed.last.slot) == (
            "p1",
            4,
            "2026-06-01T09:00",
            "2026-06-04T09:00",
        )
    assert office.slots() == [*slots, ("2026-06-05T09:00", "told")]


async def test_what_is_too_old_is_not_made_up_for(office: Office) -> None:
    async with office.opened():
        await office.add(job("tea", missed_within_s=12 * 3600))
        await office.to(NINE + timedelta(hours=11))
        await office.to(NINE + DAY + timedelta(hours=13))

    assert office.slots() == [("2026-06-01T09:00", "told"), ("2026-06-02T09:00", "skipped")]


@pytest.mark.parametrize("jump", [timedelta(hours=-2), timedelta(hours=2), timedelta(days=3)])
async def test_a_clock_that_jumps_runs_no_slot_twice_and_loses_none(
    office: Office, jump: timedelta
) -> None:
    async with office.opened():
        await office.add(
            job("tick", when=Cron(expression="*/30 * * * *", zone="UTC"), missed=MisfirePolicy.ALL)
        )
        await office.to(NINE)
        office.clock.move(jump.total_seconds())
        await office.timetable.look()
        end = NINE + timedelta(hours=5)
        while office.clock.now() < end:
            await office.to(office.clock.now() + timedelta(minutes=10))

    slots = [slot for slot, _ in office.slots()]
    assert len(slots) == len(set(slots))
    if jump < timedelta(days=1):
        wanted = [NINE + timedelta(minutes=30 * n) for n in range(-5, 11)]
        assert [f"{one:%Y-%m-%dT%H:%M}" for one in wanted] == sorted(slots)


async def test_a_job_has_so_many_runs_and_an_end(office: Office) -> None:
    hourly = Every(count=1, unit=RecurrenceUnit.HOUR, start=NINE, zone="UTC")
    async with office.opened():
        await office.add(job("three", when=hourly, max_runs=3))
        await office.add(job("noon", when=hourly, expires_ms=_ms(MORNING.replace(hour=12))))
        for hour in range(9, 16):
            await office.to(MORNING.replace(hour=hour))

    assert office.texts() == ["three", "noon"] * 3


@pytest.mark.parametrize("error", [Broken("the skill is gone"), ZeroDivisionError("odd")])
async def test_a_job_that_cannot_be_prepared_is_told_and_comes_again_at_its_next_time(
    office: Office, error: Exception
) -> None:
    office.kind.broken["bad"] = error
    async with office.opened():
        await office.add(job("bad"))
        await office.add(job("good"))
        await office.to(NINE)

        assert [name for name, _ in office.failed] == ["bad"]
        assert "odd" not in office.failed[0][1]
        office.kind.broken.clear()
        await office.to(NINE + DAY)

    assert office.texts() == ["good", "bad", "good"]


async def test_after_failures_a_job_waits_and_in_the_end_stands_still(office: Office) -> None:
    async with office.opened():
        made = await office.add(job("x", when=Cron(expression="* * * * *", zone="UTC")))
        await office.to(MORNING + timedelta(minutes=1))
        until = MORNING + timedelta(minutes=10)
        await office.store.failed(made.id, failures=1, not_before_ms=_ms(until), paused="")

        assert await office.to(until - timedelta(seconds=1)) == 0
        assert await office.store.next_ms() == _ms(until)
        assert await office.to(until) == 1
        await office.store.failed(made.id, failures=5, not_before_ms=0, paused="failed 5 times")
        assert await office.to(until + DAY) == 0


class _FullOnce(SqliteJobs):
    """Its disk is full at the first taking."""

    is_full = True

    async def take(self, taking: Taking, *, of: Job) -> Taken | NotTaken:
        if self.is_full:
            self.is_full = False
            raise StorageFull("the disk is full")
        return await super().take(taking, of=of)


async def test_trouble_with_the_storage_leaves_a_due_time_for_the_next_look(
    office: Office,
) -> None:
    async with office.opened(), Database.open(office.path, clock=office.clock) as database:
        await office.add(job("tea", when=at(NINE)))
        hears = office.hears()
        timetable = Timetable(
            _FullOnce(database), office.timetable._kinds, hears, clock=office.clock
        )
        office.clock.move((NINE - office.clock.now()).total_seconds())
        with pytest.raises(StorageFull):
            await timetable.look()
        await timetable.look()

    assert office.texts() == ["tea"]


async def test_the_alarm_rings_by_itself_also_for_what_was_added_later(tmp_path: Path) -> None:
    clock = SystemClock()
    rang = asyncio.Event()
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        store = SqliteJobs(database)

        async def nobody(*args: object) -> None:
            pass

        hears = TimetableHooks(
            taken=lambda job, taken: rang.set(), missed=nobody, failed=nobody, stopped=nobody
        )
        kinds = dict.fromkeys(JobKind, KeptKind())
        async with Timetable(store, kinds, hears, clock=clock) as timetable:
            soon = job("tea", when=at(clock.now() + timedelta(milliseconds=50)))
            await store.add(soon, first_due(soon.when, after=clock.now()))
            await timetable.changed()
            async with asyncio.timeout(20):
                await rang.wait()


class _LooksOnce(SystemClock):
    """The alarm is set up at once; from then on nobody looks by himself."""

    def __init__(self) -> None:
        self.rests = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds == LOOK_EVERY_S:
            self.rests.set()
            await asyncio.Event().wait()


async def test_what_was_held_is_taken_as_soon_as_it_is_told_that_the_pause_is_over(
    tmp_path: Path,
) -> None:
    clock, went_on, pauses, taken = _LooksOnce(), asyncio.Event(), ["the owner's"], list[str]()
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        store = SqliteJobs(database)

        async def nobody(*args: object) -> None:
            pass

        def takes(job: Job, what: Taken) -> None:
            taken.append(job.name)
            if job.kind is JobKind.AGENT:
                went_on.set()

        hears = TimetableHooks(taken=takes, missed=nobody, failed=nobody, stopped=nobody)
        for new in (
            job("look for rain", when=at(clock.now()), kind=JobKind.AGENT),
            job("tea", when=at(clock.now())),
            job("pill", when=at(clock.now()), nag_s=600),
        ):
            await store.add(new, first_due(new.when, after=clock.now() - timedelta(minutes=1)))
        kinds = dict.fromkeys(JobKind, KeptKind())
        held = lambda: bool(pauses)  # noqa: E731
        async with (
            Timetable(store, kinds, hears, clock=clock, held=held) as timetable,
            asyncio.timeout(20),
        ):
            await clock.rests.wait()
            assert taken == ["tea", "pill"], "reminders need no model"
            pauses.clear()
            await timetable.changed()
            await went_on.wait()

    assert taken == ["tea", "pill", "look for rain"]


class _EndsSlowly(SqliteJobs):
    """The first look after `holds` is set stays in its last step until `goes_on`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.holds, self.is_held, self.goes_on = False, asyncio.Event(), asyncio.Event()

    async def next_ms(self, *, after_ms: int = 0) -> int | None:
        found = await super().next_ms(after_ms=after_ms)
        if self.holds and after_ms:
            self.holds = False
            self.is_held.set()
            await self.goes_on.wait()
        return found


async def test_an_alarm_that_goes_off_while_a_look_ends_is_not_lost(tmp_path: Path) -> None:
    clock, taken, last = _LooksOnce(), list[str](), asyncio.Event()
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        store = _EndsSlowly(database)

        async def nobody(*args: object) -> None:
            pass

        def takes(job: Job, what: Taken) -> None:
            taken.append(job.name)
            if job.name == "pill":
                last.set()

        hears = TimetableHooks(taken=takes, missed=nobody, failed=nobody, stopped=nobody)
        kinds = dict.fromkeys(JobKind, KeptKind())
        async with (
            Timetable(store, kinds, hears, clock=clock) as timetable,
            asyncio.timeout(20),
        ):

            async def add(name: str) -> None:
                due = job(name, when=at(clock.now()))
                await store.add(due, first_due(due.when, after=clock.now() - timedelta(minutes=1)))
                await timetable.changed()

            await clock.rests.wait()
            store.holds = True
            await add("tea")
            await store.is_held.wait()
            await add("pill")
            await asyncio.sleep(0.2)  # its alarm goes off now
            store.goes_on.set()
            await last.wait()

    assert taken == ["tea", "pill"]


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


# --- after downtime -------------------------------------------------------------------------------
