"""Times as people write them, read on their wall clock; and what calls of the schedule tools share.

Of somebody who never said where they live nobody knows what 9 o'clock is: they are asked for their
zone first, unless the time is the same everywhere.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from agent.policy.approval import Allowed, AskFirst, NotAllowed, Policy, Verdict, decide
from agent.policy.presentation import needs_of
from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.tool import Caller, Effect, Tool
from agent.tools.toolbox import MAKES_JOBS, UNATTENDED_ALONE
from memory.records.errors import AssistantError, Permanent, StorageError
from memory.records.facts import place_of
from memory.records.jobs import Asker, At, Every, JobKind, What, When
from memory.records.messages import PersonId, Role, RunId
from memory.records.ports import Clock
from memory.records.schedule import (
    NoTime,
    TimeAnswer,
    TimeAsked,
    TimeFound,
    TimeRead,
    call_key,
    moment_words,
)
from scheduler.jobs.rules import JobRefused

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
        from scheduler.timetext.parse import find

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
        return TimeAsked(text=self._ask_zone(person_id), for_zone=True)


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


# --- in calls of tools --------------------------------------------------------------------------

ARGUMENTS_CHARS_MAX = 8_000

READINGS_MAX = 200
"""Readings that are kept until their call is run; the oldest go."""

LISTED_MAX = 50

NOT_ALONE = frozenset({"schedule", "discovery", "agents"})
"""Groups whose tools make no sense as the one call of a job."""


class CallTimes:
    """Times of calls, as they were read first."""

    def __init__(self, times: TimeReader) -> None:
        self._times = times
        self._readings: OrderedDict[tuple[RunId, tuple[str, ...]], TimeRead] = OrderedDict()

    def read(self, caller: Caller, when: str, *call: str) -> TimeRead:
        """Return the time of a `call` as it was read first: what a person agreed to is what is
        kept, however long they took to agree. A restart in between has it read anew. Raise
        JobRefused with what is to be asked first."""
        key = caller.run_id, (when, *call)
        if (kept := self._readings.get(key)) is not None:
            return kept
        match self._times.read(caller.person_id, when):
            case TimeRead() as time:
                # "In 2 hours" means two hours from the asking, not from the yes.
                self._readings[key] = time
                while len(self._readings) > READINGS_MAX:
                    self._readings.popitem(last=False)
                return time
            case TimeAsked(text=text, options=options):
                choices = choice_words(options, self._times.zone(caller.person_id))
                question = f"nothing was saved; ask the person: {text}"
                raise JobRefused("\n- ".join([question, *choices]))
            case NoTime(why=why):
                raise JobRefused(f"nothing was saved. {why}")

    def rows(self, time: TimeRead, caller: Caller) -> list[str]:
        """Return how it was read, and the first due times: for who is asked."""
        zone = self._times.zone(caller.person_id)
        following = [moment_words(one, zone) for one in time.next]
        return [f"when: {time.sentence} ({zone})", f"next: {'; '.join(following) or 'never'}"]


def asker_of(caller: Caller) -> Asker:
    """Return who asks: the assistant, in a person's name and in this chat."""
    group = place_of(caller.address) if caller.is_group else ""
    return Asker(person_id=caller.person_id, group=group, is_model=True)


def call_of(caller: Caller, tool: str, *arguments: object) -> RunId:
    """Return the name of this call, which it keeps when it is made again."""
    return call_key(caller.run_id, tool, json.dumps(arguments, default=str))


def listed(lines: list[str]) -> str:
    """Return the first lines, and how many more there are."""
    more = [f"… and {len(lines) - LISTED_MAX} more"] if len(lines) > LISTED_MAX else []
    return "\n".join([*lines[:LISTED_MAX], *more])


# --- one call of a tool --------------------------------------------------------------------------
#
# Which call a job may make by itself (SPEC §4, §11): it is agreed to with exactly its arguments,
# and then runs without a model.


class ToolCalls:
    """Checks calls before they are kept. `reached` finds a tool that a run may have."""

    def __init__(self, reached: Callable[[str, Caller], Tool | None], *, policy: Policy) -> None:
        self._reached = reached
        self._policy = policy

    def what(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> What:
        """Return a call that this person may have made when nobody is there. Raise JobRefused."""
        alone = _alone(caller)
        tool = self._reached(name, alone)
        if tool is None or tool.card.group in NOT_ALONE or name in MAKES_JOBS | UNATTENDED_ALONE:
            raise JobRefused(
                f"{name[:60]!r} is no tool that a job may call by itself; use instructions"
            )
        text = json.dumps(arguments, ensure_ascii=False)
        if len(text) > ARGUMENTS_CHARS_MAX:
            raise JobRefused(f"the arguments have more than {ARGUMENTS_CHARS_MAX:,} characters")
        verdict = self._verdict(tool, text, alone)
        if isinstance(verdict, NotAllowed):
            raise JobRefused(f"{name} cannot be scheduled: {verdict.why}")
        return What(tool=name, arguments=text)

    def is_own(self, kind: JobKind, what: What, caller: Caller) -> bool:
        """Return whether a job concerns the member who wishes for it alone, who then agrees to it
        themselves: it goes to their own chat, and is no call that acts outside or that the owner
        has to agree to. Instructions are followed with that member's rights, and ask as in a
        chat."""
        if caller.role is not Role.MEMBER or caller.is_group or caller.unattended:
            return False
        if kind is not JobKind.TOOL:
            return True
        alone = _alone(caller)
        tool = self._reached(what.tool, alone)
        if tool is None or tool.card.effect not in {Effect.NONE, Effect.PERSON}:
            return False
        verdict = self._verdict(tool, what.arguments, alone)
        return isinstance(verdict, Allowed) or (
            isinstance(verdict, AskFirst) and not verdict.owner_alone
        )

    def _verdict(self, tool: Tool, arguments: str, alone: Caller) -> Verdict:
        """Targets are shown to the person, word for word: nothing has to be read before."""
        name = tool.card.name
        try:
            needs = needs_of(tool, parse_arguments(tool.card.arguments, arguments), alone)
        except ArgumentsWrong as error:
            raise JobRefused(f"the arguments of {name} are wrong: {error}") from error
        except StorageError:
            raise
        except AssistantError as error:
            raise JobRefused(f"{name}: {error}") from error
        return decide(self._policy, tool.card, needs, alone, leaves="", always=False)


def _alone(caller: Caller) -> Caller:
    """Return the same person when nobody is there."""
    return replace(caller, unattended=True, makes_jobs=False)
