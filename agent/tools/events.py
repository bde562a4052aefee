"""The tools for events: noted with their reminders, and listed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import tzinfo
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agent.tools.arguments import Arguments
from agent.tools.profile import PersonContext
from agent.tools.tool import Caller, Effect, Needs, Tool, ToolCard, Trust
from memory.records.errors import Permanent
from memory.records.facts import place_of
from memory.records.jobs import Job, Missed, WhenQuiet
from memory.records.messages import Role, RunId
from memory.records.schedule import (
    Agenda,
    JobBook,
    NoTime,
    Occasion,
    OccasionWish,
    Remind,
    TimeAnswer,
    TimeAsked,
    TimeRead,
    call_key,
    due_words,
    moment_words,
)

# --- times --------------------------------------------------------------------------------------
#
# What the tools of the group `schedule` share: times as they are read, and said back.

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


NAME_CHARS_MAX = 120
NOTE_CHARS_MAX = 1_000
LISTED_MAX = 50

REMINDERS = {
    "none": (),
    "before": (Remind.BEFORE,),
    "on": (Remind.ON,),
    "both": (Remind.BEFORE, Remind.ON),
}
_SPOKEN = {Remind.BEFORE: "the day before", Remind.ON: "on the day"}


class RecordArguments(Arguments):
    """Of record_event."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)]
    when: Annotated[
        str,
        Field(
            default="",
            max_length=300,
            description="in the person's words, or ISO; a day without a time lasts all day; empty: "
            "no date",
        ),
    ]
    note: Annotated[str, Field(default="", max_length=NOTE_CHARS_MAX)]
    remind: Annotated[
        Literal["none", "before", "on", "both"],
        Field(
            default="none",
            description="before: the day before at 09:00; on: at 09:00 of an all-day event, an "
            "hour before one with a time",
        ),
    ]


class ListEventsArguments(Arguments):
    """Of list_events."""

    days: Annotated[int, Field(default=90, ge=1, le=3_660, description="how far ahead")]


class RecordEvent(Tool):
    """Notes something that will happen, with reminders of it."""

    card = ToolCard(
        name="record_event",
        description=(
            "Note an event of the person (appointment, birthday, deadline), with or without a "
            "date, and reminders of it. For a mere reminder use remind_me."
        ),
        arguments=RecordArguments,
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="noting it …",
    )

    def __init__(
        self, agenda: Agenda, book: JobBook, household: PersonContext, readings: Readings
    ) -> None:
        self._agenda = agenda
        self._book = book
        self._household = household
        self._readings = readings

    def needs(self, arguments: RecordArguments, caller: Caller) -> Needs:
        """See Tool: what is read, for a turn in which it is asked about."""
        rows = [f"event: {arguments.name}"]
        if arguments.when.strip():
            time = self._readings.of(arguments, caller, arguments.when)
            rows += read_rows(time, self._book.zone(caller.person_id))
        return Needs(shows=(*rows, f"goes to: {caller.address.key}"))

    async def run(self, arguments: RecordArguments, caller: Caller) -> str:
        """What was noted, and when it reminds."""
        require_member(caller)
        await self._household.check_writable(caller)
        words = arguments.when.strip()
        time = self._readings.of(arguments, caller, words) if words else None
        recorded = await self._agenda.record(
            OccasionWish(
                person_id=caller.person_id,
                name=" ".join(arguments.name.split()),
                when=words,
                time=time,
                deliver_to=caller.address.key,
                note=arguments.note.strip(),
                remind=REMINDERS[arguments.remind],
                scope=scope_of(caller),
                run_id=call_of(arguments, caller, self.card.name),
                outside=caller.tainted,
            )
        )
        if time is not None:
            await self._household.noted(recorded.occasion, time, caller.address.key)
        zone = self._book.zone(caller.person_id)
        lines = [f"Noted: {event_words(recorded.occasion, self._book)}."]
        for job in recorded.reminders:
            at = due_words(job.next, zone) if job.next is not None else "was sent already"
            lines.append(f"Reminder {job.key}: {at} ({zone}).")
        lines += [f"No reminder {_SPOKEN[one]}: that time is over." for one in recorded.too_late]
        return "\n".join(lines)


class ListEvents(Tool):
    """What is noted ahead."""

    card = ToolCard(
        name="list_events",
        description="List the events that are noted for the person, those without a date last.",
        arguments=ListEventsArguments,
        group="schedule",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
        status="looking at the calendar …",
    )

    def __init__(self, agenda: Agenda, book: JobBook, household: PersonContext) -> None:
        self._agenda = agenda
        self._book = book
        self._household = household

    async def run(self, arguments: ListEventsArguments, caller: Caller) -> str:
        """One line each."""
        if await self._household.is_off(caller):
            return "Memory is off in this chat, so events are not looked up here."
        found = await self._agenda.ahead(caller.person_id, scope_of(caller), days=arguments.days)
        if not found:
            return f"No event is noted within {arguments.days} days."
        lines = [f"- {event_words(one, self._book)}" for one in found[:LISTED_MAX]]
        if len(found) > LISTED_MAX:
            lines.append(f"… and {len(found) - LISTED_MAX} more")
        return "\n".join(lines)


def event_words(occasion: Occasion, book: JobBook) -> str:
    """`e5 Dentist: Thu 3 Dec 2026, 10:00 (Europe/Berlin)`, with its note."""
    new = occasion.new
    zone = book.zone(new.person_id)
    if new.at is None:
        when = "no date"
    else:
        at = moment_words(new.at, zone)
        when = f"{at.partition(',')[0]}, all day" if new.all_day else f"{at} ({zone})"
    note = f" – {new.note}" if new.note else ""
    return f"{occasion.key} {new.name}: {when}{note}"
