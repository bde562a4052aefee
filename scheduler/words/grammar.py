"""Which pieces a text can be made of. Every rule of the grammar stands in `RULES`.

Pieces may come in any order: "tomorrow at 5pm" and "at 5pm tomorrow" are the same two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from scheduler.cron import wall_moment
from scheduler.words.clocks import clocks, parts, zones
from scheduler.words.dates import DATES, FEASTS
from scheduler.words.days import DURATION, PERIODS, RELATIVE, SECONDS, later, shifted
from scheduler.words.numbers import COUNT, UNIT, compiled, quantity, rule, unit
from scheduler.words.pieces import (
    Ask,
    Date,
    Day,
    Found,
    From,
    Lasting,
    Moment,
    Nth,
    Piece,
    Rule,
    Scope,
    Until,
    Weekday,
)
from scheduler.words.repeats import REPEATS
from scheduler.words.resolving import resolved

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


def beside(text: str, start: int, scope: Scope) -> Found:
    """Three days after tomorrow: days, weeks, months and years beside any other day."""
    if (match := _BESIDE.match(text, start)) is None:
        return
    count, name = quantity(match["count"]), unit(match["unit"])
    if name in SECONDS:
        return
    for end, day in _days_at(text, match.end(), scope):
        if other := shifted(day.days[0], -count if match["way"] == "before" else count, name):
            yield end, Day(days=(other,))


def limits(text: str, start: int, scope: Scope) -> Found:
    """From and until a day; a longer time that is named ends where it begins."""
    if match := _FROM.match(text, start):
        for end, day in _days_at(text, match.end(), scope):
            yield end, From(day=day.days[0])
    if match := _UNTIL.match(text, start):
        for end, day in _days_at(text, match.end(), scope):
            yield end, Until(day=day.days[0] + timedelta(days=0 if day.period else 1))


def open_ended(text: str, start: int, scope: Scope) -> Found:
    """By Friday, after 2 pm: words that leave open when to speak."""
    if match := _OPEN.match(text, start):
        name = match["name"]
        yield match.end(), Ask(why=f"{name.capitalize()!r} leaves the time open. Is this meant?")


def iso(text: str, start: int, scope: Scope) -> Found:
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


def _for(match: re.Match[str], scope: Scope) -> Piece | None:
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


class Text:
    """A text in which pieces are looked for; what begins where is found once."""

    def __init__(self, text: str, scope: Scope) -> None:
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


def _days_at(text: str, start: int, scope: Scope) -> Iterator[tuple[int, Day]]:
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
