"""Reads a text as a time: plain words, an ISO date-time or cron text.

Called by the commands that take a time, by the schedule tools and by `hearthbot schedule when`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from itertools import groupby, islice
from zoneinfo import ZoneInfo, available_timezones

from agent.jobs import Cron
from scheduler.cron import CronWrong, Slot, is_cron, read_cron
from scheduler.firing import slots
from scheduler.words.answers import Answer, Question, Reading, Refusal
from scheduler.words.grammar import Cover, Text
from scheduler.words.pieces import Ask, Refuse, Scope, Zone
from scheduler.words.repeated import settle_repeated
from scheduler.words.single import settle_single

CHARS_MAX = 300
NEXT_SHOWN = 3

_EXAMPLES = (
    "Times look like 'tomorrow at 5pm', 'in 2 hours', 'every weekday at 8', '2026-12-01 17:00' or "
    "cron text such as '0 9 * * 1-5'."
)


def read(text: str, *, now: datetime, zone: ZoneInfo, count: int = NEXT_SHOWN) -> Answer:
    """How a text is read at an aware `now` by somebody in `zone`, with the next `count` due times.

    `now` lies in the years 1970 to 2999. Never raises for any text.
    """
    stripped = text.strip().rstrip(".!?;").strip()
    if not stripped:
        return Refusal(why=f"There is no time in an empty text. {_EXAMPLES}")
    if len(stripped) > CHARS_MAX:
        return Refusal(why=f"A time has at most {CHARS_MAX} characters. {_EXAMPLES}")
    try:
        scope = Scope(now=now.astimezone(zone))
        if is_cron(stripped):
            answer = _of_cron(stripped, zone)
        else:
            answer = _of_words(stripped, scope, zone) or Refusal(why=_why_not(stripped))
        return with_next(answer, after=now, count=count)
    except (OverflowError, ValueError):  # the calendar's own ends, in one zone or another
        return Refusal(why=f"That lies beyond the calendar. {_EXAMPLES}")


def settled(cover: Cover, scope: Scope, home: ZoneInfo) -> Answer | None:
    """What a row of pieces means: once, or again and again. None where they mean no time."""
    zones = [piece for piece in cover[0] if isinstance(piece, Zone)]
    pieces = [piece for piece in cover[0] if not isinstance(piece, Zone)]
    if len(zones) > 1 or not pieces:
        return None
    if zones:
        if (name := _zone_names().get(zones[0].name.lower())) is None:
            return None
        other = ZoneInfo(name)
        scope = Scope(now=scope.now.astimezone(other))
    found = settle_repeated(pieces, scope)
    return found if found is not None else settle_single(pieces, scope, home=home)


def with_next(answer: Answer, *, after: datetime, count: int) -> Answer:
    """The same with the next `count` due times in each of its readings."""
    match answer:
        case Reading():
            return _filled(answer, after, count)
        case Question():
            options = [_filled(one, after, count) for one in answer.options]
            return Question(text=answer.text, options=options, past=answer.past)
        case Refusal():
            return answer


def due(reading: Reading, *, after: datetime, count: int) -> list[Slot]:
    """The next due times of a reading, within its limits."""
    most = count if reading.runs_max is None else min(count, reading.runs_max)
    found = islice(slots(reading.when, after=after), most)
    return [slot for slot in found if reading.until is None or slot.at <= reading.until]


def _filled(reading: Reading, after: datetime, count: int) -> Reading:
    found = due(reading, after=after, count=count) or list(reading.next)
    return Reading(
        when=reading.when,
        sentence=reading.sentence,
        next=found[:count],
        until=reading.until,
        runs_max=reading.runs_max,
    )


def _of_cron(text: str, zone: ZoneInfo) -> Answer:
    try:
        expression = read_cron(text)
    except CronWrong as error:
        return Refusal(why=str(error))
    sentence = f"by the cron text {expression}"
    return Reading(when=Cron(expression=expression, zone=zone.key), sentence=sentence)


def _of_words(text: str, scope: Scope, zone: ZoneInfo) -> Answer | None:
    said = Text(text, scope)
    rows = [cover for cover in said.covers(said.skip(0)) if said.skip(cover[1]) == len(text)]
    return best(rows, scope, zone) or _explained(rows)


def best(covers: Sequence[Cover], scope: Scope, home: ZoneInfo) -> Answer | None:
    """What the fewest pieces mean; of as many, what leaves least open."""
    for _, alike in groupby(sorted(covers, key=_size), key=_size):
        answers = [found for one in alike if (found := settled(one, scope, home)) is not None]
        if answers:
            return min(answers, key=lambda one: _OPENNESS.index(type(one)))
    return None


def _explained(covers: Sequence[Cover]) -> Question | Refusal | None:
    """What to say where no time is named, but it is known why not."""
    for cover in covers:
        if (first := cover[0][0]) and isinstance(first, Ask) and len(cover[0]) == 1:
            return Question(text=first.why)
    reasons = [one.why for cover in covers for one in cover[0] if isinstance(one, Refuse)]
    return Refusal(why=reasons[0]) if reasons else None


def _size(cover: Cover) -> int:
    return len(cover[0])


_OPENNESS = (Reading, Question, Refusal)


def _why_not(text: str) -> str:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return f"{shown!r} is not a time that can be read. {_EXAMPLES}"


@cache
def _zone_names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}
