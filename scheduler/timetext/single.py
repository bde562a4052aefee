"""From pieces to one moment, or to the question which one is meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from memory.records.recurrence import At
from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeRead
from scheduler.clock.cron import wall_moment
from scheduler.timetext.clocks import EITHER_HALF, USUAL, Hour, hours
from scheduler.timetext.numbers import day_words, moment_words
from scheduler.timetext.pieces import (
    Ask,
    Date,
    Day,
    DayPiece,
    Moment,
    Nth,
    OfMonth,
    PartOfDay,
    Piece,
    ReadingContext,
    Refuse,
    TimeOfDay,
    TimeSpan,
    Weekday,
)
from scheduler.timetext.resolve import resolved

_ALLOWED = (TimeOfDay, TimeSpan, PartOfDay, Moment, Day, Weekday, Date, Nth, OfMonth, Ask, Refuse)
_NOON = time(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """What must be asked: always, or only while more than one moment is still ahead."""

    always: tuple[str, ...] = ()
    between: tuple[str, ...] = ()

    def with_always(self, why: str) -> Doubts:
        """One more."""
        return replace(self, always=(*self.always, why))

    def with_between(self, why: str) -> Doubts:
        """One more."""
        return replace(self, between=(*self.between, why))


@dataclass(frozen=True, slots=True, kw_only=True)
class _SaidMoment:
    """One of each at most; `clock` is the beginning of a span."""

    days: Sequence[DayPiece]
    clock: TimeOfDay | None
    part: PartOfDay | None
    doubts: Doubts


def settle_single(
    pieces: Sequence[Piece], scope: ReadingContext, *, home: ZoneInfo
) -> TimeAnswer | None:
    """None where the pieces make no single time. `home` is the zone that is answered in; that of
    `scope` is the one that was spoken of.
    """
    if not all(isinstance(one, _ALLOWED) for one in pieces):
        return None
    clocks = [one for one in pieces if isinstance(one, TimeOfDay | TimeSpan)]
    parts = [one for one in pieces if isinstance(one, PartOfDay)]
    moments = [one for one in pieces if isinstance(one, Moment)]
    days: list[DayPiece] = [one for one in pieces if isinstance(one, Day | Weekday | Date | Nth)]
    if len(clocks) > 1 or len(parts) > 1 or len(moments) > 1:
        return None
    if not (clocks or parts or days or moments) or (moments and (clocks or parts or days)):
        return None
    of_some_month = any(isinstance(one, Nth) and not one.month for one in days)
    if of_some_month and not any(_names_month(one) for one in pieces):
        return None
    for one in pieces:
        if isinstance(one, Refuse):
            return NoTime(why=one.why)
    doubts = _doubts(pieces)
    if moments:
        return _answer([moments[0].at], doubts, scope=scope, home=home)
    clock = _clock(clocks[0], pieces) if clocks else None
    if clocks and clock is None:
        return None
    part = parts[0] if parts else None
    said = _SaidMoment(days=days, clock=clock, part=part, doubts=doubts)
    if days or (part and part.today):
        return _of_day(said, scope=scope, home=home)
    return _of_time(said, scope=scope, home=home)


def _doubts(pieces: Sequence[Piece]) -> Doubts:
    asks = [one.why for one in pieces if isinstance(one, Ask)]
    if any(isinstance(one, TimeSpan) for one in pieces):
        asks.append("That is a span of time. Does its beginning count?")
    if any(isinstance(one, OfMonth) for one in pieces):
        asks.append("Only the next time, or every month?")
    return Doubts(always=tuple(asks))


def _clock(said: TimeOfDay | TimeSpan, pieces: Sequence[Piece]) -> TimeOfDay | None:
    """The time, or the beginning of a span. A mere number needs a part of the day, or stands last
    behind a day.
    """
    if isinstance(said, TimeSpan):
        return _span_start(said)
    if not said.bare or any(isinstance(one, PartOfDay) for one in pieces):
        return said
    behind_day = len(pieces) > 1 and pieces[-1] == said
    return said if behind_day else None


def _names_month(piece: Piece) -> bool:
    return isinstance(piece, OfMonth) or (isinstance(piece, Day) and piece.period)


def _span_start(span: TimeSpan) -> TimeOfDay | None:
    """9-11am begins at 9am, 11-1pm at 11am. None for two mere numbers."""
    first, last = span.first, span.last
    if first.bare and last.bare:
        return None
    if first.exact or not last.exact or last.hour < 12 or first.hour > 12:
        return TimeOfDay(hour=first.hour, minute=first.minute, exact=first.exact)
    afternoon = first.hour % 12 + 12
    fits = (afternoon, first.minute) < (last.hour, last.minute)
    return TimeOfDay(hour=afternoon if fits else first.hour, minute=first.minute, exact=True)


def _of_day(said: _SaidMoment, *, scope: ReadingContext, home: ZoneInfo) -> TimeAnswer | None:
    today_only = Day(days=(scope.today,), today=True)
    day = resolved(said.days, scope) if said.days else today_only
    clock, part, doubts = said.clock, said.part, said.doubts
    if day is None:
        return None
    if not day.days:
        return TimeAsked(text=day.ask)
    today = day.days == (scope.today,)
    if part and part.today and not today:
        return None
    if day.ask:
        open_day = day.period or day.today or len(day.days) == 1
        doubts = doubts.with_always(day.ask) if open_day else doubts.with_between(day.ask)
    if today and not clock and not part and not day.clock and scope.now.time() >= USUAL:
        return TimeAsked(text="At what time today?")
    if clock is None:
        options: Sequence[Hour] = (Hour(at=_default(day, part)),)
    else:
        options, why = _hours_of(clock, part, today=today, scope=scope)
        if len(options) > 1:
            doubts = doubts.with_between(why)
    if not options:
        return None
    zone = _zone(scope)
    moments = [
        wall_moment(datetime.combine(one + timedelta(days=hour.days), hour.at), zone)
        for one in day.days
        for hour in options
    ]
    return _answer(moments, doubts, scope=scope, home=home)


def _hours_of(
    clock: TimeOfDay, part: PartOfDay | None, *, today: bool, scope: ReadingContext
) -> tuple[Sequence[Hour], str]:
    """What a time may mean on a day, and how to ask where it is more than one."""
    options = hours(clock, part)
    if clock.ends:
        why = "Midnight at the beginning or at the end of that day?"
        return (options[:1] if today else options), why
    if part and len({one.at for one in options}) == 1:
        return options, "In the night that begins on that day, or in the one that ends then?"
    if part:
        return options, "In the afternoon, or after midnight?"
    return _half(options, today=today, scope=scope), "In the afternoon or in the morning?"


def _half(options: Sequence[Hour], *, today: bool, scope: ReadingContext) -> Sequence[Hour]:
    """Of an hour without am or pm: on other days the usual one; today what is still ahead."""
    if not today or len(options) < 2:
        either = any(one.at.hour == EITHER_HALF for one in options)
        return options if either else options[:1]
    ahead = [one for one in options if one.at > scope.now.time()]
    if len(ahead) < 2 or ahead[0].at < ahead[1].at:
        return ahead[:1] or options[:1]
    return ahead


def _default(day: Day, part: PartOfDay | None) -> time:
    if part is not None:
        return part.clock
    return day.clock or USUAL


def _of_time(said: _SaidMoment, *, scope: ReadingContext, home: ZoneInfo) -> TimeAnswer | None:
    """A time without a day is the next such one."""
    clock, part = said.clock, said.part
    options = hours(clock, part) if clock else (Hour(at=part.clock),) if part else ()
    if not options:
        return None
    if clock and (clock.ends or clock.exact):
        options = options[-1:]
    now = scope.now.replace(tzinfo=None)
    walls: Sequence[datetime] = [_upcoming(one, now) for one in options]
    if len(walls) > 1 and not part:
        walls = _likely(walls, now)
    doubts = said.doubts.with_between("In the morning or in the afternoon?")
    zone = _zone(scope)
    return _answer([wall_moment(one, zone) for one in walls], doubts, scope=scope, home=home)


def _likely(walls: Sequence[datetime], now: datetime) -> Sequence[datetime]:
    """Of the usual half of the day and the other one: one where it is clear, else both."""
    usual, other = walls
    if usual.date() == now.date():
        return walls if other < usual else [usual]
    if other.date() == now.date():
        # "At 8", said in the afternoon, is this evening; said in the morning, who knows.
        return [other] if now.time() >= _NOON else walls
    return [usual] if usual < other else walls


def _upcoming(hour: Hour, now: datetime) -> datetime:
    wall = datetime.combine(now.date() + timedelta(days=hour.days), hour.at)
    return wall if wall > now else wall + timedelta(days=1)


def _zone(scope: ReadingContext) -> ZoneInfo:
    assert isinstance(scope.now.tzinfo, ZoneInfo)
    return scope.now.tzinfo


def _answer(
    moments: Sequence[datetime], doubts: Doubts, *, scope: ReadingContext, home: ZoneInfo
) -> TimeAnswer:
    """A reading where one moment is left and nothing is asked."""
    unique = list(dict.fromkeys(moment.astimezone(UTC) for moment in moments))
    now = scope.now.astimezone(UTC).replace(microsecond=0)
    ahead = [moment for moment in unique if moment >= now]
    if not ahead:
        past = unique[0].astimezone(home)
        text = f"That is over: it was {day_words(past)} at {past:%H:%M}. When is meant?"
        return TimeAsked(text=text, past=past)
    options = [_reading(moment, home) for moment in ahead]
    asks = [*doubts.always, *(doubts.between if len(options) > 1 else ())]
    return TimeAsked(text=" ".join(asks), options=tuple(options)) if asks else options[0]


def _reading(moment: datetime, home: ZoneInfo) -> TimeRead:
    when = At(moment=moment.astimezone(home), zone=home.key)
    sentence = f"once, {moment_words(moment.astimezone(home))}"
    # Also one that is due at this very second has its slot shown.
    return TimeRead(when=when, sentence=sentence, next=(moment.astimezone(UTC),))
