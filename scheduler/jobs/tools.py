"""The tools of the group `schedule`: reminders, events, and jobs that run by themselves.

Where something goes is bound when it is made: to the chat of the call, never to another. To what
runs by itself a person always agrees first: they are shown how its time was read, when it runs
next, what it does and where it goes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field

from agent.skills.skill import SkillSet
from agent.tools.groups.memory import PersonContext
from agent.tools.tool import Caller, Effect, Needs, Tool, tool, tools_of
from memory.records.errors import AssistantError
from memory.records.jobs import (
    At,
    Job,
    JobKind,
    JobRef,
    JobStatus,
    MisfirePolicy,
    QuietPolicy,
    What,
)
from memory.records.schedule import (
    JobChanges,
    TimeRead,
    due_words,
)
from scheduler.jobs.events import EventService, EventTools
from scheduler.jobs.rules import BY_HAND, TEXT_CHARS_MAX, JobRefused, state_words
from scheduler.jobs.service import JobService
from scheduler.jobs.skill_jobs import usable_skill
from scheduler.jobs.times import CallTimes, ToolCalls, asker_of, call_of, listed

LISTED_MAX = 50
ASKS_ONCE = "it is done later, by itself"
ASKS_OFTEN = "it runs again and again by itself"
TOO_LONG = (
    "the arguments are too long to be shown whole to the person, who has to agree to exactly them: "
    "put what is long into a file, and name that"
)

Ref = Annotated[str, Field(min_length=1, max_length=100, description="such as j12")]
IfMissed = Annotated[
    Literal["skip", "once", "all", "ask"] | None,
    Field(description="runs missed while the bot was off; else once"),
]
InQuiet = Annotated[
    Literal["defer", "drop", "ignore"] | None,
    Field(description="results in quiet hours; else defer"),
]
"""Rules of a job, in the words of `hearthbot schedule add`."""


def _object(value: object) -> object:
    """Small models write the arguments of a tool as a text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value or "{}")
    except (ValueError, RecursionError):
        return value


def schedule_tools(
    jobs: JobService,
    events: EventService,
    household: PersonContext,
    calls: ToolCalls,
    *,
    shelf: Callable[[], Awaitable[SkillSet]],
) -> tuple[Tool, ...]:
    """Return all tools of this group. `shelf` gives the skills of this moment."""
    times = CallTimes(jobs.times)
    reminding, *rest = tools_of(JobTools(jobs, events, times, calls, shelf=shelf))
    return (reminding, *tools_of(EventTools(jobs, events, household, times)), *rest)


class JobTools:
    """The job service, for a model in a person's name."""

    def __init__(
        self,
        jobs: JobService,
        events: EventService,
        times: CallTimes,
        calls: ToolCalls,
        *,
        shelf: Callable[[], Awaitable[SkillSet]],
    ) -> None:
        self._jobs = jobs
        self._events = events
        self._times = times
        self._calls = calls
        self._shelf = shelf

    # --- reminders ------------------------------------------------------------------------------

    def _reminding(self, caller: Caller, text: str, when: str) -> Needs:
        rows = self._times.rows(self._times.read(caller, when, text), caller)
        return Needs(shows=(*rows, f"goes to: {caller.address.key}"))

    @tool(
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        needs=_reminding,
        status="setting a reminder …",
    )
    async def remind_me(
        self,
        caller: Caller,
        text: Annotated[
            str,
            Field(min_length=1, max_length=TEXT_CHARS_MAX, description="what the person will read"),
        ],
        when: Annotated[
            str,
            Field(
                min_length=1,
                max_length=300,
                description="in the person's words ('tomorrow at 5', 'every Monday at 8'), ISO, or "
                "cron text",
            ),
        ],
        nag_minutes: Annotated[
            int | None,
            Field(
                ge=1,
                le=24 * 60,
                description="repeat so often until the person says that it is done",
            ),
        ] = None,
        urgent: Annotated[bool, Field(description="also in quiet hours")] = False,
    ) -> str:
        """Remind the person of something in this chat, once or again and again. If the time is not
        clear, ask the person rather than guess."""
        time = self._times.read(caller, when, text)
        draft = self._draft(
            caller, JobKind.MESSAGE, What(text=text.strip(), outside=caller.tainted), time
        )
        nag_s = None if nag_minutes is None else nag_minutes * 60
        call = call_of(caller, "remind_me", text, when, nag_minutes, urgent)
        job = await self._jobs.add(
            replace(draft, urgent=urgent, nag_s=nag_s, run_id=call), by=asker_of(caller)
        )
        return f"Saved as {job.key}. {self._saved_words(job, time)}"

    # --- jobs -----------------------------------------------------------------------------------

    def _scheduling(  # noqa: PLR0913, PLR0917 - what the tool is called with
        self,
        caller: Caller,
        when: str,
        instructions: str,
        message: str,
        skill: str,
        tool: str,
        arguments: Mapping[str, Any],
        missed: str | None,
        quiet: str | None,
    ) -> Needs:
        """It is always asked about, each time; of members their owner is asked, but for what is
        their own."""
        job, time = self._wanted(
            caller, when, instructions, message, skill, tool, arguments=arguments
        )
        place = "this group" if caller.is_group else "this chat"
        return Needs(
            asks=ASKS_ONCE if isinstance(time.when, At) else ASKS_OFTEN,
            is_own=self._calls.is_own(job.kind, job.what, caller),
            once_only=True,
            whole=TOO_LONG if job.kind is JobKind.TOOL else "",
            shows=(
                *self._times.rows(time, caller),
                _does(job),
                *_rule_rows(missed, quiet),
                f"goes to: {place} ({caller.address.key})",
            ),
        )

    async def _takes(
        self,
        caller: Caller,
        when: str,
        instructions: str,
        message: str,
        skill: str,
        tool: str,
        arguments: Mapping[str, Any],
    ) -> str:
        try:
            job, _ = self._wanted(
                caller, when, instructions, message, skill, tool, arguments=arguments
            )
        except AssistantError:
            return ""  # the other hook says why
        told = await self._jobs.estimate(job)
        return f"takes: {told}" if told else ""

    @tool(
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        needs=_scheduling,
        cost=_takes,
        status="scheduling it …",
    )
    async def schedule_job(  # noqa: PLR0913, PLR0917 - what a model may say of a job
        self,
        caller: Caller,
        when: Annotated[
            str,
            Field(
                min_length=1,
                max_length=300,
                description="in the person's words, ISO, or cron text: 'every weekday at 8'",
            ),
        ],
        instructions: Annotated[
            str,
            Field(
                max_length=TEXT_CHARS_MAX,
                description="what you shall do each time; nobody is there then",
            ),
        ] = "",
        message: Annotated[
            str, Field(max_length=TEXT_CHARS_MAX, description="a fixed text to send")
        ] = "",
        skill: Annotated[str, Field(max_length=100, description="a skill to follow")] = "",
        tool: Annotated[str, Field(max_length=128, description="one tool to call")] = "",
        arguments: Annotated[
            dict[str, Any],
            BeforeValidator(_object),
            Field(description="the arguments of that tool"),
        ] = Field(default_factory=dict),  # noqa: B008 - a new one for each call
        name: Annotated[str, Field(max_length=80)] = "",
        missed: IfMissed = None,
        quiet: InQuiet = None,
    ) -> str:
        """Have something done later or again and again by itself: instructions for you, a fixed
        message, a skill, or one call of a tool; its result goes to this chat. The person is asked
        first. For one reminder use remind_me."""
        draft, time = self._wanted(
            caller, when, instructions, message, skill, tool, arguments=arguments
        )
        if draft.kind is JobKind.SKILL:
            usable_skill(await self._shelf(), draft.what.skill)
        draft = replace(
            draft,
            name=name.strip(),
            missed=MisfirePolicy(missed or MisfirePolicy.ONCE),
            quiet=QuietPolicy(quiet or QuietPolicy.DEFER),
            run_id=call_of(
                caller,
                "schedule_job",
                *(when, instructions, message, skill, tool, arguments, name, missed, quiet),
            ),
        )
        job = await self._jobs.add(draft, by=asker_of(caller))
        return f"Saved as {job.key} ({job.name}). {self._saved_words(job, time)}"

    @tool(group="schedule", effect=Effect.NONE, redo="repeat", status="looking at the jobs …")
    async def list_jobs(self, caller: Caller) -> str:
        """List the person's reminders and jobs with their ids and next runs."""
        found = (await self._jobs.list(by=asker_of(caller))).jobs
        if not found:
            return "There are no jobs."
        zone = self._jobs.times.zone(caller.person_id)
        lines = [
            f"- {one.job.key} {one.job.name} [{one.job.kind}]: {state_words(one.job, zone)}"
            for one in found
        ]
        return f"Times are of {zone}.\n{listed(lines)}"

    def _changing(
        self, caller: Caller, id: str, when: str, missed: str | None, quiet: str | None
    ) -> Needs:
        rows = _rule_rows(missed, quiet)
        if when.strip():
            rows = [*self._times.rows(self._times.read(caller, when.strip(), id), caller), *rows]
        return Needs(shows=(f"job: {id}", *rows) if rows else ())

    @tool(
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        needs=_changing,
        status="changing a job …",
    )
    async def update_job(
        self,
        caller: Caller,
        id: Ref,
        when: Annotated[str, Field(max_length=300, description="its new time")] = "",
        text: Annotated[str, Field(max_length=TEXT_CHARS_MAX, description="its new words")] = "",
        paused: Annotated[
            bool | None, Field(description="true stops it, false lets it go on")
        ] = None,
        missed: IfMissed = None,
        quiet: InQuiet = None,
    ) -> str:
        """Pause or resume a job of the person, or give a reminder another time or other words. To
        change what another job does or when, remove it and schedule it anew."""
        words = when.strip()
        if not (words or text.strip() or missed or quiet) and paused is None:
            raise JobRefused("nothing was changed: give when, text, paused, missed or quiet")
        changes = JobChanges(
            time=self._times.read(caller, words, id) if words else None,
            text=text,
            outside=caller.tainted,
            paused=paused,
            missed=MisfirePolicy(missed) if missed else None,
            quiet=QuietPolicy(quiet) if quiet else None,
        )
        job = await self._jobs.update(JobRef(id), changes, by=asker_of(caller))
        return f"{job.key} ({job.name}) is changed. {self._saved_words(job, changes.time)}"

    @tool(group="schedule", effect=Effect.PERSON, redo="once", status="removing a job …")
    async def remove_job(
        self,
        caller: Caller,
        id: Annotated[
            str, Field(min_length=1, max_length=100, description="j12, or e5 of an event")
        ],
    ) -> str:
        """Remove a reminder or a job of the person for good, or an event (its id e5)."""
        ref = id.strip()
        if ref.lower().startswith("e") and ref[1:].isdecimal():
            event = await self._events.remove(ref, by=asker_of(caller))
            return f"Removed the event {event.key} ({event.name}) and its reminders."
        job = await self._jobs.remove(JobRef(ref), by=asker_of(caller))
        return f"Removed {job.key} ({job.name})."

    @tool(group="schedule", effect=Effect.PERSON, redo="once", status="starting a job …")
    async def run_job(self, caller: Caller, id: Ref) -> str:
        """Run a job of the person now, beside its times. Its result comes by itself."""
        await self._jobs.run_now(JobRef(id), by=asker_of(caller))
        now = await self._jobs.show(JobRef(id), by=asker_of(caller))
        began = f"{now.job.key} ({now.job.name}) was begun; its result comes by itself."
        return f"{began} {next_words(now)}"

    # --- parts ----------------------------------------------------------------------------------

    def _draft(self, caller: Caller, kind: JobKind, what: What, time: TimeRead) -> Job:
        return Job(
            person_id=caller.person_id,
            kind=kind,
            what=what,
            when=time.when,
            max_runs=time.runs_max,
            expires_ms=time.expires_ms,
            deliver_to=caller.address.key,
        )

    def _wanted(
        self,
        caller: Caller,
        when: str,
        *words: str,
        arguments: Mapping[str, Any],
    ) -> tuple[Job, TimeRead]:
        """Return a draft of the job, by the words of its instructions, message, skill and tool, and
        how its time is read. Raise JobRefused, with how it can be made."""
        self._jobs.require_member(asker_of(caller))
        given = dict(zip(("instructions", "message", "skill", "tool"), words, strict=True))
        given = {name: value.strip() for name, value in given.items() if value.strip()}
        if len(given) != 1 and given.keys() != {"skill", "instructions"}:
            raise JobRefused(
                "give exactly one of instructions, message, skill and tool (a skill may have "
                f"instructions besides), not {' and '.join(given) or 'none'}"
            )
        if arguments and "tool" not in given:
            raise JobRefused("arguments are for a tool; name it")
        text = given.get("instructions", "")
        if "skill" in given:
            kind, what = JobKind.SKILL, What(skill=given["skill"], text=text)
        elif "tool" in given:
            kind, what = JobKind.TOOL, self._calls.what(given["tool"], arguments, caller)
        elif "message" in given:
            kind, what = JobKind.MESSAGE, What(text=given["message"], outside=caller.tainted)
        else:
            kind, what = JobKind.AGENT, What(text=text)
        time = self._times.read(caller, when, *words)
        return self._draft(caller, kind, what, time), time

    def _saved_words(self, job: Job, time: TimeRead | None) -> str:
        """Return how it was read and the next runs, exactly as they are kept."""
        read = "" if time is None else f"Read as: {time.sentence}. "
        return f"{read}{next_words(self._jobs.status(job))}"


# --- words --------------------------------------------------------------------------------------


def next_words(now: JobStatus) -> str:
    """`Next: …; …; … (Europe/Berlin).`"""
    zone = ZoneInfo(now.zone)
    if due := [due_words(one, zone) for one in now.due]:
        return f"Next: {'; '.join(due)} ({zone})."
    return "It is over." if now.job.enabled else f"Paused: {now.job.paused or BY_HAND}."


def _rule_rows(missed: str | None, quiet: str | None) -> list[str]:
    """Return the rules that were named: for who is asked."""
    rows = [f"runs missed while I was off: {missed}"] if missed else []
    return [*rows, f"results in quiet hours: {quiet}"] if quiet else rows


def _does(job: Job) -> str:
    """Return what it does; the whole of a text stands among the arguments, which are shown too."""
    what = job.what
    if job.kind is JobKind.SKILL:
        return f"follows the skill: {what.skill}"
    if job.kind is JobKind.TOOL:
        return f"calls: {what.tool} {what.arguments}"
    flat = " ".join(what.text.split())
    flat = flat if len(flat) <= 200 else f"{flat[:200]}…"
    return f"sends: {flat}" if job.kind is JobKind.MESSAGE else f"follows: {flat}"
