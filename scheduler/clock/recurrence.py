"""What a `When` means in time: its due times, in order. Pure; called by the timetable, by what
shows next runs, and by the reader of plain words.

Cron text is read with the place of what is wrong, and turned into moments in a zone. The only file
that knows cronsim. It is asked for times on a wall clock that is never changed; what becomes of
them where a zone changes its clocks is decided here:

- A job for fixed times (neither minutes nor hours begin with `*`): a time that is left out runs
  once, right after the gap; one that comes twice runs the first time.
- A job in steps (`*/15 * * * *`, `0 * * * *`) follows time as it passes: what is left out is left
  out, what comes twice runs twice. This is how Debian's cron does it.

Several times that fall on one moment are one run.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import count, islice
from typing import NamedTuple, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from memory.records.errors import Permanent
from memory.records.jobs import At, Cron, Every, RecurrenceUnit, When

CHARS_MAX = 256
SET_BACK_MAX = timedelta(hours=3)

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class CronWrong(Permanent):
    """No cron text, or one that never comes true. `position` counts characters from 0."""

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class Slot:
    """One due time. `local` is the wall clock of the job's zone, and the key of its run: no slot
    runs twice. The second of two equal wall clock times ends in `/2`. `at` is in UTC, for in one
    zone Python compares and subtracts what clocks show.
    """

    local: str
    at: datetime


class _Field(NamedTuple):
    """A field of cron text: what is allowed in it, and its longest step."""

    allowed: str
    step_max: int


_FIELDS = (
    _Field("minute is 0 to 59, or *", 59),
    _Field("hour is 0 to 23, or *", 23),
    _Field(
        "day of the month is 1 to 31, L for the last one, LW for the last workday, or *", 30
    ),
    _Field("month is 1 to 12 or JAN to DEC, or *", 11),
    _Field(
        "weekday is 0 to 7 or SUN to SAT (0 and 7 are Sunday), 5#2 for the second Friday, 5L for "
        "the last one, or *", 7
    ),
)  # fmt: skip


_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall clock


def read_cron(text: str) -> str:
    """Return the five fields, in capitals, one space between them; a nickname becomes its fields.

    Raise CronWrong: what is wrong, at which character, and what is allowed there.
    """
    if len(text) > CHARS_MAX:
        raise CronWrong(f"Cron text has at most {CHARS_MAX} characters.", position=CHARS_MAX)
    words = [(word.start(), word[0].upper()) for word in re.finditer(r"\S+", text)]
    if len(words) == 1 and words[0][1].startswith("@"):
        position, word = words[0]
        if found := NICKNAMES.get(word.lower()):
            return found
        raise CronWrong(
            f"{word.lower()[:40]!r} is not known: there are {', '.join(NICKNAMES)}.",
            position=position,
        )
    if len(words) != len(_FIELDS):
        position = words[len(_FIELDS)][0] if len(words) > len(_FIELDS) else len(text.rstrip())
        raise CronWrong(
            f"Cron text has five fields: minute, hour, day of the month, month, weekday. Here are "
            f"{len(words)}.",
            position=position,
        )
    for number, (position, word) in enumerate(words):
        _check_field(number, word, position)
    read = " ".join(word for _, word in words)
    try:
        first = next(CronSim(read, _SOME_DAY), None)
    except CronSimError:
        first = None
    if first is None:  # such as 31 February
        position, word = words[2]
        raise CronWrong(
            f"{_place(position)}: {word[:20]!r} never comes, for the months that are named have no "
            "such day.",
            position=position,
        )
    return read


def is_cron(text: str) -> bool:
    """Return whether cron text was meant: a nickname, or five words of its signs and no other."""
    words = text.split()
    if len(words) == 1:
        return words[0].startswith("@")
    return len(words) >= 4 and all(_LIKE_A_FIELD.fullmatch(word) for word in words)


_LIKE_A_FIELD = re.compile(
    rf"(?:[\d*,/#-]|\b(?:{'|'.join((*MONTHS, *WEEKDAYS))})(?![a-z])|LW?\b)+", re.IGNORECASE
)


def cron_slots(expression: str, *, zone: ZoneInfo, after: datetime) -> Iterator[Slot]:
    """Return the due times after an aware moment, in order, each moment once; ends after some 50
    years in which there is none. Raise CronWrong at the first one.
    """
    expression = read_cron(expression)
    in_steps = any(word.startswith("*") for word in expression.split()[:2])
    # A little earlier: where clocks are set back, what they showed before `after` comes again.
    start = after.astimezone(zone).replace(tzinfo=None) - SET_BACK_MAX
    waiting: list[datetime] = []
    last = after.astimezone(UTC)
    for wall in _walls(expression, start):
        first = min(_readings(wall, zone))
        while waiting and waiting[0] < first:
            if (moment := heapq.heappop(waiting)) > last:
                last = moment
                yield slot_of(moment, zone)
        for moment in _passing(wall, zone) if in_steps else [_once(wall, zone)]:
            heapq.heappush(waiting, moment)
    for moment in sorted({moment for moment in waiting if moment > last}):
        yield slot_of(moment, zone)


def slot_of(moment: datetime, zone: ZoneInfo) -> Slot:
    """Return the slot of a moment, to the minute, or to the second where it has seconds."""
    local = moment.astimezone(zone)
    exact = "seconds" if local.second else "minutes"
    written = local.replace(tzinfo=None, fold=0).isoformat(timespec=exact)
    return Slot(local=f"{written}{'/2' if local.fold else ''}", at=moment.astimezone(UTC))


# --- reading -------------------------------------------------------------------------------------


def _check_field(number: int, word: str, position: int) -> None:
    """Raise CronWrong with the place of the term that is wrong. cronsim says which are, but for a
    step that is longer than its field, which would never be taken."""
    field = _FIELDS[number]
    for term in word.split(","):
        alone = [*"*" * number, term, *"*" * (len(_FIELDS) - 1 - number)]
        first, slash, step = term.partition("/")
        is_step = step.isdecimal() and int(step) <= field.step_max and not first.startswith("L")
        is_right = is_step or not slash
        try:
            CronSim(" ".join(alone), _SOME_DAY)
        except CronSimError:
            is_right = False
        if not is_right:
            found = repr(term[:20]) if term else "nothing"
            raise CronWrong(
                f"{_place(position)}: {found}. The field {field.allowed}. A range goes upwards, "
                f"and a step is a whole number from 1 to {field.step_max}.",
                position=position,
            )
        position += len(term) + 1


def _place(position: int) -> str:
    return f"At character {position + 1}"


# --- firing --------------------------------------------------------------------------------------


def _walls(expression: str, start: datetime) -> Iterator[datetime]:
    """Return naive wall clock times after `start`."""
    try:
        yield from CronSim(expression, start)
    except (OverflowError, ValueError):  # the calendar ends with the year 9999
        return


def _readings(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return what it is in UTC by the rules before and after a change of the clocks."""
    before, after = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return before, after


def _passing(wall: datetime, zone: ZoneInfo) -> Sequence[datetime]:
    """Every moment at which the clock shows this: none, one or two."""
    return [
        moment
        for moment in dict.fromkeys(_readings(wall, zone))
        if moment.astimezone(zone).replace(tzinfo=None, fold=0) == wall
    ]


def _once(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the first moment at which the clock shows this, else the end of the gap that swallowed
    it."""
    if found := _passing(wall, zone):
        return min(found)
    late, early = _readings(wall, zone)
    # The clock is changed between the two: halve until the minute is found.
    while late - early > timedelta(minutes=1):
        middle = early + timedelta(minutes=(late - early) // timedelta(minutes=2))
        if middle.astimezone(zone).replace(tzinfo=None) < wall:
            early = middle
        else:
            late = middle
    return late


def wall_moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment of a naive wall clock time, by the rules for fixed times, in the zone."""
    return _once(wall, zone).astimezone(zone)


# --- recurrence ---------------------------------------------------------------------------------

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
            is_ahead = when.moment.astimezone(UTC) > after.astimezone(UTC)
            return iter([slot_of(when.moment, zone)] if is_ahead else [])
        case Cron():
            return cron_slots(when.expression, zone=zone, after=_not_before(when.start, after))
        case Every():
            return _in_steps(when, zone, after) if when.unit.passes else _stepped(when, zone, after)
    assert_never(when)


def next_slots(when: When, *, after: datetime, n: int) -> Sequence[Slot]:
    """Return the next `n` due times, fewer where there are no more. Raise as `slots`."""
    return list(islice(slots(when, after=after), n))


def _not_before(start: datetime | None, after: datetime) -> datetime:
    """`start` itself is due."""
    if start is None:
        return after
    return max(after.astimezone(UTC), start.astimezone(UTC) - _TICK)


def _in_steps(when: Every, zone: ZoneInfo, after: datetime) -> Iterator[Slot]:
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
                try:
                    midnight = datetime.combine(_first_day(number + ahead, when.unit), time())
                except (ValueError, OverflowError):  # past the end of the calendar
                    return
                begin = wall_moment(midnight, zone).astimezone(UTC) - _TICK
                break


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
