"""Times as people write them, read on their wall clock.

Somebody who never said where they live has this machine's zone for the time being; what was read
for them is looked at again once they say.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
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

ANYWHERE_MAX = 500
"""Readings of which is known that they are the same in every zone; the oldest go."""

MOMENT = timedelta(seconds=2)
"""Two readings of 'in 10 minutes' lie no further apart; a step in minutes begins on a full one."""

_FAR = (ZoneInfo("Asia/Kathmandu"), ZoneInfo("Pacific/Marquesas"))
"""Zones in whose time hardly anybody's 8 in the morning is 8, or 8 in the evening."""

CHOICES_MAX = 4


class TimeUnclear(Permanent):
    """A text is no time, or something has to be asked first; with both in a sentence."""


class TimeReader:
    """Reads times. Pure but for what it remembers of readings."""

    def __init__(
        self,
        zone: Callable[[PersonId], ZoneInfo],
        *,
        clock: Clock,
        is_assumed: Callable[[PersonId], bool] = lambda person_id: False,
    ) -> None:
        """`zone` is a person's, or the one that stands in for it where it `is_assumed`."""
        self.zone = zone
        self._clock = clock
        self._is_assumed = is_assumed
        self._anywhere = Anywhere()

    def read(self, person_id: PersonId, text: str) -> TimeAnswer:
        """Return how a time is read now: plain words, ISO or cron text."""
        # Its rules take 50 ms to compile: not before the first time is read.
        from scheduler.timetext.parse import read

        now, zone = self._clock.now(), self.zone(person_id)
        answer = read(text, now=now, zone=zone)
        if self._is_assumed(person_id):
            self._anywhere.note(answer, zone, lambda far: read(text, now=now, zone=far))
        return answer

    def require(self, person_id: PersonId, text: str) -> TimeRead:
        """Return the reading. Raise TimeUnclear with what is to be asked, or why it is no time."""
        match self.read(person_id, text):
            case TimeRead() as time:
                return time
            case TimeAsked(text=question, options=options):
                zone = self.zone(person_id)
                choices = "; ".join(
                    f"{one.sentence} ({moment_words(one.next[0], zone)})"
                    if one.next
                    else one.sentence
                    for one in options[:CHOICES_MAX]
                )
                raise TimeUnclear(f"{question} Choices: {choices}" if choices else question)
            case NoTime(why=why):
                raise TimeUnclear(why)

    def find(self, person_id: PersonId, sentence: str) -> TimeFound | None:
        """Return the time in a sentence; None where it names none."""
        from scheduler.timetext.find import find

        now, zone = self._clock.now(), self.zone(person_id)
        found = find(sentence, now=now, zone=zone)
        if found is not None and self._is_assumed(person_id):

            def again(far: ZoneInfo) -> TimeAnswer:
                other = find(sentence, now=now, zone=far)
                return NoTime(why="") if other is None else other.answer

            self._anywhere.note(found.answer, zone, again)
        return found

    def is_anywhere(self, when: When) -> bool:
        """Return whether a time that was read for somebody without a zone is the same in every
        one."""
        return when in self._anywhere


class Anywhere:
    """Times that mean the same wherever their person is: in 10 minutes, at 9 in Tokyo.

    They are told by reading the same words in a far zone. Kept in memory: what was read before a
    restart is read anew before it is used.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[When, None] = OrderedDict()

    def note(
        self, answer: TimeAnswer, zone: ZoneInfo, again: Callable[[ZoneInfo], TimeAnswer]
    ) -> None:
        """Look at what was read in `zone`; `again` reads it in another one."""
        readings = _readings(answer)
        if not readings:
            return
        far = _readings(again(next(one for one in _FAR if one != zone)))
        for reading in readings:
            self._kept.pop(reading.when, None)
            if any(_is_same(reading.when, other.when) for other in far):
                self._kept[reading.when] = None
        while len(self._kept) > ANYWHERE_MAX:
            self._kept.popitem(last=False)

    def __contains__(self, when: When) -> bool:
        return when in self._kept or passes(when)


def _readings(answer: TimeAnswer) -> Sequence[TimeRead]:
    match answer:
        case TimeRead():
            return (answer,)
        case TimeAsked(options=options):
            return options
        case NoTime():
            return ()


def _is_same(here: When, there: When) -> bool:
    """Return whether these are one time: two readings of the same words in two zones."""
    if isinstance(here, At) and isinstance(there, At):
        return abs(here.moment - there.moment) <= MOMENT
    return type(here) is type(there) and here.zone == there.zone


def passes(when: When) -> bool:
    """Return whether it is counted in time that passes."""
    return isinstance(when, Every) and when.unit.passes
