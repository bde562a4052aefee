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
from scheduler.timetext.days import DAYS, DURATION, SECONDS, VAGUE, later, shifted
from scheduler.timetext.numbers import COUNT, UNIT, compiled, rule, unit, value
from scheduler.timetext.pieces import (
    Ask,
    Day,
    Found,
    Moment,
    NamedDay,
    Piece,
    ReadingContext,
    Refuse,
    RepeatLimit,
    Rule,
    Zone,
)
from scheduler.timetext.repeated import settle_repeated
from scheduler.timetext.repeats import REPEATS
from scheduler.timetext.single import day_of, settle_single

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
_LIMIT = compiled(
    r"(?:(?P<until>until|till|til|through|to|ending(?: on| in)?)"
    r"|(?:starting|beginning|start|from|as of|since)(?: on| from| in)?)(?=\s)"
)
_OPEN = compiled(r"(?P<name>by|before|after|until|till|since|within)(?=\s)")
_ISO = re.compile(
    r"(?<![\w-])\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?"
    r"\s?(?:z|[+-]\d\d:?\d\d)?(?![\w:])"
)

Cover = tuple[tuple[Piece, ...], int]


def _beside(text: str, start: int, scope: ReadingContext) -> Found:
    """Yield three days after tomorrow: days, weeks, months and years beside any other day."""
    match = _BESIDE.match(text, start)
    if match is None or (name := unit(match["unit"])) in SECONDS:
        return
    count = value(match["count"]) * (-1 if match["way"] == "before" else 1)
    for end, day in _days_at(text, match.end(), scope):
        if other := shifted(day.days[0], count, name):
            yield end, Day(days=(other,))


def _limits(text: str, start: int, scope: ReadingContext) -> Found:
    """Yield from and until a day; a longer time that is named ends where it begins."""
    if match := _LIMIT.match(text, start):
        for end, day in _days_at(text, match.end(), scope):
            if match["until"]:
                yield end, RepeatLimit(until=day.days[0] + timedelta(days=0 if day.period else 1))
            else:
                yield end, RepeatLimit(start=day.days[0])


def _iso(text: str, start: int, scope: ReadingContext) -> Found:
    """Yield 2026-12-01T17:00, with or without an offset."""
    if (match := _ISO.match(text, start)) is None:
        return
    try:
        found = datetime.fromisoformat(match[0].upper().replace(" ", "T", 1).replace(" ", ""))
    except ValueError:
        return
    at = found if found.tzinfo else wall_moment(found, scope.zone)
    yield match.end(), Moment(at=at.astimezone(UTC))


def _lasting(match: re.Match[str], scope: ReadingContext) -> Piece | None:
    """For three weeks begins with the first run, for the next three weeks now."""
    found = later(scope, match["duration"])
    if not isinstance(found, Day):
        return None
    if match["next"]:
        return RepeatLimit(until=found.days[0])
    return RepeatLimit(lasting=(found.days[0] - scope.today).days)


def _open_ended(match: re.Match[str], scope: ReadingContext) -> Piece:
    """By Friday, after 2 pm: words that leave open when to speak."""
    return Ask(why=f"{match['name'].capitalize()!r} leaves the time open. Is this meant?")


RULES: tuple[Rule, ...] = (
    _iso,
    *DAYS,
    _beside,
    VAGUE,
    clocks,
    parts,
    zones,
    *REPEATS,
    _limits,
    rule(rf"for (?:(?P<next>the next )|up to )?(?P<duration>{DURATION})", _lasting),
    rule(_OPEN.pattern, _open_ended),
)


class TimeText:
    """A text in which pieces are looked for; what begins where is found once."""

    def __init__(self, text: str, scope: ReadingContext) -> None:
        self.text = plain(text)
        self._scope = scope
        self._found: dict[int, Sequence[tuple[int, Piece]]] = {}

    def covers(self, start: int) -> Iterator[Cover]:
        """Yield rows of pieces from a place on, the longest pieces first; with where each ends."""
        return islice(self._rows(start, ()), COVERS_MAX)

    def _rows(self, start: int, before: tuple[Piece, ...]) -> Iterator[Cover]:
        if len(before) < PIECES_MAX:
            for end, piece in self._at(start):
                row = (*before, piece)
                yield row, end
                yield from self._rows(self.skip(end), row)

    def skip(self, at: int) -> int:
        """Return the place behind white space and commas."""
        glue = _GLUE.match(self.text, at)
        assert glue is not None, "it matches nothing too"
        return glue.end()

    def _at(self, start: int) -> Sequence[tuple[int, Piece]]:
        if start not in self._found:
            # One of a kind for each end: the rule that stands first. Last Friday is both the one
            # that is over and the last one of a month.
            kept: dict[tuple[int, type, str], tuple[int, Piece]] = {}
            for one in RULES:
                for end, piece in one(self.text, start, self._scope):
                    which = piece.which if isinstance(piece, NamedDay) else ""
                    kept.setdefault((end, type(piece), which), (end, piece))
            self._found[start] = sorted(kept.values(), key=lambda found: -found[0])
        return self._found[start]


def plain(text: str) -> str:
    """Return it in small letters, with plain quotes and dashes; as long as before."""
    lowered = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    return lowered.translate(_PLAIN)


_PLAIN = str.maketrans({"’": "'", "‘": "'", "–": "-", "—": "-", "−": "-", "\u00a0": " "})


def _days_at(text: str, start: int, scope: ReadingContext) -> Sequence[tuple[int, Day]]:
    """Return days that begin behind white space, the longest words first."""
    at = len(text) - len(text[start:].lstrip())
    found: list[tuple[int, Day]] = []
    for one in DAYS:
        for end, piece in one(text, at, scope):
            day = day_of([piece], scope) if isinstance(piece, Day | NamedDay) else None
            if day is not None and day.days:
                found.append((end, day))
    return sorted(found, key=lambda one: -one[0])


# --- reading ------------------------------------------------------------------------------------

CHARS_MAX = 300
NEXT_SHOWN = 3

_EXAMPLES = (
    "Times look like 'tomorrow at 5pm', 'in 2 hours', 'every weekday at 8', '2026-12-01 17:00' or "
    "cron text such as '0 9 * * 1-5'."
)


def read(text: str, *, now: datetime, zone: ZoneInfo, count: int = NEXT_SHOWN) -> TimeAnswer:
    """Return how a text is read at an aware `now` by somebody in `zone`, with the next `count` due
    times.

    `now` lies in the years 1970 to 2999. Never raises for any text.
    """
    stripped = text.strip().rstrip(".!?;").strip()
    if not stripped:
        return NoTime(why=f"There is no time in an empty text. {_EXAMPLES}")
    if len(stripped) > CHARS_MAX:
        return NoTime(why=f"A time has at most {CHARS_MAX} characters. {_EXAMPLES}")
    try:
        if is_cron(stripped):
            expression = read_cron(stripped)
            when = Cron(expression=expression, zone=zone.key)
            answer: TimeAnswer = TimeRead(when=when, sentence=f"by the cron text {expression}")
        else:
            answer = _of_words(stripped, ReadingContext(now=now.astimezone(zone)), zone)
        return with_next(answer, after=now, count=count)
    except CronWrong as error:
        return NoTime(why=str(error))
    except (OverflowError, ValueError):  # the calendar's own ends, in one zone or another
        return NoTime(why=f"That lies beyond the calendar. {_EXAMPLES}")


def _of_words(text: str, scope: ReadingContext, zone: ZoneInfo) -> TimeAnswer:
    said = TimeText(text, scope)
    rows = [cover for cover in said.covers(said.skip(0)) if said.skip(cover[1]) == len(text)]
    if (answer := best(rows, scope, zone)) is not None:
        return answer
    for pieces, _ in rows:
        if isinstance(pieces[0], Ask) and len(pieces) == 1:
            return TimeAsked(text=pieces[0].why)
    for pieces, _ in rows:
        if refused := next((one.why for one in pieces if isinstance(one, Refuse)), None):
            return NoTime(why=refused)
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return NoTime(why=f"{shown!r} is not a time that can be read. {_EXAMPLES}")


def best(covers: Sequence[Cover], scope: ReadingContext, home: ZoneInfo) -> TimeAnswer | None:
    """Return what the fewest pieces mean; of as many, what leaves least open."""
    by_size = sorted(covers, key=lambda cover: len(cover[0]))
    for _, alike in groupby(by_size, key=lambda cover: len(cover[0])):
        answers = [found for one in alike if (found := _settled(one[0], scope, home)) is not None]
        if answers:
            return min(answers, key=lambda one: (TimeRead, TimeAsked, NoTime).index(type(one)))
    return None


def _settled(row: Sequence[Piece], scope: ReadingContext, home: ZoneInfo) -> TimeAnswer | None:
    """Return what a row of pieces means: once, or again and again. None where they mean no time."""
    zones = [piece.name for piece in row if isinstance(piece, Zone)]
    pieces = [piece for piece in row if not isinstance(piece, Zone)]
    if len(zones) > 1 or not pieces:
        return None
    if zones:
        if (name := _zone_names().get(zones[0].lower())) is None:
            return None
        scope = ReadingContext(now=scope.now.astimezone(ZoneInfo(name)))
    found = settle_repeated(pieces, scope)
    return found if found is not None else settle_single(pieces, scope, home=home)


@cache
def _zone_names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def with_next(answer: TimeAnswer, *, after: datetime, count: int) -> TimeAnswer:
    """Return the same with the next `count` due times in each of its readings."""

    def filled(reading: TimeRead) -> TimeRead:
        found = due(reading, after=after, count=count) or reading.next
        return replace(reading, next=found[:count])

    match answer:
        case TimeRead():
            return filled(answer)
        case TimeAsked():
            return replace(answer, options=tuple(filled(one) for one in answer.options))
        case NoTime():
            return answer


def due(reading: TimeRead, *, after: datetime, count: int) -> tuple[datetime, ...]:
    """Return the next due times of a reading, within its limits."""
    most = count if reading.runs_max is None else min(count, reading.runs_max)
    found = islice(slots(reading.when, after=after), most)
    return tuple(one.at for one in found if reading.until is None or one.at <= reading.until)
