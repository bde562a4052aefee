"""Reads a text as a time: plain words, an ISO date-time or cron text; and finds the time in a
sentence, for `/remind`.

Called by the commands that take a time, by the schedule tools and by `hearthbot schedule when`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import groupby, islice
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from memory.records.jobs import Cron
from memory.records.schedule import NEXT_SHOWN, NoTime, TimeAnswer, TimeAsked, TimeFound, TimeRead
from scheduler.clock.recurrence import CronWrong, is_cron, read_cron, slots, wall_moment
from scheduler.timetext.clocks import clocks, parts, zones
from scheduler.timetext.days import DAYS, DURATION, SECONDS, VAGUE, later, shifted
from scheduler.timetext.repeated import settle_repeated
from scheduler.timetext.repeats import FEASTS, REPEATS
from scheduler.timetext.single import day_of, settle_single
from scheduler.timetext.vocabulary import (
    COUNT,
    UNIT,
    Ask,
    Clocks,
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
    compiled,
    rule,
    unit,
    value,
)

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
    *FEASTS,
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
    for one in (*DAYS, *FEASTS):
        for end, piece in one(text, at, scope):
            day = day_of([piece], scope) if isinstance(piece, Day | NamedDay) else None
            if day is not None and day.days:
                found.append((end, day))
    return sorted(found, key=lambda one: -one[0])


# --- reading ------------------------------------------------------------------------------------

CHARS_MAX = 300

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


# --- in a sentence ------------------------------------------------------------------------------

SENTENCE_CHARS_MAX = 2_000
WORDS_MAX = 60
"""A time stands in the first or the last of so many words; between them none is looked for."""


class _Place(NamedTuple):
    """Words of a sentence that mean a time."""

    start: int
    end: int
    answer: TimeAnswer


_LEAD = re.compile(
    r"\s*(?:please[\s,]+)?(?:(?:can|could|would|will)\s+you\s+)?(?:please\s+)?"
    # After `/remind` people go on with "me".
    r"(?:(?:remind\s+)?me\b(?!\s+and\b)|tell\s+me|ping\s+me|let\s+me\s+know|set\s+(?:me\s+)?an?\s+"
    r"(?:reminder|alarm))?[\s,:]*",
)
_JOIN = re.compile(r"\s*(?:to|that|about|of|for|[,:-])(?=\s|$)[\s,:]*")
_WEAK = re.compile(
    r"(?:may|march|mar|sun|sat|wed|mon|fri|now|second|dec|jan|soon|later|new year|on|the last"
    r"|twice|once|some ?day|one day|weekly|monthly|yearly|daily|hourly|lunch(?:time)?)"
)
"""Words that are something else more often than a time, when they stand alone."""

_LOOSE = re.compile(
    r"\b(?:minutes?|mins?|hours?|days?|weeks?|months?)\s+(?:before|after|early|earlier|from)\b"
    r"|\b\d{1,2}(?::\d\d)?\s*(?:[ap]\.?m\b|o'?clock\b)|\b\d{1,2}:\d\d\b|\b(?:every|each|tomorrow|"
    r"tonight|yesterday|until|till|except|ago|hence)\b|\bin\s+\d+\s+(?:min|hour|day|week|month)"
    r"|\b(?:weekdays?|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|thu|fri)\b"
)
"""What looks like a time; left over, it says that not all was understood."""


def find(text: str, *, now: datetime, zone: ZoneInfo, count: int = NEXT_SHOWN) -> TimeFound | None:
    """Return the time that a sentence names, and the rest of it without the words that only lead to
    it.

    None where it names none. Several that may be meant, or words beside it that look like a time,
    make a question. Never raises for any text.
    """
    if len(text) > SENTENCE_CHARS_MAX:
        return None
    try:
        return _found(text, ReadingContext(now=now.astimezone(zone)), zone, count)
    except (OverflowError, ValueError):  # the calendar's own ends, in one zone or another
        why = "That lies beyond the calendar. Write a time such as 'tomorrow at 5pm'."
        return TimeFound(answer=NoTime(why=why), words=text, rest="")


def _found(text: str, scope: ReadingContext, zone: ZoneInfo, count: int) -> TimeFound | None:
    said = TimeText(text, scope)
    lead = _LEAD.match(said.text)
    head = lead.end() if lead else 0
    # Without words that hardly ever are a time by themselves, and refusals beside readings.
    strong = [
        one
        for one in _places(said, scope, zone)
        if not _WEAK.fullmatch(said.text, one.start, one.end)
    ]
    places = [one for one in strong if not isinstance(one.answer, NoTime)] or strong
    if not places:
        return None
    place = places[0]
    leads = place.start <= head and _JOIN.match(said.text, place.end) is not None
    together = _together(text, places, scope, count)
    if together is not None or (len(places) > 1 and not leads):
        return _several(text, places, together, after=scope.now, count=count)
    before, after = text[: place.start].rstrip(" ,"), text[place.end :].lstrip(" ,")
    kept = before[head:] if place.start > head else ""
    rest = _cleaned(f"{kept} {after}" if after.strip(" .!?") else f"{kept}{after}")
    answer, words = place.answer, text[place.start : place.end]
    if not leads and isinstance(answer, TimeRead) and _LOOSE.search(plain(rest)):
        why = "Part of that looks like a time and was not understood. Is this meant?"
        answer = TimeAsked(text=why, options=(answer,))
    answer = with_next(answer, after=scope.now, count=count)
    return TimeFound(answer=answer, words=words, rest=rest)


def _places(said: TimeText, scope: ReadingContext, zone: ZoneInfo) -> list[_Place]:
    """Return from left to right, at each place, the longest words that mean a time."""
    starts = [match.start() for match in re.finditer(r"(?<![\w'])[\w@(]", said.text)]
    if len(starts) > 2 * WORDS_MAX:
        starts = [*starts[:WORDS_MAX], *starts[-WORDS_MAX:]]
    found: list[_Place] = []
    for start in starts:
        if found and start < found[-1].end:
            continue
        if place := _at(said, start, scope, zone):
            found.append(place)
    return found


def _at(said: TimeText, start: int, scope: ReadingContext, zone: ZoneInfo) -> _Place | None:
    by_end: dict[int, list[Cover]] = {}
    for cover in said.covers(start):
        if cover[1] - start <= CHARS_MAX:
            by_end.setdefault(cover[1], []).append(cover)
    for end in sorted(by_end, reverse=True):
        covers = by_end[end]
        if re.match(r"\s+\w", said.text[end:]):  # a mere number, and more words: so many of them
            covers = [one for one in covers if not _is_number(one[0][-1])]
        if (answer := best(covers, scope, zone)) is not None:
            return _Place(start, end, answer)
    return None


def _is_number(piece: Piece) -> bool:
    return isinstance(piece, Clocks) and piece.clocks[0].bare and len(piece.clocks) == 1


def _together(
    text: str, places: Sequence[_Place], scope: ReadingContext, count: int
) -> TimeRead | None:
    """Return what two places mean as one time: "remind me tomorrow to call Bob at 5"."""
    if len(places) != 2:
        return None
    words = " ".join(text[one.start : one.end] for one in places)
    answer = read(words, now=scope.now, zone=scope.zone, count=count)
    return answer if isinstance(answer, TimeRead) else None


def _several(
    text: str, places: Sequence[_Place], together: TimeRead | None, *, after: datetime, count: int
) -> TimeFound:
    """Ask which of them is meant; those at the end first, for there it usually stands."""
    words = [text[one.start : one.end] for one in places]
    named = " or ".join(repr(one) for one in words)
    readings = [one.answer for one in places if isinstance(one.answer, TimeRead)]
    options = [*([together] if together else []), *reversed(readings)]
    unique = {(repr(one.when), one.until, one.runs_max): one for one in options}
    if together:
        named = f"{' '.join(words)!r}, or only {named}"
        for place in reversed(places):
            text = f"{text[: place.start].rstrip(' ,')} {text[place.end :].lstrip(' ,')}"
    question = TimeAsked(text=f"Which time is meant: {named}?", options=tuple(unique.values()))
    answer = with_next(question, after=after, count=count)
    return TimeFound(answer=answer, words="", rest=_cleaned(text.strip()))


def _cleaned(text: str) -> str:
    """Return the words without those that lead to what is to be done."""
    for leading in (_LEAD, _JOIN):
        if match := leading.match(plain(text)):
            text = text[match.end() :]
    return " ".join(text.split()).strip(" ,;")
