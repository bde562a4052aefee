"""On which days a repetition is due: of a week, a month or a year."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.records.recurrence import RecurrenceUnit
from memory.records.schedule import NoTime, TimeAnswer, TimeAsked
from scheduler.timetext.numbers import DAY_NAMES, MONTH_NAMES, listed, ordinal_words
from scheduler.timetext.pieces import (
    Clocks,
    Date,
    Day,
    Edge,
    Except,
    From,
    Lasting,
    Nth,
    OfMonth,
    PartOfDay,
    Piece,
    ReadingContext,
    RepeatCount,
    RepeatStep,
    TimeOfDay,
    Until,
    Weekday,
    Weekdays,
)
from scheduler.timetext.repeats import WEEKEND, WORKDAYS

EXAMPLE = "Say it as in 'every weekday at 8', 'every second Friday' or 'on the 15th of each month'."

_BESIDE = (
    TimeOfDay,
    Clocks,
    PartOfDay,
    From,
    Until,
    Lasting,
    RepeatCount,
    Except,
    RepeatStep,
    OfMonth,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Every `count`-th `unit`, on these days. `days` count within a month, -1 is its last one;
    `places` are (n, weekday) within a month, -1 is the last one. Monday is 0. With `ask` they are a
    proposal: the day was left open, or `instead` may be meant.
    """

    count: int = 1
    unit: RecurrenceUnit = RecurrenceUnit.DAY
    weekdays: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    months: tuple[int, ...] = ()
    ask: str = ""
    instead: Chosen | None = None

    def fields(self) -> str:
        """The last three fields of cron text."""
        days = ",".join("L" if day < 0 else str(day) for day in self.days) or "*"
        months = ",".join(str(month) for month in self.months) or "*"
        places = [
            f"{(day + 1) % 7}L" if place < 0 else f"{(day + 1) % 7}#{place}"
            for place, day in self.places
        ]
        weekdays = [str(day) for day in sorted((day + 1) % 7 for day in self.weekdays)]
        if self.weekdays == WORKDAYS:
            weekdays = ["1-5"]
        return f"{days} {months} {','.join([*weekdays, *places]) or '*'}"

    def words(self) -> str:
        """Every second week on Friday."""
        step = f"every {self.unit}" if self.count == 1 else f"every {self.count} {self.unit}s"
        days = self._days()
        plain = self.count == 1 and self.unit in {RecurrenceUnit.DAY, RecurrenceUnit.WEEK}
        if self.weekdays and plain:
            step = f"every {days}"
        elif days:
            step += f" on {days}"
        if self.months:
            months = listed([MONTH_NAMES[month - 1] for month in self.months])
            step += f" of {months}" if days else f" in {months}"
        if any(day > 28 for day in self.days) and len(self.months) != 1:
            step += " (left out where a month has no such day)"
        return step

    def _days(self) -> str:
        if self.weekdays == WORKDAYS:
            return "weekday (Monday to Friday)" if self.count == 1 else "Monday to Friday"
        if self.weekdays == WEEKEND:
            return "Saturday and Sunday"
        days = [DAY_NAMES[day] for day in self.weekdays]
        days += [f"the {ordinal_words(day)}{' day' if day < 0 else ''}" for day in self.days]
        days += [f"the {ordinal_words(place)} {DAY_NAMES[day]}" for place, day in self.places]
        return listed(days) if days else ""


def chosen(
    step: RepeatStep | None, pieces: Sequence[Piece], scope: ReadingContext
) -> Chosen | TimeAnswer | None:
    """The days; a question or a refusal where they are left open; None where they make no sense."""
    selecting = [one for one in pieces if not isinstance(one, _BESIDE)]
    lists = [one for one in selecting if isinstance(one, Weekdays)]
    others = [one for one in selecting if not isinstance(one, Weekdays)]
    if any(isinstance(one, Day) for one in others) and len(others) == 1:
        return _of_day(others[0])
    # "Once a week on Sunday": one weekday, in the singular.
    if step and step.unit is RecurrenceUnit.WEEK and len(others) == 1 and not lists:
        found = others[0]
        if isinstance(found, Weekday) and not found.which:
            return Chosen(count=step.count, unit=RecurrenceUnit.WEEK, weekdays=(found.weekday,))
    if len(lists) > 1 or (lists and others):
        return None
    if lists and any(isinstance(one, OfMonth) for one in pieces):
        return None
    if lists:
        return _of_weekdays(lists[0], step)
    assert step is not None
    if (
        step.unit is RecurrenceUnit.DAY
        and step.count > 1
        and any(isinstance(o, OfMonth) for o in pieces)
    ):
        return _day_of_month(step) if not others else None
    return _of_step(step, others, scope)


def _of_day(piece: Piece) -> TimeAnswer | None:
    assert isinstance(piece, Day)
    if piece.period:
        return None
    return NoTime(why=f"A day that is not the same each time cannot be repeated. {EXAMPLE}")


def _of_weekdays(days: Weekdays, step: RepeatStep | None) -> Chosen | TimeAnswer | None:
    if step is None:
        if not days.sure:
            names = listed([DAY_NAMES[day] for day in days.weekdays])
            ask = f"Every {names}, or only the next time?"
            return Chosen(unit=RecurrenceUnit.WEEK, weekdays=days.weekdays, ask=ask)
        return Chosen(count=days.weeks, unit=RecurrenceUnit.WEEK, weekdays=days.weekdays)
    if step.unit is RecurrenceUnit.WEEK and 1 in {step.count, days.weeks}:
        count = max(step.count, days.weeks)
        return Chosen(count=count, unit=RecurrenceUnit.WEEK, weekdays=days.weekdays)
    if step.unit is RecurrenceUnit.DAY and step.count == days.weeks == 1:
        return Chosen(unit=RecurrenceUnit.WEEK, weekdays=days.weekdays)
    if step.unit is RecurrenceUnit.MONTH:
        return _which_of_month(days.weekdays[0])
    return None


def _which_of_month(weekday: int) -> TimeAsked:
    name = DAY_NAMES[weekday]
    return TimeAsked(
        text=f"Which {name} of the month? Say it as in 'the first {name} of each month', or "
        f"'every {name}' for all."
    )


def _of_step(
    step: RepeatStep, others: Sequence[Piece], scope: ReadingContext
) -> Chosen | TimeAnswer | None:
    start = Chosen(count=step.count, unit=step.unit)
    if not others:
        return start if step.unit is RecurrenceUnit.DAY else _which_day(step, scope)
    if step.unit not in {RecurrenceUnit.MONTH, RecurrenceUnit.YEAR}:
        return None
    if step.unit is RecurrenceUnit.MONTH and len(others) == 1 and isinstance(others[0], Weekday):
        return _which_of_month(others[0].weekday)
    found = _merged(start, others)
    if found is None:
        return None
    if step.unit is RecurrenceUnit.YEAR and not found.months:
        return TimeAsked(text=f"In which month? {EXAMPLE}")
    if step.unit is RecurrenceUnit.MONTH and found.months:
        return _in_its_month(found, step)
    return found


def _in_its_month(found: Chosen, step: RepeatStep) -> Chosen:
    """31 January every month: each month's, or only that one?"""
    years, rest = divmod(step.count, 12)
    yearly = replace(found, count=1 if rest else years, unit=RecurrenceUnit.YEAR)
    if step.by_place or not rest:
        return yearly
    if step.count == 1 or 12 % step.count:
        return _either(replace(found, months=()), yearly)
    first = found.months[0] - 1
    months = sorted((first + n) % 12 + 1 for n in range(0, 12, step.count))
    return _either(replace(found, count=1, months=tuple(months)), yearly)


def _day_of_month(step: RepeatStep) -> Chosen | None:
    """Every 3 days of the month: its third, or one in three?"""
    if step.count > 31:
        return None
    third = Chosen(unit=RecurrenceUnit.MONTH, days=(step.count,))
    return _either(third, Chosen(count=step.count, unit=RecurrenceUnit.DAY))


def _either(one: Chosen, other: Chosen) -> Chosen:
    words = one.words()
    return replace(one, ask=f"{words[0].upper()}{words[1:]}, or {other.words()}?", instead=other)


def _merged(start: Chosen, pieces: Sequence[Piece]) -> Chosen | None:
    """Days of one kind from several pieces."""
    found = start
    for one in pieces:
        match one:
            case Date() if not one.year and not one.orders:
                months = (one.month,) if one.month else ()
                found = replace(found, days=(*found.days, *one.days), months=found.months or months)
            case Edge():
                found = replace(found, days=(*found.days, one.day))
            case Nth() if not one.year and all(-1 <= place <= 5 for place, _ in one.pairs):
                months = (one.month,) if one.month else ()
                places = (*found.places, *one.pairs)
                found = replace(found, places=places, months=found.months or months)
            case _:
                return None
    return None if found.days and found.places else found


def _which_day(step: RepeatStep, scope: ReadingContext) -> Chosen:
    """Weekly, monthly: on which day is left open, so today's is proposed."""
    start = Chosen(count=step.count, unit=step.unit)
    day = min(scope.today.day, 28)
    match step.unit:
        case RecurrenceUnit.WEEK:
            found = replace(start, weekdays=(scope.today.weekday(),))
        case RecurrenceUnit.MONTH:
            found = replace(start, days=(day,))
        case _:
            found = replace(start, days=(day,), months=(scope.today.month,))
    return replace(found, ask=f"On which day? Say it as in '{found.words()}'.")
