"""Finds the time in a sentence: "remind me to call Bob tomorrow at 5". Called by `/remind`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeFound, TimeRead
from scheduler.timetext.parse import (
    CHARS_MAX,
    NEXT_SHOWN,
    Cover,
    TimeText,
    best,
    plain,
    read,
    with_next,
)
from scheduler.timetext.pieces import Clocks, Piece, ReadingContext

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
