"""The group `schedule`: reminders, events, and jobs that run by themselves.

Where something goes is bound when it is made: to the chat of the call, never to another.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent.tools.arguments import Arguments
from agent.tools.events import (
    IfMissed,
    InQuiet,
    ListEvents,
    Readings,
    RecordEvent,
    ScheduleRefused,
    call_of,
    find_here,
    next_words,
    read_rows,
    require_member,
    rule_rows,
    rules_of,
    saved_words,
    scope_of,
    visible_here,
)
from agent.tools.jobs import Abilities, ScheduleJob
from agent.tools.profile import PersonContext
from agent.tools.tool import Caller, Effect, Needs, Tool, ToolCard, Trust
from memory.records.jobs import Job, JobKind, What
from memory.records.schedule import Agenda, JobBook, JobWish, due_words

LISTED_MAX = 50
NAG_MINUTES_MAX = 24 * 60
TEXT_CHARS_MAX = 4_000

Id = Annotated[str, Field(min_length=1, max_length=100, description="such as j12")]


def schedule_tools(
    book: JobBook, agenda: Agenda, household: PersonContext, abilities: Abilities
) -> tuple[Tool, ...]:
    """All tools of this group."""
    readings = Readings(book)
    return (
        RemindMe(book, readings),
        RecordEvent(agenda, book, household, readings),
        ListEvents(agenda, book, household),
        ScheduleJob(book, readings, abilities),
        ListJobs(book),
        UpdateJob(book, readings),
        RemoveJob(book, agenda),
        RunJob(book),
    )


class RemindArguments(Arguments):
    """Of remind_me."""

    text: Annotated[
        str,
        Field(min_length=1, max_length=TEXT_CHARS_MAX, description="what the person will read"),
    ]
    when: Annotated[
        str,
        Field(
            min_length=1,
            max_length=300,
            description="in the person's words ('tomorrow at 5', 'every Monday at 8'), ISO, or "
            "cron text",
        ),
    ]
    nag_minutes: Annotated[
        int | None,
        Field(
            default=None,
            ge=1,
            le=NAG_MINUTES_MAX,
            description="repeat so often until the person says that it is done",
        ),
    ]
    urgent: Annotated[bool, Field(default=False, description="also in quiet hours")]


class JobArguments(Arguments):
    """Of run_job."""

    id: Id


class RemoveArguments(Arguments):
    """Of remove_job."""

    id: Annotated[str, Field(min_length=1, max_length=100, description="j12, or e5 of an event")]


class ListJobsArguments(Arguments):
    """Of list_jobs."""


class UpdateArguments(Arguments):
    """Of update_job: what is not given stays."""

    id: Id
    when: Annotated[str, Field(default="", max_length=300, description="its new time")]
    text: Annotated[str, Field(default="", max_length=TEXT_CHARS_MAX, description="its new words")]
    paused: Annotated[
        bool | None, Field(default=None, description="true stops it, false lets it go on")
    ]
    missed: IfMissed
    quiet: InQuiet

    @property
    def has_rules(self) -> bool:
        """Whether a rule is named."""
        return self.missed is not None or self.quiet is not None


class RemindMe(Tool):
    """Keeps a reminder: a fixed text at its time, without a model."""

    card = ToolCard(
        name="remind_me",
        description=(
            "Remind the person of something in this chat, once or again and again. If the time "
            "is not clear, ask the person rather than guess."
        ),
        arguments=RemindArguments,
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="setting a reminder …",
    )

    def __init__(self, book: JobBook, readings: Readings) -> None:
        self._book = book
        self._readings = readings

    def needs(self, arguments: RemindArguments, caller: Caller) -> Needs:
        """See Tool: what is read, for a turn in which it is asked about."""
        time = self._readings.of(arguments, caller, arguments.when)
        rows = read_rows(time, self._book.zone(caller.person_id))
        return Needs(shows=(*rows, f"goes to: {caller.address.key}"))

    async def run(self, arguments: RemindArguments, caller: Caller) -> str:
        """How the time was read, and when it is due, as it is kept."""
        require_member(caller)
        time = self._readings.of(arguments, caller, arguments.when)
        nag_s = None if arguments.nag_minutes is None else arguments.nag_minutes * 60
        job = await self._book.add(
            JobWish(
                person_id=caller.person_id,
                kind=JobKind.MESSAGE,
                what=What(text=arguments.text.strip(), outside=caller.tainted),
                time=time,
                deliver_to=caller.address.key,
                urgent=arguments.urgent,
                nag_s=nag_s,
                run_id=call_of(arguments, caller, self.card.name),
            )
        )
        return f"Saved as {job.key}. {saved_words(self._book, job, time)}"


class ListJobs(Tool):
    """The jobs of the person."""

    card = ToolCard(
        name="list_jobs",
        description="List the person's reminders and jobs with their ids and next runs.",
        arguments=ListJobsArguments,
        group="schedule",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
        status="looking at the jobs …",
    )

    def __init__(self, book: JobBook) -> None:
        self._book = book

    async def run(self, arguments: ListJobsArguments, caller: Caller) -> str:
        """One line each."""
        jobs = visible_here(await self._book.of(caller.person_id), caller)
        if not jobs:
            return "There are no jobs."
        zone = self._book.zone(caller.person_id)
        lines = [_job_line(job, self._book) for job in jobs[:LISTED_MAX]]
        if len(jobs) > LISTED_MAX:
            lines.append(f"… and {len(jobs) - LISTED_MAX} more")
        return "\n".join([f"Times are of {zone}.", *lines])


def _job_line(job: Job, book: JobBook) -> str:
    zone = book.zone(job.new.person_id)
    if not job.enabled:
        state = f"paused: {job.paused or 'by hand'}"
    elif job.next is None:
        state = "over"
    else:
        state = f"next {due_words(job.next, zone)}"
    return f"- {job.key} {job.new.name} [{job.new.kind}]: {state}"


class UpdateJob(Tool):
    """Stops a job, lets it go on, or changes a reminder."""

    card = ToolCard(
        name="update_job",
        description=(
            "Pause or resume a job of the person, or give a reminder another time or other words. "
            "To change what another job does or when, remove it and schedule it anew."
        ),
        arguments=UpdateArguments,
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="changing a job …",
    )

    def __init__(self, book: JobBook, readings: Readings) -> None:
        self._book = book
        self._readings = readings

    def needs(self, arguments: UpdateArguments, caller: Caller) -> Needs:
        """See Tool: what is read, for a turn in which it is asked about."""
        rows = rule_rows(arguments.missed, arguments.quiet)
        if arguments.when.strip():
            time = self._readings.of(arguments, caller, arguments.when)
            rows = [*read_rows(time, self._book.zone(caller.person_id)), *rows]
        return Needs(shows=(f"job: {arguments.id}", *rows) if rows else ())

    async def run(self, arguments: UpdateArguments, caller: Caller) -> str:
        """How it stands then."""
        require_member(caller)
        when, text = arguments.when.strip(), arguments.text.strip()
        if not when and not text and not arguments.has_rules and arguments.paused is None:
            raise ScheduleRefused("nothing was changed: give when, text, paused, missed or quiet")
        # Read before anything is changed: what must be asked first changes nothing.
        time = self._readings.of(arguments, caller, when) if when else None
        job = await find_here(self._book, caller, arguments.id)
        if (when or text or arguments.has_rules) and job.new.kind is not JobKind.MESSAGE:
            # What runs by itself was agreed to as it is.
            raise ScheduleRefused(
                f"{job.key} is more than a reminder, and the person agreed to it as it is. Remove "
                "it and schedule it anew, which asks them; or they write "
                f"`/job {job.key} move …` or `/job {job.key} text …`"
            )
        if text:
            job = await self._book.reword(job, text, outside=caller.tainted)
        if time is not None:
            job = await self._book.move(job, time)
        if arguments.has_rules:
            missed, quiet = rules_of(arguments.missed, arguments.quiet)
            job = await self._book.rule(job, missed=missed, quiet=quiet)
        if arguments.paused is True and job.enabled:
            job = await self._book.pause(job)
        if arguments.paused is False and not job.enabled:
            job = await self._book.resume(job)
        return f"{job.key} ({job.new.name}) is changed. {saved_words(self._book, job, time)}"


class RemoveJob(Tool):
    """Removes a job, or an event with its reminders."""

    card = ToolCard(
        name="remove_job",
        description="Remove a reminder or a job of the person for good, or an event (its id e5).",
        arguments=RemoveArguments,
        group="schedule",
        effect=Effect.PERSON,
        redo="once",
        trust=Trust.OURS,
        status="removing a job …",
    )

    def __init__(self, book: JobBook, agenda: Agenda) -> None:
        self._book = book
        self._agenda = agenda

    async def run(self, arguments: RemoveArguments, caller: Caller) -> str:
        """What was removed."""
        require_member(caller)
        if arguments.id.strip().lower().startswith("e") and arguments.id.strip()[1:].isdecimal():
            dropped = await self._agenda.remove(caller.person_id, scope_of(caller), arguments.id)
            if dropped is None:
                raise ScheduleRefused(f"there is no event {arguments.id.strip()} here")
            return f"Removed the event {dropped.key} ({dropped.new.name}) and its reminders."
        job = await find_here(self._book, caller, arguments.id)
        await self._book.remove(job)
        return f"Removed {job.key} ({job.new.name})."


class RunJob(Tool):
    """Runs a job at once, beside its times."""

    card = ToolCard(
        name="run_job",
        description="Run a job of the person now, beside its times. Its result comes by itself.",
        arguments=JobArguments,
        group="schedule",
        effect=Effect.PERSON,
        redo="once",
        trust=Trust.OURS,
        status="starting a job …",
    )

    def __init__(self, book: JobBook) -> None:
        self._book = book

    async def run(self, arguments: JobArguments, caller: Caller) -> str:
        """That it was begun."""
        require_member(caller)
        job = await find_here(self._book, caller, arguments.id)
        await self._book.run(job)
        zone = self._book.zone(caller.person_id)
        began = f"{job.key} ({job.new.name}) was begun; its result comes by itself."
        return f"{began} {next_words(self._book, job, zone)}"
