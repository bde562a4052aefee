"""Times as people write them, read on their wall clock.

Of somebody who never said where they live nobody knows what 9 o'clock is: they are asked for their
zone first, unless the time is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from memory.records.errors import Permanent
from memory.records.messages import PersonId
from memory.records.ports import Clock
from memory.records.recurrence import At, Every, When
from memory.records.schedule import (
    NoTime,
    TimeAnswer,
    TimeAsked,
    TimeFound,
    TimeRead,
    moment_words,
)

MOMENT = timedelta(seconds=2)
"""Two readings of 'in 10 minutes' lie no further apart."""

_FAR = (ZoneInfo("Asia/Kathmandu"), ZoneInfo("Pacific/Marquesas"))
"""Zones in whose time hardly anybody's 8 in the morning is 8, or 8 in the evening."""

CHOICES_MAX = 4


class TimeUnclear(Permanent):
    """A text is no time, or something has to be asked first; with both in a sentence."""


class TimeReader:
    """Reads times."""

    def __init__(
        self,
        zone: Callable[[PersonId], ZoneInfo],
        *,
        clock: Clock,
        is_open: Callable[[PersonId], bool] = lambda person_id: False,
        ask_zone: Callable[[PersonId], str] = lambda person_id: "",
    ) -> None:
        """`zone` is a person's, or the one that stands in for it where it `is_open`; `ask_zone`
        returns the question for it."""
        self.zone = zone
        self._clock = clock
        self._is_open = is_open
        self._ask_zone = ask_zone

    def read(self, person_id: PersonId, text: str) -> TimeAnswer:
        """Return how a time is read now: plain words, ISO or cron text."""
        answer = self._read(text, self.zone(person_id))
        if self._is_open(person_id):
            far = self._read(text, self._far_from(person_id))
            return self._unless_open(person_id, answer, far)
        return answer

    def find(self, person_id: PersonId, sentence: str) -> TimeFound | None:
        """Return the time in a sentence; None where it names none."""
        # Its rules take 50 ms to compile: not before the first time is read.
        from scheduler.timetext.find import find

        now = self._clock.now()
        found = find(sentence, now=now, zone=self.zone(person_id))
        if found is None or not self._is_open(person_id):
            return found
        other = find(sentence, now=now, zone=self._far_from(person_id))
        far = NoTime(why="") if other is None else other.answer
        return replace(found, answer=self._unless_open(person_id, found.answer, far))

    def require(self, person_id: PersonId, text: str) -> TimeRead:
        """Return the reading for the operator, who sits at the machine whose clock stands in for a
        zone that is not known. Raise TimeUnclear with what is to be asked, or why it is no time."""
        zone = self.zone(person_id)
        match self._read(text, zone):
            case TimeRead() as time:
                return time
            case TimeAsked(text=question, options=options):
                choices = "; ".join(choice_words(options, zone))
                raise TimeUnclear(f"{question} Choices: {choices}" if choices else question)
            case NoTime(why=why):
                raise TimeUnclear(why)

    def zone_question(self, person_id: PersonId) -> str:
        """Return what somebody has to be asked before their clock is gone by; empty: nothing."""
        return self._ask_zone(person_id) if self._is_open(person_id) else ""

    def _read(self, text: str, zone: ZoneInfo) -> TimeAnswer:
        from scheduler.timetext.parse import read

        return read(text, now=self._clock.now(), zone=zone)

    def _far_from(self, person_id: PersonId) -> ZoneInfo:
        return next(one for one in _FAR if one != self.zone(person_id))

    def _unless_open(self, person_id: PersonId, answer: TimeAnswer, far: TimeAnswer) -> TimeAnswer:
        """Return the answer where the same words mean the same in a far zone, as 'in 10 minutes'
        and '9 in Tokyo' do; else the question for the zone."""
        if isinstance(answer, NoTime) or not (here := _times(answer)):
            return answer
        there = _times(far)
        if all(any(_is_same(one, other) for other in there) for one in here):
            return answer
        return TimeAsked(text=self._ask_zone(person_id))


def choice_words(options: Sequence[TimeRead], zone: ZoneInfo) -> list[str]:
    """Return how each reading that may be meant is said, with when it comes first."""
    return [
        f"{one.sentence} ({moment_words(one.next[0], zone)})" if one.next else one.sentence
        for one in options[:CHOICES_MAX]
    ]


def _times(answer: TimeAnswer) -> list[When]:
    match answer:
        case TimeRead():
            return [answer.when]
        case TimeAsked():
            return [one.when for one in answer.options]
        case NoTime():
            return []


def _is_same(here: When, there: When) -> bool:
    if isinstance(here, At) and isinstance(there, At):
        return abs(here.moment - there.moment) <= MOMENT
    if isinstance(here, Every) and here.unit.passes:
        return isinstance(there, Every)
    return type(here) is type(there) and here.zone == there.zone
