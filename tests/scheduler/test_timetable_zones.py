"""Over every change of clocks, the runs are those of an oracle that knows no cron: it asks, minute
by minute in UTC, what the clock on the wall shows. And what was missed comes once, in order.

A job for fixed times runs when the wall shows its time for the first time that day; a time that no
clock shows that day runs at the first minute after it. A job in steps runs whenever the wall shows
one of its times.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memory.records.jobs import MisfirePolicy, SlotState
from memory.records.recurrence import Cron, Every, RecurrenceUnit
from tests.scheduler.jobs_kit import Office, at, job
from tests.thorough import THOROUGH

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

USUAL = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia")
MORE = (
    *("Europe/London", "Europe/Dublin", "Europe/Chisinau", "America/Santiago", "America/Havana"),
    *("America/St_Johns", "America/Sao_Paulo", "America/Asuncion", "Africa/Cairo"),
    *("Africa/Casablanca", "Asia/Beirut", "Asia/Gaza", "Asia/Tehran", "Asia/Kolkata"),
    *("Pacific/Auckland", "Pacific/Chatham"),
)
ZONES = (*USUAL, *MORE) if THOROUGH else USUAL

FIXED = ((0, 0), (0, 30), (2, 0), (2, 15), (2, 30), (23, 45))
"""Times of the day, some of which clocks leave out or show twice."""


def shifts(zone: ZoneInfo, years: range) -> Iterator[datetime]:
    """The UTC minute from which on the offset is another one; found by looking at each hour."""
    for year in years:
        moment, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        while moment < end:
            later = moment + timedelta(hours=1)
            if moment.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
                minute = moment
                while minute.astimezone(zone).utcoffset() == moment.astimezone(zone).utcoffset():
                    minute += MINUTE
                yield minute
            moment = later


SPAN = timedelta(hours=50 if THOROUGH else 26)
"""Before a change of clocks and after it."""


def years_of(name: str) -> range:
    """Apia left out a whole day in 2011; the others are looked at from 2026 on."""
    return range(2011, 2012) if name == "Pacific/Apia" else range(2026, 2029 if THOROUGH else 2027)


def oracle_fixed(
    zone: ZoneInfo, hour: int, minute: int, start: datetime, end: datetime
) -> list[datetime]:
    """Once for each day of the calendar that begins or ends within, also a day nobody lives."""
    found: list[datetime] = []
    done: set[date] = set()
    wanted = start.astimezone(zone).date() - DAY
    moment = start - 2 * DAY
    before = moment.astimezone(zone).replace(tzinfo=None)
    while moment < end:
        moment += MINUTE
        wall = moment.astimezone(zone).replace(tzinfo=None)
        day = before.date()
        while day <= wall.date():  # a jump may pass over more than one
            at = datetime(day.year, day.month, day.day, hour, minute)
            if before < at <= wall and day not in done and day >= wanted:
                done.add(day)
                if start < moment < end:
                    found.append(moment)
            day += DAY
        before = wall
    return sorted(set(found))


def oracle_steps(zone: ZoneInfo, step: int, start: datetime, end: datetime) -> list[datetime]:
    """Whenever the wall shows one of its minutes."""
    moment, found = start + MINUTE, []
    while moment < end:
        if moment.astimezone(zone).minute % step == 0:
            found.append(moment)
        moment += MINUTE
    return found


@pytest.mark.parametrize("name", ZONES)
async def test_over_every_change_of_clocks_the_runs_are_those_of_the_oracle(
    tmp_path: Path, name: str
) -> None:
    zone = ZoneInfo(name)
    for number, shift in enumerate(shifts(zone, years_of(name))):
        start, end = shift - SPAN, shift + SPAN
        folder = tmp_path / str(number)
        folder.mkdir()
        office = Office(folder, start=start)
        expected = {}
        async with office.opened():
            for hour, minute in FIXED:
                text = f"{minute} {hour} * * *"
                await office.add(job(text, when=Cron(expression=text, zone=name)))
                expected[text] = oracle_fixed(zone, hour, minute, start, end)
            await office.add(job("*/30 * * * *", when=Cron(expression="*/30 * * * *", zone=name)))
            expected["*/30 * * * *"] = oracle_steps(zone, 30, start, end)
            hours = Every(count=2, unit=RecurrenceUnit.HOUR, start=start + MINUTE, zone=name)
            await office.add(job("every 2 h", when=hours))
            count = (end - start) // timedelta(hours=2)
            expected["every 2 h"] = [start + MINUTE + n * timedelta(hours=2) for n in range(count)]

            taken = await run_through(office, end)

        assert taken == expected, f"around {shift}"


async def run_through(office: Office, end: datetime) -> dict[str, list[datetime]]:
    """Each job's runs, as the timetable takes them while time goes by."""
    taken: dict[str, list[datetime]] = {}
    while (next_ms := await office.store.next_ms()) is not None:
        moment = datetime.fromtimestamp(next_ms / 1000, UTC)
        if moment >= end:
            break
        before = len(office.taken)
        await office.to(moment)
        for one in office.taken[before:]:
            taken.setdefault(one, []).append(moment)
    return taken


# --- after downtime -------------------------------------------------------------------------------


async def test_of_a_thousand_reminders_those_due_while_down_come_once_in_order_and_marked_late(
    tmp_path: Path,
) -> None:
    start = datetime(2026, 6, 1, 6, 0, tzinfo=UTC)
    office = Office(tmp_path, start=start)
    async with office.opened():
        for number in range(1_000):
            when = start + (number + 1) * 5 * MINUTE
            await office.add(job(f"reminder {number:04}", when=at(when), missed=MisfirePolicy.ONCE))
    office.clock.move(200 * 5 * 60 + 90)

    async with office.opened():
        await office.timetable.look()
        await office.timetable.look()

        texts = office.texts()
        assert [text[:13] for text in texts] == [f"reminder {n:04}" for n in range(200)]
        assert ["late by" in text for text in texts] == [True] * 200
        ((_, runs),) = office.missed
        assert [(dues.count, dues.done) for _, dues in runs] == [(1, SlotState.TAKEN)] * 200
        assert len(await office.store.due(_ms(start + 9 * DAY), limit=2_000)) == 800
        await office.to(start + 9 * DAY)

    assert len(office.slots()) == 1_000
    assert len(set(office.texts())) == 1_000


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
