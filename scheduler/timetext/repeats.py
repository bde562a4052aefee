"""Repetition: every weekday, every second Friday, every 3 hours, monthly, of each month."""

from __future__ import annotations

import re
from datetime import UTC

from memory.records.recurrence import COUNT_MAX, RecurrenceUnit
from scheduler.timetext.days import DURATION, later
from scheduler.timetext.numbers import (
    MONTH,
    NUMBER,
    ORDINAL,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    Make,
    month,
    number,
    ordinal,
    quantity,
    rule,
    unit,
    weekday,
)
from scheduler.timetext.pieces import (
    Ask,
    Except,
    Moment,
    OfMonth,
    Piece,
    ReadingContext,
    Refuse,
    RepeatCount,
    RepeatStep,
    Rule,
    Weekdays,
)

WORKDAYS = (0, 1, 2, 3, 4)
WEEKEND = (5, 6)

_EVERY = r"(?:(?:of|in|on|for|once) )?(?:every|each)(?: single)?"
_STEP = rf"(?P<step>other|alternate|{ORDINAL}|{NUMBER})"
_DAY_NAME = rf"(?:{WEEKDAYS}|week-?days?|work(?:ing)? ?days?|business days?|week-?ends?)"
_LIST = (
    rf"(?P<days>{_DAY_NAME}(?:(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*|\s*/\s*|\s*-\s*"
    rf"|\s+(?:to|through|thru)\s+)(?:on\s+)?(?:every\s+)?{_DAY_NAME})*)"
)


def _count(text: str | None) -> int:
    if not text:
        return 1
    if text in {"other", "alternate"}:
        return 2
    if re.fullmatch(r"\d+", text):
        return int(text)
    return ordinal(text) if re.fullmatch(ORDINAL.replace(" ", r"\s+"), text) else number(text)


def stepped(count: int, name: str) -> Piece | None:
    """None for a step that cannot be."""
    if name == "second":
        return Refuse(why="The shortest step is a minute.")
    if name == "fortnight":
        count, name = 2 * count, "week"
    if name == "quarter":
        count, name = 3 * count, "month"
    return RepeatStep(count=count, unit=RecurrenceUnit(name)) if 1 <= count <= COUNT_MAX else None


def _every(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    return stepped(_count(match["step"]), unit(match["unit"]))


def _every_long(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Every hour and a half, every 2 hours 30 minutes: in minutes."""
    said = match["duration"]
    found = later(scope, f"an {said}" if said.startswith("hour") else said)
    if not isinstance(found, Moment):
        return None
    now = scope.now.astimezone(UTC).replace(microsecond=0)
    minutes, rest = divmod(int((found.at - now).total_seconds()), 60)
    return None if rest else stepped(minutes, "minute")


def _half_hour(match: re.Match[str], scope: ReadingContext) -> Piece:
    return RepeatStep(
        count=30 if match["part"].startswith("half") else 15, unit=RecurrenceUnit.MINUTE
    )


def _named(count: int, name: RecurrenceUnit) -> Make:
    def make(match: re.Match[str], scope: ReadingContext) -> Piece:
        return RepeatStep(count=count, unit=name)

    return make


def _a(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Once a week."""
    return stepped(1, unit(match["unit"]))


def _often(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    name = unit(match["unit"]) if match["unit"] else "day"
    if name == "day":
        return Ask(why=f"At which times? Say them, as in 'every day at 9 and at 18' ({match[0]}).")
    return Ask(why=f"On which days? Say them, as in 'every Monday and Thursday at 9' ({match[0]}).")


def _often_weekday(match: re.Match[str], scope: ReadingContext) -> Piece:
    return Ask(why=f"At which times? Say them, as in 'every Monday at 9 and at 18' ({match[0]}).")


def _two_meanings(match: re.Match[str], scope: ReadingContext) -> Piece:
    name = match["name"].removeprefix("bi-").removeprefix("bi").removesuffix("ly")
    return Ask(why=f"Every two {name}s, or twice a {name}?")


def _days(text: str) -> tuple[int, ...] | None:
    """Of a list with ranges, in the order of the week; a range may go over Sunday."""
    found: list[int] = []
    words = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+|\s*&\s*|\s*/\s*", text)
    for word in words:
        plain = re.sub(r"\b(?:on|every)\s+", "", word)
        ends = re.split(r"\s*-\s*(?!day|end)|\s+(?:to|through|thru)\s+", plain)
        if len(ends) == 1:
            found += _day_set(ends[0])
            continue
        sets = [_day_set(end) for end in ends]
        if len(sets) != 2 or any(len(one) != 1 for one in sets):
            return None
        (first,), (last,) = sets
        found += [(first + n) % 7 for n in range((last - first) % 7 + 1)]
    return tuple(sorted(set(found)))


def _day_set(text: str) -> tuple[int, ...]:
    if re.match(r"week-?d|work|business", text):
        return WORKDAYS
    return WEEKEND if re.match(r"week-?e", text) else (weekday(text),)


def _every_weekday(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    found = _days(match["days"])
    if found is None or not 1 <= (weeks := _count(match["step"])) <= COUNT_MAX:
        return None
    if match["step"] and weeks == 1:  # "every first Friday" is one of the month
        return None
    return Weekdays(weekdays=found, weeks=weeks)


def _weekdays(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Without "every": sure where the days are in the plural, or go from one to another."""
    if (found := _days(match["days"])) is None:
        return None
    text = match["days"]
    plural = re.search(r"days\b|week-?ends|(?:mon|tue|wed|thu|thur|fri|sat|sun)s\b", text)
    to = re.search(r"\w\s*-\s*(?!day|end)\w|\s(?:to|through|thru)\s", text)
    workdays = re.search(r"\b(?:week-?day|work|business)", text)
    alone = re.fullmatch(WEEKDAY.replace(" ", r"\s+"), text)
    if alone or (re.fullmatch(r"week-?end", text)):
        return None
    return Weekdays(weekdays=found, sure=bool(plural or to or workdays))


def _yearly(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    return (
        RepeatStep(count=count, unit=RecurrenceUnit.YEAR)
        if (count := _count(match["step"]))
        else None
    )


def _monthly(match: re.Match[str], scope: ReadingContext) -> Piece:
    return RepeatStep(count=1, unit=RecurrenceUnit.MONTH, by_place=True)


def _times(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    count = {"once": 1, "twice": 2}.get(match["count"]) or quantity(match["count"])
    if count != int(count) or count < 1:
        return None
    in_all = re.match(r"for\b|up\b", match[0]) or re.search(r"(?:runs|occurrences)$", match[0])
    return RepeatCount(count=int(count), sure=count == 1 or in_all is not None)


def _except(match: re.Match[str], scope: ReadingContext) -> Piece:
    found = re.findall(MONTH, match["months"])
    return Except(months=tuple(sorted({month(name) for name in found})))


def _except_weekdays(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    return Except(weekdays=found) if (found := _days(match["days"])) else None


def _except_days(match: re.Match[str], scope: ReadingContext) -> Piece:
    why = (
        "Single days cannot be left out, only weekdays and months, as in 'daily except in August'. "
        "Set it without the exception, and pause it for that time."
    )
    return Refuse(why=why)


def _of_month(match: re.Match[str], scope: ReadingContext) -> Piece:
    return OfMonth()


def _weeks_of_year(match: re.Match[str], scope: ReadingContext) -> Piece:
    return Refuse(why="A schedule cannot count the weeks of a year. Name the dates.")


_MONTHS = rf"(?P<months>{MONTH}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+or\s+)(?:in\s+)?{MONTH})*)"
_NOT = r"(?:except|but not|excluding|other than)(?: for)?"
_DAY = rf"(?:{ORDINAL}|\d{{1,2}})"
_DATE_FOLLOWS = (
    rf"(?= (?:the )?{_DAY}(?: and (?:the )?{_DAY})*(?: of)? {MONTH}"
    rf"| {MONTH} (?:the )?\d| (?:christmas|xmas|new year|hallowe|valentine|st\.? |saint|boxing"
    rf"|may day|april fool|easter|good friday|pentecost|thanksgiving|black friday))"
).replace(" ", r"\s+")
_PLACE_FOLLOWS = rf"(?=\s+(?:{ORDINAL}|last)(?:\s|$))"

REPEATS: tuple[Rule, ...] = (
    rule(rf"{_EVERY}(?: {_STEP})?\s*(?P<unit>{UNIT})", _every),
    rule(r"(?:every|each) (?P<part>half(?: an)?[- ]hour|quarter(?: of an)?[- ]hour)", _half_hour),
    rule(r"hourly", _named(1, RecurrenceUnit.HOUR)),
    rule(rf"(?:every|each) (?P<duration>{DURATION}|hour and a half)", _every_long),
    rule(r"daily|every ?day|once daily", _named(1, RecurrenceUnit.DAY)),
    rule(r"weekly|once weekly", _named(1, RecurrenceUnit.WEEK)),
    rule(r"fortnightly", _named(2, RecurrenceUnit.WEEK)),
    rule(r"monthly", _named(1, RecurrenceUnit.MONTH)),
    rule(r"quarterly", _named(3, RecurrenceUnit.MONTH)),
    rule(r"yearly|annually", _named(1, RecurrenceUnit.YEAR)),
    rule(r"(?P<name>bi-?(?:week|month|year)ly)", _two_meanings),
    rule(rf"once (?:a|per|every|each) (?P<unit>{UNIT})", _a),
    rule(rf"(?:twice|(?:{NUMBER}|several) times) (?:a|per|every|each) "
         rf"(?P<unit>{UNIT})", _often),
    rule(rf"(?:twice|(?:{NUMBER}|several) times) (?:every|each) {_LIST}", _often_weekday),
    rule(rf"{_EVERY}(?: {_STEP})? {_LIST}", _every_weekday),
    rule(rf"(?P<step>alternate) {_LIST}", _every_weekday),
    rule(rf"(?:(?:on|from) )?{_LIST}", _weekdays),
    rule(r"(?:every|each)(?P<step>)" + _DATE_FOLLOWS, _yearly),
    rule(r"(?:every|each)" + _PLACE_FOLLOWS, _monthly),
    rule(r"(?:for )?(?P<count>once|twice)", _times),
    rule(rf"(?:for |up to )?(?P<count>{NUMBER})\s?(?:x|times|occurrences|runs)", _times),
    rule(rf"{_NOT}(?: in| during)? {_MONTHS}", _except),
    rule(rf"{_NOT}(?: on)?(?: every)? {_LIST}", _except_weekdays),
    rule(rf"{_NOT} [\w/:,.'\s]+", _except_days),
    rule(r"(?:in )?(?:calendar )?week \d{1,2}", _weeks_of_year),
    rule(r"(?:every|each)(?= (?:early |late )?(?:morning|afternoon|evening|night|lunch|noon"
         r"|midday|midnight))", _named(1, RecurrenceUnit.DAY)),
    rule(r"(?:of|in) (?:the|a) month", _of_month),
)  # fmt: skip
