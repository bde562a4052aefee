"""What a phrase is made of, before it is known what it means as a whole."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory.records.recurrence import RecurrenceUnit

YEARS_AHEAD = 28
"""After so many years each date has met every weekday."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingContext:
    """When and where something is said: `now` is aware, on the wall clock of `zone`."""

    now: datetime

    @property
    def today(self) -> date:
        """Where the person is."""
        return self.now.date()

    @property
    def zone(self) -> ZoneInfo:
        """That of `now`."""
        assert isinstance(self.now.tzinfo, ZoneInfo)
        return self.now.tzinfo


# --- times of the day ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOfDay:
    """A time of day. Not `exact`: it says neither am nor pm, nor is it written as one of 24 hours.

    `by_half`: it says am or pm. `bare` is a mere number, which is a time only beside other words.
    `ends` is a midnight by name, which ends a day rather than beginning it.
    """

    hour: int
    minute: int = 0
    second: int = 0
    exact: bool = False
    by_half: bool = False
    bare: bool = False
    ends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """One or several times of one day."""

    clocks: tuple[TimeOfDay, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """From one time of day to another."""

    first: TimeOfDay
    last: TimeOfDay


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfDay:
    """A part of the day, and the time that stands for it. `today`: this one."""

    name: str
    clock: time
    today: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An aware moment, to the second."""

    at: datetime


# --- days ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day, or several of which the first is the likeliest. `ask` says why one must be asked.

    `clock` is the time that goes with it where none is said. `period` is the first day of a longer
    time that was named; `today` is said of the day itself.
    """

    days: tuple[date, ...]
    ask: str = ""
    clock: time | None = None
    period: bool = False
    today: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPattern:
    """Days that fit all that is named. Monday is 0; `days` count within a month, and -1 is its
    last one; `places` are (n, weekday) within a month, and (-1, 4) is its last Friday. One pattern
    serves both for the next such day and for all of them.
    """

    weekdays: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    months: tuple[int, ...] = ()
    year: int = 0

    @property
    def is_possible(self) -> bool:
        """Whether its months have such days; 29 February is one where the year is left open."""
        longest = min(monthrange(self.year or 2000, month)[1] for month in self.months or (1,))
        return all(1 <= abs(day) <= longest for day in self.days) and all(
            1 <= abs(place) <= 5 for place, _ in self.places
        )

    def fits(self, day: date) -> bool:
        """Return whether a day is one of these."""
        last = monthrange(day.year, day.month)[1]
        from_start = (day.day - 1) // 7 + 1, day.weekday()
        from_end = (day.day - 1 - last) // 7, day.weekday()
        return (
            self.year in {0, day.year}
            and (not self.months or day.month in self.months)
            and (not self.weekdays or day.weekday() in self.weekdays)
            and (not self.days or day.day in self.days or day.day - 1 - last in self.days)
            and (not self.places or from_start in self.places or from_end in self.places)
        )

    def first(self, start: date) -> date | None:
        """Return the first such day from `start` on; of a year that is named also one before."""
        if self.year:
            start = date(self.year, 1, 1)
        month = start.replace(day=1)
        for _ in range(12 * (1 if self.year else YEARS_AHEAD)):
            if not self.months or month.month in self.months:
                for number in range(monthrange(month.year, month.month)[1]):
                    day = month + timedelta(days=number)
                    if day >= start and self.fits(day):
                        return day
            month = moved(month, months=1)
        return None

    def joined(self, other: DayPattern) -> DayPattern | None:
        """Return what fits both; None where both say the same kind of thing."""
        mine, theirs = self._named(), other._named()
        return (
            None
            if mine & theirs
            else DayPattern(
                weekdays=self.weekdays or other.weekdays,
                days=self.days or other.days,
                places=self.places or other.places,
                months=self.months or other.months,
                year=self.year or other.year,
            )
        )

    def _named(self) -> set[str]:
        return {name for name in self.__slots__ if getattr(self, name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDay:
    """A day by its name or number, which may also be said of each week, month or year: Friday, 3
    March, the last day. Several `patterns` are several ways to read it, the usual one first.

    `which` stands before a weekday: this, next or last. `of_each`: said of months in general.
    """

    patterns: tuple[DayPattern, ...]
    which: str = ""
    of_each: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMonth:
    """The words "of the month", which say neither of which one nor of every one."""


# --- repetition ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatStep:
    """Every so many units. `by_place`: only a place was said to come again, as in "every first
    Monday", of a month or of the one that is named."""

    count: int
    unit: RecurrenceUnit
    by_place: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekdays:
    """On these days of a week (Monday is 0), of every `weeks`-th. `sure`: repetition was said."""

    weekdays: tuple[int, ...]
    weeks: int = 1
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatLimit:
    """Bounds of a repetition: not before `start`, not on or after `until`, for so many days from
    the first run on, so many `runs` (`runs_unsure`: in all, or each time?), and not in some
    months or on some weekdays (Monday is 0)."""

    start: date | None = None
    until: date | None = None
    lasting: int | None = None
    runs: int | None = None
    runs_unsure: bool = False
    months_out: tuple[int, ...] = ()
    weekdays_out: tuple[int, ...] = ()


# --- the rest -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """Another time zone than the person's, by its IANA name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Words that leave open what is meant: asked about, whatever else is said."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Understood, and cannot be kept."""

    why: str


Piece = (
    Clocks | TimeSpan | PartOfDay | Moment | Day | NamedDay | OfMonth
    | RepeatStep | Weekdays | RepeatLimit | Zone | Ask | Refuse
)  # fmt: skip

Found = Iterator[tuple[int, Piece]]
"""Pieces that begin at a place, each with where it ends."""

Rule = Callable[[str, int, ReadingContext], Found]


def moved(day: date, *, months: int) -> date:
    """Return the same day of another month, or its last one. Raise OverflowError past the year
    9999."""
    year, index = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(f"there is no year {year}")
    return date(year, index + 1, min(day.day, monthrange(year, index + 1)[1]))
