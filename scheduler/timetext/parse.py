"""Reads a text as a time: plain words, an ISO date-time or cron text.

Called by the commands that take a time, by the schedule tools and by `hearthbot schedule when`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import groupby, islice
from zoneinfo import ZoneInfo, available_timezones

from memory.records.recurrence import Cron
from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeRead
from scheduler.clock.cron import CronWrong, is_cron, read_cron, wall_moment
from scheduler.clock.recurrence import slots
from scheduler.timetext.clocks import clocks, parts, zones
from scheduler.timetext.dates import DATES, FEASTS
from scheduler.timetext.days import DURATION, PERIODS, RELATIVE, SECONDS, later, shifted
from scheduler.timetext.numbers import COUNT, UNIT, compiled, quantity, rule, unit
from scheduler.timetext.pieces import (
    Ask,
    Date,
    Day,
    Found,
    From,
    Lasting,
    Moment,
    Nth,
    Piece,
    ReadingContext,
    Refuse,
    Rule,
    Until,
    Weekday,
    Zone,
)
from scheduler.timetext.repeated import settle_repeated
from scheduler.timetext.repeats import REPEATS
from scheduler.timetext.resolve import resolved
from scheduler.timetext.single import settle_single

# --- grammar ------------------------------------------------------------------------------------
#
# Which pieces a text can be made of. Every rule of the grammar stands in `RULES`.
#
# Pieces may come in any order: "tomorrow at 5pm" and "at 5pm tomorrow" are the same two.

PIECES_MAX = 9
COVERS_MAX = 400
"""More ways to read one text are not tried."""

_GLUE = re.compile(r"[\s,]*(?:(?<=\s)-\s+)?")
_BESIDE = compiled(
    rf"(?:in )?(?P<count>{COUNT}|the)\s*(?P<unit>{UNIT}) (?P<way>after|from|before)(?: the)?(?=\s)"
)
_UNTIL = compiled(r"(?:until|till|til|through|to|ending(?: on| in)?)(?=\s)")
_FROM = compiled(r"(?:starting|beginning|start|from|as of|since)(?: on| from| in)?(?=\s)")
_OPEN = compiled(r"(?P<name>by|before|after|until|till|since|within)(?=\s)")
_ISO = re.compile(
    r"(?<![\w-])\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?"
    r"\s?(?:z|[+-]\d\d:?\d\d)?(?![\w:])"
)

Cover = tuple[tuple[Piece, ...], int]


def beside(text: str, start: int, scope: ReadingContext) -> Found:
    """Three days after tomorrow: days, weeks, months and years beside any other day."""
    if (match := _BESIDE.match(text, start)) is None:
        return
    count, name = quantity(match["count"]), unit(match["unit"])
    if name in SECONDS:
        return
    for end, day in _days_at(text, match.end(), scope):
        if other := shifted(day.days[0], -count if match["way"] == "before" else count, name):
            yield end, Day(days=(other,))


def limits(text: str, start: int, scope: ReadingContext) -> Found:
    """From and until a day; a longer time that is named ends where it begins."""
    if match := _FROM.match(text, start):
        for end, day in _days_at(text, match.end(), scope):
            yield end, From(day=day.days[0])
    if match := _UNTIL.match(text, start):
        for end, day in _days_at(text, match.end(), scope):
            yield end, Until(day=day.days[0] + timedelta(days=0 if day.period else 1))


def open_ended(text: str, start: int, scope: ReadingContext) -> Found:
    """By Friday, after 2 pm: words that leave open when to speak."""
    if match := _OPEN.match(text, start):
        name = match["name"]
        yield match.end(), Ask(why=f"{name.capitalize()!r} leaves the time open. Is this meant?")


def iso(text: str, start: int, scope: ReadingContext) -> Found:
    """2026-12-01T17:00, with or without an offset."""
    if (match := _ISO.match(text, start)) is None:
        return
    try:
        found = datetime.fromisoformat(match[0].upper().replace(" ", "T", 1).replace(" ", ""))
    except ValueError:
        return
    zone = scope.now.tzinfo
    assert isinstance(zone, ZoneInfo)
    at = found if found.tzinfo else wall_moment(found, zone)
    yield match.end(), Moment(at=at.astimezone(UTC))


def _for(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """For three weeks begins with the first run, for the next three weeks now."""
    found = later(scope, match["duration"])
    if not isinstance(found, Day):
        return None
    if match["next"]:
        return Until(day=found.days[0])
    return Lasting(days=(found.days[0] - scope.today).days)


RULES: tuple[Rule, ...] = (
    *(iso, *DATES, *FEASTS, *RELATIVE, beside, *PERIODS),
    *(clocks, parts, zones),
    *(
        *REPEATS,
        limits,
        rule(rf"for (?:(?P<next>the next )|up to )?(?P<duration>{DURATION})", _for),
    ),
    open_ended,
)
_DAY_RULES = (*DATES, *FEASTS, *RELATIVE, *PERIODS)


class TimeText:
    """A text in which pieces are looked for; what begins where is found once."""

    def __init__(self, text: str, scope: ReadingContext) -> None:
        self.text = plain(text)
        self._scope = scope
        self._found: dict[int, Sequence[tuple[int, Piece]]] = {}

    def covers(self, start: int) -> Iterator[Cover]:
        """Rows of pieces from a place on, the longest pieces first; with where each row ends."""
        left = [COVERS_MAX]
        yield from self._rows(start, (), left)

    def _rows(self, start: int, before: tuple[Piece, ...], left: list[int]) -> Iterator[Cover]:
        if len(before) >= PIECES_MAX:
            return
        for end, piece in self._at(start):
            if left[0] <= 0:
                return
            left[0] -= 1
            row = (*before, piece)
            yield row, end
            yield from self._rows(self.skip(end), row, left)

    def skip(self, at: int) -> int:
        """Over white space and commas."""
        glue = _GLUE.match(self.text, at)
        assert glue is not None
        return glue.end()

    def _at(self, start: int) -> Sequence[tuple[int, Piece]]:
        if start not in self._found:
            found = [one for rule in RULES for one in rule(self.text, start, self._scope)]
            # One of a kind for each end: the rule that stands first.
            kept: dict[tuple[int, type], tuple[int, Piece]] = {}
            for end, piece in found:
                kept.setdefault((end, type(piece)), (end, piece))
            self._found[start] = sorted(kept.values(), key=lambda one: -one[0])
        return self._found[start]


def plain(text: str) -> str:
    """In small letters, with plain quotes and dashes; as long as before."""
    lowered = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    return lowered.translate(_PLAIN)


_PLAIN = str.maketrans({"’": "'", "‘": "'", "–": "-", "—": "-", "−": "-", "\u00a0": " "})


def _days_at(text: str, start: int, scope: ReadingContext) -> Iterator[tuple[int, Day]]:
    """Days that begin behind white space, the longest words first."""
    at = start + len(text[start:]) - len(text[start:].lstrip())
    found: list[tuple[int, Day]] = []
    for one in _DAY_RULES:
        for end, piece in one(text, at, scope):
            if isinstance(piece, Day | Weekday | Date | Nth):
                day = resolved([piece], scope)
                if day is not None and day.days:
                    found.append((end, day))
    yield from sorted(found, key=lambda one: -one[0])


CHARS_MAX = 300
NEXT_SHOWN = 3

_EXAMPLES = (
    "Times look like 'tomorrow at 5pm', 'in 2 hours', 'every weekday at 8', '2026-12-01 17:00' or "
    "cron text such as '0 9 * * 1-5'."
)


def read(text: str, *, now: datetime, zone: ZoneInfo, count: int = NEXT_SHOWN) -> TimeAnswer:
    """How a text is read at an aware `now` by somebody in `zone`, with the next `count` due times.

    `now` lies in the years 1970 to 2999. Never raises for any text.
    """
    stripped = text.strip().rstrip(".!?;").strip()
    if not stripped:
        return NoTime(why=f"There is no time in an empty text. {_EXAMPLES}")
    if len(stripped) > CHARS_MAX:
        return NoTime(why=f"A time has at most {CHARS_MAX} characters. {_EXAMPLES}")
    try:
        scope = ReadingContext(now=now.astimezone(zone))
        if is_cron(stripped):
            answer = _of_cron(stripped, zone)
        else:
            answer = _of_words(stripped, scope, zone) or NoTime(why=_why_not(stripped))
        return with_next(answer, after=now, count=count)
    except (OverflowError, ValueError):  # the calendar's own ends, in one zone or another
        return NoTime(why=f"That lies beyond the calendar. {_EXAMPLES}")


def settled(cover: Cover, scope: ReadingContext, home: ZoneInfo) -> TimeAnswer | None:
    """What a row of pieces means: once, or again and again. None where they mean no time."""
    zones = [piece for piece in cover[0] if isinstance(piece, Zone)]
    pieces = [piece for piece in cover[0] if not isinstance(piece, Zone)]
    if len(zones) > 1 or not pieces:
        return None
    if zones:
        if (name := _zone_names().get(zones[0].name.lower())) is None:
            return None
        other = ZoneInfo(name)
        scope = ReadingContext(now=scope.now.astimezone(other))
    found = settle_repeated(pieces, scope)
    return found if found is not None else settle_single(pieces, scope, home=home)


def with_next(answer: TimeAnswer, *, after: datetime, count: int) -> TimeAnswer:
    """The same with the next `count` due times in each of its readings."""
    match answer:
        case TimeRead():
            return _filled(answer, after, count)
        case TimeAsked():
            options = tuple(_filled(one, after, count) for one in answer.options)
            return TimeAsked(text=answer.text, options=options, past=answer.past)
        case NoTime():
            return answer


def due(reading: TimeRead, *, after: datetime, count: int) -> tuple[datetime, ...]:
    """The next due times of a reading, within its limits."""
    most = count if reading.runs_max is None else min(count, reading.runs_max)
    found = islice(slots(reading.when, after=after), most)
    return tuple(one.at for one in found if reading.until is None or one.at <= reading.until)


def _filled(reading: TimeRead, after: datetime, count: int) -> TimeRead:
    found = due(reading, after=after, count=count) or reading.next
    return replace(reading, next=found[:count])


def _of_cron(text: str, zone: ZoneInfo) -> TimeAnswer:
    try:
        expression = read_cron(text)
    except CronWrong as error:
        return NoTime(why=str(error))
    sentence = f"by the cron text {expression}"
    return TimeRead(when=Cron(expression=expression, zone=zone.key), sentence=sentence)


def _of_words(text: str, scope: ReadingContext, zone: ZoneInfo) -> TimeAnswer | None:
    said = TimeText(text, scope)
    rows = [cover for cover in said.covers(said.skip(0)) if said.skip(cover[1]) == len(text)]
    return best(rows, scope, zone) or _explained(rows)


def best(covers: Sequence[Cover], scope: ReadingContext, home: ZoneInfo) -> TimeAnswer | None:
    """What the fewest pieces mean; of as many, what leaves least open."""
    for _, alike in groupby(sorted(covers, key=_size), key=_size):
        answers = [found for one in alike if (found := settled(one, scope, home)) is not None]
        if answers:
            return min(answers, key=lambda one: _OPENNESS.index(type(one)))
    return None


def _explained(covers: Sequence[Cover]) -> TimeAsked | NoTime | None:
    """What to say where no time is named, but it is known why not."""
    for cover in covers:
        if (first := cover[0][0]) and isinstance(first, Ask) and len(cover[0]) == 1:
            return TimeAsked(text=first.why)
    reasons = [one.why for cover in covers for one in cover[0] if isinstance(one, Refuse)]
    return NoTime(why=reasons[0]) if reasons else None


def _size(cover: Cover) -> int:
    return len(cover[0])


_OPENNESS = (TimeRead, TimeAsked, NoTime)


def _why_not(text: str) -> str:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return f"{shown!r} is not a time that can be read. {_EXAMPLES}"


@cache
def _zone_names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}
