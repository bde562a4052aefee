"""Days: tomorrow, next Friday, in 3 days, 3 March, the first Monday of May, Christmas, end of
month.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from scheduler.timetext.vocabulary import (
    COUNT,
    MONTH,
    MONTH_GLUED,
    NUMBER,
    ORDINAL,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Ask,
    Day,
    DayPattern,
    Moment,
    NamedDay,
    Piece,
    ReadingContext,
    Rule,
    compiled,
    month,
    moved,
    rule,
    unit,
    value,
    weekday,
    whole,
)

SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7, "fortnight": 14}
_WEEK = timedelta(weeks=1)

DURATION = rf"{COUNT}\s*(?:more )?{UNIT}(?:(?:,| and|, and)? {COUNT}\s*{UNIT})*(?: and a half)?"
_ONE = compiled(rf"(?P<count>{COUNT})\s*(?:more )?(?P<unit>{UNIT})(?P<half> and a half)?")
_WHICH = r"(?P<which>this|next|coming|upcoming|following|last|past|previous|current|the)"
_STEPS = {
    **dict.fromkeys(("this", "current"), 0),
    **dict.fromkeys(("next", "coming", "following", "upcoming"), 1),
    **dict.fromkeys(("last", "past", "previous"), -1),
}


# --- counted from now ---------------------------------------------------------------------------


def later(scope: ReadingContext, text: str, *, sign: int = 1) -> Moment | Day | None:
    """Return what comes a duration after now: what has hours or minutes passes, the rest is counted
    by the calendar and keeps the time of day. None where there is no such day."""
    day, seconds, by_day = scope.today, Fraction(0), True
    for match in _ONE.finditer(text):
        count, name = value(match["count"]), unit(match["unit"])
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
    """Return the day so many days, weeks, … later; None where that is no whole number of days, or
    past the end of the calendar."""
    count *= _DAYS.get(name) or _MONTHS[name]
    if count.denominator != 1:
        return None
    try:
        if name in _DAYS:
            return day + timedelta(days=int(count))
        return moved(day, months=int(count))
    except OverflowError:
        return None


def _later(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """In 3 days, 2 hours ago, in 2h30."""
    given = match.groupdict()
    said = given["duration"] or f"{given['hours']} hours {given['minutes']} minutes"
    return later(scope, said, sign=-1 if given.get("ago") else 1)


def _in_days(days: int) -> Callable[[re.Match[str], ReadingContext], Piece]:
    return lambda match, scope: Day(days=(scope.today + timedelta(days=days),), today=days == 0)


def _coming(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Return the next three days."""
    found = later(scope, f"{value(match['count'])} {unit(match['unit'])}")
    return found if isinstance(found, Day) else None


# --- weekdays -----------------------------------------------------------------------------------


def monday(day: date) -> date:
    """Return the Monday of the week that holds a day."""
    return day - timedelta(days=day.weekday())


def upcoming(today: date, day: int) -> date:
    """Return the first such weekday after today."""
    return today + timedelta(days=(day - today.weekday() - 1) % 7 + 1)


def former(today: date, day: int) -> date:
    """Return the last such weekday before today."""
    return today - timedelta(days=(today.weekday() - day - 1) % 7 + 1)


def _weekday(match: re.Match[str], scope: ReadingContext) -> Piece:
    words: list[str] = (match["which"] or "").split()
    which = words[-1] if words else ""
    names = {"coming": "this", "upcoming": "this", "past": "last", "previous": "last"}
    pattern = DayPattern(weekdays=(weekday(match["day"]),))
    return NamedDay(patterns=(pattern,), which=names.get(which, which))


def _weekday_of_week(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    if (weeks := _STEPS.get(match["which"])) is None:
        return None
    return Day(
        days=(monday(scope.today) + timedelta(weeks=weeks, days=weekday(match["day"])),),
    )


def _counted_weekday(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Three Fridays from now, two Mondays ago, the Friday after next."""
    given = match.groupdict()
    count = value(given["count"]) if given.get("count") else Fraction(2)
    if count.denominator != 1 or count < 1:
        return None
    day, weeks = weekday(given["day"]), _WEEK * (int(count) - 1)
    if given.get("ago"):
        return Day(days=(former(scope.today, day) - weeks,))
    return Day(days=(upcoming(scope.today, day) + weeks,))


def _week_after_weekday(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """A week from Tuesday, Tuesday week."""
    weeks = value(match["count"]) if match["count"] else Fraction(1)
    if weeks.denominator != 1:
        return None
    day = weekday(match["day"])
    found = upcoming(scope.today, day) + timedelta(weeks=int(weeks))
    if match[0].startswith("in ") and " on " in match[0]:
        within = monday(scope.today) + timedelta(weeks=int(weeks), days=day)
        return Day(days=tuple(dict.fromkeys((within, found))), ask="In which week?")
    return Day(days=(found,))


def _weekend(match: re.Match[str], scope: ReadingContext) -> Piece:
    """Saturday; on a Sunday, the next one."""
    which = match["which"] or ""
    this = monday(scope.today) + timedelta(days=5)
    if _STEPS.get(which) == -1:
        return Day(days=(this - _WEEK,))
    if scope.today > this:
        return Day(days=(this + _WEEK,))
    if which == "next":
        return Day(days=(this + _WEEK, this), ask="The weekend of this week or of the next one?")
    return Day(days=(this,))


# --- weeks, months, quarters and years ----------------------------------------------------------

_LONG = frozenset({"week", "month", "quarter", "year"})
_SHORT_UNITS = {"w": "week", "m": "month", "y": "year"}


def _first_of(steps: int, name: str, today: date) -> date:
    """Return the first day of this (0), the next or the last week, month, quarter or year."""
    match name:
        case "week":
            return monday(today) + timedelta(weeks=steps)
        case "year":
            return date(today.year + steps, 1, 1)
        case "quarter":
            return moved(date(today.year, (today.month - 1) // 3 * 3 + 1, 1), months=3 * steps)
        case _:
            return moved(today.replace(day=1), months=steps)


def _end_of(first: date, name: str) -> date:
    if name == "week":
        return first + timedelta(days=6)
    return moved(first, months=_MONTHS[name]) - timedelta(days=1)


def _period(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    which, name = match["which"], unit(match["unit"])
    if name not in _LONG or which == "the":
        return None
    first = _first_of(_STEPS[which], name, scope.today)
    same = later(scope, f"1 {name}") if which in {"next", "coming", "following"} else None
    days = (first, *(same.days if isinstance(same, Day) else ()))
    if _STEPS[which] == 0 and first < scope.today:
        days = ()  # it has begun: no day of it is likelier than another
    return Day(days=days, ask=f"Which day of {match[0]} is meant?", period=True)


def _edge(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """End of next month, beginning of March, eom."""
    given = match.groupdict()
    is_begin, is_end = given["edge"][0] in {"b", "s"}, given["edge"][0] == "e"
    if given.get("month"):
        name, first = "month", _month_named(match, scope)
    else:
        name = _SHORT_UNITS.get(given["unit"]) or unit(given["unit"])
        which = given.get("which") or "the"
        if name not in _LONG:
            return None
        first = _first_of(_STEPS.get(which, 0), name, scope.today)
        if which == "the" and is_begin and first < scope.today:
            first = _first_of(1, name, scope.today)
    last = _end_of(first, name)
    if is_begin:
        return Day(days=(first,))
    if not is_end:
        return Day(days=(first + (last - first) / 2,), ask="Which day is meant?")
    if name == "week":
        ask = "Does the week end on Friday or on Sunday?"
        return Day(days=(last - timedelta(days=2), last), ask=ask)
    return Day(days=(last,))


def _month_named(match: re.Match[str], scope: ReadingContext) -> date:
    """Return the first day of a month: of the year that is given, else the next one to come."""
    named = month(match["month"])
    if match["year"]:
        return date(int(match["year"]), named, 1)
    first = date(scope.today.year, named, 1)
    return first if _end_of(first, "month") >= scope.today else moved(first, months=12)


def _month(match: re.Match[str], scope: ReadingContext) -> Piece:
    first = _month_named(match, scope)
    begun = not match["year"] and first < scope.today
    ask = f"Which day in {match['month'].title()} is meant?"
    return Day(days=() if begun else (first,), ask=ask, period=True)


# --- dates --------------------------------------------------------------------------------------


def _full_year(text: str | None, scope: ReadingContext) -> int:
    """Return the year, of two digits in the century that is nearest to now; 0 where none is
    given."""
    if not text or len(text) == 4:
        return int(text or 0)
    year = scope.today.year // 100 * 100 + int(text)
    return year - 100 if year > scope.today.year + 50 else year


def _named(*patterns: DayPattern) -> Piece | None:
    """Return the day by those patterns that can be; None where none can."""
    possible = tuple(pattern for pattern in dict.fromkeys(patterns) if pattern.is_possible)
    return NamedDay(patterns=possible) if possible else None


def _in_month(match: re.Match[str], scope: ReadingContext) -> DayPattern:
    """Return the month and the year that are named: March 2027, next month."""
    given = match.groupdict()
    if which := given.get("which"):
        first = moved(scope.today.replace(day=1), months=_STEPS[which])
        return DayPattern(months=(first.month,), year=first.year)
    named = (month(given["month"]),) if given.get("month") else ()
    return DayPattern(months=named, year=_full_year(given.get("year"), scope))


def _date(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """3 March, March third, the 15th and 20th, the 20th of next month, 31-Oct-74."""
    said = re.findall(rf"{ORDINAL}|\d+".replace(" ", r"\s+"), match["days"])
    pattern = _in_month(match, scope).joined(DayPattern(days=tuple(map(whole, said))))
    return _named(pattern) if pattern else None


def _digits(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """2027-02-15, 2/15, 15.2.2027: where both orders are dates, both are kept, the usual one
    first."""
    given = match.groupdict()
    year = _full_year(given["year"], scope)
    first, second = int(given["first"]), int(given["second"])
    orders = [(first, second), (second, first)]
    if given.get("sign") == ".":
        orders.reverse()
    if "sign" not in given:
        orders = orders[:1]
    return _named(
        *(
            DayPattern(months=(of_year,), days=(of_month,), year=year)
            for of_year, of_month in orders
            if 1 <= of_year <= 12
        )
    )


def _places(text: str) -> tuple[int, ...]:
    """Return places: first is 1, last is -1, second to last is -2."""
    found = []
    for word in re.split(r"\s*,\s*|\s+and\s+", text):
        *before, last = word.split()
        if last != "last":
            found.append(whole(word))
        else:
            number = " ".join(one for one in before if one not in {"to", "the"})
            found.append(-whole(number) if number else -1)
    return tuple(found)


def _nth(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Return the first Monday of May, the second and last Friday."""
    pairs = [
        (place, weekday(part["day"]))
        for part in _EACH_NTH.finditer(match["all"])
        for place in _places(part["place"])
    ]
    pattern = _in_month(match, scope).joined(DayPattern(places=tuple(pairs)))
    return _named(pattern) if pattern else None


def _place_of_month(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Return the last day of May, of this month, the fifth last day of May."""
    places = _places(match["place"])
    if len(places) != 1 or (places[0] > 0 and "day" not in match[0]):
        return None
    pattern = _in_month(match, scope).joined(DayPattern(days=places))
    return _named(pattern) if pattern else None


def _place_of_year(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    start = date(int(match["year"]), 1, 1)
    found = start + timedelta(days=int(match["place"][:-2]) - 1)
    return Day(days=(found,)) if found.year == start.year else None


def _of_each_month(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Beginning, end, last day, last: of which months is said beside it."""
    if match["edge"]:
        places: tuple[int, ...] = (-1 if match["edge"] == "end" else 1,)
    else:
        places = _places(match["place"])
        if len(places) != 1 or (places[0] > 0 and not re.search(r"\s(?:day|of)\b", match[0])):
            return None
    pattern = DayPattern(days=places)
    return NamedDay(patterns=(pattern,), of_each=True) if pattern.is_possible else None


# --- feasts -------------------------------------------------------------------------------------


def easter(year: int) -> date:
    """Return Easter Sunday of the western churches (the anonymous Gregorian algorithm)."""
    golden, century = year % 19, year // 100
    moon = (century - century // 4 - (8 * century + 13) // 25 + 19 * golden + 15) % 30
    moon -= moon // 28 * (1 - moon // 28 * (29 // (moon + 1)) * ((21 - golden) // 11))
    weekday_of_moon = (year + year // 4 + moon + 2 - century + century // 4) % 7
    after = moon - weekday_of_moon
    found = 3 + (after + 40) // 44
    return date(year, found, after + 28 - 31 * (found // 4))


_FEASTS = {
    r"christmas eve|xmas eve": DayPattern(months=(12,), days=(24,)),
    r"christmas(?: day)?|xmas(?: day)?": DayPattern(months=(12,), days=(25,)),
    r"boxing day": DayPattern(months=(12,), days=(26,)),
    r"new year'?s eve|silvester": DayPattern(months=(12,), days=(31,)),
    r"new year'?s(?: day)?|new year": DayPattern(months=(1,), days=(1,)),
    r"epiphany": DayPattern(months=(1,), days=(6,)),
    r"(?:st\.? |saint )?valentine'?s?(?: day)?": DayPattern(months=(2,), days=(14,)),
    r"(?:the )?ides of march": DayPattern(months=(3,), days=(15,)),
    r"(?:st\.?|saint) (?:patrick|paddy)'?s(?: day)?": DayPattern(months=(3,), days=(17,)),
    r"april fools?'?s?'?(?: day)?": DayPattern(months=(4,), days=(1,)),
    r"may day": DayPattern(months=(5,), days=(1,)),
    r"independence day": DayPattern(months=(7,), days=(4,)),
    r"hallowe'?en(?: day)?": DayPattern(months=(10,), days=(31,)),
    r"all saints'?(?: day)?": DayPattern(months=(11,), days=(1,)),
    r"thanksgiving(?: day)?": DayPattern(months=(11,), places=((4, 3),)),
    # The day after the fourth Thursday: the only Friday of these.
    r"black friday": DayPattern(months=(11,), weekdays=(4,), days=tuple(range(23, 30))),
}
_FROM_EASTER = {
    r"mardi gras|shrove tuesday|fat tuesday": -47,
    r"ash wednesday": -46,
    r"palm sunday": -7,
    r"maundy thursday": -3,
    r"good friday": -2,
    r"easter(?: sunday)?": 0,
    r"easter monday": 1,
    r"ascension(?: day)?": 39,
    r"pentecost|whit sunday|whitsun": 49,
    r"whit monday|pentecost monday": 50,
    r"trinity sunday": 56,
    r"corpus christi": 60,
}


def _feast(name: str, pattern: DayPattern | None = None, offset: int = 0) -> Rule:
    """Return the rule of a feast: on the same day each year, or so many days after Easter."""

    def made(match: re.Match[str], scope: ReadingContext) -> Piece | None:
        steps = {"next year": 1, "this year": 0, "last year": -1}.get(match["which"] or "")
        year = int(match["year"] or 0) if steps is None else scope.today.year + steps
        if pattern is not None:
            named = pattern.joined(DayPattern(year=year))
            return NamedDay(patterns=(named,)) if named else None
        found = easter(year or scope.today.year) + timedelta(days=offset)
        if not year and found < scope.today:
            found = easter(scope.today.year + 1) + timedelta(days=offset)
        return Day(days=(found,))

    of_year = rf"(?:(?:,| in| of)? (?:(?P<year>{YEAR})|(?P<which>(?:this|next|last) year)))?"
    return rule(rf"(?:(?:on|at) )?(?:this |next |the next )?(?P<name>{name}){of_year}", made)


# --- the rules ----------------------------------------------------------------------------------


_DAY = rf"(?:{ORDINAL}|\d{{1,2}}(?![\d:.%]))"
_DAYS_LISTED = rf"(?P<days>{_DAY}(?:(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*)(?:the )?{_DAY})*)"
_SOME_YEAR = rf"(?:,? (?P<year>{YEAR}(?![:\d])))?"
_ON = r"(?:(?:on|for) )?(?:the )?"
_MONTH = rf"(?P<month>{MONTH})"
_THIS_MONTH = r"(?:the )?(?P<which>this|current|next|last|previous) month"
_PLACES = (
    rf"(?:(?:(?:{ORDINAL})(?: to)? (?:the )?last|last|{ORDINAL})"
    rf"(?:(?:\s*,\s*|\s+and\s+)(?:last|{ORDINAL}))*)"
)
_PLACE = rf"(?P<place>{_PLACES})"
_NTH = rf"{_PLACES} {WEEKDAYS}"
_EACH_NTH = re.compile(rf"{_PLACE} (?P<day>{WEEKDAYS})".replace(" ", r"\s+"))
_OF = r"(?:(?: of| in|,)?(?: the)?)"
_DIGITS_NTH = r"\d{1,2}(?:st|nd|rd|th)"
_PERIOD_UNIT = r"(?P<unit>week|wk|month|quarter|qtr|year|yr)"
_EDGE = r"(?P<edge>beginning|start|middle|mid|end)"

DAYS: tuple[Rule, ...] = (
    # dates
    rule(rf"{_ON}{_DAYS_LISTED}(?: day)?(?: of)? {_MONTH}{_SOME_YEAR}", _date),
    rule(rf"{_ON}{_MONTH}(?: the)? {_DAYS_LISTED}{_SOME_YEAR}", _date),
    rule(rf"{_ON}{_DAYS_LISTED} of {_THIS_MONTH}", _date),
    rule(rf"on the (?P<days>{ORDINAL}(?:(?:,| and) (?:the )?{ORDINAL})*)(?: day)?", _date),
    rule(rf"(?:on )?(?:the )?(?P<days>{_DIGITS_NTH}(?:(?:,| and) (?:the )?{_DIGITS_NTH})*)"
         r"(?: day)?", _date),
    rule(rf"(?:on )?(?:the )?(?P<days>{ORDINAL}(?:(?:,| and) (?:the )?{ORDINAL})*)(?: day)?"
         r"(?= (?:of )?(?:the|each|every|a) )", _date),
    rule(rf"{_ON}(?P<days>\d{{1,2}})[-/\s]?{_MONTH}(?:[-/\s]?'?(?P<year>\d{{4}}|\d{{2}}))?", _date),
    rule(rf"{_ON}(?P<month>{MONTH_GLUED})(?P<days>\d{{1,2}})", _date),
    rule(r"(?:on )?(?P<year>\d{4})[-/](?P<first>\d{1,2})[-/](?P<second>\d{1,2})", _digits),
    rule(r"(?:on )?(?:the )?(?P<first>\d{1,2})\s*(?P<sign>[-/.])\s*(?P<second>\d{1,2})"
         r"(?:\s*(?P=sign)\s*(?P<year>\d{4}|\d{2})|(?!\s*(?P=sign)\s*\d))\.?"
         r"(?!\s*[ap]\.?\s?m\b)(?P<end>)", _digits),
    rule(rf"{_ON}(?P<all>{_NTH}){_OF} {_MONTH}{_SOME_YEAR}", _nth),
    rule(rf"{_ON}(?P<all>{_NTH}){_OF} {_THIS_MONTH}", _nth),
    rule(rf"{_ON}(?P<all>{_NTH}(?:(?:,| and) (?:the )?{_NTH})*)", _nth),
    rule(rf"{_ON}{_PLACE}(?: day)?(?: of| in)? {_MONTH}{_SOME_YEAR}", _place_of_month),
    rule(rf"{_ON}{_PLACE} day of (?:{_THIS_MONTH}|the month)", _place_of_month),
    rule(rf"{_ON}(?P<place>\d{{1,3}}(?:st|nd|rd|th)) day (?:of|in) (?P<year>{YEAR})",
         _place_of_year),
    rule(rf"(?:(?:on|at) )?(?:the )?(?:(?P<edge>beginning|start|end)|{_PLACE}(?: day)?)"
         r"(?: of(?= (?:the month|each|every))(?: the month)?)?", _of_each_month),
    # feasts
    *(_feast(name, pattern) for name, pattern in _FEASTS.items()),
    *(_feast(name, offset=offset) for name, offset in _FROM_EASTER.items()),
    # counted from now
    rule(r"(?:(?:with)?in|after) (?:(?:about|around|approximately|roughly) )?"
         rf"(?P<duration>{DURATION})(?:['’]s?)?(?: time)?", _later),
    rule(r"in (?P<duration>)(?P<hours>\d{1,2})h(?P<minutes>[0-5]\d)(?:m|min)?", _later),
    rule(rf"(?P<duration>{DURATION}) (?:from (?:right )?now|hence|later)", _later),
    rule(rf"(?P<duration>{DURATION}) (?P<ago>ago|back)", _later),
    rule(r"(?:just |right )?now|atm|immediately|at this (?:time|moment)",
         lambda match, scope: Moment(at=scope.now.astimezone(UTC).replace(microsecond=0))),
    rule(r"today|this day", _in_days(0)),
    rule(r"tomm?orr?ow|tmrw|tmr|2morrow", _in_days(1)),
    rule(r"yesterday", _in_days(-1)),
    rule(r"(?:the )?day after tomorrow", _in_days(2)),
    rule(r"(?:the )?day before yesterday", _in_days(-2)),
    rule(rf"(?:in )?(?:the )?(?:next|upcoming|coming) (?P<count>{NUMBER}|few|couple of) "
         rf"(?P<unit>{UNIT})", _coming),
    rule(rf"(?P<count>{NUMBER}) (?:upcoming|coming) (?P<unit>{UNIT})", _coming),
    # weekdays
    rule(r"(?:(?:on|for) )?"
         r"(?:(?P<which>(?:this )?(?:coming|upcoming)|this|next|last|past|previous) )?"
         rf"(?P<day>{WEEKDAY})", _weekday),
    rule(rf"(?:on )?(?P<day>{WEEKDAY}),?(?: (?:of|in|from))?(?: the)? {_WHICH} week",
         _weekday_of_week),
    rule(rf"{_WHICH} week(?:,? on|['’]s)? (?P<day>{WEEKDAY})", _weekday_of_week),
    rule(rf"(?:the )?(?P<day>{WEEKDAY}) after next", _counted_weekday),
    rule(rf"(?P<count>{COUNT}) (?P<day>{WEEKDAYS}) (?:from now|hence|(?P<ago>ago|back))",
         _counted_weekday),
    rule(rf"(?:in )?(?P<count>{COUNT}) w(?:ee)?ks? (?:from|on|after) (?P<day>{WEEKDAY})",
         _week_after_weekday),
    rule(rf"(?:on )?(?P<day>{WEEKDAY})(?P<count>) week", _week_after_weekday),
    # weeks, months, quarters and years
    rule(rf"(?:(?:in|around|during) )?(?:the )?{_WHICH} {_PERIOD_UNIT}", _period),
    rule(rf"(?:(?:at|on|in) )?(?:the )?{_EDGE}(?: of)?(?: the)?(?: around)?(?: {_WHICH})? "
         rf"{_PERIOD_UNIT}", _edge),
    rule(r"(?:at )?(?:the )?(?P<edge>[eb])o(?P<unit>[wmy])", _edge),
    rule(rf"(?:(?:at|on|in) )?(?:the )?{_EDGE}(?: of |\s|-)(?P<month>{MONTH})"
         rf"(?:,? (?P<year>{YEAR}))?", _edge),
    rule(rf"(?:in )?(?P<month>{MONTH})(?:,? (?P<year>{YEAR}))?", _month),
    rule(rf"in (?P<year>{YEAR})",
         lambda match, scope: Day(days=(date(int(match["year"]), 1, 1),), period=True,
                                  ask="Which day is meant?")),
    rule(rf"(?:(?:at|on|over|in) )?(?:the )?(?:{_WHICH} )?week-?\s?end", _weekend),
)  # fmt: skip

VAGUE = rule(
    r"(?:some time |sometime )?(?:soon|later|later today|asap|some ?day|one day|whenever)"
    r"|in a (?:bit|while|moment)|(?:by |at )?(?:the )?(?:end of (?:the )?(?:work(?:ing)? )?day"
    r"|close of business|eod|cob)|(?:after|before|at) (?:work|breakfast|lunch|dinner|supper)",
    lambda match, scope: Ask(why=f"When exactly is {' '.join(match[0].split())!r}?"),
)
