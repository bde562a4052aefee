"""Times of day: 5pm, 17:30, half past six, noon, in the evening."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import time

from scheduler.timetext.numbers import COUNT, ONES, TENS, WORD, compiled, number, quantity
from scheduler.timetext.pieces import (
    Clocks,
    Found,
    PartOfDay,
    ReadingContext,
    Refuse,
    TimeOfDay,
    TimeSpan,
    Zone,
)

CLOCKS_MAX = 8

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
_MINUTE_WORD = (
    rf"(?:{'|'.join(ONES[10:])}|(?:{'|'.join(TENS[:4])})(?:[- ](?:{'|'.join(ONES[1:10])}))?)"
)

_DIGITS = compiled(
    _AT + r"(?P<hour>\d{1,2})(?:\s?(?::|(?P<h>h))\s?(?P<minute>\d{2})(?::(?P<second>\d{2}))?)"
    rf"(?:\s*(?:{_HALF}|(?P<short>a)))?(?P<hours>h)?"
)
_POINT = compiled(_AT + rf"(?P<hour>\d{{1,2}})\.(?P<minute>\d{{2}})\s*{_HALF}")
_AT_POINT = compiled(r"(?:at|@)\s*(?P<hour>\d{1,2})\.(?P<minute>\d{2})(?!\.)")
_FULL = compiled(
    _AT + rf"(?P<hour>\d{{1,2}}|{_HOUR_WORD})(?:ish)?(?:\s*o['’ ]?clock)?(?:ish)?\s*{_HALF}"
)
_HOURS = compiled(_AT + r"(?P<hour>\d{1,2})\s?(?P<h>h)")
_OCLOCK = compiled(_AT + rf"(?P<hour>\d{{1,2}}|{_HOUR_WORD})\s*o['’ ]?clock")
_WORDS = compiled(_AT + rf"(?P<hour>{_HOUR_WORD})[ -](?P<minute>{_MINUTE_WORD})(?:\s*{_HALF})")
_AT_ONLY = compiled(
    rf"(?:(?:at|@|around|about)\s*)+(?P<hour>\d{{1,2}}|{_HOUR_WORD})(?:ish)?"
    rf"(?: (?P<minute>[0-5]\d|{_MINUTE_WORD}))?(?!\s*[:./%$€£]?\d)"
)
_AT_FOUR = compiled(r"(?:at|@)\s*(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)(?P<hours>h(?:rs?)?)?")
_BARE = compiled(rf"(?P<hour>\d{{1,2}}|{_HOUR_WORD})")
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
_SPANS = compiled(r"(?P<prefix>from|between|later than)")
_ZONE = compiled(r"\(?(?P<name>utc|gmt|z|[a-z]+/[a-z_]+(?:/[a-z_]+)?)(?: time)?\)?")
_SHORT_ZONE = compiled(
    r"(?P<name>[ecmp][sd]t|cest|cet|bst|ist|eest|eet|jst|kst|aest|aedt|msk|sgt|wet|west)"
)


def clocks(text: str, start: int, scope: ReadingContext) -> Found:
    """Every way to read a time of day here: one, several, or a span."""
    for end, clock in _clocks(text, start):
        yield end, clock
        yield from _more(text, end, (clock,))
        yield from _span(text, _TO.match(text, end), clock)
    if match := _SPANS.match(text, start):
        for end, clock in _clocks(text, _skipped(text, match.end())):
            joined = (_TO if match["prefix"] == "from" else _BETWEEN).match(text, end)
            yield from _span(text, joined, clock)


def parts(text: str, start: int, scope: ReadingContext) -> Found:
    """In the morning, this evening, tonight."""
    if match := _PART.match(text, start):
        name = " ".join(match["name"].split())
        today = name.endswith(("tonight", "tonite")) or (match["the"] or "").strip() == "this"
        # "early evening" is an evening.
        clock = PARTS.get(name) or PARTS[name.split()[-1]]
        yield match.end(), PartOfDay(name=name, clock=clock, today=today)


def zones(text: str, start: int, scope: ReadingContext) -> Found:
    """UTC and IANA names; an abbreviation means several zones and is refused."""
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
        yield from _moved(text, match)
    if match := _BESIDE.match(text, start):
        yield from _beside(text, match)
    if match := _NAMED.match(text, start):
        ends = match["name"] == "midnight"
        yield match.end(), TimeOfDay(hour=0 if ends else 12, exact=True, ends=ends)
    for pattern in (_DIGITS, _POINT, _WORDS, _FULL, _HOURS, _OCLOCK, _AT_POINT, _AT_FOUR, _AT_ONLY):
        if (match := pattern.match(text, start)) and (clock := _clock(match)):
            yield match.end(), clock
            return
    if (match := _BARE.match(text, start)) and (clock := _clock(match, bare=True)):
        yield match.end(), clock


def _clock(match: re.Match[str], *, bare: bool = False) -> TimeOfDay | None:
    """None where no clock shows it."""
    given = match.groupdict()
    hour, minute = number(given["hour"]), number(given.get("minute") or "0")
    second = int(given.get("second") or 0)
    half = (given.get("half") or given.get("short") or "").replace("in the", "").strip()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    of_24 = (
        hour == 0
        or hour > 12
        or given["hour"].startswith("0")
        or bool(given.get("hours") or given.get("h"))
    )
    return TimeOfDay(
        hour=hour,
        minute=minute,
        second=second,
        exact=bool(half) or of_24,
        by_half=bool(half),
        bare=bare,
    )


def _moved(text: str, match: re.Match[str]) -> Iterator[tuple[int, TimeOfDay]]:
    """Half past six, ten to noon: of whole hours only."""
    minutes = 30 if match["half"] else _minutes(match["count"])
    back = match["way"] in {"to", "before", "till", "til"}
    digits = (match["count"] or "").isdigit() and not match["unit"] and match[0][0].isdigit()
    for end, clock in _clocks(text, _skipped(text, match.end())):
        if clock.bare and (digits or match["way"] == "from"):
            continue  # "10 to 5" may be anything
        if clock.minute == clock.second == 0 and 1 <= minutes < 60:
            total = (clock.hour * 60 + (-minutes if back else minutes)) % (24 * 60)
            exact = clock.exact
            if not exact:
                total = total % (12 * 60) or 12 * 60
            hour = total // 60 if exact or total >= 60 else 12
            yield end, TimeOfDay(hour=hour, minute=total % 60, exact=exact)


def _beside(text: str, match: re.Match[str]) -> Iterator[tuple[int, TimeOfDay]]:
    """Two hours before 5pm: on the same day, or not at all."""
    length = quantity(match["count"]) * (60 if match["unit"].startswith("h") else 1)
    if length.denominator != 1:
        return
    minutes = -int(length) if match["way"] == "before" else int(length)
    for end, clock in _clocks(text, _skipped(text, match.end())):
        total = (24 * 60 if clock.ends and minutes < 0 else clock.hour * 60) + clock.minute
        if clock.exact and 0 <= total + minutes < 24 * 60:
            hour, minute = divmod(total + minutes, 60)
            yield end, TimeOfDay(hour=hour, minute=minute, exact=True)


def _minutes(text: str) -> int:
    return 15 if text.endswith("quarter") else number(text)


def _more(text: str, end: int, before: tuple[TimeOfDay, ...]) -> Found:
    """8am, 12 and 6pm: every further one makes another way to read it."""
    if len(before) >= CLOCKS_MAX or (match := _AND.match(text, end)) is None:
        return
    for last, clock in _clocks(text, match.end()):
        several = (*before, clock)
        yield last, Clocks(clocks=several)
        yield from _more(text, last, several)


def _span(text: str, joined: re.Match[str] | None, first: TimeOfDay) -> Found:
    if joined is not None:
        for last, clock in _clocks(text, joined.end()):
            yield last, TimeSpan(first=first, last=clock)


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


# --- hours --------------------------------------------------------------------------------------
#
# Which hour is meant where neither am nor pm is said.
#
# An hour without either lies between 7 in the morning and 7 in the evening: 8 is 08:00, 5 is 17:00.
# Of 6 nobody knows; of what is repeated every day, it is asked for 5 too.

DAY_BEGINS = 7
EITHER_HALF = 6
"""An hour that is as likely meant in the morning as in the evening."""

EITHER_HALF_DAILY = (5, 6)
"""Of what comes again and again, a wrong half of the day costs more."""

USUAL = time(9)
"""For a day without a time."""

NIGHT_ENDS = 5
"""Earlier hours belong to the night before as well."""

_LATE_PARTS = ("evening", "night")
_HOURS_OF = {
    "morning": range(13),
    "noon": range(12, 24),
    "evening": (*range(15, 24), *range(NIGHT_ENDS)),
    "night": (*range(15, 24), *range(9)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """A time of day, `days` later than the day that was named."""

    at: time
    days: int = 0


def hours(clock: TimeOfDay, part: PartOfDay | None) -> tuple[Hour, ...]:
    """What may be meant, the likeliest first; none where clock and part contradict each other."""
    if clock.ends:
        return (Hour(at=time(0), days=1), Hour(at=time(0)))
    said = time(clock.hour, clock.minute, clock.second)
    if part is not None and not part.name.startswith("lunch"):
        return _within(said, clock, part)
    if clock.exact:
        return (Hour(at=said),)
    early, late = (said.replace(hour=said.hour % 12 + half) for half in (0, 12))
    first, second = (late, early) if said.hour % 12 < DAY_BEGINS else (early, late)
    return (Hour(at=first), Hour(at=second))


def _within(said: time, clock: TimeOfDay, part: PartOfDay) -> tuple[Hour, ...]:
    morning = part.name.endswith("morning")
    if clock.exact:
        if not _fits(said.hour, part):
            return ()
        if said.hour < NIGHT_ENDS and part.name.endswith(_LATE_PARTS):
            return (Hour(at=said, days=1), Hour(at=said))
        return (Hour(at=said),)
    hour = said.hour % 12
    if morning:
        return (Hour(at=said.replace(hour=hour)),) if said.hour < 12 else ()
    afternoon = said.replace(hour=hour + 12)
    if not part.name.endswith(_LATE_PARTS):
        return (Hour(at=afternoon),)
    if said.hour == 12:
        return (Hour(at=said.replace(hour=0), days=1),)
    if hour < NIGHT_ENDS:  # at three in the night, or in a long evening
        return (Hour(at=afternoon), Hour(at=said.replace(hour=hour), days=1))
    return (Hour(at=afternoon),)


def _fits(hour: int, part: PartOfDay) -> bool:
    """Whether a part of the day can have this hour of 24."""
    fitting = [hours for name, hours in _HOURS_OF.items() if part.name.endswith(name)]
    return not fitting or hour in fitting[0]
