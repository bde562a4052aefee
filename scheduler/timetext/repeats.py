"""Words of repetition: every weekday, every second Friday, every 3 hours, monthly; and feasts,
which come each year.
"""

from __future__ import annotations

import re
from datetime import UTC, date, timedelta

from memory.records.jobs import COUNT_MAX, RecurrenceUnit
from scheduler.timetext.days import DURATION, later
from scheduler.timetext.vocabulary import (
    MONTH,
    NUMBER,
    ORDINAL,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Ask,
    Day,
    DayPattern,
    Make,
    Moment,
    NamedDay,
    OfMonth,
    Piece,
    ReadingContext,
    Refuse,
    RepeatLimit,
    RepeatStep,
    Rule,
    Weekdays,
    month,
    rule,
    unit,
    weekday,
    whole,
)

WORKDAYS = (0, 1, 2, 3, 4)
WEEKEND = (5, 6)


def _stepped(count: int, name: str) -> Piece | None:
    """Return a step; None for one that cannot be."""
    if name == "second":
        return Refuse(why="The shortest step is a minute.")
    times, named = {"fortnight": (2, "week"), "quarter": (3, "month")}.get(name, (1, name))
    if not 1 <= count * times <= COUNT_MAX:
        return None
    return RepeatStep(count=count * times, unit=RecurrenceUnit(named))


def _count(text: str | None) -> int:
    if not text:
        return 1
    return 2 if text in {"other", "alternate"} else whole(text)


def _every(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    return _stepped(_count(match.groupdict().get("step")), unit(match["unit"]))


def _every_long(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Every hour and a half, every 2 hours 30 minutes: in minutes."""
    said = match["duration"]
    found = later(scope, f"an {said}" if said.startswith("hour") else said)
    if not isinstance(found, Moment):
        return None
    now = scope.now.astimezone(UTC).replace(microsecond=0)
    minutes, rest = divmod(int((found.at - now).total_seconds()), 60)
    return None if rest else _stepped(minutes, "minute")


def _named(count: int, name: RecurrenceUnit, *, by_place: bool = False) -> Make:
    return lambda match, scope: RepeatStep(count=count, unit=name, by_place=by_place)


def _often(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Twice a day, three times a week, twice every Monday."""
    given = match.groupdict()
    if given.get("days"):
        asks, times = "At which times?", "every Monday at 9 and at 18"
    elif unit(match["unit"]) == "day":
        asks, times = "At which times?", "every day at 9 and at 18"
    else:
        asks, times = "On which days?", "every Monday and Thursday at 9"
    return Ask(why=f"{asks} Say them, as in '{times}' ({match[0]}).")


def _two_meanings(match: re.Match[str], scope: ReadingContext) -> Piece:
    name = match["name"].removeprefix("bi-").removeprefix("bi").removesuffix("ly")
    return Ask(why=f"Every two {name}s, or twice a {name}?")


def _days(text: str) -> tuple[int, ...] | None:
    """Return the days of a list with ranges, in the order of the week; a range may go over
    Sunday."""
    found: set[int] = set()
    for word in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+|\s*&\s*|\s*/\s*", text):
        plain = re.sub(r"\b(?:on|every)\s+", "", word)
        ends = re.split(r"\s*-\s*(?!day|end)|\s+(?:to|through|thru)\s+", plain)
        sets = [_day_set(end) for end in ends]
        if len(sets) == 1:
            found.update(sets[0])
        elif len(sets) == 2 and len(sets[0]) == len(sets[1]) == 1:
            (first,), (last,) = sets
            found.update((first + number) % 7 for number in range((last - first) % 7 + 1))
        else:
            return None
    return tuple(sorted(found))


def _day_set(text: str) -> tuple[int, ...]:
    if re.match(r"week-?d|work|business", text):
        return WORKDAYS
    return WEEKEND if re.match(r"week-?e", text) else (weekday(text),)


def _every_weekday(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    found, weeks = _days(match["days"]), _count(match["step"])
    # "every first Friday" is one of the month.
    if found is None or not 1 <= weeks <= COUNT_MAX or (match["step"] and weeks == 1):
        return None
    return Weekdays(weekdays=found, weeks=weeks)


def _weekdays(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Without "every": sure where the days are in the plural, or go from one to another."""
    text = match["days"]
    found = _days(text)
    if found is None or re.fullmatch(rf"{WEEKDAY}|week-?end", text):
        return None
    sure = re.search(
        r"days\b|week-?ends|(?:mon|tue|wed|thu|thur|fri|sat|sun)s\b"
        r"|\w\s*-\s*(?!day|end)\w|\s(?:to|through|thru)\s|\b(?:week-?day|work|business)",
        text,
    )
    return Weekdays(weekdays=found, sure=bool(sure))


def _runs(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    count = {"once": 1, "twice": 2}.get(match["count"]) or whole(match["count"])
    in_all = re.match(r"for\b|up\b", match[0]) or re.search(r"(?:runs|occurrences)$", match[0])
    return RepeatLimit(runs=count, runs_unsure=count > 1 and not in_all) if count else None


def _except(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """Except in July and August, but not on Fridays."""
    if months := match.groupdict().get("months"):
        found = {month(name) for name in re.findall(MONTH, months)}
        return RepeatLimit(months_out=tuple(sorted(found)))
    days = _days(match["days"])
    return RepeatLimit(weekdays_out=days) if days else None


def _refuse(why: str) -> Make:
    return lambda match, scope: Refuse(why=why)


_EVERY = r"(?:(?:of|in|on|for|once) )?(?:every|each)(?: single)?"
_STEP = rf"(?P<step>other|alternate|{ORDINAL}|{NUMBER})"
_DAY_NAME = rf"(?:{WEEKDAYS}|week-?days?|work(?:ing)? ?days?|business days?|week-?ends?)"
_LIST = (
    rf"(?P<days>{_DAY_NAME}(?:(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*|\s*/\s*|\s*-\s*"
    rf"|\s+(?:to|through|thru)\s+)(?:on\s+)?(?:every\s+)?{_DAY_NAME})*)"
)
_OFTEN = rf"(?:twice|(?:{NUMBER}|several) times)"
_MONTHS = rf"(?P<months>{MONTH}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+or\s+)(?:in\s+)?{MONTH})*)"
_NOT = r"(?:except|but not|excluding|other than)(?: for)?"
_DAY = rf"(?:{ORDINAL}|\d{{1,2}})"
_DATE_FOLLOWS = (
    rf"(?= (?:the )?{_DAY}(?: and (?:the )?{_DAY})*(?: of)? {MONTH}"
    rf"| {MONTH} (?:the )?\d| (?:christmas|xmas|new year|hallowe|valentine|st\.? |saint|boxing"
    rf"|may day|april fool|easter|good friday|pentecost|thanksgiving|black friday))"
)
_PART_FOLLOWS = (
    r"(?= (?:early |late )?(?:morning|afternoon|evening|night|lunch|noon|midday|midnight))"
)

REPEATS: tuple[Rule, ...] = (
    rule(rf"{_EVERY}(?: {_STEP})?\s*(?P<unit>{UNIT})", _every),
    rule(r"(?:every|each) half(?: an)?[- ]hour", _named(30, RecurrenceUnit.MINUTE)),
    rule(r"(?:every|each) quarter(?: of an)?[- ]hour", _named(15, RecurrenceUnit.MINUTE)),
    rule(r"hourly", _named(1, RecurrenceUnit.HOUR)),
    rule(rf"(?:every|each) (?P<duration>{DURATION}|hour and a half)", _every_long),
    rule(r"daily|every ?day|once daily", _named(1, RecurrenceUnit.DAY)),
    rule(r"weekly|once weekly", _named(1, RecurrenceUnit.WEEK)),
    rule(r"fortnightly", _named(2, RecurrenceUnit.WEEK)),
    rule(r"monthly", _named(1, RecurrenceUnit.MONTH)),
    rule(r"quarterly", _named(3, RecurrenceUnit.MONTH)),
    rule(r"yearly|annually", _named(1, RecurrenceUnit.YEAR)),
    rule(r"(?P<name>bi-?(?:week|month|year)ly)", _two_meanings),
    rule(rf"once (?:a|per|every|each) (?P<unit>{UNIT})", _every),
    rule(rf"{_OFTEN} (?:a|per|every|each) (?P<unit>{UNIT})", _often),
    rule(rf"{_OFTEN} (?:every|each) {_LIST}", _often),
    rule(rf"{_EVERY}(?: {_STEP})? {_LIST}", _every_weekday),
    rule(rf"(?P<step>alternate) {_LIST}", _every_weekday),
    rule(rf"(?:(?:on|from) )?{_LIST}", _weekdays),
    rule(rf"(?:every|each){_DATE_FOLLOWS}", _named(1, RecurrenceUnit.YEAR)),
    rule(rf"(?:every|each)(?=\s+(?:{ORDINAL}|last)(?:\s|$))",
         _named(1, RecurrenceUnit.MONTH, by_place=True)),
    rule(rf"(?:every|each){_PART_FOLLOWS}", _named(1, RecurrenceUnit.DAY)),
    rule(r"(?:for )?(?P<count>once|twice)", _runs),
    rule(rf"(?:for |up to )?(?P<count>{NUMBER})\s?(?:x|times|occurrences|runs)", _runs),
    rule(rf"{_NOT}(?: in| during)? {_MONTHS}", _except),
    rule(rf"{_NOT}(?: on)?(?: every)? {_LIST}", _except),
    rule(rf"{_NOT} [\w/:,.'\s]+", _refuse(
        "Single days cannot be left out, only weekdays and months, as in 'daily except in August'. "
        "Set it without the exception, and pause it for that time."
    )),
    rule(r"(?:in )?(?:calendar )?week \d{1,2}", _refuse(
        "A schedule cannot count the weeks of a year. Name the dates."
    )),
    rule(r"(?:of|in) (?:the|a) month", lambda match, scope: OfMonth()),
)  # fmt: skip


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


FEASTS: tuple[Rule, ...] = (
    *(_feast(name, pattern) for name, pattern in _FEASTS.items()),
    *(_feast(name, offset=offset) for name, offset in _FROM_EASTER.items()),
)
