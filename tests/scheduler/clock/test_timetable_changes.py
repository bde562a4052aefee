"""What people, kills, odd rows and clocks do between the reading of a job and its taking."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from memory.database.connection import Database
from memory.records.jobs import (
    COUNTED_MAX,
    MADE_UP_MAX,
    Cron,
    Due,
    Every,
    Job,
    JobKind,
    MisfirePolicy,
    Misfires,
    NotTaken,
    RecurrenceUnit,
    SlotState,
    Taken,
    Taking,
)
from memory.records.messages import OutboxId
from memory.records.rows import NewMessage
from memory.stores.jobs import SqliteJobs
from scheduler.clock.misfire import first_due, passed
from scheduler.clock.timetable import Timetable
from tests.fakes import FixedClock
from tests.scheduler.jobs_kit import KeptKind, Office, at, job

T = TypeVar("T")

MORNING = datetime(2026, 6, 1, 6, 0, tzinfo=UTC)
NINE = MORNING.replace(hour=9)
DAY = timedelta(days=1)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path, start=MORNING)


class Meanwhile(KeptKind):
    """While the job `first` is prepared, somebody does something."""

    def __init__(self, office: Office, does: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._does = does
        office.timetable = Timetable(
            office.store, dict.fromkeys(JobKind, self), office.hears(), clock=office.clock
        )

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        if job.name == "first":
            await self._does()
        return await super().__call__(job, due, late_s=late_s)


async def _stands(office: Office, made: Job) -> Job:
    found = await office.store.get(made.id)
    assert found is not None
    return found


# --- somebody acts while many are due ----------------------------------------------------------


async def test_what_was_reworded_during_a_look_is_said_in_its_new_words(office: Office) -> None:
    async with office.opened():
        await office.add(job("first", when=at(NINE)))
        tea = await office.add(job("tea", when=at(NINE)))

        async def reword() -> None:
            what = replace(tea.what, text="green tea")
            await office.store.put(replace(tea, what=what))

        Meanwhile(office, reword)
        await office.to(NINE)

    assert office.texts() == ["first", "green tea"]


async def test_what_was_paused_or_removed_during_a_look_is_not_said(office: Office) -> None:
    async with office.opened():
        await office.add(job("first", when=at(NINE)))
        tea = await office.add(job("tea", when=at(NINE)))
        bread = await office.add(job("bread", when=at(NINE)))

        async def act() -> None:
            await office.store.put(replace(tea, enabled=False, paused="by hand"))
            await office.store.remove(bread.id)

        Meanwhile(office, act)
        await office.to(NINE)

        assert (await _stands(office, tea)).next == tea.next
    assert office.texts() == ["first"]


# --- kills, runs, the end of a job ---------------------------------------------------------------


class _Killed(BaseException):
    """The process is gone."""


async def test_what_a_kill_left_of_the_missed_is_made_up_for_at_the_next_start(
    office: Office,
) -> None:
    async with office.opened():
        await office.add(job("tea", missed=MisfirePolicy.ALL))
    taken = 0

    def dies(job: Job, what: object) -> None:
        nonlocal taken
        taken += 1
        if taken in {2, 3}:
            raise _Killed

    for start in range(3):
        async with office.opened():
            if not start:
                office.clock.move((NINE + 3 * DAY - office.clock.now()).total_seconds() + 7_200)
            hears = replace(office.hears(), taken=dies)
            kinds = dict.fromkeys(JobKind, office.kind)
            timetable = Timetable(office.store, kinds, hears, clock=office.clock)
            try:
                await timetable.look()
            except _Killed:
                continue

    assert office.slots() == [(f"2026-06-0{day}T09:00", "told") for day in (1, 2, 3, 4)]


class _DiesAt(SqliteJobs):
    """The process is gone before or after the `number`th write of the catching up."""

    def __init__(self, database: Database, number: int, *, after: bool) -> None:
        super().__init__(database)
        self._left, self._after = number, after

    async def take(self, taking: Taking, *, of: Job) -> Taken | NotTaken:
        return await self._dying(super().take(taking, of=of))

    async def tell_missed(
        self, told: Sequence[Misfires], cards: Sequence[NewMessage], *, asked: str
    ) -> Sequence[OutboxId]:
        return await self._dying(super().tell_missed(told, cards, asked=asked))

    async def _dying(self, write: Coroutine[None, None, T]) -> T:
        self._left -= 1
        if self._left == 0 and not self._after:
            write.close()
            raise _Killed
        done = await write
        if self._left == 0:
            raise _Killed
        return done


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, 10))
async def test_the_card_about_what_was_missed_is_whole_whenever_a_kill_comes(
    office: Office, number: int, after: bool
) -> None:
    office.has_cards = True
    noon = NINE + 3 * DAY + timedelta(hours=3)
    async with office.opened():
        for rule in MisfirePolicy:
            await office.add(job(rule.value, missed=rule))
        beat = await office.add(job("beat", missed=MisfirePolicy.SKIP, kind=JobKind.HEARTBEAT))
    office.clock.move((noon - office.clock.now()).total_seconds())

    async with office.opened():
        office.store = _DiesAt(office.store._database, number, after=after)
        kinds = dict.fromkeys(JobKind, office.kind)
        timetable = Timetable(office.store, kinds, office.hears(), clock=office.clock)
        with suppress(_Killed):
            await timetable.look()
    async with office.opened():
        await office.timetable.look()
        await office.timetable.look()
        left = await office.store.missed()

    [(_, runs)] = office.missed[-1:]
    told = {one.name: (dues.count, dues.first.slot, dues.last.slot) for one, dues in runs}
    assert told == dict.fromkeys(MisfirePolicy, (4, "2026-06-01T09:00", "2026-06-04T09:00"))
    assert [text for text in office.texts() if text.startswith("missed")] == ["missed 4"]
    assert left == []
    assert beat.name not in told


async def test_two_downtimes_without_a_word_in_between_are_told_together(office: Office) -> None:
    async with office.opened():
        tea = await office.add(job("tea", missed=MisfirePolicy.SKIP))
        for day in (1, 4):
            first, last = (Due(slot=f"d{n}", at_ms=n) for n in (day, day + 1))
            dues = Misfires(job_id=tea.id, count=2, first=first, last=last, done=SlotState.SKIPPED)
            await office.store.keep_missed(dues)
        [told] = await office.store.missed()
        await office.store.keep_missed(replace(told, last=Due(slot="d9", at_ms=9), count=1))
        await office.store.tell_missed([told], (), asked="")
        [more] = await office.store.missed()
        await office.store.remove(tea.id)

        assert (told.count, told.first.slot, told.last.slot) == (4, "d1", "d5")
        assert (more.count, more.first.slot, more.last.slot) == (4, "d1", "d9")
        assert await office.store.missed() == []


async def test_making_up_for_all_keeps_to_the_number_of_runs_and_to_the_last_day(
    office: Office,
) -> None:
    async with office.opened():
        thrice = await office.add(job("thrice", missed=MisfirePolicy.ALL, max_runs=3))
        until = int((NINE + 2 * DAY).timestamp() * 1000)
        await office.add(job("until", missed=MisfirePolicy.ALL, expires_ms=until))
        await office.add(job("once", missed=MisfirePolicy.ONCE, expires_ms=until))
        await office.to(NINE + 10 * DAY + timedelta(hours=1))

        assert (await _stands(office, thrice)).next is None
        names = [name for name, _, _ in office.kind.asked]
        assert names.count("thrice") == 3
        slots = [slot for name, slot, _ in office.kind.asked if name == "until"]
        assert slots == ["2026-06-01T09:00", "2026-06-02T09:00"]
        slots = [slot for name, slot, _ in office.kind.asked if name == "once"]
        assert slots == ["2026-06-02T09:00"]


async def test_what_was_left_out_is_no_run(office: Office) -> None:
    async with office.opened():
        tea = await office.add(job("tea", missed=MisfirePolicy.SKIP, max_runs=1))
        await office.to(NINE + timedelta(hours=2))
        assert (await _stands(office, tea)).next is not None
        await office.to(NINE + DAY)
        assert (await _stands(office, tea)).next is None

    assert office.texts() == ["tea"]


async def test_a_wait_after_a_failure_is_not_told_as_missed(office: Office) -> None:
    async with office.opened():
        often = Every(count=5, unit=RecurrenceUnit.MINUTE, start=MORNING, zone="UTC")
        made = await office.add(job("news", when=often, missed=MisfirePolicy.ASK))
        wait_ms = int((NINE - timedelta(minutes=1)).timestamp() * 1000)
        await office.store.failed(made.id, failures=3, not_before_ms=wait_ms, paused="")
        await office.to(NINE - timedelta(minutes=1))

        assert office.missed == []
        assert office.slots() == [("2026-06-01T08:55", "told")]


# --- odd rows ----------------------------------------------------------------------------------

ODD = [
    "next_ms = -900000000000000000",
    "next_ms = 'soon'",
    "not_before_ms = 'later'",
    "max_runs = 'x'",
    "expires_ms = 'x'",
    "missed_within_s = 'x'",
    "what = '[]'",
    "what = '{\"text\": 5}'",
    'runs_when = \'{"kind": "cron", "cron": "bogus", "zone": "UTC"}\'',
    'runs_when = \'{"kind": "at", "at": "9999-12-31T23:59:00-12:00", "zone": "UTC"}\'',
    'runs_when = \'{"kind": "every", "count": 1, "unit": "day", "pattern": "x", '
    '"start": "0001-01-01T00:00:00+00:00", "zone": "UTC"}\'',
    'runs_when = \'{"kind": "every", "count": 1, "unit": "day", "pattern": "0 0 * * *", '
    '"start": "9999-12-31T23:00:00-12:00", "zone": "UTC"}\'',
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.case("SC-15")
async def test_an_odd_row_keeps_no_other_job_from_its_time(office: Office, odd: str) -> None:
    async with office.opened():
        bad = await office.add(job("bad", when=Cron(expression="59 8 * * *", zone="UTC")))
        await office.add(job("good", when=at(NINE)))
        with closing(sqlite3.connect(office.path)) as connection:
            connection.execute(f"update jobs set {odd} where name = 'bad'")
            connection.commit()
        await office.to(NINE)

        kept = await office.store.get(bad.id)
        is_named = any(one.id == bad.id for one in await office.store.broken())
        ran = [text for text in office.texts() if text.startswith("bad")]
        assert is_named or (kept is not None and kept.paused) or ran
    assert "good" in office.texts()


async def test_a_hundred_odd_rows_hide_no_sound_one(office: Office) -> None:
    async with office.opened():
        for number in range(120):
            await office.add(job(f"bad {number}", when=at(NINE - timedelta(minutes=1))))
        await office.add(job("good", when=at(NINE)))
        with closing(sqlite3.connect(office.path)) as connection:
            connection.execute("update jobs set what = '[]' where name like 'bad%'")
            connection.commit()

        await office.to(NINE)

    assert office.texts() == ["good"]


async def test_a_job_of_unknown_times_is_stopped_and_its_person_hears_of_it(
    office: Office,
) -> None:
    async with office.opened():
        made = await office.add(job("tea"))
        with closing(sqlite3.connect(office.path)) as connection:
            gone = '{"kind": "cron", "cron": "0 9 * * *", "zone": "Mars/Olympus"}'
            connection.execute("update jobs set runs_when = ?", (gone,))
            connection.commit()
        await office.to(NINE)

        stands = await _stands(office, made)
        assert (stands.enabled, office.stopped) == (False, [("tea", stands.paused)])
    assert "Mars/Olympus" in stands.paused


# --- zones and clocks --------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [MisfirePolicy.ONCE, MisfirePolicy.SKIP, MisfirePolicy.ASK])
async def test_the_same_time_of_day_in_another_zone_is_another_due_time(
    office: Office, rule: MisfirePolicy
) -> None:
    async with office.opened():
        made = await office.add(job("tea", missed=rule))
        await office.to(NINE)
        stands = await _stands(office, made)
        there = Cron(expression="0 9 * * *", zone="America/New_York")  # 13:00 UTC
        due = first_due(there, after=office.clock.now())
        await office.store.put(replace(stands, when=there, next=due))
        await office.to(
            NINE.replace(hour=13) + timedelta(minutes=5 if rule is MisfirePolicy.ASK else 0)
        )
        await office.timetable.look()

    slots = [slot for slot, _ in office.slots()]
    assert slots == ["2026-06-01T09:00", "2026-06-01T09:00 America/New_York"]


async def test_a_clock_that_was_ahead_for_a_while_silences_nothing(office: Office) -> None:
    async with office.opened():
        made = await office.add(job("tea"))
        await office.to(NINE)
        await office.to(NINE + 3 * DAY + timedelta(hours=2))  # somebody set the clock
        await office.to(NINE + timedelta(hours=4))  # and set it right again

        stands = await _stands(office, made)
        assert stands.next is not None
        assert stands.next.slot == "2026-06-02T09:00"
        for day in (1, 2, 3, 4):
            await office.to(NINE + day * DAY)

    slots = [slot for slot, _ in office.slots()]
    assert sorted(slots) == [f"2026-06-0{day}T09:00" for day in (1, 2, 3, 4, 5)]


async def test_a_clock_that_is_set_back_while_the_bot_is_off_is_noticed_at_the_start(
    office: Office,
) -> None:
    async with office.opened():
        made = await office.add(job("tea"))
        await office.to(NINE + 3 * DAY)
    async with office.opened():
        await office.to(NINE + timedelta(hours=4))

        assert (await _stands(office, made)).next == Due(
            slot="2026-06-02T09:00", at_ms=int((NINE + DAY).timestamp() * 1000)
        )


async def test_a_clock_that_is_set_back_ends_no_wait_early_and_makes_none_endless(
    office: Office,
) -> None:
    async with office.opened():
        made = await office.add(job("tea"))
        await office.to(NINE + 3 * DAY)
        wait = office.clock.now() + timedelta(hours=1)
        await office.store.failed(
            made.id, failures=4, not_before_ms=int(wait.timestamp() * 1000), paused=""
        )
        await office.to(NINE + timedelta(hours=1))

        stands = await _stands(office, made)
        until = NINE + timedelta(hours=2)
        assert (stands.failures, stands.not_before_ms) == (4, int(until.timestamp() * 1000))


async def test_a_nag_is_not_put_off_by_a_clock_that_was_ahead(office: Office) -> None:
    async with office.opened():
        await office.add(job("pill", when=at(NINE), nag_s=60))
        await office.to(NINE)
        await office.to(NINE + 3 * DAY)
        await office.to(NINE + timedelta(minutes=5))
        await office.to(NINE + timedelta(minutes=6))

    assert len(office.texts()) == 3


# --- how much passed ---------------------------------------------------------------------------


def test_a_year_of_minutes_is_not_counted_one_by_one() -> None:
    when = Cron(expression="* * * * *", zone="UTC")
    due = first_due(when, after=MORNING)
    assert due is not None
    made = replace(job(when=when), id=1, next=due)
    end = MORNING + timedelta(days=365)

    found = passed(made, int(end.timestamp() * 1000))

    assert (found.count, found.first) == (COUNTED_MAX, due)
    newest = [end - timedelta(minutes=back) for back in range(MADE_UP_MAX)]
    assert [one.at_ms for one in found.newest] == [
        int(one.timestamp() * 1000) for one in reversed(newest)
    ]


async def test_late_by_a_minute_no_slot_of_a_minute_is_left_out(office: Office) -> None:
    async with office.opened():
        await office.add(job("tick", when=Cron(expression="* * * * *", zone="UTC")))
        await office.to(MORNING + timedelta(minutes=1))
        await office.to(MORNING + timedelta(minutes=3))

    assert [slot for slot, _ in office.slots()] == [f"2026-06-01T06:0{n}" for n in (1, 2, 3)]
    assert office.missed == []


async def test_what_was_taken_before_keeps_none_that_was_missed_from_its_turn(
    office: Office,
) -> None:
    async with office.opened():
        hourly = Cron(expression="0 * * * *", zone="UTC")
        await office.add(job("tea", when=hourly, missed=MisfirePolicy.ALL))
        for hour in range(7, 18):
            await office.to(MORNING.replace(hour=hour))
        await office.to(MORNING.replace(hour=6, minute=30))
        await office.to(MORNING.replace(hour=20, minute=30))

    slots = [slot for slot, _ in office.slots()]
    assert slots == [f"2026-06-01T{hour:02}:00" for hour in range(7, 21)]


async def test_a_reminder_that_nags_goes_on_though_its_slots_are_taken(office: Office) -> None:
    async with office.opened():
        pill = await office.add(job("pill", when=at(NINE), nag_s=60, missed=MisfirePolicy.SKIP))
        for hours in (1, 2, 3, 4, 5):
            await office.to(NINE + timedelta(hours=hours))

        stands = await _stands(office, pill)
        assert stands.next is not None
        assert stands.next.at_ms > int((NINE + timedelta(hours=5)).timestamp() * 1000)
    assert len(set(office.slots())) == 5


async def test_a_job_whose_last_day_is_ahead_again_goes_on(office: Office) -> None:
    until = int((NINE + 20 * DAY).timestamp() * 1000)
    async with office.opened():
        made = await office.add(job("tea", expires_ms=until))
        await office.to(NINE + 400 * DAY)
        assert (await _stands(office, made)).next is None
        await office.to(NINE + timedelta(hours=1))

        stands = await _stands(office, made)
        assert stands.next is not None
        assert stands.next.slot == "2026-06-02T09:00"


async def test_the_timetable_looks_by_itself_also_when_the_clock_on_the_wall_goes_back(
    office: Office,
) -> None:
    """The alarm goes by that clock; what looks now and then goes by its own sleep."""
    clock = _SetBack(MORNING)
    office.clock = clock
    async with office.opened() as opened:
        looked = asyncio.Event()
        hears = replace(opened.hears(), taken=lambda job, taken: looked.set())
        kinds = dict.fromkeys(JobKind, opened.kind)
        timetable = Timetable(opened.store, kinds, hears, clock=clock)
        async with timetable:
            clock.move(-2 * 3_600)
            soon = clock.now() + timedelta(seconds=1)
            await opened.store.add(
                job("tea", when=at(soon)), first_due(at(soon), after=clock.now())
            )
            await asyncio.wait_for(looked.wait(), 30)

    assert office.texts() == ["tea"]


class _SetBack(FixedClock):
    """Sleeps a moment; what it shows was set by somebody, and goes on by what was slept."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.01)
        self.move(seconds)
