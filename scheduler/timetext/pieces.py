"""What a phrase is made of, before it is known what it means as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time

from memory.records.recurrence import RecurrenceUnit


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
    """Several times of one day."""

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
class Weekday:
    """Monday is 0. `which` is "", this, next or last."""

    weekday: int
    which: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Date:
    """Days of a month, of any or of a named one; `orders` are further ways to read digits."""

    days: tuple[int, ...]
    month: int = 0
    year: int = 0
    orders: tuple[date, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nth:
    """Weekdays by their place in a month, as (n, weekday): 1 to 5, -1 is the last one."""

    pairs: tuple[tuple[int, int], ...]
    month: int = 0
    year: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A day by its place in a month: 1 is the first one, -1 the last."""

    day: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMonth:
    """The words "of the month", which say neither of which one nor of every one."""


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
class From:
    """Not before this day."""

    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """Not on or after this day."""

    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """For so many days, counted from the first run."""

    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatCount:
    """So often. Not `sure`: in all, or each time?"""

    count: int
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Except:
    """Not in these months, nor on these weekdays (Monday is 0)."""

    months: tuple[int, ...] = ()
    weekdays: tuple[int, ...] = ()


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


DayPiece = Day | Weekday | Date | Nth
_Repeated = Edge | OfMonth | RepeatStep | Weekdays | From | Until | Lasting | RepeatCount | Except
Piece = (
    TimeOfDay | Clocks | TimeSpan | PartOfDay | Moment | DayPiece | _Repeated | Zone | Ask | Refuse
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingContext:
    """When and where something is said: `now` is aware, in the person's zone."""

    now: datetime

    @property
    def today(self) -> date:
        """Where the person is."""
        return self.now.date()


Found = Iterator[tuple[int, Piece]]
"""Pieces that begin at a place, each with where it ends."""

Rule = Callable[[str, int, ReadingContext], Found]
