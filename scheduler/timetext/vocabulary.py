"""The vocabulary of times: the pieces of which a phrase is made, before it is known what it means
as a whole; numbers, units and names as people write them, and how times are said back.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

from memory.records.jobs import RecurrenceUnit

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
        """Return whether its months have such days; 29 February is one where the year is left
        open."""
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


# --- numbers ------------------------------------------------------------------------------------

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINAL_ONES = (
    *("zeroth", "first", "second", "third", "fourth", "fifth", "sixth"),
    *("seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth"),
    *("fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
)
_VALUES: dict[str, Fraction] = {
    **{word: Fraction(number) for number, word in enumerate(ONES)},
    **{word: Fraction(number) for number, word in enumerate(_ORDINAL_ONES)},
    **{word: Fraction(10 * number) for number, word in enumerate(TENS, 2)},
    **{"twentieth": Fraction(20), "thirtieth": Fraction(30)},
    **{"couple": Fraction(2), "few": Fraction(3), "half": Fraction(1, 2)},
    **{"quarter": Fraction(1, 4), "three quarters": Fraction(3, 4)},
}

WORD = rf"(?:(?:{'|'.join(TENS)})(?:[- ](?:{'|'.join(ONES[1:10])}))?|{'|'.join(ONES)})"
NUMBER = rf"(?:\d{{1,4}}|{WORD})"
_SOME = (
    rf"half an?|(?:a )?quarter of an?|three quarters of an?|{WORD}|(?:a )?couple(?: of)?"
    r"|(?:a )?few|an?"
)
COUNT = rf"(?:\d{{1,4}}(?:\.\d{{1,2}})?|\d/\d|(?:{_SOME})\b)(?: and (?:an? )?half(?: an)?)?"
ORDINAL = (
    r"(?:\d{1,3}(?:st|nd|rd|th)"
    rf"|(?:twenty|thirty)[- ](?:{'|'.join(_ORDINAL_ONES[1:10])})"
    rf"|{'|'.join(_ORDINAL_ONES[1:])}|twentieth|thirtieth)"
)

_UNITS = {
    "second": r"sec(?:ond)?s?",
    "minute": r"min(?:ute)?s?|m(?=\b)|'",
    "hour": r"h(?:ou)?rs?|h(?=\b)",
    "day": r"days?|d(?=\b)",
    "week": r"w(?:ee)?ks?",
    "fortnight": r"fortnights?",
    "month": r"months?",
    "quarter": r"quarters?|qtrs?",
    "year": r"y(?:ea)?rs?",
}
UNIT = rf"(?:{'|'.join(_UNITS.values())})"

_MONTHS = (
    *("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?"),
    *("aug(?:ust)?", "sep(?:t(?:ember)?)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"),
)
MONTH_GLUED = rf"(?:{'|'.join(_MONTHS)})"
MONTH = rf"(?:{MONTH_GLUED}\b\.?)"

_WEEKDAYS = (
    *("mon(?:day)?", "tue(?:s(?:day)?)?", "wed(?:s|nesday|nsday)?", "thu(?:rs?(?:day)?)?"),
    *("fri(?:day)?", "sat(?:urday)?", "sun(?:day)?"),
)
WEEKDAY = rf"(?:(?:{'|'.join(_WEEKDAYS)})\b\.?)"
WEEKDAYS = rf"(?:(?:{'|'.join(f'{day}s?' for day in _WEEKDAYS)})\b\.?)"

YEAR = r"(?:[12]\d{3})"

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def value(text: str) -> Fraction:
    """Return the value of a COUNT, a NUMBER or an ORDINAL: "21st", "half an", "2 and a half"; "a"
    and "the" are one, a few are three."""
    said, _, half = " ".join(text.split()).partition(" and ")
    more = Fraction(1, 2) if half else Fraction(0)
    if said in {"a", "an", "the"}:
        return 1 + more
    if digits := re.match(r"\d+(?:[./]\d+)?", said):
        return (Fraction(0) if said.endswith("/0") else Fraction(digits[0])) + more
    if said.startswith("three quarters"):
        return _VALUES["three quarters"] + more
    words = re.split(r"[-\s]", said)
    return sum((_VALUES[word] for word in words if word in _VALUES), more)


def whole(text: str) -> int:
    """Return the value of a NUMBER or an ORDINAL."""
    return int(value(text))


def unit(text: str) -> str:
    """Return the unit's name in full: second, minute, …, fortnight, quarter, year."""
    return next(name for name, pattern in _UNITS.items() if re.fullmatch(pattern, text))


def month(text: str) -> int:
    """Return the number of a month: January is 1."""
    return [name[:3].lower() for name in MONTH_NAMES].index(text[:3]) + 1


def weekday(text: str) -> int:
    """Return the number of a weekday: Monday is 0."""
    return [name[:3].lower() for name in DAY_NAMES].index(text[:3])


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of whole words, in which a space is any white space."""
    spaced = pattern.replace(" ", r"\s+")
    return re.compile(rf"(?<![\w:/.])(?:{spaced})(?!\w)(?!['’]\w)")


Make = Callable[[re.Match[str], ReadingContext], Piece | None]


def rule(pattern: str, make: Make) -> Rule:
    """Return a rule of one pattern; `make` may decline."""
    searched = compiled(pattern)

    def found(text: str, start: int, scope: ReadingContext) -> Found:
        match = searched.match(text, start)
        if match and (piece := make(match, scope)) is not None:
            yield match.end(), piece

    return found


# --- saying -------------------------------------------------------------------------------------
#
# How times are said back, so that a person sees how they were read.


def day_words(day: date) -> str:
    """Return `Tuesday 1 December 2026`: in English, whatever the machine's locale."""
    return f"{DAY_NAMES[day.weekday()]} {day.day} {MONTH_NAMES[day.month - 1]} {day.year}"


def moment_words(moment: datetime) -> str:
    """Return `on Tuesday 1 December 2026 at 17:00`; with seconds where it has some."""
    return f"on {day_words(moment)} at {time_words(moment.time())}"


def time_words(at: time) -> str:
    """Return `17:00`; with seconds where it has some."""
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"


def ordinal_words(number: int) -> str:
    """Return `1st`, `2nd`; of -1 `last`."""
    if number < 0:
        return "last" if number == -1 else f"{ordinal_words(-number)} to last"
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(words: Sequence[str]) -> str:
    """Return words with commas, and an "and" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
