"""Times of day: 5pm, 17:30, half past six, noon, in the evening; and which hour is meant where
neither am nor pm is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import time
from typing import NamedTuple

from scheduler.timetext.vocabulary import (
    COUNT,
    ONES,
    TENS,
    WORD,
    Clocks,
    Found,
    PartOfDay,
    ReadingContext,
    Refuse,
    TimeOfDay,
    TimeSpan,
    Zone,
    compiled,
    value,
    whole,
)

CLOCKS_MAX = 8

USUAL = time(9)
"""For a day without a time."""

PARTS = {
    "early morning": time(7),
    "morning": time(9),
    "lunch": time(12),
    "lunchtime": time(12),
    "afternoon": time(15),
    "evening": time(19),
    "night": time(21),
    "tonight": time(21),
    "tonite": time(21),
    "late evening": time(22),
    "late tonight": time(23),
    "late night": time(23),
}
"""The time that stands for a part of the day."""

_AT = r"(?:(?:at|@|around|about|approximately|for)\s*)*"
_HALF = r"(?P<half>(?:in the )?[ap]\.?\s?m\b\.?|p\b\.?)"
_HOUR_WORD = rf"(?:{'|'.join(ONES[1:13])})"
_HOUR = rf"(?P<hour>\d{{1,2}}|{_HOUR_WORD})"
_MINUTE_WORD = (
    rf"(?:{'|'.join(ONES[10:])}|(?:{'|'.join(TENS[:4])})(?:[- ](?:{'|'.join(ONES[1:10])}))?)"
)
_OCLOCK = r"o['’ ]?clock"

_WRITTEN = [
    compiled(pattern)
    for pattern in (
        _AT + r"(?P<hour>\d{1,2})(?:\s?(?::|(?P<h>h))\s?(?P<minute>\d{2})(?::(?P<second>\d{2}))?)"
        rf"(?:\s*(?:{_HALF}|(?P<short>a)))?(?P<hours>h)?",
        _AT + rf"(?P<hour>\d{{1,2}})\.(?P<minute>\d{{2}})\s*{_HALF}",
        _AT + rf"(?P<hour>{_HOUR_WORD})[ -](?P<minute>{_MINUTE_WORD})(?:\s*{_HALF})",
        _AT + rf"{_HOUR}(?:ish)?(?:\s*{_OCLOCK})?(?:ish)?\s*{_HALF}",
        _AT + r"(?P<hour>\d{1,2})\s?(?P<h>h)",
        _AT + rf"{_HOUR}\s*{_OCLOCK}",
        r"(?:at|@)\s*(?P<hour>\d{1,2})\.(?P<minute>\d{2})(?!\.)",
        r"(?:at|@)\s*(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)(?P<hours>h(?:rs?)?)?",
        rf"(?:(?:at|@|around|about)\s*)+{_HOUR}(?:ish)?"
        rf"(?: (?P<minute>[0-5]\d|{_MINUTE_WORD}))?(?!\s*[:./%$€£]?\d)",
    )
]
"""How a time is written; the first that fits and is on a clock counts."""

_BARE = compiled(_HOUR)
_NAMED = compiled(_AT + r"(?:(?:12|twelve)\s?)?(?P<name>noon|mid\s?day|midnight)")
_PAST = compiled(
    _AT + rf"(?:(?P<half>half)(?: (?:past|after))?|(?P<count>(?:a )?quarter|{WORD}|\d{{1,2}})"
    r"(?P<unit>\s+min(?:ute)?s?)?\s+(?P<way>past|after|to|before|till|til|from))(?=\s)"
)
_BESIDE = compiled(
    rf"(?P<count>{COUNT})\s*(?P<unit>min(?:ute)?s?|h(?:ou)?rs?) (?P<way>after|before)(?=\s)"
)
_PART = compiled(
    r"(?:(?:in|during|at|on) )?(?P<the>the |this )?(?P<name>(?:early |late )?"
    r"(?:morning|afternoon|evening|night|tonight|tonite)|lunch(?:time)?)(?:ish|s)?(?: of)?"
)
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+|\s*&\s*")
_TO = re.compile(r"\s*-\s*|\s+(?:to|till?|until+|thru|through)\s+")
_BETWEEN = re.compile(r"\s+(?:and|to)\s+|\s*-\s*|\s+but\s+before\s+")
_SPANS = compiled(r"(?P<prefix>from|between|later than)(?=\s)")
_ZONE = compiled(r"\(?(?P<name>utc|gmt|z|[a-z]+/[a-z_]+(?:/[a-z_]+)?)(?: time)?\)?")
_SHORT_ZONE = compiled(
    r"(?P<name>[ecmp][sd]t|cest|cet|bst|ist|eest|eet|jst|kst|aest|aedt|msk|sgt|wet|west)"
)
_BLANK = re.compile(r"\s*")


def clocks(text: str, start: int, scope: ReadingContext) -> Found:
    """Yield every way to read a time of day here: one, several, or a span."""
    for end, clock in _clocks(text, start):
        yield from _several(text, end, (clock,))
        yield from _span(text, _TO.match(text, end), clock)
    if match := _SPANS.match(text, start):
        for end, clock in _behind(text, match):
            joined = (_TO if match["prefix"] == "from" else _BETWEEN).match(text, end)
            yield from _span(text, joined, clock)


def parts(text: str, start: int, scope: ReadingContext) -> Found:
    """Yield in the morning, this evening, tonight."""
    if match := _PART.match(text, start):
        name = " ".join(match["name"].split())
        today = name.endswith(("tonight", "tonite")) or (match["the"] or "").strip() == "this"
        # "early evening" is an evening.
        clock = PARTS.get(name) or PARTS[name.split()[-1]]
        yield match.end(), PartOfDay(name=name, clock=clock, today=today)


def zones(text: str, start: int, scope: ReadingContext) -> Found:
    """Yield UTC and IANA names; an abbreviation means several zones and is refused."""
    if match := _ZONE.match(text, start):
        name = "UTC" if match["name"] in {"utc", "gmt", "z"} else match["name"]
        yield match.end(), Zone(name=name)
    if match := _SHORT_ZONE.match(text, start):
        why = (
            f"{match['name'].upper()} is short for more than one time zone. Leave it out to use "
            "your own, or write a name such as Europe/Berlin."
        )
        yield match.end(), Refuse(why=why)


def _clocks(text: str, start: int) -> Iterator[tuple[int, TimeOfDay]]:
    if match := _PAST.match(text, start):
        yield from _past(text, match)
    if match := _BESIDE.match(text, start):
        yield from _beside(text, match)
    if match := _NAMED.match(text, start):
        ends = match["name"] == "midnight"
        yield match.end(), TimeOfDay(hour=0 if ends else 12, exact=True, ends=ends)
    for pattern in (*_WRITTEN, _BARE):
        if (match := pattern.match(text, start)) and (clock := _clock(match)):
            yield match.end(), clock
            return


def _behind(text: str, match: re.Match[str]) -> Iterator[tuple[int, TimeOfDay]]:
    blank = _BLANK.match(text, match.end())
    assert blank is not None, "it matches nothing too"
    return _clocks(text, blank.end())


def _clock(match: re.Match[str]) -> TimeOfDay | None:
    """Return the time; None where no clock shows it."""
    given = match.groupdict()
    hour, minute = whole(given["hour"]), whole(given.get("minute") or "0")
    second = int(given.get("second") or 0)
    half = (given.get("half") or given.get("short") or "").replace("in the", "").strip()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    is_of_24 = hour == 0 or hour > 12 or given["hour"].startswith("0")
    return TimeOfDay(
        hour=hour,
        minute=minute,
        second=second,
        exact=bool(half or is_of_24 or given.get("hours") or given.get("h")),
        by_half=bool(half),
        bare=match.re is _BARE,
    )


def _past(text: str, match: re.Match[str]) -> Iterator[tuple[int, TimeOfDay]]:
    """Yield half past six, ten to noon: of whole hours only."""
    count = match["count"] or ""
    minutes = 15 if count.endswith("quarter") else whole(count) if count else 30
    is_number = count.isdigit() and not match["unit"] and match[0][0].isdigit()
    for end, clock in _behind(text, match):
        if clock.bare and (is_number or match["way"] == "from"):
            continue  # "10 to 5" may be anything
        if clock.minute or clock.second or not 1 <= minutes < 60:
            continue
        is_back = match["way"] in {"to", "before", "till", "til"}
        total = (clock.hour * 60 + (-minutes if is_back else minutes)) % (24 * 60)
        if not clock.exact:
            total = (total - 60) % (12 * 60) + 60  # on a clock face: from 1:00 to 12:59
        yield end, TimeOfDay(hour=total // 60, minute=total % 60, exact=clock.exact)


def _beside(text: str, match: re.Match[str]) -> Iterator[tuple[int, TimeOfDay]]:
    """Yield two hours before 5pm: on the same day, or not at all."""
    length = value(match["count"]) * (60 if match["unit"].startswith("h") else 1)
    if length.denominator != 1:
        return
    minutes = -int(length) if match["way"] == "before" else int(length)
    for end, clock in _behind(text, match):
        total = (24 * 60 if clock.ends and minutes < 0 else clock.hour * 60) + clock.minute
        if clock.exact and 0 <= total + minutes < 24 * 60:
            hour, minute = divmod(total + minutes, 60)
            yield end, TimeOfDay(hour=hour, minute=minute, exact=True)


def _several(text: str, end: int, said: tuple[TimeOfDay, ...]) -> Found:
    """Yield 8am, 12 and 6pm: every further one makes another way to read it."""
    yield end, Clocks(clocks=said)
    if len(said) < CLOCKS_MAX and (match := _AND.match(text, end)):
        for last, clock in _clocks(text, match.end()):
            yield from _several(text, last, (*said, clock))


def _span(text: str, joined: re.Match[str] | None, first: TimeOfDay) -> Found:
    if joined is not None:
        for last, clock in _clocks(text, joined.end()):
            yield last, TimeSpan(first=first, last=clock)


# --- which hour is meant ------------------------------------------------------------------------
#
# An hour without am or pm lies between 7 in the morning and 7 in the evening: 8 is 08:00, 5 is
# 17:00. Of 6 nobody knows; of what is repeated every day, it is asked for 5 too.

DAY_BEGINS = 7
EITHER_HALF = 6
"""An hour that is as likely meant in the morning as in the evening."""

EITHER_HALF_DAILY = (5, 6)
"""Of what comes again and again, a wrong half of the day costs more."""

NIGHT_ENDS = 5
"""Earlier hours belong to the night before as well."""

_HOURS_OF = {
    "morning": range(13),
    "noon": range(12, 24),
    "evening": (*range(15, 24), *range(NIGHT_ENDS)),
    "night": (*range(15, 24), *range(9)),
}


class Hour(NamedTuple):
    """A time of day, `days` later than the day that was named."""

    at: time
    days: int = 0


def hours(clock: TimeOfDay, part: PartOfDay | None) -> tuple[Hour, ...]:
    """Return what may be meant, the likeliest first; none where clock and part contradict each
    other."""
    if clock.ends:
        return (Hour(time(0), 1), Hour(time(0)))
    said = time(clock.hour, clock.minute, clock.second)
    if part is not None and not part.name.startswith("lunch"):
        return _hours_of_part(said, clock, part)
    if clock.exact:
        return (Hour(said),)
    early, late = (said.replace(hour=said.hour % 12 + half) for half in (0, 12))
    return (Hour(late), Hour(early)) if early.hour < DAY_BEGINS else (Hour(early), Hour(late))


def _hours_of_part(said: time, clock: TimeOfDay, part: PartOfDay) -> tuple[Hour, ...]:
    is_late = part.name.endswith(("evening", "night", "tonite"))
    if clock.exact:
        fitting = [hours for name, hours in _HOURS_OF.items() if part.name.endswith(name)]
        if fitting and said.hour not in fitting[0]:
            return ()
        over = said.hour < NIGHT_ENDS and is_late
        return (Hour(said, 1), Hour(said)) if over else (Hour(said),)
    early, late = (said.replace(hour=said.hour % 12 + half) for half in (0, 12))
    if part.name.endswith("morning"):
        return (Hour(early),) if said.hour < 12 else ()
    if is_late and said.hour == 12:
        return (Hour(early, 1),)
    if is_late and early.hour < NIGHT_ENDS:  # at three in the night, or in a long evening
        return (Hour(late), Hour(early, 1))
    return (Hour(late),)
