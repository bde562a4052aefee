"""Finds the time in a sentence: "remind me to call Bob tomorrow at 5". Called by `/remind`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
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
from scheduler.timetext.pieces import Date, Piece, ReadingContext, TimeOfDay

SENTENCE_CHARS_MAX = 2_000
WORDS_MAX = 60
"""A time stands in the first or the last of so many words; between them none is looked for."""


@dataclass(frozen=True, slots=True)
class _PhrasePlace:
    start: int
    end: int
    answer: TimeAnswer
    doubtful: bool


_LEAD = re.compile(
    r"\s*(?:please[\s,]+)?(?:(?:can|could|would|will)\s+you\s+)?(?:please\s+)?"
    r"(?:remind\s+me|tell\s+me|ping\s+me|let\s+me\s+know|set\s+(?:me\s+)?an?\s+"
    r"(?:reminder|alarm))?[\s,:]*",
)
_JOIN = re.compile(r"\s*(?:to|that|about|of|for|[,:-])(?=\s|$)[\s,:]*")
_WEAK = re.compile(
    r"(?:may|march|mar|sun|sat|wed|mon|fri|now|second|dec|jan|soon|later|new year|on|the last"
    r"|twice|once|some ?day|one day|weekly|monthly|yearly|daily|hourly|lunch(?:time)?)"
)
"""Words that are something else more often than a time, when they stand alone."""

_NAMED = re.compile(r"\b(?:the|a|an|my|our|your|his|her|their)\s+\Z")
"""Before a time that only says which thing is meant: the 9am meeting."""

_LOOSE = re.compile(
    r"\b(?:minutes?|mins?|hours?|days?|weeks?|months?)\s+(?:before|after|early|earlier|from)\b"
    r"|\b\d{1,2}(?::\d\d)?\s*(?:[ap]\.?m\b|o'?clock\b)|\b\d{1,2}:\d\d\b|\b(?:every|each|tomorrow|"
    r"tonight|yesterday|until|till|except|ago|hence)\b|\bin\s+\d+\s+(?:min|hour|day|week|month)"
    r"|\b(?:weekdays?|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|thu|fri)\b"
)
"""What looks like a time; left over, it says that not all was understood."""


def find(text: str, *, now: datetime, zone: ZoneInfo, count: int = NEXT_SHOWN) -> TimeFound | None:
    """The time that a sentence names, and the rest of it without the words that only lead to it.

    None where it names none. Several that may be meant, or words beside it that look like a time,
    make a question. Never raises for any text.
    """
    if len(text) > SENTENCE_CHARS_MAX:
        return None
    try:
        return _found(text, now=now, zone=zone, count=count)
    except (OverflowError, ValueError):  # the calendar's own ends, in one zone or another
        why = "That lies beyond the calendar. Write a time such as 'tomorrow at 5pm'."
        return TimeFound(answer=NoTime(why=why), words=text, rest="")


def _found(text: str, *, now: datetime, zone: ZoneInfo, count: int) -> TimeFound | None:
    scope = ReadingContext(now=now.astimezone(zone))
    said = TimeText(text, scope)
    lead = _LEAD.match(said.text)
    head = lead.end() if lead else 0
    places = _strong(said, _places(said, scope, zone))
    if not places:
        return None
    chosen = _chosen(said, places, head)
    together = _together(text, places, scope, count) if len(places) > 1 else None
    if chosen is None or together is not None:
        return _several(text, places, together, now=now, count=count)
    rest = _without(text, chosen, head)
    answer = with_next(chosen.answer, after=now, count=count)
    at_head = chosen.start <= head and _JOIN.match(said.text, chosen.end)
    if not at_head and isinstance(answer, TimeRead):
        if _LOOSE.search(plain(rest)):
            why = "Part of that looks like a time and was not understood. Is this meant?"
            answer = TimeAsked(text=why, options=(answer,))
        elif chosen.doubtful:
            words = text[chosen.start : chosen.end]
            answer = TimeAsked(text=f"Is {words!r} the time?", options=(answer,))
    return TimeFound(answer=answer, words=text[chosen.start : chosen.end], rest=rest)


def _places(said: TimeText, scope: ReadingContext, zone: ZoneInfo) -> list[_PhrasePlace]:
    """From left to right, at each place the longest words that mean a time."""
    starts = [match.start() for match in re.finditer(r"(?<![\w'])[\w@(]", said.text)]
    if len(starts) > 2 * WORDS_MAX:
        starts = [*starts[:WORDS_MAX], *starts[-WORDS_MAX:]]
    found: list[_PhrasePlace] = []
    for start in starts:
        if found and start < found[-1].end:
            continue
        if place := _at(said, start, scope, zone):
            found.append(place)
    return found


def _at(said: TimeText, start: int, scope: ReadingContext, zone: ZoneInfo) -> _PhrasePlace | None:
    by_end: dict[int, list[Cover]] = {}
    for cover in said.covers(start):
        if cover[1] - start <= CHARS_MAX:
            by_end.setdefault(cover[1], []).append(cover)
    for end in sorted(by_end, reverse=True):
        goes_on = re.match(r"\s+\w", said.text[end:]) is not None
        covers = [one for one in by_end[end] if not (goes_on and _is_number(one[0][-1]))]
        answer = best(covers, scope, zone)
        if answer is not None:
            named = goes_on and _NAMED.search(said.text, 0, start) is not None
            numbered = all(
                _is_number(one[0][0]) or (goes_on and _is_name(one[0])) for one in covers
            )
            numbered = numbered or (named and all(len(one[0]) == 1 for one in covers))
            return _PhrasePlace(start, end, answer, numbered)
    return None


def _is_name(pieces: Sequence[Piece]) -> bool:
    """The 5th, and more words: a day, or the 5th of something."""
    first = pieces[0]
    return len(pieces) == 1 and isinstance(first, Date) and not first.month


def _is_number(piece: Piece) -> bool:
    """A mere number beside a day: a time, or so many of something."""
    return isinstance(piece, TimeOfDay) and piece.bare


def _strong(said: TimeText, places: Sequence[_PhrasePlace]) -> list[_PhrasePlace]:
    """Without words that hardly ever are a time by themselves, and refusals beside readings."""
    strong = [one for one in places if not _WEAK.fullmatch(said.text[one.start : one.end])]
    readable = [one for one in strong if not isinstance(one.answer, NoTime)]
    return readable or strong


def _chosen(said: TimeText, places: Sequence[_PhrasePlace], head: int) -> _PhrasePlace | None:
    """The only one; else the one right behind "remind me" that goes on with "to …"."""
    if len(places) == 1:
        return places[0]
    first = places[0]
    if first.start <= head and _JOIN.match(said.text, first.end):
        return first
    return None


def _together(
    text: str, places: Sequence[_PhrasePlace], scope: ReadingContext, count: int
) -> TimeRead | None:
    """What two places mean as one time: "remind me tomorrow to call Bob at 5"."""
    zone = scope.now.tzinfo
    if len(places) != 2 or not isinstance(zone, ZoneInfo):
        return None
    words = " ".join(text[one.start : one.end] for one in places)
    answer = read(words, now=scope.now, zone=zone, count=count)
    return answer if isinstance(answer, TimeRead) else None


def _several(
    text: str,
    places: Sequence[_PhrasePlace],
    together: TimeRead | None,
    *,
    now: datetime,
    count: int,
) -> TimeFound:
    """Which of them is meant? Those at the end first, for there it usually stands."""
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
    answer = with_next(question, after=now, count=count)
    return TimeFound(answer=answer, words="", rest=_cleaned(text.strip(), 0))


def _without(text: str, place: _PhrasePlace, head: int) -> str:
    """The sentence without its time, and without the words that lead to what is to be done."""
    before, after = text[: place.start].rstrip(" ,"), text[place.end :].lstrip(" ,")
    if place.start <= head:
        return _cleaned(after, 0)
    kept = before[head:]
    return _cleaned(f"{kept} {after}" if after.strip(" .!?") else f"{kept}{after}", 0)


def _cleaned(text: str, start: int) -> str:
    lead = _LEAD.match(plain(text), start)
    body = text[lead.end() if lead else start :]
    if join := _JOIN.match(plain(body)):
        body = body[join.end() :]
    return " ".join(body.split()).strip(" ,;")
