"""From pieces to a repetition: cron text where that can say it, else steps with a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory.records.jobs import Cron, Every, RecurrenceUnit, When
from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeRead
from scheduler.clock.recurrence import CronWrong, next_slots, wall_moment
from scheduler.timetext.clocks import EITHER_HALF_DAILY, USUAL, hours
from scheduler.timetext.repeats import WORKDAYS
from scheduler.timetext.vocabulary import (
    DAY_NAMES,
    MONTH_NAMES,
    Ask,
    Clocks,
    Day,
    DayPattern,
    Moment,
    NamedDay,
    OfMonth,
    PartOfDay,
    Piece,
    ReadingContext,
    Refuse,
    RepeatLimit,
    RepeatStep,
    TimeOfDay,
    TimeSpan,
    Weekdays,
    day_words,
    listed,
    ordinal_words,
    time_words,
)

# --- on which days ------------------------------------------------------------------------------

EXAMPLE = "Say it as in 'every weekday at 8', 'every second Friday' or 'on the 15th of each month'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """Every `count`-th `unit`, on the days of a pattern. With `ask` it is a proposal: the day was
    left open."""

    count: int = 1
    unit: RecurrenceUnit = RecurrenceUnit.DAY
    on: DayPattern = DayPattern()  # noqa: RUF009 - it is frozen
    ask: str = ""

    def cron(self, minute: str, hour: str) -> str:
        """Return the pattern as cron text, in which Sunday is 0."""
        days = ",".join("L" if day < 0 else str(day) for day in self.on.days) or "*"
        months = ",".join(map(str, self.on.months)) or "*"
        weekdays = ",".join(
            [
                *(str(day) for day in sorted((day + 1) % 7 for day in self.on.weekdays)),
                *(
                    f"{(day + 1) % 7}L" if place < 0 else f"{(day + 1) % 7}#{place}"
                    for place, day in self.on.places
                ),
            ]
        )
        weekdays = "1-5" if self.on.weekdays == WORKDAYS else weekdays or "*"
        return f"{minute} {hour} {days} {months} {weekdays}"

    def words(self) -> str:
        """Return `every 2 weeks on Friday`."""
        step = _step_words(self.count, self.unit)
        if self.on.weekdays == WORKDAYS:
            days = "weekday (Monday to Friday)" if self.count == 1 else "Monday to Friday"
        else:
            named = [DAY_NAMES[day] for day in self.on.weekdays]
            named += [f"the {ordinal_words(n)}{' day' if n < 0 else ''}" for n in self.on.days]
            named += [f"the {ordinal_words(n)} {DAY_NAMES[day]}" for n, day in self.on.places]
            days = listed(named) if named else ""
        if self.on.weekdays and step in {"every day", "every week"}:
            step = f"every {days}"
        elif days:
            step += f" on {days}"
        if self.on.months:
            months = listed([MONTH_NAMES[one - 1] for one in self.on.months])
            step += f" of {months}" if days else f" in {months}"
        if any(day > 28 for day in self.on.days) and len(self.on.months) != 1:
            step += " (left out where a month has no such day)"
        return step


def _step_words(count: int, unit: RecurrenceUnit) -> str:
    return f"every {unit}" if count == 1 else f"every {count} {unit}s"


def _chosen(
    step: RepeatStep | None, pieces: Sequence[Piece], scope: ReadingContext
) -> Repetition | TimeAnswer | None:
    """Return the days; a question or a refusal where they are left open; None where they make no
    sense."""
    lists = [one for one in pieces if isinstance(one, Weekdays)]
    named = [one for one in pieces if isinstance(one, NamedDay)]
    days = [one for one in pieces if isinstance(one, Day)]
    is_of_month = any(isinstance(one, OfMonth) for one in pieces)
    if days:
        if len(days) > 1 or lists or named or days[0].period:
            return None
        return NoTime(why=f"A day that is not the same each time cannot be repeated. {EXAMPLE}")
    if lists:
        return None if len(lists) > 1 or named or is_of_month else _on_weekdays(lists[0], step)
    assert step is not None
    if not named and step.unit is RecurrenceUnit.DAY:
        if is_of_month and step.count > 1:
            third = f"Every month on the {ordinal_words(step.count)}"
            return TimeAsked(text=f"{third}, or every {step.count} days? Say it in these words.")
        return Repetition(count=step.count)
    if not named:
        return _which_day(step, scope)
    pattern: DayPattern | None = DayPattern()
    for one in named:
        pattern = pattern and pattern.joined(one.patterns[0])
        if pattern is None or len(one.patterns) > 1 or one.which or pattern.year:
            return None
    assert pattern is not None
    return _on_pattern(pattern, step)


def _on_weekdays(days: Weekdays, step: RepeatStep | None) -> Repetition | TimeAnswer | None:
    weekly = Repetition(
        count=days.weeks, unit=RecurrenceUnit.WEEK, on=DayPattern(weekdays=days.weekdays)
    )
    if step is None:
        names = listed([DAY_NAMES[day] for day in days.weekdays])
        return (
            weekly if days.sure else replace(weekly, ask=f"Every {names}, or only the next time?")
        )
    if step.unit is RecurrenceUnit.WEEK and 1 in {step.count, days.weeks}:
        return replace(weekly, count=max(step.count, days.weeks))
    if step.unit is RecurrenceUnit.DAY and step.count == days.weeks == 1:
        return weekly
    return _which_of_month(days.weekdays[0]) if step.unit is RecurrenceUnit.MONTH else None


def _which_of_month(day: int) -> TimeAsked:
    name = DAY_NAMES[day]
    return TimeAsked(
        text=f"Which {name} of the month? Say it as in 'the first {name} of each month', or "
        f"'every {name}' for all."
    )


def _on_pattern(pattern: DayPattern, step: RepeatStep) -> Repetition | TimeAnswer | None:
    if pattern.weekdays:
        # Cron text means "the 13th, and each Friday" where both are named.
        if pattern.days or pattern.months:
            return None
        if step.unit is RecurrenceUnit.MONTH:
            return _which_of_month(pattern.weekdays[0])
        if step.unit is RecurrenceUnit.WEEK:
            return Repetition(count=step.count, unit=step.unit, on=pattern)
        return None
    if step.unit not in {RecurrenceUnit.MONTH, RecurrenceUnit.YEAR}:
        return None
    if min((*pattern.days, *(place for place, _ in pattern.places))) < -1:
        return NoTime(
            why="Counting from the end of a month works for the last day and the last weekday of a "
            "kind only. Name the day another way."
        )
    if step.unit is RecurrenceUnit.YEAR and not pattern.months:
        return TimeAsked(text=f"In which month? {EXAMPLE}")
    if step.unit is RecurrenceUnit.YEAR or not pattern.months:
        return Repetition(count=step.count, unit=step.unit, on=pattern)
    years, rest = divmod(step.count, 12)
    if rest and not step.by_place:  # 31 January every month: each month's, or only that one?
        months = listed([MONTH_NAMES[month - 1] for month in pattern.months])
        return TimeAsked(
            text=f"{_step_words(step.count, step.unit).capitalize()}, or in {months} "
            f"alone? {EXAMPLE}"
        )
    return Repetition(count=1 if rest else years, unit=RecurrenceUnit.YEAR, on=pattern)


def _which_day(step: RepeatStep, scope: ReadingContext) -> Repetition:
    """Return for weekly and monthly, which leave the day open, today's as a proposal."""
    day, months = (min(scope.today.day, 28),), (scope.today.month,)
    match step.unit:
        case RecurrenceUnit.WEEK:
            pattern = DayPattern(weekdays=(scope.today.weekday(),))
        case RecurrenceUnit.MONTH:
            pattern = DayPattern(days=day)
        case _:
            pattern = DayPattern(days=day, months=months)
    found = Repetition(count=step.count, unit=step.unit, on=pattern)
    return replace(found, ask=f"On which day? Say it as in '{found.words()}'.")


# --- at which times -----------------------------------------------------------------------------


def _times(pieces: Sequence[Piece]) -> Sequence[tuple[time, ...]] | None:
    """Return the times of the day, in order; twice where they may be in either half of it. None
    where the pieces clash."""
    clocks = [one for one in pieces if isinstance(one, Clocks)]
    parts = [one for one in pieces if isinstance(one, PartOfDay)]
    if any(isinstance(one, TimeSpan) for one in pieces) or max(len(clocks), len(parts)) > 1:
        return None
    part = parts[0] if parts else None
    if not clocks:
        return [(part.clock if part else USUAL,)]
    said = clocks[0].clocks
    either = [_either(clock, part, said[number + 1 :]) for number, clock in enumerate(said)]
    if not all(either):
        return None
    first, second = (tuple(sorted({times[end] for times in either})) for end in (0, -1))
    return [first] if first == second else [first, second]


def _either(clock: TimeOfDay, part: PartOfDay | None, later: Sequence[TimeOfDay]) -> Sequence[time]:
    """Return what a time of the day may be: one, two or none. Of "9 and 11pm" nobody knows whether
    the first is one of the evening too."""
    options = [one.at for one in hours(clock, part) if clock.ends or not one.days]
    if part is not None or clock.exact:
        return options[:1] if clock.ends else options
    evening = max(options)
    late = any(one.by_half and time(one.hour, one.minute) > evening for one in later)
    if late or clock.hour % 12 in EITHER_HALF_DAILY:
        return sorted(options)
    return options[:1]


def _is_after_midnight(pieces: Sequence[Piece], picked: Repetition) -> bool:
    """Return whether a night may go over into another day than the one that was named."""
    part = next((one for one in pieces if isinstance(one, PartOfDay)), None)
    return any(
        any(hour.days for hour in hours(clock, part))
        for one in pieces
        if isinstance(one, Clocks)
        for clock in one.clocks
        if not clock.ends and not (clock.exact and picked.unit is RecurrenceUnit.DAY)
    )


def _time_list(times: Sequence[time]) -> str:
    return listed([time_words(at) for at in times])


# --- the repetition -----------------------------------------------------------------------------

_ALL_MONTHS = tuple(range(1, 13))


def settle_repeated(pieces: Sequence[Piece], scope: ReadingContext) -> TimeAnswer | None:
    """Return the repetition; None where none was said."""
    steps = list(dict.fromkeys(one for one in pieces if isinstance(one, RepeatStep)))
    steps = [one for one in steps if not one.by_place] or steps
    named = [one.patterns[0] for one in pieces if isinstance(one, NamedDay)]
    several = any(len(one.places) > 1 or len(one.days) > 1 for one in named)
    if not steps and several and any(isinstance(one, OfMonth) for one in pieces):
        # The first and third Monday of the month: no single time could be two.
        steps = [RepeatStep(count=1, unit=RecurrenceUnit.MONTH)]
    asks = [one.why for one in pieces if isinstance(one, Ask)]
    if not steps and not any(isinstance(one, Weekdays) for one in pieces):
        # Twice a day, bimonthly: a repetition, but which?
        alone = all(isinstance(one, Ask | Clocks | PartOfDay) for one in pieces)
        asking = [why for why in asks if "every" in why.lower()]
        return TimeAsked(text=asks[0]) if alone and asking else None
    if len(steps) > 1 or any(isinstance(one, Moment) for one in pieces):
        return None
    if refused := next((one.why for one in pieces if isinstance(one, Refuse)), None):
        return NoTime(why=refused)
    if asks:
        return TimeAsked(text=asks[0])
    step, bounds = steps[0] if steps else None, _RepeatBounds(pieces, scope)
    if step is not None and step.unit.passes:
        return bounds.passing(step, pieces)
    times, picked = _times(pieces), _chosen(step, pieces, scope)
    if times is None:
        return None
    if not isinstance(picked, Repetition):
        return picked
    if _is_after_midnight(pieces, picked):
        return TimeAsked(
            text="After midnight the next day has begun: which one is meant? Say it as in 'every "
            "Saturday at 02:00'."
        )
    answers = [bounds.on_days(picked, one) for one in times]
    questions = [f"At {' or at '.join(map(_time_list, times))}?"] if len(times) > 1 else []
    has_clock = any(isinstance(one, Clocks) for one in pieces)
    if picked.unit is RecurrenceUnit.DAY and bounds.limit.runs_unsure and not has_clock:
        questions.append(
            f"{bounds.limit.runs} times in all? For several times a day say them, as in 'every day "
            "at 9 and at 18'."
        )
    questions += [picked.ask] if picked.ask else []
    readings = [one for one in answers if isinstance(one, TimeRead)]
    if not questions or not readings:
        return answers[0]
    return TimeAsked(text=" ".join(questions), options=tuple(readings))


class _RepeatBounds:
    """Between which moments, how often, and in which months a repetition may be due."""

    def __init__(self, pieces: Sequence[Piece], scope: ReadingContext) -> None:
        self._scope = scope
        limit = RepeatLimit()
        for one in pieces:
            if isinstance(one, RepeatLimit):
                named = {field.name: getattr(one, field.name) for field in fields(one)}
                limit = replace(limit, **{name: bound for name, bound in named.items() if bound})
        begin, end = limit.start, limit.until
        if begin and end and end <= begin and end.year < 9999:
            end = date(end.year + 1, end.month, min(end.day, 28))
        self.limit = limit
        self._start = wall_moment(datetime.combine(begin, time()), scope.zone) if begin else None
        self._until = _before(end, scope.zone) if end else None
        self._months = tuple(one for one in _ALL_MONTHS if one not in limit.months_out)

    # --- minutes and hours ----------------------------------------------------------------------

    def passing(self, step: RepeatStep, pieces: Sequence[Piece]) -> TimeAnswer | None:
        """Return every so many minutes or hours: in steps of time as it passes; within hours or on
        some days only, by the clock on the wall, in cron text."""
        spans = [one for one in pieces if isinstance(one, TimeSpan)]
        days = [one for one in pieces if isinstance(one, Weekdays)]
        others = [one for one in pieces if not isinstance(one, RepeatStep | RepeatLimit)]
        if len(spans) > 1 or len(days) > 1 or len(spans) + len(days) != len(others):
            return None
        if self.limit.weekdays_out:
            return NoTime(why=f"Those weekdays cannot be left out of it. {EXAMPLE}")
        if others or self.limit.months_out:
            return self._within(step, spans[0] if spans else None, days[0] if days else None)
        scope, start = self._scope, self._start
        if start is None or start <= scope.now:
            start = scope.now.astimezone(UTC) + timedelta(**{f"{step.unit}s": step.count})
        start = start.astimezone(UTC).replace(second=0, microsecond=0).astimezone(scope.zone)
        when = Every(count=step.count, unit=step.unit, start=start, zone=scope.zone.key)
        return self._reading(when, _step_words(step.count, step.unit))

    def _within(
        self, step: RepeatStep, span: TimeSpan | None, days: Weekdays | None
    ) -> TimeAnswer | None:
        in_minutes = step.unit is RecurrenceUnit.MINUTE
        if (60 if in_minutes else 24) % step.count or (days and days.weeks != 1):
            around = "an hour" if in_minutes else "a day"
            return NoTime(
                why=f"Every {step.count} {step.unit}s does not fit evenly into {around}, so it "
                "cannot be kept to certain hours or days. Take a step that does."
            )
        words, hour = _step_words(step.count, step.unit), "*"
        if span:
            begin, end = (hours(one, None)[0].at for one in (span.first, span.last))
            if begin.minute or end.minute or end <= begin:
                return NoTime(
                    why="Such a span goes from a full hour to a later one of the same day. "
                    f"{EXAMPLE}"
                )
            hour = f"{begin.hour}-{end.hour - in_minutes}"
            words += f" between {time_words(begin)} and {time_words(end)}"
        steps = f"/{step.count}" if step.count > 1 else ""
        minute, hour = (f"*{steps}", hour) if in_minutes else ("0", f"{hour}{steps}")
        picked = Repetition(on=DayPattern(weekdays=days.weekdays if days else ()))
        if days:
            words += f", {picked.words()}"
        expression = self._in_months(picked).cron(minute, hour)
        zone = self._scope.zone.key
        return self._reading(Cron(expression=expression, zone=zone, start=self._start), words)

    # --- days -----------------------------------------------------------------------------------

    def _in_months(self, picked: Repetition) -> Repetition:
        """Return it without the months that are left out."""
        if not self.limit.months_out:
            return picked
        months = picked.on.months or _ALL_MONTHS
        left = tuple(one for one in months if one in self._months)
        return replace(picked, on=replace(picked.on, months=left))

    def on_days(self, picked: Repetition, times: Sequence[time]) -> TimeAnswer | None:
        """Return a repetition at these times of its days."""
        if len({(at.minute, at.second) for at in times}) > 1 or times[0].second:
            return NoTime(
                why="Times of one schedule have the same minutes, such as 8:30 and 17:30. Make one "
                "for each of the others."
            )
        if out := self.limit.weekdays_out:
            week = picked.on.weekdays or (tuple(range(7)) if picked.count == 1 else ())
            left = tuple(day for day in week if day not in out)
            if not left or picked.on.days or picked.on.places:
                return NoTime(why=f"Those weekdays cannot be left out of it. {EXAMPLE}")
            picked = replace(picked, on=replace(picked.on, weekdays=left), unit=RecurrenceUnit.WEEK)
        kept = self._in_months(picked)
        if self.limit.months_out and not kept.on.months:
            return NoTime(why="Nothing is left of it: all of its months are left out.")
        zone = self._scope.zone
        text = kept.cron(str(times[0].minute), ",".join(str(at.hour) for at in times))
        when: When = Cron(expression=text, zone=zone.key, start=self._start)
        words = f"{picked.words()} at {_time_list(times)}"
        try:
            following = next_slots(when, after=self._scope.now, n=1)
        except CronWrong:
            return NoTime(why="There is no such day in the months that are named.")
        if picked.count > 1:
            if not following:
                return None
            start = following[0].at.astimezone(zone)
            when = Every(
                count=picked.count, unit=picked.unit, start=start, zone=zone.key, pattern=text
            )
            words += "" if self._start else f", beginning on {day_words(start)}"
        return self._reading(when, words)

    def _reading(self, when: When, words: str) -> TimeAnswer:
        """Return it, said with its limits; a question where nothing of it lies ahead."""
        zone, limit, until = self._scope.zone, self.limit, self._until
        following = next_slots(when, after=self._scope.now, n=1)
        if following and limit.lasting is not None:
            first = following[0].at.astimezone(zone).date()
            until = _before(first + timedelta(limit.lasting), zone)
        if not following or (until and following[0].at > until):
            return TimeAsked(text=f"Of that ({words}) nothing lies ahead. When is meant?")
        if limit.months_out:
            words += f", not in {listed([MONTH_NAMES[one - 1] for one in limit.months_out])}"
        words += f", beginning on {self._start:%Y-%m-%d}" if self._start else ""
        words += f", until {until:%Y-%m-%d}" if until else ""
        if limit.runs is not None:
            words += ", once" if limit.runs == 1 else f", {limit.runs} times"
        return TimeRead(when=when, sentence=words, until=until, runs_max=limit.runs)


def _before(day: date, zone: ZoneInfo) -> datetime:
    """Return the last second before a day begins."""
    midnight = wall_moment(datetime.combine(day, time()), zone)
    return (midnight.astimezone(UTC) - timedelta(seconds=1)).astimezone(zone)
