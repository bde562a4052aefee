"""Cron text: what is refused and where, and due times against a count minute by minute."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from memory.records.jobs import Cron, Every, RecurrenceUnit, When
from scheduler.clock.recurrence import NICKNAMES, CronWrong, Slot, cron_slots, next_slots, read_cron
from tests.thorough import THOROUGH

BERLIN = ZoneInfo("Europe/Berlin")
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)

USUAL = ("Europe/Berlin", "America/Santiago", "Africa/Cairo", "Africa/Casablanca")
MORE = (
    *("Europe/London", "Europe/Dublin", "Europe/Chisinau", "Atlantic/Azores", "Asia/Beirut"),
    *("America/New_York", "America/St_Johns", "America/Havana", "America/Nuuk"),
    *("America/Asuncion", "Asia/Jerusalem", "Australia/Sydney", "Pacific/Auckland"),
)
ODD = ("Australia/Lord_Howe", "Pacific/Chatham", "Antarctica/Troll")
ZONES = (*USUAL, *ODD, *MORE) if THOROUGH else (*USUAL, *ODD)
"""Of all kinds: both hemispheres, half hours, a change by half an hour and by two, at midnight."""


def due(expression: str, start: str, end: str, zone: ZoneInfo = BERLIN) -> list[str]:
    """What falls between two moments, in UTC, to the minute."""
    until = datetime.fromisoformat(end)
    found = []
    for slot in cron_slots(expression, zone=zone, after=datetime.fromisoformat(start)):
        if slot.at > until:
            break
        found.append(f"{slot.at.astimezone(UTC):%m-%dT%H:%MZ}")
    return found


def next_times(text: str, start: datetime, n: int, *, zone: ZoneInfo | None = None) -> list[Slot]:
    """The next due times after a moment; in UTC unless a zone is given."""
    return list(islice(cron_slots(text, zone=zone or ZoneInfo("UTC"), after=start), n))


# --- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NICKNAMES)
def test_a_nickname_is_its_five_fields(name: str) -> None:
    assert read_cron(name.upper()) == NICKNAMES[name]


def test_text_is_kept_in_one_form() -> None:
    assert read_cron("  0 9\t* jan,jul  mon-fri ") == "0 9 * JAN,JUL MON-FRI"


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("60 * * * *", 0, "minute is 0 to 59"),
        ("0 9 * 13 *", 6, "month is 1 to 12 or JAN to DEC"),
        ("0 9 * * 8", 8, "0 and 7 are Sunday"),
        ("0 9 * * 1,,3", 10, "''"),
        ("0 9,25 * * *", 4, "'25'"),
        ("0 9 * * SAT-MON", 8, "A range goes upwards"),
        ("*/0 * * * *", 0, "a step is"),
        ("*/90 * * * *", 0, "from 1 to 59"),
        ("0 9 L/2 * *", 4, "a step is"),
        ("* * * *", 7, "Here are 4"),
        ("", 0, "Here are 0"),
        ("@fortnightly", 0, "@weekly"),
        ("٣ * * * *", 0, "minute"),
        ("0 9 * * 5#6", 8, "5#2"),
        ("0 9 31 2 *", 4, "never comes"),
        ("0 9 * 2 5#5,5#5" + " " * 300, 256, "at most 256"),
    ],
)
def test_wrong_text_is_refused_with_the_place_and_what_is_allowed(
    text: str, position: int, said: str
) -> None:
    with pytest.raises(CronWrong) as refused:
        read_cron(text)

    assert refused.value.position == position
    assert said.replace("''", "nothing") in str(refused.value)


def test_a_leap_day_comes_and_a_day_or_a_weekday_is_met() -> None:
    leap = next_times("0 9 29 2 *", datetime(2026, 1, 1, tzinfo=UTC), 2)
    either = next_times("0 9 13 * 5", datetime(2026, 2, 1, tzinfo=UTC), 3)

    assert [slot.local for slot in leap] == ["2028-02-29T09:00", "2032-02-29T09:00"]
    assert [slot.local[:10] for slot in either] == ["2026-02-06", "2026-02-13", "2026-02-20"]


@pytest.mark.case("SC-05")
def test_weekdays_are_numbered_from_sunday() -> None:
    friday = datetime(2026, 6, 5, 12, tzinfo=UTC)

    days = [f"{slot.at:%a %m-%d %H}" for slot in next_times("0 9 * * 1-5", friday, 2)]

    assert days == ["Mon 06-08 09", "Tue 06-09 09"]
    assert next_times("0 9 * * 0", friday, 5) == next_times("0 9 * * 7", friday, 5)
    assert next_times("0 9 * * 0", friday, 5) == next_times("0 9 * * sun", friday, 5)


# --- where clocks are changed ------------------------------------------------------------------


@pytest.mark.case("SC-01")
def test_a_time_that_comes_twice_is_due_once() -> None:
    assert due("30 2 * * *", "2026-10-24T12:00+00:00", "2026-10-26T12:00+00:00") == [
        "10-25T00:30Z",
        "10-26T01:30Z",
    ]
    # Also seen from the first and from the second of the two.
    assert due("30 2 * * *", "2026-10-25T00:30+00:00", "2026-10-25T12:00+00:00") == []
    assert due("30 2 * * *", "2026-10-25T01:10+00:00", "2026-10-25T12:00+00:00") == []


@pytest.mark.case("SC-03")
def test_a_time_that_is_left_out_is_due_right_after_the_gap() -> None:
    start, end = "2026-03-28T12:00+00:00", "2026-03-30T12:00+00:00"

    assert due("30 2 * * *", start, end) == ["03-29T01:00Z", "03-30T00:30Z"]
    assert due("15,45 2 * * *", start, end) == ["03-29T01:00Z", "03-30T00:15Z", "03-30T00:45Z"]
    assert due("0 2,3 * * *", start, end) == ["03-29T01:00Z", "03-30T00:00Z", "03-30T01:00Z"]
    gap = next_times("30 2 * * *", datetime.fromisoformat(start), 1, zone=BERLIN)
    assert [slot.local for slot in gap] == ["2026-03-29T03:00"]


def test_a_midnight_that_is_left_out_does_not_lose_the_day() -> None:
    santiago = ZoneInfo("America/Santiago")

    assert due("0 0 * * *", "2026-09-05T12:00Z", "2026-09-06T12:00Z", santiago) == ["09-06T04:00Z"]


def test_a_job_in_steps_follows_time_and_each_of_its_slots_has_a_name_of_its_own() -> None:
    start = datetime(2026, 10, 24, 23, 45, tzinfo=UTC)

    found = next_times("*/30 * * * *", start, 5, zone=BERLIN)

    assert [slot.at - found[0].at for slot in found] == [30 * MINUTE * n for n in range(5)]
    assert [slot.local[11:] for slot in found] == ["02:00", "02:30", "02:00/2", "02:30/2", "03:00"]


@pytest.mark.case("SC-13")
def test_whenever_one_asks_the_next_slot_of_a_day_is_the_same() -> None:
    midnight = datetime(2026, 6, 1, tzinfo=UTC)

    asked = {
        next_times("0 9 * * *", midnight + timedelta(minutes=27 * n), 1)[0].at for n in range(20)
    }

    assert asked == {midnight.replace(hour=9)}


# --- an oracle: every minute of the world's clock, one by one ------------------------------------


@dataclass(frozen=True)
class Counted:
    """What a cron job of plain numbers is due at, found without any arithmetic on local times."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    in_steps: bool = False

    def fits(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours

    def due(self, walls: Sequence[tuple[datetime, datetime]]) -> Iterator[datetime]:
        """`walls`: each minute, and what the clock shows then; the first is only looked back at."""
        shown = set()
        for (_, before), (moment, wall) in pairwise(walls):
            new = wall not in shown
            shown.add(wall)
            if self.fits(wall) and (new or self.in_steps):
                yield moment
            elif not self.in_steps and wall - before > MINUTE:
                left_out = int((wall - before) / MINUTE) - 1
                if any(self.fits(before + MINUTE * (n + 1)) for n in range(left_out)):
                    yield moment


JOBS = (
    Counted("30 2 * * *", frozenset({30}), frozenset({2})),
    Counted("0 0 * * *", frozenset({0}), frozenset({0})),
    Counted("15,45 1-3 * * *", frozenset({15, 45}), frozenset({1, 2, 3})),
    Counted("20 */2 * * *", frozenset({20}), frozenset(range(0, 24, 2)), in_steps=True),
    Counted("*/15 * * * *", frozenset({0, 15, 30, 45}), frozenset(range(24)), in_steps=True),
)


def changes(zone: ZoneInfo) -> Iterator[datetime]:
    """The days of 2026 to 2028 on which the zone changes its clocks."""
    day, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 12, 31, tzinfo=UTC)
    while day < last:
        if day.astimezone(zone).utcoffset() != (day + DAY).astimezone(zone).utcoffset():
            yield day
        day += DAY


def minutes_around(day: datetime, zone: ZoneInfo, days: int) -> list[tuple[datetime, datetime]]:
    start = day - days * DAY
    moments = [start + MINUTE * n for n in range(int((2 * days + 1) * DAY / MINUTE) + 1)]
    return [(one, one.astimezone(zone).replace(tzinfo=None, fold=0)) for one in moments]


@pytest.mark.parametrize("name", ZONES)
def test_around_every_change_of_clocks_the_due_times_are_those_of_a_count_by_minutes(
    name: str,
) -> None:
    zone = ZoneInfo(name)
    for day in changes(zone):
        walls = minutes_around(day, zone, 2)
        for job in JOBS:
            counted = list(job.due(walls))

            found = next_times(job.text, walls[0][0], len(counted) + 1, zone=zone)

            assert [slot.at for slot in found[:-1]] == counted, (name, day, job.text)
            assert found[-1].at > walls[-1][0]
            assert len({slot.local for slot in found}) == len(found)


def test_the_zone_of_the_machine_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    start = datetime(2026, 3, 28, 12, tzinfo=UTC)
    before = next_times("30 2 * * *", start, 3, zone=BERLIN)

    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        assert next_times("30 2 * * *", start, 3, zone=BERLIN) == before
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_end_of_the_calendar_is_an_end() -> None:
    assert next_times("0 0 1 1 *", datetime(9998, 12, 31, tzinfo=UTC), 5)[1:] == []


HOME = "Europe/Berlin"
START = datetime(2026, 10, 23, 9, tzinfo=ZoneInfo(HOME))


def local(when: When, after: datetime, n: int) -> list[str]:
    return [slot.local for slot in next_slots(when, after=after, n=n)]


def test_hours_pass_whatever_the_clocks_do() -> None:
    when = Every(
        count=3,
        unit=RecurrenceUnit.HOUR,
        start=datetime(2026, 10, 24, 22, 30, tzinfo=UTC),
        zone=HOME,
    )

    assert local(when, when.start, 3) == [
        "2026-10-25T02:30/2",
        "2026-10-25T05:30",
        "2026-10-25T08:30",
    ]
    assert local(when, datetime(2026, 1, 1, tzinfo=UTC), 1) == ["2026-10-25T00:30"]


def test_every_second_friday_keeps_its_weeks_whenever_one_asks() -> None:
    when = Every(count=2, unit=RecurrenceUnit.WEEK, start=START, zone=HOME, pattern="0 9 * * 5")

    assert local(when, datetime(2026, 10, 1, tzinfo=UTC), 3) == [
        "2026-10-23T09:00",
        "2026-11-06T09:00",
        "2026-11-20T09:00",
    ]
    assert local(when, datetime(2027, 1, 1, tzinfo=UTC), 1) == ["2027-01-01T09:00"]


@pytest.mark.parametrize(
    ("count", "unit", "pattern", "due"),
    [
        (3, RecurrenceUnit.DAY, "0 9 * * *", ["2026-10-23", "2026-10-26", "2026-10-29"]),
        (2, RecurrenceUnit.MONTH, "0 9 31 * *", ["2026-10-31", "2026-12-31", "2027-08-31"]),
        (3, RecurrenceUnit.MONTH, "0 9 * * 5#1", ["2027-01-01", "2027-04-02", "2027-07-02"]),
        (2, RecurrenceUnit.YEAR, "0 9 * 11 4#4", ["2026-11-26", "2028-11-23", "2030-11-28"]),
    ],
)
def test_longer_steps_pick_days_by_a_pattern(
    count: int, unit: RecurrenceUnit, pattern: str, due: list[str]
) -> None:
    when = Every(count=count, unit=unit, start=START, zone=HOME, pattern=pattern)

    assert [slot[:10] for slot in local(when, datetime(2026, 1, 1, tzinfo=UTC), 3)] == due


@pytest.mark.parametrize("count", [0, -1, 10_001])
def test_a_step_is_bounded(count: int) -> None:
    with pytest.raises(ValueError, match="a step is 1 to"):
        Every(count=count, unit=RecurrenceUnit.HOUR, start=START, zone=HOME)


def test_cron_text_may_begin_later_and_its_beginning_is_due() -> None:
    when = Cron(expression="0 9 * * *", zone=HOME, start=START)

    assert local(when, datetime(2026, 1, 1, tzinfo=UTC), 1) == ["2026-10-23T09:00"]
