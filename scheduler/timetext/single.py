"""From pieces to one moment, or to the question which one is meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory.records.jobs import At
from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeRead
from scheduler.clock.recurrence import wall_moment
from scheduler.timetext.clocks import EITHER_HALF, USUAL, Hour, hours
from scheduler.timetext.days import former, monday, upcoming
from scheduler.timetext.vocabulary import (
    Ask,
    Clocks,
    Day,
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
    moment_words,
)

_REPEATED = (RepeatStep, Weekdays, RepeatLimit)
_NOON = time(12)

# --- which day ----------------------------------------------------------------------------------


def day_of(pieces: Sequence[Day | NamedDay], scope: ReadingContext) -> Day | None:
    """Return the day that all pieces agree on; a `Day` with `ask` where they do not quite, and None
    where they make no day."""
    if len(pieces) == 1:
        return _one_day(pieces[0], scope)
    if len(pieces) != 2:
        return None
    weekday, other = sorted(pieces, key=lambda one: not _is_weekday(one))
    if _is_weekday(weekday) and not _is_weekday(other):
        return _on_both(weekday, other, scope) or _with_weekday(weekday, other, scope)
    if found := _within_month(pieces):
        return found
    first, second = (_one_day(one, scope) for one in pieces)
    both = [day for day in first.days if day in second.days] if first and second else []
    return Day(days=tuple(both)) if both else None


def _is_weekday(piece: Day | NamedDay) -> bool:
    return (
        isinstance(piece, NamedDay)
        and bool(piece.patterns[0].weekdays)
        and not (piece.patterns[0].days)
    )


def _one_day(piece: Day | NamedDay, scope: ReadingContext) -> Day | None:
    if isinstance(piece, Day):
        return piece
    today, pattern = scope.today, piece.patterns[0]
    if piece.of_each or len(pattern.places) > 1 or (len(pattern.days) > 1 and not pattern.weekdays):
        return None
    if _is_weekday(piece) and piece.which:
        return _weekday(pattern.weekdays[0], piece.which, scope)
    found = [day for one in piece.patterns if (day := one.first(today))]
    if not found:
        return None
    days = tuple(dict.fromkeys(found))
    if len(days) > 1:
        return Day(days=days, ask="Is the first number the month or the day?")
    if days[0] != today or pattern.year:
        return Day(days=days)
    again = pattern.first(today + timedelta(days=1))
    if pattern.weekdays:
        ask = f"Today is {day_words(today).split()[0]}. Today, or in a week?"
    else:
        ask = "That is today. Today, or the next time?"
    days = (today, *([again] if again else []))
    return Day(days=days, ask=ask, today=not pattern.weekdays)


def _weekday(day: int, which: str, scope: ReadingContext) -> Day:
    """This, next or last Friday."""
    ahead = upcoming(scope.today, day)
    this = monday(scope.today) + timedelta(days=day)
    if which == "last":
        return Day(days=(former(scope.today, day),))
    if which == "this":
        return Day(days=(this if this >= scope.today else ahead,))
    following = this + timedelta(weeks=1)
    if following == ahead:
        return Day(days=(ahead,))
    return Day(days=(following, ahead), ask=f"Which {day_words(ahead).split()[0]} is meant?")


def _on_both(weekday: Day | NamedDay, other: Day | NamedDay, scope: ReadingContext) -> Day | None:
    """Return the next date that has this weekday: Friday the 13th, Friday, 18 July."""
    if not isinstance(weekday, NamedDay) or not isinstance(other, NamedDay):
        return None
    if weekday.which or other.of_each:
        return None
    patterns = [one for each in other.patterns if (one := weekday.patterns[0].joined(each))]
    found = sorted(day for one in patterns if not one.year and (day := one.first(scope.today)))
    if not found or len(other.patterns[0].days) != 1:
        return None
    plain = other.patterns[0].first(scope.today)
    if other.patterns[0].months and plain and plain.year != found[0].year:
        # A year ahead, or a slip of the weekday?
        ask = f"{day_words(plain)} is the next such date. Is it meant, or a later year?"
        return Day(days=(found[0], plain), ask=ask)
    return Day(days=(found[0],))


def _with_weekday(
    weekday: Day | NamedDay, other: Day | NamedDay, scope: ReadingContext
) -> Day | None:
    """Return the other day, which is asked about where it is not of this weekday."""
    assert isinstance(weekday, NamedDay), "it is a weekday"
    found = _one_day(other, scope)
    if found is None or not found.days:
        return None
    fitting = [day for day in found.days if weekday.patterns[0].fits(day)]
    if fitting:
        return Day(days=(fitting[0],), clock=found.clock, today=found.today)
    day = found.days[0]
    return Day(days=(day,), ask=f"The day would be {day_words(day)}. Is it meant?")


def _within_month(pieces: Sequence[Day | NamedDay]) -> Day | None:
    """Return next month on the 3rd: a day of a month that is named beside it."""
    named = [one.patterns[0] for one in pieces if isinstance(one, NamedDay)]
    firsts = [one.days[0] for one in pieces if isinstance(one, Day) and one.period and one.days]
    if len(named) != 1 or len(firsts) != 1 or firsts[0].day != 1 or named[0].months:
        return None
    day = named[0].first(firsts[0])
    is_one = len(named[0].days) + len(named[0].places) == 1
    return Day(days=(day,)) if day and is_one and day.month == firsts[0].month else None


# --- which moment -------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Single:
    """One time as it is said, and what must be asked about it: always, or only while more than one
    moment is still ahead."""

    scope: ReadingContext
    home: ZoneInfo
    clock: TimeOfDay | None
    part: PartOfDay | None
    always: list[str] = field(default_factory=list)
    between: list[str] = field(default_factory=list)

    def on(self, day: Day) -> TimeAnswer | None:
        """Return the moment on a day."""
        if not day.days:
            return TimeAsked(text=day.ask)
        today = day.days == (self.scope.today,)
        if self.part and self.part.today and not today:
            return None
        if day.ask:
            is_open = day.period or day.today or len(day.days) == 1
            (self.always if is_open else self.between).append(day.ask)
        if self.clock is not None:
            options = self._hours(self.clock, today=today)
        elif self.part is not None:
            options = (Hour(self.part.clock),)
        elif today and not day.clock and self.scope.now.time() >= USUAL:
            return TimeAsked(text="At what time today?")
        else:
            options = (Hour(day.clock or USUAL),)
        walls = [
            datetime.combine(one + timedelta(days=hour.days), hour.at)
            for one in day.days
            for hour in options
        ]
        is_day = self.clock is None and self.part is None and day.clock is None
        return self.answer([wall_moment(wall, self.scope.zone) for wall in walls], is_day=is_day)

    def _hours(self, clock: TimeOfDay, *, today: bool) -> Sequence[Hour]:
        """Return what a time may mean on a day."""
        options: Sequence[Hour] = hours(clock, self.part)
        if clock.ends:
            why = "Midnight at the beginning or at the end of that day?"
            options = options[:1] if today else options
        elif self.part is None:
            why = "In the afternoon or in the morning?"
            options = self._half(options, today=today)
        elif len({one.at for one in options}) == 1:
            why = "In the night that begins on that day, or in the one that ends then?"
        else:
            why = "In the afternoon, or after midnight?"
        if len(options) > 1:
            self.between.append(why)
        return options

    def _half(self, options: Sequence[Hour], *, today: bool) -> Sequence[Hour]:
        """Return of an hour without am or pm: on other days the usual one; today what is still
        ahead."""
        if not today or len(options) < 2:
            either = any(one.at.hour == EITHER_HALF for one in options)
            return options if either else options[:1]
        ahead = [one for one in options if one.at > self.scope.now.time()]
        if len(ahead) < 2 or ahead[0].at < ahead[1].at:
            return ahead[:1] or options[:1]
        return ahead

    def next(self) -> TimeAnswer | None:
        """Return the next such time of a day."""
        clock, part = self.clock, self.part
        options = hours(clock, part) if clock else (Hour(part.clock),) if part else ()
        if not options:
            return None
        if clock and (clock.ends or clock.exact):
            options = options[-1:]
        now = self.scope.now.replace(tzinfo=None)
        walls = [datetime.combine(now.date() + timedelta(days=one.days), one.at) for one in options]
        walls = [wall if wall > now else wall + timedelta(days=1) for wall in walls]
        if len(walls) > 1 and not part:
            walls = _likely(walls[0], walls[1], now)
        self.between.append("In the morning or in the afternoon?")
        return self.answer([wall_moment(wall, self.scope.zone) for wall in walls])

    def answer(self, moments: Sequence[datetime], *, is_day: bool = False) -> TimeAnswer | None:
        """Return a reading where one moment is left and nothing is asked; None for no moments."""
        unique = list(dict.fromkeys(moment.astimezone(UTC) for moment in moments))
        if not unique:
            return None
        now = self.scope.now.astimezone(UTC).replace(microsecond=0)
        ahead = [moment for moment in unique if moment >= now]
        if not ahead:
            past = unique[0].astimezone(self.home)
            text = f"That is over: it was {day_words(past)} at {past:%H:%M}. When is meant?"
            return TimeAsked(text=text, past=past)
        options = []
        for moment in ahead:
            local = moment.astimezone(self.home)
            when = At(moment=local, zone=self.home.key)
            sentence = f"once, {moment_words(local)}"
            # Also one that is due at this very second has its slot shown.
            options.append(TimeRead(when=when, sentence=sentence, next=(moment,), is_day=is_day))
        asks = [*self.always, *(self.between if len(options) > 1 else ())]
        return TimeAsked(text=" ".join(asks), options=tuple(options)) if asks else options[0]


def _likely(usual: datetime, other: datetime, now: datetime) -> list[datetime]:
    """Return of the usual half of the day and the other one: one where it is clear, else both."""
    if usual.date() == now.date():
        return [usual, other] if other < usual else [usual]
    if other.date() == now.date():
        # "At 8", said in the afternoon, is this evening; said in the morning, who knows.
        return [other] if now.time() >= _NOON else [usual, other]
    return [usual] if usual < other else [usual, other]


def settle_single(
    pieces: Sequence[Piece], scope: ReadingContext, *, home: ZoneInfo
) -> TimeAnswer | None:
    """Return the moment; None where the pieces make no single time. `home` is the zone that is
    answered in; that of `scope` is the one that was spoken of."""
    clocks = [one for one in pieces if isinstance(one, Clocks | TimeSpan)]
    parts = [one for one in pieces if isinstance(one, PartOfDay)]
    moments = [one.at for one in pieces if isinstance(one, Moment)]
    days = [one for one in pieces if isinstance(one, Day | NamedDay)]
    if any(isinstance(one, _REPEATED) for one in pieces) or max(len(clocks), len(parts)) > 1:
        return None
    if bool(moments) == bool(clocks or parts or days) or len(moments) > 1:
        return None
    is_of_month = any(
        isinstance(one, OfMonth) or (isinstance(one, Day) and one.period) for one in pieces
    )
    patterns = [one.patterns[0] for one in days if isinstance(one, NamedDay)]
    if not is_of_month and any(one.places and not one.months for one in patterns):
        return None  # "the first Monday", and of no month
    if refused := next((one.why for one in pieces if isinstance(one, Refuse)), None):
        return NoTime(why=refused)
    clock = _clock(clocks[0], pieces) if clocks else None
    if clocks and clock is None:
        return None
    said = _Single(scope=scope, home=home, clock=clock, part=parts[0] if parts else None)
    said.always += [one.why for one in pieces if isinstance(one, Ask)]
    if any(isinstance(one, TimeSpan) for one in pieces):
        said.always.append("That is a span of time. Does its beginning count?")
    if any(isinstance(one, OfMonth) for one in pieces):
        said.always.append("Only the next time, or every month?")
    if moments:
        return said.answer(moments)
    if days:
        day = day_of(days, scope)
        return None if day is None else said.on(day)
    if said.part and said.part.today:
        return said.on(Day(days=(scope.today,), today=True))
    return said.next()


def _clock(said: Clocks | TimeSpan, pieces: Sequence[Piece]) -> TimeOfDay | None:
    """Return the time, or the beginning of a span: 9-11am begins at 9am, 11-1pm at 11am. None for
    several, for two mere numbers, and for one without a part of the day, unless it stands last
    behind a day."""
    if isinstance(said, Clocks):
        first = said.clocks[0]
        is_beside = any(isinstance(one, PartOfDay) for one in pieces)
        is_last = len(pieces) > 1 and pieces[-1] == said
        is_time = not first.bare or is_beside or is_last
        return first if is_time and len(said.clocks) == 1 else None
    first, last = said.first, said.last
    if first.bare and last.bare:
        return None
    if first.exact or not last.exact or last.hour < 12 or first.hour > 12:
        return TimeOfDay(hour=first.hour, minute=first.minute, exact=first.exact)
    afternoon = first.hour % 12 + 12
    fits = (afternoon, first.minute) < (last.hour, last.minute)
    return TimeOfDay(hour=afternoon if fits else first.hour, minute=first.minute, exact=True)
