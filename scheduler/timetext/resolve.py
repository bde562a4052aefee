"""From words for a day to the day itself, or to those that may be meant."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta

from scheduler.timetext.days import monday, moved, upcoming
from scheduler.timetext.numbers import day_words
from scheduler.timetext.pieces import Date, Day, DayPiece, Nth, ReadingContext, Weekday

_WEEK = timedelta(weeks=1)
_YEARS_AHEAD = 28
"""After so many years each date has met every weekday."""


def resolved(pieces: Sequence[DayPiece], scope: ReadingContext) -> Day | None:
    """The day that all pieces agree on; a `Day` with `ask` where they do not quite. None where
    they make no day.
    """
    if not pieces:
        return None
    if len(pieces) == 1:
        return _single(pieces[0], scope)
    if len(pieces) > 2:
        return None
    weekdays = [one for one in pieces if isinstance(one, Weekday)]
    others = [one for one in pieces if not isinstance(one, Weekday)]
    if len(weekdays) == len(others) == 1:
        return _with_weekday(weekdays[0], others[0], scope)
    if found := _within(pieces):
        return found
    first, second = (_single(one, scope) for one in pieces)
    if first and second and set(first.days) & set(second.days):
        return Day(days=tuple(one for one in first.days if one in second.days))
    return None


def _single(piece: DayPiece, scope: ReadingContext) -> Day | None:
    match piece:
        case Day():
            return piece
        case Weekday():
            return _weekday(piece, scope)
        case Date():
            return _date(piece, scope)
        case Nth():
            return _nth(piece, scope)


def _weekday(piece: Weekday, scope: ReadingContext) -> Day:
    today, ahead = scope.today, upcoming(scope, piece.weekday)
    this = monday(today) + timedelta(days=piece.weekday)
    if piece.which == "last":
        back = (today.weekday() - piece.weekday - 1) % 7 + 1
        return Day(days=(today - timedelta(days=back),))
    if piece.which == "this":
        return Day(days=(this if this >= today else ahead,))
    if piece.which == "next":
        following = this + _WEEK
        if following == ahead:
            return Day(days=(ahead,))
        return Day(days=(following, ahead), ask=f"Which {ahead:%A} is meant?")
    if this == today:
        return Day(days=(today, ahead), ask=f"Today is {today:%A}. Today, or in a week?")
    return Day(days=(ahead,))


def _date(piece: Date, scope: ReadingContext) -> Day | None:
    if len(piece.days) != 1:
        return None
    found = next_date(piece.days[0], piece.month, piece.year, today=scope.today)
    if found is None:
        return None
    others = [next_date(one.day, one.month, piece.year, today=scope.today) for one in piece.orders]
    days = tuple(dict.fromkeys([found, *(one for one in others if one)]))
    if len(days) > 1:
        return Day(days=days, ask="Is the first number the month or the day?")
    if found == scope.today and not piece.year:
        again = next_date(found.day, piece.month, 0, today=found + timedelta(days=1))
        ask = "That is today. Today, or the next time?"
        return Day(days=(found, *([again] if again else [])), ask=ask, today=True)
    return Day(days=days)


def next_date(day: int, month: int, year: int, *, today: date) -> date | None:
    """The first such day from today on; 0 is any. A year that is given may be over."""
    if year:
        return date(year, month, day) if day <= monthrange(year, month)[1] else None
    first = today.replace(day=1)
    for _ in range(12 * 8 + 1):  # a leap day may be eight years away
        if month in {0, first.month} and day <= monthrange(first.year, first.month)[1]:
            found = first.replace(day=day)
            if found >= today:
                return found
        first = moved(first, months=1)
    return None


def _nth(piece: Nth, scope: ReadingContext) -> Day | None:
    if len(piece.pairs) != 1:
        return None
    place, weekday = piece.pairs[0]
    first = scope.today.replace(day=1)
    if piece.month:
        first = date(piece.year or scope.today.year, piece.month, 1)
    elif piece.year:
        return None
    found = nth_of_month(first, place, weekday)
    if not piece.year and (found is None or found < scope.today):
        step = 12 if piece.month else 1
        for months in range(step, 12 * step, step):
            found = nth_of_month(moved(first, months=months), place, weekday)
            if found and found >= scope.today:
                break
    return Day(days=(found,)) if found else None


def nth_of_month(first: date, place: int, weekday: int) -> date | None:
    """The weekday by its place in the month that begins at `first`, from its end if negative."""
    if place == 0:
        return None
    if place > 0:
        found = first + timedelta(days=(weekday - first.weekday()) % 7, weeks=place - 1)
    else:
        last = moved(first, months=1) - timedelta(days=1)
        found = last - timedelta(days=(last.weekday() - weekday) % 7, weeks=-place - 1)
    return found if found.month == first.month else None


def _within(pieces: Sequence[DayPiece]) -> Day | None:
    """Next month on the 3rd: a day of a month that is named beside it."""
    months = [one.days[0] for one in pieces if isinstance(one, Day) and one.period and one.days]
    if len(months) != 1 or months[0].day != 1:
        return None
    first = months[0]
    found = None
    for one in pieces:
        if isinstance(one, Date) and not one.month and len(one.days) == 1:
            found = next_date(one.days[0], first.month, first.year, today=first)
        if isinstance(one, Nth) and not one.month and len(one.pairs) == 1:
            found = nth_of_month(first, *one.pairs[0])
    return Day(days=(found,)) if found else None


def _with_weekday(weekday: Weekday, other: DayPiece, scope: ReadingContext) -> Day | None:
    """Friday, 18 July: the next such date that is a Friday."""
    if isinstance(other, Date) and not other.year and len(other.days) == 1:
        orders = [(other.days[0], other.month), *((one.day, one.month) for one in other.orders)]
        days = (_meeting(weekday.weekday, day, month, scope) for day, month in orders)
        found = sorted(one for one in days if one)
        if not found:
            return None
        plain = next_date(other.days[0], other.month, 0, today=scope.today)
        if other.month and plain and plain.year != found[0].year:
            # A year ahead, or a slip of the weekday?
            ask = f"{day_words(plain)} is the next such date. Is it meant, or a later year?"
            return Day(days=(found[0], plain), ask=ask)
        return Day(days=(found[0],))
    resolved_other = _single(other, scope)
    if resolved_other is None or not resolved_other.days:
        return None
    fitting = [day for day in resolved_other.days if day.weekday() == weekday.weekday]
    if fitting:
        return Day(days=(fitting[0],), clock=resolved_other.clock, today=resolved_other.today)
    day = resolved_other.days[0]
    return Day(days=(day,), ask=f"The day would be {day_words(day)}. Is it meant?")


def _meeting(weekday: int, day: int, month: int, scope: ReadingContext) -> date | None:
    start = scope.today
    for _ in range(_YEARS_AHEAD * (1 if month else 12)):
        found = next_date(day, month, 0, today=start)
        if found is None or found.weekday() == weekday:
            return found
        start = found + timedelta(days=1)
    return None
