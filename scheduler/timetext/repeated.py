"""From pieces to a repetition: cron text where that can say it, else steps with a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory.records.recurrence import Cron, Every, RecurrenceUnit, When
from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeRead
from scheduler.clock.cron import CronWrong, wall_moment
from scheduler.clock.recurrence import next_slots
from scheduler.timetext.chosen import EXAMPLE, Chosen, chosen
from scheduler.timetext.clocks import EITHER_HALF_DAILY, USUAL, hours
from scheduler.timetext.numbers import MONTH_NAMES, day_words, listed, time_words
from scheduler.timetext.pieces import (
    Ask,
    Clocks,
    Date,
    Except,
    From,
    Lasting,
    Moment,
    Nth,
    OfMonth,
    PartOfDay,
    Piece,
    ReadingContext,
    Refuse,
    RepeatCount,
    RepeatStep,
    TimeOfDay,
    TimeSpan,
    Until,
    Weekdays,
)

_Limit = From | Until | Lasting | RepeatCount | Except
_ALL_MONTHS = tuple(range(1, 13))


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatLimits:
    """Between which moments, how often, and in which months it may be due."""

    start: datetime | None
    until: datetime | None
    lasting: int | None
    runs_max: int | None
    months: tuple[int, ...]
    weekdays_out: tuple[int, ...]

    @property
    def left_out(self) -> tuple[int, ...]:
        """The other months."""
        return tuple(month for month in _ALL_MONTHS if month not in self.months)


def settle_repeated(pieces: Sequence[Piece], scope: ReadingContext) -> TimeAnswer | None:
    """None where no repetition was said."""
    steps = list(dict.fromkeys(one for one in pieces if isinstance(one, RepeatStep)))
    steps = [one for one in steps if not one.by_place] or steps
    if not steps and _several_of_month(pieces):
        steps = [RepeatStep(count=1, unit=RecurrenceUnit.MONTH)]
    listed_days = [one for one in pieces if isinstance(one, Weekdays)]
    asks = [one for one in pieces if isinstance(one, Ask)]
    if not steps and not listed_days:
        return _only_asked(pieces, asks)
    if len(steps) > 1 or any(isinstance(one, Moment) for one in pieces):
        return None
    for one in pieces:
        if isinstance(one, Refuse):
            return NoTime(why=one.why)
    if asks:
        return TimeAsked(text=asks[0].why)
    step = steps[0] if steps else None
    limits = _limits(pieces, scope)
    if step is not None and step.unit.passes:
        return _passing(step, pieces, limits, scope)
    times = _times(pieces)
    if times is None:
        return None
    picked = chosen(step, pieces, scope)
    if not isinstance(picked, Chosen):
        return picked
    if _is_after_midnight(pieces, picked):
        return TimeAsked(text=_NEXT_DAY)
    choices = [picked, *([picked.instead] if picked.instead else [])]
    answers = [_on_days(choice, one, limits, scope) for choice in choices for one in times]
    either = " or at ".join(_time_list(one) for one in times)
    left_open = [f"At {either}?"] if len(times) > 1 else []
    if picked.unit is RecurrenceUnit.DAY and not any(
        isinstance(one, TimeOfDay | Clocks) for one in pieces
    ):
        left_open += [
            _in_all(one) for one in pieces if isinstance(one, RepeatCount) and not one.sure
        ]
    return _asked(answers, [*left_open, *([picked.ask] if picked.ask else [])])


_NEXT_DAY = (
    "After midnight the next day has begun: which one is meant? Say it as in 'every Saturday at "
    "02:00'."
)


def _is_after_midnight(pieces: Sequence[Piece], picked: Chosen) -> bool:
    """Whether a night may go over into another day than the one that was named."""
    part = next((one for one in pieces if isinstance(one, PartOfDay)), None)
    clocks = [one for one in pieces if isinstance(one, TimeOfDay)]
    clocks += [clock for one in pieces if isinstance(one, Clocks) for clock in one.clocks]
    return any(
        any(hour.days for hour in hours(clock, part))
        for clock in clocks
        if not clock.ends and not (clock.exact and picked.unit is RecurrenceUnit.DAY)
    )


def _in_all(times: RepeatCount) -> str:
    return (
        f"{times.count} times in all? For several times a day say them, as in 'every day at 9 and "
        "at 18'."
    )


def _asked(answers: Sequence[TimeAnswer | None], asks: Sequence[str]) -> TimeAnswer | None:
    """The answer itself where nothing is open, else a question between those that are readings."""
    readings = [one for one in answers if isinstance(one, TimeRead)]
    if not asks or not readings:
        return answers[0]
    return TimeAsked(text=" ".join(asks), options=tuple(readings))


def _time_list(times: Sequence[time]) -> str:
    return listed([time_words(at) for at in times])


def _several_of_month(pieces: Sequence[Piece]) -> bool:
    """The first and third Monday of the month: no single time could be two."""
    several = any(
        (isinstance(one, Nth) and len(one.pairs) > 1)
        or (isinstance(one, Date) and len(one.days) > 1)
        for one in pieces
    )
    return several and any(isinstance(one, OfMonth) for one in pieces)


def _only_asked(pieces: Sequence[Piece], asks: Sequence[Ask]) -> TimeAnswer | None:
    """Twice a day, bimonthly: a repetition, but which?"""
    others = [one for one in pieces if not isinstance(one, Ask | TimeOfDay | Clocks | PartOfDay)]
    if asks and not others and any("every" in one.why.lower() for one in asks):
        return TimeAsked(text=asks[0].why)
    return None


# --- when it may be due ---------------------------------------------------------------------------


def _limits(pieces: Sequence[Piece], scope: ReadingContext) -> RepeatLimits:
    begins = next((one.day for one in pieces if isinstance(one, From)), None)
    ends = next((one.day for one in pieces if isinstance(one, Until)), None)
    if begins and ends and ends <= begins and ends.year < 9999:
        ends = date(ends.year + 1, ends.month, min(ends.day, 28))
    months = {month for one in pieces if isinstance(one, Except) for month in one.months}
    weekdays = {day for one in pieces if isinstance(one, Except) for day in one.weekdays}
    times = next((one.count for one in pieces if isinstance(one, RepeatCount)), None)
    zone = _zone(scope)
    return RepeatLimits(
        start=wall_moment(datetime.combine(begins, time()), zone) if begins else None,
        until=_before(ends, zone) if ends else None,
        lasting=next((one.days for one in pieces if isinstance(one, Lasting)), None),
        runs_max=times,
        months=tuple(month for month in _ALL_MONTHS if month not in months),
        weekdays_out=tuple(sorted(weekdays)),
    )


def _before(day: date, zone: ZoneInfo) -> datetime:
    """The last second before a day begins."""
    midnight = wall_moment(datetime.combine(day, time()), zone)
    return (midnight.astimezone(UTC) - timedelta(seconds=1)).astimezone(zone)


def _times(pieces: Sequence[Piece]) -> Sequence[tuple[time, ...]] | None:
    """The times of the day, in order; twice where they may be in either half of it. None where the
    pieces clash.
    """
    clocks = [one for one in pieces if isinstance(one, TimeOfDay | Clocks)]
    parts = [one for one in pieces if isinstance(one, PartOfDay)]
    if any(isinstance(one, TimeSpan) for one in pieces) or len(clocks) > 1 or len(parts) > 1:
        return None
    part = parts[0] if parts else None
    if not clocks:
        return [(part.clock if part else USUAL,)]
    said = clocks[0].clocks if isinstance(clocks[0], Clocks) else (clocks[0],)
    either = [_either(clock, part, said[n + 1 :]) for n, clock in enumerate(said)]
    if not all(either):
        return None
    first, second = ({times[n] for times in either} for n in (0, -1))
    return [tuple(sorted(times)) for times in (first, *([second] if second != first else []))]


def _either(clock: TimeOfDay, part: PartOfDay | None, later: Sequence[TimeOfDay]) -> Sequence[time]:
    """What a time of the day may be: one, two or none. Of "9 and 11pm" nobody knows whether the
    first is one of the evening too.
    """
    options = [one.at for one in hours(clock, part) if clock.ends or not one.days]
    if part is not None or clock.exact:
        return options[:1] if clock.ends else options
    evening = max(options)
    late = any(one.by_half and time(one.hour, one.minute) > evening for one in later)
    if late or clock.hour % 12 in EITHER_HALF_DAILY:
        return sorted(options)
    return options[:1]


# --- minutes and hours ----------------------------------------------------------------------------


def _passing(
    step: RepeatStep, pieces: Sequence[Piece], limits: RepeatLimits, scope: ReadingContext
) -> TimeAnswer | None:
    others = [one for one in pieces if not isinstance(one, RepeatStep | _Limit)]
    spans = [one for one in others if isinstance(one, TimeSpan)]
    days = [one for one in others if isinstance(one, Weekdays)]
    if len(spans) > 1 or len(days) > 1 or len(spans) + len(days) != len(others):
        return None
    name = _unit_words(step)
    if limits.weekdays_out:
        return NoTime(why=f"Those weekdays cannot be left out of it. {EXAMPLE}")
    if not others and limits.months == _ALL_MONTHS:
        length = timedelta(**{f"{step.unit}s": step.count})
        start = max(limits.start or scope.now, scope.now).astimezone(UTC)
        if limits.start is None or limits.start <= scope.now:
            start += length
        start = start.replace(second=0, microsecond=0).astimezone(_zone(scope))
        when = Every(count=step.count, unit=step.unit, start=start, zone=_zone(scope).key)
        return _reading(when, name, limits, scope)
    return _passing_within(step, spans, days, limits, scope)


def _passing_within(
    step: RepeatStep,
    spans: Sequence[TimeSpan],
    days: Sequence[Weekdays],
    limits: RepeatLimits,
    scope: ReadingContext,
) -> TimeAnswer | None:
    """Within hours or on some days only: by the clock on the wall, in cron text."""
    whole = 60 if step.unit is RecurrenceUnit.MINUTE else 24
    if whole % step.count or (days and days[0].weeks != 1):
        return NoTime(
            why=f"Every {step.count} {step.unit}s does not fit evenly into a{_around(step)}, so "
            "it cannot be kept to certain hours or days. Take a step that does."
        )
    first, last = 0, 23
    words = _unit_words(step)
    if spans:
        begin, end = (hours(one, None)[0].at for one in (spans[0].first, spans[0].last))
        if begin.minute or end.minute or end <= begin:
            return NoTime(
                why=f"Such a span goes from a full hour to a later one of the same day. {EXAMPLE}"
            )
        first, last = begin.hour, end.hour - (step.unit is RecurrenceUnit.MINUTE)
        words += f" between {time_words(begin)} and {time_words(end)}"
    minute = f"*/{step.count}" if step.unit is RecurrenceUnit.MINUTE and step.count > 1 else "*"
    if step.unit is RecurrenceUnit.HOUR:
        minute = "0"
    hour = f"{first}-{last}" if spans else "*"
    if step.unit is RecurrenceUnit.HOUR and step.count > 1:
        hour = f"{hour}/{step.count}"
    picked = Chosen(weekdays=days[0].weekdays if days else ())
    fields = _CronFields(
        minute=minute, hour=hour, picked=replace(picked, months=_months(picked, limits))
    )
    if days:
        words += f", {picked.words()}"
    when = Cron(expression=fields.text(), zone=_zone(scope).key, start=limits.start)
    return _reading(when, words, limits, scope)


def _around(step: RepeatStep) -> str:
    return "n hour" if step.unit is RecurrenceUnit.MINUTE else " day"


def _unit_words(step: RepeatStep) -> str:
    return f"every {step.unit}" if step.count == 1 else f"every {step.count} {step.unit}s"


# --- days -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _CronFields:
    minute: str
    hour: str
    picked: Chosen

    def text(self) -> str:
        return f"{self.minute} {self.hour} {self.picked.fields()}"


def _months(picked: Chosen, limits: RepeatLimits) -> tuple[int, ...]:
    if limits.months == _ALL_MONTHS:
        return picked.months
    return tuple(month for month in (picked.months or _ALL_MONTHS) if month in limits.months)


def _on_days(
    picked: Chosen, times: Sequence[time], limits: RepeatLimits, scope: ReadingContext
) -> TimeAnswer | None:
    minutes = {(at.minute, at.second) for at in times}
    if len(minutes) > 1 or any(at.second for at in times):
        return NoTime(
            why="Times of one schedule have the same minutes, such as 8:30 and 17:30. Make one for "
            "each of the others."
        )
    kept = replace(picked, months=_months(picked, limits))
    if limits.weekdays_out:
        week = picked.weekdays or (tuple(range(7)) if picked.count == 1 else ())
        left = tuple(day for day in week if day not in limits.weekdays_out)
        if not left or picked.days or picked.places:
            return NoTime(why=f"Those weekdays cannot be left out of it. {EXAMPLE}")
        kept = picked = replace(kept, weekdays=left, unit=RecurrenceUnit.WEEK)
    if not limits.months or (picked.months and not kept.months):
        return NoTime(why="Nothing is left of it: all of its months are left out.")
    fields = _CronFields(
        minute=str(times[0].minute), hour=",".join(str(at.hour) for at in times), picked=kept
    )
    words = f"{picked.words()} at {_time_list(times)}"
    zone = _zone(scope)
    try:
        plain = Cron(expression=fields.text(), zone=zone.key, start=limits.start)
        following = next_slots(plain, after=scope.now, n=1)
    except CronWrong:
        return NoTime(why="There is no such day in the months that are named.")
    if picked.count == 1:
        return _reading(plain, words, limits, scope)
    if not following:
        return None
    when = Every(
        count=picked.count,
        unit=picked.unit,
        start=following[0].at.astimezone(zone),
        zone=zone.key,
        pattern=fields.text(),
    )
    if limits.start is None:
        words += f", beginning on {day_words(when.start)}"
    return _reading(when, words, limits, scope)


def _reading(when: When, words: str, limits: RepeatLimits, scope: ReadingContext) -> TimeAnswer:
    """Said with its limits; a question where nothing of it lies ahead."""
    following = next_slots(when, after=scope.now, n=1)
    if following and limits.lasting is not None:
        first = following[0].at.astimezone(_zone(scope)).date()
        limits = replace(limits, until=_before(first + timedelta(limits.lasting), _zone(scope)))
    if not following or (limits.until and following[0].at > limits.until):
        return TimeAsked(text=f"Of that ({words}) nothing lies ahead. When is meant?")
    if limits.left_out:
        words += f", not in {listed([MONTH_NAMES[month - 1] for month in limits.left_out])}"
    if limits.start is not None:
        words += f", beginning on {limits.start:%Y-%m-%d}"
    if limits.until is not None:
        words += f", until {limits.until:%Y-%m-%d}"
    if limits.runs_max is not None:
        words += ", once" if limits.runs_max == 1 else f", {limits.runs_max} times"
    return TimeRead(when=when, sentence=words, until=limits.until, runs_max=limits.runs_max)


def _zone(scope: ReadingContext) -> ZoneInfo:
    assert isinstance(scope.now.tzinfo, ZoneInfo)
    return scope.now.tzinfo
