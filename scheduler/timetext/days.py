"""Days: tomorrow, next Friday, in 3 days, 3 March, the first Monday of May, end of month."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from scheduler.timetext.numbers import (
    COUNT,
    MONTH,
    NUMBER,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Make,
    compiled,
    month,
    quantity,
    rule,
    unit,
    weekday,
)
from scheduler.timetext.pieces import Ask, Day, Moment, Piece, ReadingContext, Rule, Weekday

SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7, "fortnight": 14}

DURATION = rf"{COUNT}\s*(?:more )?{UNIT}(?:(?:,| and|, and)? {COUNT}\s*{UNIT})*(?: and a half)?"
_ONE = compiled(rf"(?P<count>{COUNT})\s*(?:more )?(?P<unit>{UNIT})(?P<half> and a half)?")
_WHICH = r"(?P<which>this|next|coming|upcoming|following|last|past|previous|current|the)"
_WEEK_OF = {
    **dict.fromkeys(("this", "current"), 0),
    **dict.fromkeys(("next", "coming", "following", "upcoming"), 1),
    **dict.fromkeys(("last", "past", "previous"), -1),
}
_EDGE = r"(?P<edge>beginning|start|middle|mid|end)"


# --- arithmetic -----------------------------------------------------------------------------------


def moved(day: date, *, months: int) -> date:
    """The same day of another month, or its last one. Raises OverflowError past the year 9999."""
    total = day.year * 12 + day.month - 1 + months
    year, index = divmod(total, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(f"there is no year {year}")
    return date(year, index + 1, min(day.day, monthrange(year, index + 1)[1]))


def later(scope: ReadingContext, text: str, *, sign: int = 1) -> Moment | Day | None:
    """What comes a duration after now: what has hours or minutes passes, the rest is counted by
    the calendar and keeps the time of day. None where there is no such day.
    """
    day, seconds, by_day = scope.today, Fraction(0), True
    for match in _ONE.finditer(text):
        count, name = quantity(match["count"]), unit(match["unit"])
        if not count:
            return None
        count = (count + (Fraction(1, 2) if match["half"] else 0)) * sign
        if name in SECONDS:
            seconds += count * SECONDS[name]
            by_day = False
        elif (other := shifted(day, count, name)) is not None:
            day = other
        else:
            return None
    if by_day:
        return Day(days=(day,), clock=scope.now.time().replace(second=0, microsecond=0))
    try:
        start = datetime.combine(day, scope.now.timetz())
        at = start.astimezone(UTC) + timedelta(seconds=round(seconds))
        return Moment(at=at.replace(microsecond=0))
    except OverflowError:
        return None


def shifted(day: date, count: Fraction, name: str) -> date | None:
    """None where it is no whole number of days, or past the end of the calendar."""
    try:
        if name in _DAYS:
            days = count * _DAYS[name]
            return day + timedelta(days=int(days)) if days.denominator == 1 else None
        months = count * _MONTHS[name]
        return moved(day, months=int(months)) if months.denominator == 1 else None
    except OverflowError:
        return None


def monday(day: date) -> date:
    """Of the week that holds a day."""
    return day - timedelta(days=day.weekday())


# --- relative -------------------------------------------------------------------------------------


def _in(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    return later(scope, match["duration"])


def _in_hours(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """In 2h30."""
    return later(scope, f"{match['hours']} hours {match['minutes']} minutes")


def _ago(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    return later(scope, match["duration"], sign=-1)


def _near(days: int) -> Make:
    """So many days from today."""

    def make(match: re.Match[str], scope: ReadingContext) -> Piece:
        return Day(days=(scope.today + timedelta(days=days),), today=days == 0)

    return make


def _weekday(match: re.Match[str], scope: ReadingContext) -> Piece:
    which = match["which"] or ""
    name = {"coming": "this", "upcoming": "this", "past": "last", "previous": "last"}
    which = which.split()[-1] if which else ""
    return Weekday(weekday=weekday(match["day"]), which=name.get(which, which))


def _weekday_of_week(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    if (weeks := _WEEK_OF.get(match["which"])) is None:
        return None
    first = monday(scope.today) + timedelta(weeks=weeks)
    return Day(days=(first + timedelta(days=weekday(match["day"])),))


def upcoming(scope: ReadingContext, day: int, n: int = 1) -> date:
    """The n-th such weekday after today."""
    ahead = (day - scope.today.weekday() - 1) % 7 + 1
    return scope.today + timedelta(days=ahead, weeks=n - 1)


def _after_next(match: re.Match[str], scope: ReadingContext) -> Piece:
    return Day(days=(upcoming(scope, weekday(match["day"]), 2),))


def _nth_from_now(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    count = quantity(match["count"])
    if count.denominator != 1 or count < 1:
        return None
    return Day(days=(upcoming(scope, weekday(match["day"]), int(count)),))


def _nth_ago(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    count = quantity(match["count"])
    if count.denominator != 1 or count < 1:
        return None
    back = (scope.today.weekday() - weekday(match["day"]) - 1) % 7 + 1
    return Day(days=(scope.today - timedelta(days=back, weeks=int(count) - 1),))


def _week_after_weekday(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """A week from Tuesday, Tuesday week."""
    weeks = quantity(match["count"]) if match["count"] else Fraction(1)
    if weeks.denominator != 1:
        return None
    day = weekday(match["day"])
    found = upcoming(scope, day) + timedelta(weeks=int(weeks))
    if match[0].startswith("in ") and " on " in match[0]:
        within = monday(scope.today) + timedelta(weeks=int(weeks), days=day)
        return Day(days=tuple(dict.fromkeys((within, found))), ask="In which week?")
    return Day(days=(found,))


# --- periods --------------------------------------------------------------------------------------


def _first_of(which: str, name: str, today: date) -> date:
    """Of this, the next or the last week, month, quarter or year."""
    steps = _WEEK_OF.get(which, 0)
    if name == "week":
        return monday(today) + timedelta(weeks=steps)
    if name == "year":
        return date(today.year + steps, 1, 1)
    if name == "quarter":
        return moved(date(today.year, (today.month - 1) // 3 * 3 + 1, 1), months=3 * steps)
    return moved(today.replace(day=1), months=steps)


def _end_of(first: date, name: str) -> date:
    if name == "week":
        return first + timedelta(days=6)
    return moved(first, months=_MONTHS[name]) - timedelta(days=1)


def _period(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    which, name = match["which"], unit(match["unit"])
    if name not in {"week", "month", "quarter", "year"} or which == "the":
        return None
    first = _first_of(which, name, scope.today)
    same = later(scope, f"1 {name}") if which in {"next", "coming", "following"} else None
    days = (first, *(same.days if isinstance(same, Day) else ()))
    if _WEEK_OF[which] == 0 and first < scope.today:
        days = ()  # it has begun: no day of it is likelier than another
    return Day(days=days, ask=f"Which day of {match[0]} is meant?", period=True)


def _edge(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    name = unit(match["unit"])
    if name not in {"week", "month", "quarter", "year"}:
        return None
    first = _first_of(match["which"] or "this", name, scope.today)
    if match["which"] in {None, "the"} and match["edge"] in {"beginning", "start"}:
        first = first if first >= scope.today else _first_of("next", name, scope.today)
    return _at_edge(match["edge"], first, name)


def _at_edge(edge: str, first: date, name: str) -> Day:
    last = _end_of(first, name)
    if edge in {"beginning", "start"}:
        return Day(days=(first,))
    if edge in {"middle", "mid"}:
        return Day(days=(first + (last - first) / 2,), ask="Which day is meant?")
    if name == "week":
        ask = "Does the week end on Friday or on Sunday?"
        return Day(days=(last - timedelta(days=2), last), ask=ask)
    return Day(days=(last,))


def _short_edge(match: re.Match[str], scope: ReadingContext) -> Piece:
    edge = "end" if match["name"][0] == "e" else "beginning"
    name = {"w": "week", "m": "month", "y": "year"}[match["name"][2]]
    first = _first_of("this", name, scope.today)
    if edge == "beginning" and first < scope.today:
        first = _first_of("next", name, scope.today)
    return _at_edge(edge, first, name)


def _month_of(match: re.Match[str], scope: ReadingContext) -> date:
    """The first day of a named month: of the year that is given, else the next one to come."""
    named = month(match["month"])
    if match["year"]:
        return date(int(match["year"]), named, 1)
    first = date(scope.today.year, named, 1)
    return first if _end_of(first, "month") >= scope.today else moved(first, months=12)


def _month(match: re.Match[str], scope: ReadingContext) -> Piece:
    ask = f"Which day in {match['month'].title()} is meant?"
    first = _month_of(match, scope)
    begun = not match["year"] and first < scope.today
    return Day(days=() if begun else (first,), ask=ask, period=True)


def _month_edge(match: re.Match[str], scope: ReadingContext) -> Piece:
    return _at_edge(match["edge"], _month_of(match, scope), "month")


def _year(match: re.Match[str], scope: ReadingContext) -> Piece:
    return Day(days=(date(int(match["year"]), 1, 1),), ask="Which day is meant?", period=True)


def _weekend(match: re.Match[str], scope: ReadingContext) -> Piece:
    """Saturday; on a Sunday, the next one."""
    which = match["which"] or ""
    this = monday(scope.today) + timedelta(days=5)
    if _WEEK_OF.get(which) == -1:
        return Day(days=(this - timedelta(weeks=1),))
    if scope.today > this:
        return Day(days=(this + timedelta(weeks=1),))
    if which == "next":
        ask = "The weekend of this week or of the next one?"
        return Day(days=(this + timedelta(weeks=1), this), ask=ask)
    return Day(days=(this,))


def _coming(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """The next three days."""
    count, name = quantity(match["count"]), unit(match["unit"])
    found = later(scope, f"{count} {name}")
    return found if isinstance(found, Day) else None


def _nothing_said(match: re.Match[str], scope: ReadingContext) -> Piece:
    return Ask(why=f"When exactly is {' '.join(match[0].split())!r}?")


def _now(match: re.Match[str], scope: ReadingContext) -> Piece:
    return Moment(at=scope.now.astimezone(UTC).replace(microsecond=0))


# --- the rules ------------------------------------------------------------------------------------


_PERIOD_UNIT = r"(?P<unit>week|wk|month|quarter|qtr|year|yr)"

RELATIVE: tuple[Rule, ...] = (
    rule(r"(?:(?:with)?in|after) (?:(?:about|around|approximately|roughly) )?"
         rf"(?P<duration>{DURATION})(?:['’]s?)?(?: time)?", _in),
    rule(r"in (?P<hours>\d{1,2})h(?P<minutes>[0-5]\d)(?:m|min)?", _in_hours),
    rule(rf"(?P<duration>{DURATION}) (?:from (?:right )?now|hence|later)", _in),
    rule(rf"(?P<duration>{DURATION}) (?:ago|back)", _ago),
    rule(r"(?:just |right )?now|atm|immediately|at this (?:time|moment)", _now),
    rule(r"today|this day", _near(0)),
    rule(r"tomm?orr?ow|tmrw|tmr|2morrow", _near(1)),
    rule(r"yesterday", _near(-1)),
    rule(r"(?:the )?day after tomorrow", _near(2)),
    rule(r"(?:the )?day before yesterday", _near(-2)),
    rule(r"(?:(?:on|for) )?"
         r"(?:(?P<which>(?:this )?(?:coming|upcoming)|this|next|last|past|previous) )?"
         rf"(?P<day>{WEEKDAY})", _weekday),
    rule(rf"(?:on )?(?P<day>{WEEKDAY}),?(?: (?:of|in|from))?(?: the)? {_WHICH} week",
         _weekday_of_week),
    rule(rf"{_WHICH} week(?:,? on|['’]s)? (?P<day>{WEEKDAY})", _weekday_of_week),
    rule(rf"(?:the )?(?P<day>{WEEKDAY}) after next", _after_next),
    rule(rf"(?P<count>{COUNT}) (?P<day>{WEEKDAYS}) (?:from now|hence)", _nth_from_now),
    rule(rf"(?P<count>{COUNT}) (?P<day>{WEEKDAYS}) (?:ago|back)", _nth_ago),
    rule(rf"(?:in )?(?P<count>{COUNT}) w(?:ee)?ks? (?:from|on|after) (?P<day>{WEEKDAY})",
         _week_after_weekday),
    rule(rf"(?:on )?(?P<day>{WEEKDAY})(?P<count>) week", _week_after_weekday),
)  # fmt: skip

PERIODS: tuple[Rule, ...] = (
    rule(rf"(?:(?:in|around|during) )?(?:the )?{_WHICH} {_PERIOD_UNIT}", _period),
    rule(rf"(?:(?:at|on|in) )?(?:the )?{_EDGE}(?: of)?(?: the)?(?: around)?(?: {_WHICH})? "
         rf"{_PERIOD_UNIT}", _edge),
    rule(r"(?:at )?(?:the )?(?P<name>[eb]o[wmy])", _short_edge),
    rule(rf"(?:(?:at|on|in) )?(?:the )?{_EDGE}(?: of |\s|-)(?P<month>{MONTH})"
         rf"(?:,? (?P<year>{YEAR}))?", _month_edge),
    rule(rf"(?:in )?(?P<month>{MONTH})(?:,? (?P<year>{YEAR}))?", _month),
    rule(rf"in (?P<year>{YEAR})", _year),
    rule(rf"(?:(?:at|on|over|in) )?(?:the )?(?:{_WHICH} )?week-?\s?end", _weekend),
    rule(rf"(?:in )?(?:the )?(?:next|upcoming|coming) (?P<count>{NUMBER}|few|couple of) "
         rf"(?P<unit>{UNIT})", _coming),
    rule(rf"(?P<count>{NUMBER}) (?:upcoming|coming) (?P<unit>{UNIT})", _coming),
    rule(r"(?:some time |sometime )?(?:soon|later|later today|asap|some ?day|one day|whenever)"
         r"|in a (?:bit|while|moment)|(?:by |at )?(?:the )?(?:end of (?:the )?(?:work(?:ing)? )?day"
         r"|close of business|eod|cob)|(?:after|before|at) (?:work|breakfast|lunch|dinner|supper)",
         _nothing_said),
)  # fmt: skip
