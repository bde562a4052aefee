"""Days by their date: 3 March, the 15th, 2/15, the first Monday of May, Christmas."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta

from scheduler.timetext.days import moved
from scheduler.timetext.numbers import (
    MONTH,
    MONTH_GLUED,
    ORDINAL,
    WEEKDAYS,
    YEAR,
    Make,
    month,
    ordinal,
    rule,
    weekday,
)
from scheduler.timetext.pieces import Date, Day, Edge, Nth, Piece, ReadingContext, Refuse, Rule

_NUMBER = r"\d{1,2}"
_ORD = rf"(?:{ORDINAL})"
_DAY = rf"(?:{ORDINAL}|{_NUMBER}(?![\d:.%]))"
_DAYS = rf"(?P<days>{_DAY}(?:(?:, and|,| and|/| &) (?:the )?{_DAY})*)".replace(
    "(?:, and|,| and|/| &) ", r"(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*)"
)
_SOME_YEAR = rf"(?:,? (?P<year>{YEAR}(?![:\d])))?"
_ON = r"(?:(?:on|for) )?(?:the )?"
_MONTH = rf"(?P<month>{MONTH})"
_PLACES = (
    rf"(?:(?:(?:{ORDINAL})(?: to)? (?:the )?last|last|{ORDINAL})"
    rf"(?:(?:\s*,\s*|\s+and\s+)(?:last|{ORDINAL}))*)"
)
_PLACE = rf"(?P<place>{_PLACES})"
_NTH = rf"{_PLACES} {WEEKDAYS}"
_EACH_NTH = re.compile(rf"{_PLACE} (?P<day>{WEEKDAYS})".replace(" ", r"\s+"))
_THIS = r"(?P<which>this|the current|current|next|the next|last|the last|previous|the previous)"
_STEPS = {"this": 0, "current": 0, "next": 1, "last": -1, "previous": -1}

_TOO_FAR = (
    "Counting from the end of a month works for the last day and the last weekday of a kind only. "
    "Name the day another way."
)


def _numbers(text: str) -> tuple[int, ...]:
    found = re.findall(rf"{_ORD}|\d+".replace(" ", r"\s+"), text)
    return tuple(int(word) if word.isdigit() else ordinal(word) for word in found)


def _is_day(day: int, of_month: int, year: int = 0) -> bool:
    """29 February is one where the year is left open."""
    longest = monthrange(year or 2000, of_month or 1)[1]
    return 1 <= day <= longest


# --- written out ----------------------------------------------------------------------------------


def _date(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    given = match.groupdict()
    days, year = _numbers(match["days"]), int(given.get("year") or 0)
    named = month(match["month"])
    if not all(_is_day(day, named, year) for day in days):
        return None
    return Date(days=days, month=named, year=year)


def _of_month(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """The 20th of the next month."""
    first = moved(scope.today.replace(day=1), months=_STEPS[match["which"].split()[-1]])
    days = _numbers(match["days"])
    if not all(_is_day(day, first.month, first.year) for day in days):
        return None
    return Date(days=days, month=first.month, year=first.year)


def _day(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    days = _numbers(match["days"])
    return Date(days=days) if all(_is_day(day, 0) for day in days) else None


def _short(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """31-Oct-74, Feb13."""
    year = match.groupdict().get("year") or ""
    day, named = int(match["days"]), month(match["month"])
    full = _full_year(year, scope) if year else 0
    return Date(days=(day,), month=named, year=full) if _is_day(day, named, full) else None


def _full_year(text: str, scope: ReadingContext) -> int:
    """Of two digits the century that is nearest to now."""
    if len(text) == 4:
        return int(text)
    year = scope.today.year // 100 * 100 + int(text)
    return year - 100 if year > scope.today.year + 50 else year


# --- in digits ------------------------------------------------------------------------------------


def _iso(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    try:
        found = date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        return None
    return Date(days=(found.day,), month=found.month, year=found.year)


def _digits(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """2/15, 15.2.2027: where both orders are dates, both are kept, the usual one first."""
    first, second, sign = int(match["first"]), int(match["second"]), match["sign"]
    year = _full_year(match["year"], scope) if match["year"] else 0
    orders = (
        [(first, second), (second, first)] if sign == "." else [(second, first), (first, second)]
    )
    fitting = [
        (day, named)
        for day, named in dict.fromkeys(orders)
        if 1 <= named <= 12 and _is_day(day, named, year)
    ]
    if not fitting:
        return None
    (day, named), *others = fitting
    found = tuple(date(year or 2000, other, number) for number, other in others)
    return Date(days=(day,), month=named, year=year, orders=found)


# --- by place -------------------------------------------------------------------------------------


def _places(text: str) -> tuple[int, ...] | None:
    """First is 1, last is -1, second to last is -2."""
    found = []
    for word in re.split(r"\s*,\s*|\s+and\s+", text):
        *before, last = word.split()
        if last != "last":
            found.append(ordinal(word))
        else:
            numbers = [one for one in before if one not in {"to", "the"}]
            found.append(-ordinal(" ".join(numbers)) if numbers else -1)
    return tuple(found) if all(-31 <= one <= 31 for one in found) else None


def _nth(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    given = match.groupdict()
    pairs: list[tuple[int, int]] = []
    for part in _EACH_NTH.finditer(match["all"]):
        places = _places(part["place"])
        if places is None or not all(-5 <= place <= 5 for place in places):
            return None
        pairs += [(place, weekday(part["day"])) for place in places]
    year = int(given.get("year") or 0)
    if given.get("which"):
        first = moved(scope.today.replace(day=1), months=_STEPS[match["which"].split()[-1]])
        return Nth(pairs=tuple(pairs), month=first.month, year=first.year)
    named = month(given["month"]) if given.get("month") else 0
    return Nth(pairs=tuple(pairs), month=named, year=year)


def _place_of_month(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """The last day of May, the fifth last day of May."""
    places = _places(match["place"])
    if places is None or len(places) != 1 or (places[0] > 0 and "day" not in match[0]):
        return None
    named = month(match["month"])
    year = int(match["year"] or 0)
    first = date(year or scope.today.year, named, 1)
    found = _counted(first, places[0])
    if found and not year and found < scope.today:
        found = _counted(moved(first, months=12), places[0])
    return Day(days=(found,)) if found else None


def _place_of_that_month(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """The last day of the month: of this one, unless that is over."""
    places = _places(match["place"])
    if places is None or len(places) != 1:
        return None
    steps = _STEPS[match["which"].split()[-1]] if match["which"] else 0
    first = moved(scope.today.replace(day=1), months=steps)
    found = _counted(first, places[0])
    if found and not match["which"] and found < scope.today:
        found = _counted(moved(first, months=1), places[0])
    return Day(days=(found,)) if found else None


def _counted(first: date, place: int) -> date | None:
    """The day at this place of a month, counted from its end where it is negative."""
    last = monthrange(first.year, first.month)[1]
    day = place if place > 0 else last + 1 + place
    return first.replace(day=day) if 1 <= day <= last else None


def _place_of_year(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    place = int(match["place"][:-2])
    start = date(int(match["year"]), 1, 1)
    found = start + timedelta(days=place - 1)
    return Day(days=(found,)) if place >= 1 and found.year == start.year else None


def _edge_of_months(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Beginning, end, last day, last: of which months is said beside it."""
    places = _places(match["place"]) if match["place"] else None
    if match["edge"]:
        return Edge(day=-1 if match["edge"] == "end" else 1)
    if places is None or len(places) != 1:
        return None
    if places[0] > 0 and not re.search(r"\s(?:day|of)\b", match[0]):
        return None
    return Refuse(why=_TOO_FAR) if places[0] < -1 else Edge(day=places[0])


# --- feasts ---------------------------------------------------------------------------------------


def easter(year: int) -> date:
    """Easter Sunday of the western churches (the anonymous Gregorian algorithm)."""
    golden, century = year % 19, year // 100
    moon = (century - century // 4 - (8 * century + 13) // 25 + 19 * golden + 15) % 30
    moon -= moon // 28 * (1 - moon // 28 * (29 // (moon + 1)) * ((21 - golden) // 11))
    weekday_of_moon = (year + year // 4 + moon + 2 - century + century // 4) % 7
    after = moon - weekday_of_moon
    found = 3 + (after + 40) // 44
    return date(year, found, after + 28 - 31 * (found // 4))


_FIXED = {
    r"christmas eve|xmas eve": (12, 24),
    r"christmas(?: day)?|xmas(?: day)?": (12, 25),
    r"boxing day": (12, 26),
    r"new year'?s eve|silvester": (12, 31),
    r"new year'?s(?: day)?|new year": (1, 1),
    r"epiphany": (1, 6),
    r"(?:st\.? |saint )?valentine'?s?(?: day)?": (2, 14),
    r"(?:the )?ides of march": (3, 15),
    r"(?:st\.?|saint) (?:patrick|paddy)'?s(?: day)?": (3, 17),
    r"april fools?'?s?'?(?: day)?": (4, 1),
    r"may day": (5, 1),
    r"independence day": (7, 4),
    r"hallowe'?en(?: day)?": (10, 31),
    r"all saints'?(?: day)?": (11, 1),
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


def _fixed(found: tuple[int, int]) -> Make:
    def make(match: re.Match[str], scope: ReadingContext) -> Piece:
        return Date(days=(found[1],), month=found[0], year=_feast_year(match, scope))

    return make


def _movable(offset: int) -> Make:
    def make(match: re.Match[str], scope: ReadingContext) -> Piece:
        year = _feast_year(match, scope)
        found = easter(year or scope.today.year) + timedelta(days=offset)
        if not year and found < scope.today:
            found = easter(scope.today.year + 1) + timedelta(days=offset)
        return Day(days=(found,))

    return make


def _thanksgiving(match: re.Match[str], scope: ReadingContext) -> Piece:
    """The fourth Thursday of November, in the United States; the Friday after it."""
    year = _feast_year(match, scope)
    days = 1 if match["name"].startswith("black") else 0
    found = [
        next(
            date(one, 11, day) + timedelta(days=days)
            for day in range(22, 29)
            if date(one, 11, day).weekday() == 3
        )
        for one in (year or scope.today.year, scope.today.year + 1)
    ]
    return Day(days=(found[0] if year or found[0] >= scope.today else found[1],))


def _feast_year(match: re.Match[str], scope: ReadingContext) -> int:
    if match["year"]:
        return int(match["year"])
    which = {"next year": 1, "this year": 0, "last year": -1}.get(match["which"] or "")
    return 0 if which is None else scope.today.year + which


_OF_YEAR = rf"(?:(?:,| in| of)? (?:(?P<year>{YEAR})|(?P<which>(?:this|next|last) year)))?"


def _feast(name: str, make: Make) -> Rule:
    return rule(rf"(?:(?:on|at) )?(?:this |next |the next )?(?P<name>{name}){_OF_YEAR}", make)


FEASTS: tuple[Rule, ...] = (
    *(_feast(name, _fixed(found)) for name, found in _FIXED.items()),
    *(_feast(name, _movable(offset)) for name, offset in _FROM_EASTER.items()),
    _feast(r"thanksgiving(?: day)?|black friday", _thanksgiving),
)

_OF = r"(?:(?: of| in|,)?(?: the)?)"

DATES: tuple[Rule, ...] = (
    rule(rf"{_ON}{_DAYS}(?: day)?(?: of)? {_MONTH}{_SOME_YEAR}", _date),
    rule(rf"{_ON}{_MONTH}(?: the)? {_DAYS}{_SOME_YEAR}", _date),
    rule(rf"{_ON}{_DAYS} of (?:the )?{_THIS} month", _of_month),
    rule(rf"on the (?P<days>{ORDINAL}(?:(?:,| and) (?:the )?{ORDINAL})*)(?: day)?", _day),
    rule(r"(?:on )?(?:the )?(?P<days>\d{1,2}(?:st|nd|rd|th)"
         r"(?:(?:,| and) (?:the )?\d{1,2}(?:st|nd|rd|th))*)(?: day)?", _day),
    rule(rf"(?:on )?(?:the )?(?P<days>{ORDINAL}(?:(?:,| and) (?:the )?{ORDINAL})*)(?: day)?"
         r"(?= (?:of )?(?:the|each|every|a) )", _day),
    rule(rf"{_ON}(?P<days>\d{{1,2}})[-/ ]?{_MONTH}(?:[-/ ]?'?(?P<year>\d{{4}}|\d{{2}}))?".replace(
         "[-/ ]?", r"[-/\s]?"), _short),
    rule(rf"{_ON}(?P<month>{MONTH_GLUED})(?P<days>\d{{1,2}})", _short),
    rule(r"(?:on )?(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})", _iso),
    rule(r"(?:on )?(?:the )?(?P<first>\d{1,2})\s*(?P<sign>[-/.])\s*(?P<second>\d{1,2})"
         r"(?:\s*(?P=sign)\s*(?P<year>\d{4}|\d{2})|(?!\s*(?P=sign)\s*\d))\.?"
         r"(?!\s*[ap]\.?\s?m\b)(?P<end>)", _digits),
    rule(rf"{_ON}(?P<all>{_NTH}){_OF} {_MONTH}{_SOME_YEAR}", _nth),
    rule(rf"{_ON}(?P<all>{_NTH}){_OF} {_THIS} month", _nth),
    rule(rf"{_ON}(?P<all>{_NTH}(?:(?:,| and) (?:the )?{_NTH})*)", _nth),
    rule(rf"{_ON}{_PLACE}(?: day)?(?: of| in)? {_MONTH}{_SOME_YEAR}", _place_of_month),
    rule(rf"{_ON}{_PLACE} day of (?:{_THIS}|the) month", _place_of_that_month),
    rule(rf"{_ON}(?P<place>\d{{1,3}}(?:st|nd|rd|th)) day (?:of|in) (?P<year>{YEAR})",
         _place_of_year),
    rule(rf"(?:(?:on|at) )?(?:the )?(?:(?P<edge>beginning|start|end)|{_PLACE}(?: day)?)"
         r"(?: of(?= (?:the month|each|every))(?: the month)?)?", _edge_of_months),
)  # fmt: skip
