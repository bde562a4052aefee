"""Due times of every kind of `When`, and their form for JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memory.records.recurrence import At, Cron, Every, RecurrenceUnit, When, from_json, to_json
from scheduler.clock.recurrence import ZoneUnknown, next_slots

BERLIN = "Europe/Berlin"
START = datetime(2026, 10, 23, 9, tzinfo=ZoneInfo(BERLIN))

EVERY_KIND: tuple[When, ...] = (
    At(moment=START, zone=BERLIN),
    Every(count=90, unit=RecurrenceUnit.MINUTE, start=START, zone=BERLIN),
    Every(count=2, unit=RecurrenceUnit.WEEK, start=START, zone=BERLIN, pattern="0 9 * * 5"),
    Cron(expression="0 9 * * MON", zone=BERLIN),
    Cron(expression="0 9 * * MON", zone=BERLIN, start=START),
)


def local(when: When, after: datetime, n: int) -> list[str]:
    return [slot.local for slot in next_slots(when, after=after, n=n)]


@pytest.mark.parametrize("when", EVERY_KIND, ids=repr)
def test_a_when_comes_back_from_json_as_it_was(when: When) -> None:
    assert from_json(json.loads(json.dumps(to_json(when)))) == when


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "kind"),
        ({"kind": "sometimes", "zone": BERLIN}, "at, every, cron"),
        ({"kind": "cron", "zone": BERLIN, "cron": 5}, "expression: 5"),
        ({"kind": "at", "zone": BERLIN, "at": "soon"}, "moment: "),
        ({"kind": "at", "zone": BERLIN, "at": "2026-10-23T09:00"}, "offset"),
        ({"kind": "every", "zone": BERLIN, "count": "two"}, "count"),
        (
            {"kind": "every", "zone": BERLIN, "count": 0, "unit": "hour", "start": "2026-10-23Z"},
            "start",
        ),
    ],
)
def test_what_is_no_when_is_refused_with_the_key(data: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        from_json(data)


def test_a_step_is_bounded_and_has_a_pattern_where_days_are_counted() -> None:
    for count in (0, -1, 10_001):
        with pytest.raises(ValueError, match="a step is 1 to"):
            Every(count=count, unit=RecurrenceUnit.HOUR, start=START, zone=BERLIN)
    with pytest.raises(ValueError, match="pattern"):
        Every(count=2, unit=RecurrenceUnit.DAY, start=START, zone=BERLIN)


def test_once_is_due_once() -> None:
    when = At(moment=START, zone="America/New_York")

    assert local(when, datetime(2026, 10, 1, tzinfo=UTC), 3) == ["2026-10-23T03:00"]
    assert local(when, START, 3) == []


def test_hours_pass_whatever_the_clocks_do() -> None:
    when = Every(
        count=3,
        unit=RecurrenceUnit.HOUR,
        start=datetime(2026, 10, 24, 22, 30, tzinfo=UTC),
        zone=BERLIN,
    )

    assert local(when, when.start, 3) == [
        "2026-10-25T02:30/2",
        "2026-10-25T05:30",
        "2026-10-25T08:30",
    ]
    assert local(when, datetime(2026, 1, 1, tzinfo=UTC), 1) == ["2026-10-25T00:30"]


def test_every_second_friday_keeps_its_weeks_whenever_one_asks() -> None:
    when = Every(count=2, unit=RecurrenceUnit.WEEK, start=START, zone=BERLIN, pattern="0 9 * * 5")

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
    when = Every(count=count, unit=unit, start=START, zone=BERLIN, pattern=pattern)

    assert [slot[:10] for slot in local(when, datetime(2026, 1, 1, tzinfo=UTC), 3)] == due


def test_cron_text_may_begin_later_and_its_beginning_is_due() -> None:
    when = Cron(expression="0 9 * * *", zone=BERLIN, start=START)

    assert local(when, datetime(2026, 1, 1, tzinfo=UTC), 1) == ["2026-10-23T09:00"]


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(ZoneUnknown, match="Mars/Olympus"):
        local(Cron(expression="0 9 * * *", zone="Mars/Olympus"), START, 1)
