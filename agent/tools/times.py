"""What the tools of the group `schedule` share: times as they are read, and said back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import tzinfo
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agent.errors import Permanent
from agent.jobbook import (
    JobBook,
    NoTime,
    TimeAnswer,
    TimeAsked,
    TimeRead,
    call_key,
    due_words,
    moment_words,
)
from agent.messages import Role, RunId
from agent.remembering import place_of
from agent.scheduled import Job, Missed, WhenQuiet
from agent.tools.tool import Caller

READINGS_MAX = 200
"""Readings that are kept until their call is run; the oldest go."""

OPTIONS_MAX = 4


class ScheduleRefused(Permanent):
    """A call cannot be done so; with what to ask the person, or what to do instead."""


IfMissed = Annotated[
    Literal["skip", "once", "all", "ask"] | None,
    Field(default=None, description="runs missed while the bot was off; else once"),
]
InQuiet = Annotated[
    Literal["defer", "drop", "ignore"] | None,
    Field(default=None, description="results in quiet hours; else defer"),
]
"""Rules of a job, in the words of `hearthbot schedule add`."""


def rules_of(missed: str | None, quiet: str | None) -> tuple[Missed | None, WhenQuiet | None]:
    """As they are kept; None where they were not named."""
    return Missed(missed) if missed else None, WhenQuiet(quiet) if quiet else None


class Readings:
    """Times as they were read first: what a person agreed to is what is kept, however long they
    took to agree. A restart in between has them read anew."""

    def __init__(self, book: JobBook) -> None:
        self._book = book
        self._kept: OrderedDict[tuple[RunId, str], TimeRead] = OrderedDict()

    def of(self, arguments: BaseModel, caller: Caller, text: str) -> TimeRead:
        """How the time of a call is read. Raises ScheduleRefused with what is to be asked first."""
        key = (caller.run_id, arguments.model_dump_json())
        if (kept := self._kept.get(key)) is not None:
            return kept
        answer = self._book.read(caller.person_id, text)
        read = require_read(answer, self._book.zone(caller.person_id))
        self._kept[key] = read
        while len(self._kept) > READINGS_MAX:
            self._kept.popitem(last=False)
        return read


def require_read(answer: TimeAnswer, zone: tzinfo) -> TimeRead:
    """The reading. Raises ScheduleRefused with what is to be asked first, or what is wrong."""
    match answer:
        case TimeRead():
            return answer
        case TimeAsked(text=text, options=options):
            choices = [f"- {one.sentence}{_first(one, zone)}" for one in options[:OPTIONS_MAX]]
            raise ScheduleRefused(
                "\n".join([f"nothing was saved; ask the person: {text}", *choices])
            )
        case NoTime(why=why):
            raise ScheduleRefused(f"nothing was saved. {why}")


def _first(time: TimeRead, zone: tzinfo) -> str:
    return f" ({moment_words(time.next[0], zone)})" if time.next else ""


def call_of(arguments: BaseModel, caller: Caller, tool: str) -> RunId:
    """The name of this call, which it keeps when it is made again."""
    return call_key(caller.run_id, tool, arguments.model_dump_json())


def require_member(caller: Caller) -> None:
    """Raises ScheduleRefused for a guest."""
    if caller.role is Role.GUEST:
        raise ScheduleRefused("guests have no jobs of their own; the owner can make one a member")


def read_rows(time: TimeRead, zone: tzinfo) -> list[str]:
    """How it was read, and the first due times: for who is asked."""
    following = [moment_words(one, zone) for one in time.next]
    return [f"when: {time.sentence} ({zone})", f"next: {'; '.join(following) or 'never'}"]


def rule_rows(missed: str | None, quiet: str | None) -> list[str]:
    """The rules that were named: for who is asked."""
    rows = [f"runs missed while I was off: {missed}"] if missed else []
    return [*rows, f"results in quiet hours: {quiet}"] if quiet else rows


def saved_words(book: JobBook, job: Job, time: TimeRead | None) -> str:
    """How it was read and the next runs, exactly as they are kept."""
    zone = book.zone(job.new.person_id)
    read = "" if time is None else f" Read as: {time.sentence}."
    return f"{read} {next_words(book, job, zone)}".strip()


def next_words(book: JobBook, job: Job, zone: tzinfo) -> str:
    """`Next: …; …; … (Europe/Berlin).`"""
    due = [due_words(one, zone) for one in book.due(job)]
    if due:
        return f"Next: {'; '.join(due)} ({zone})."
    return f"Paused: {job.paused or 'by hand'}." if not job.enabled else "It is over."


def visible_here(jobs: Sequence[Job], caller: Caller) -> list[Job]:
    """In a group those that are for it: others read along."""
    if not caller.is_group:
        return list(jobs)
    here = place_of(caller.address)
    return [job for job in jobs if f"{job.new.deliver_to}:".startswith(f"{here}:")]


async def find_here(book: JobBook, caller: Caller, name: str) -> Job:
    """A job of the caller. Raises ScheduleRefused for one that is not for this group, Permanent
    where there is none."""
    job = await book.find(caller.person_id, name)
    if not visible_here([job], caller):
        raise ScheduleRefused(f"{name.strip()[:60]!r} is no job of this group")
    return job


def scope_of(caller: Caller) -> str:
    """Whose events are meant: the person's own, or those of a group."""
    return place_of(caller.address) if caller.is_group else ""
