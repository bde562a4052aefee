"""What a `When` means in time: its due times, in order. Pure; called by the timetable, by what
shows next runs, and by the reader of plain words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import count, islice
from typing import assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory.records.errors import Permanent
from memory.records.recurrence import At, Cron, Every, RecurrenceUnit, When
from scheduler.clock.cron import Slot, cron_slots, slot_of, wall_moment

_TICK = timedelta(microseconds=1)
LEAP_FROM = 4
"""Over so many periods without a run it is quicker to begin anew than to look at each day."""
MISSES_MAX = 1_000
"""After so many periods in a row without a run there is none any more."""


class ZoneUnknown(Permanent):
    """A time zone that this machine does not know."""


def zone_named(name: str) -> ZoneInfo:
    """Return the zone of an IANA name. Raise ZoneUnknown."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ZoneUnknown(
            f"The time zone {name[:64]!r} is not known here. It takes a name such as "
            "Europe/Berlin or America/New_York."
        ) from error


def slots(when: When, *, after: datetime) -> Iterator[Slot]:
    """Return the due times later than an aware moment. Raise ZoneUnknown, CronWrong."""
    zone = zone_named(when.zone)
    match when:
        case At():
            return _single(when, zone, after)
        case Cron():
            return cron_slots(when.expression, zone=zone, after=_not_before(when.start, after))
        case Every():
            return _passing(when, zone, after) if when.unit.passes else _stepped(when, zone, after)
    assert_never(when)


def next_slots(when: When, *, after: datetime, n: int) -> Sequence[Slot]:
    """Return the next `n` due times, fewer where there are no more. Raise as `slots`."""
    return list(islice(slots(when, after=after), n))


def _single(when: At, zone: ZoneInfo, after: datetime) -> Iterator[Slot]:
    if when.moment.astimezone(UTC) > after.astimezone(UTC):
        yield slot_of(when.moment, zone)


def _not_before(start: datetime | None, after: datetime) -> datetime:
    """`start` itself is due."""
    if start is None:
        return after
    return max(after.astimezone(UTC), start.astimezone(UTC) - _TICK)


def _passing(when: Every, zone: ZoneInfo, after: datetime) -> Iterator[Slot]:
    """Steps of time as it passes: no change of clocks makes one longer or shorter."""
    step = timedelta(**{f"{when.unit}s": when.count})
    start = when.start.astimezone(UTC)
    gone = (after.astimezone(UTC) - start) // step + 1 if after >= start else 0
    for number in count(gone):
        try:
            moment = start + step * number
        except OverflowError:  # the calendar ends with the year 9999
            return
        yield slot_of(moment, zone)


def _stepped(when: Every, zone: ZoneInfo, after: datetime) -> Iterator[Slot]:
    first = _period(when.start.astimezone(zone).date(), when.unit)
    begin: datetime | None = _not_before(when.start, after)
    misses = 0
    while begin is not None and misses < MISSES_MAX:
        found, begin = cron_slots(when.pattern, zone=zone, after=begin), None
        for slot in found:
            number = _period(date.fromisoformat(slot.local[:10]), when.unit)
            ahead = (first - number) % when.count
            if ahead == 0:
                misses = 0
                yield slot
                continue
            misses += 1
            if ahead > LEAP_FROM or misses >= MISSES_MAX:
                begin = _before(number + ahead, when.unit, zone)
                break


def _before(number: int, unit: RecurrenceUnit, zone: ZoneInfo) -> datetime | None:
    """Just before the first moment of a period; None past the end of the calendar."""
    try:
        midnight = datetime.combine(_first_day(number, unit), time())
    except (ValueError, OverflowError):
        return None
    return wall_moment(midnight, zone).astimezone(UTC) - _TICK


def _period(day: date, unit: RecurrenceUnit) -> int:
    """Return the number of the day, week (from Monday), month or year that holds a day."""
    match unit:
        case RecurrenceUnit.DAY:
            return day.toordinal()
        case RecurrenceUnit.WEEK:
            return (day.toordinal() - 1) // 7
        case RecurrenceUnit.MONTH:
            return day.year * 12 + day.month
        case RecurrenceUnit.YEAR:
            return day.year
        case _:
            raise ValueError(f"{unit} is not counted by calendar")


def _first_day(number: int, unit: RecurrenceUnit) -> date:
    """Of a period by its number. Raises ValueError, OverflowError past the end of the calendar."""
    match unit:
        case RecurrenceUnit.DAY:
            return date.fromordinal(number)
        case RecurrenceUnit.WEEK:
            return date.fromordinal(number * 7 + 1)
        case RecurrenceUnit.MONTH:
            return date((number - 1) // 12, (number - 1) % 12 + 1, 1)
        case _:
            return date(number, 1, 1)
