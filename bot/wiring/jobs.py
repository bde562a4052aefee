"""Puts the desk of jobs together (`hearthbot schedule`), for a running bot and for one command
without one. Called by `bot.wiring.assembly` and `bot.cli`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.models.router import Router
from agent.skills.library import SkillLibrary
from agent.trace.dry_run import Priced, Rehearsing, RehearsingOptions
from agent.turn.steps.model import Payment
from bot.commands.job_messages import Rehearsals
from bot.commands.job_service import JobDesk
from bot.wiring.calendar import Calendar
from bot.wiring.parts import Prompting
from bot.wiring.schedules import active_hours_of
from bot.wiring.spending import Workplace
from memory.records.jobs import Job, JobStore, SlotState
from memory.records.schedule import RunCost
from memory.records.spending import UsageQuery
from memory.records.transcript import Usage
from memory.stores.usage import SqliteUsage
from scheduler.jobs.forecast import Rules
from scheduler.jobs.orders import BeatLists, JobTurns, Orders, Outlook
from scheduler.jobs.skill_jobs import SkillJobs

RUNS_MIN, RUNS_COUNTED = 3, 20
"""Of a job: with fewer runs nothing is known yet, and so many of the newest are counted."""

RUNS_LOOKED_AT = 200
"""A heartbeat passes over many of its times without asking a model."""

FAR_MS = 2**62
"""Later than any call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a rehearsal of a job needs. Without `payment` its calls are neither counted nor
    bounded; without `usage` nothing is known of what runs took."""

    prompting: Prompting
    shelf: SkillLibrary
    pool: Router
    redact: Callable[[str], str]
    payment: Payment | None = None
    usage: SqliteUsage | None = None


class RunsCounted:
    """Implements `bot.commands.job_messages.PastRuns` by the calls that were recorded."""

    def __init__(
        self,
        store: JobStore,
        usage: SqliteUsage,
        priced: Priced,
        *,
        payment: Payment | None = None,
    ) -> None:
        self._store = store
        self._usage = usage
        self._priced = priced
        self._payment = payment

    async def cost(self, job: Job) -> RunCost | None:
        """The mean of its last runs, at the price of the model that answers now; None for fewer
        than RUNS_MIN. Raises StorageError."""
        runs = [run for run in await self._store.runs(job.id, limit=RUNS_LOOKED_AT) if run.run_id]
        until_ms = FAR_MS
        while runs and runs[0].state is SlotState.TAKEN:  # still at work
            until_ms = runs.pop(0).taken_ms
        counted = runs[:RUNS_COUNTED]
        # A run that failed may have asked nobody; with what it took the others cost more, not less.
        worked = sum(run.state is not SlotState.FAILED for run in counted)
        if worked < RUNS_MIN:
            return None
        if self._payment is not None:
            await self._payment.budget.flush()
        wanted = UsageQuery(
            since_ms=min(run.taken_ms for run in counted),
            until_ms=until_ms,
            by=("job",),
            person_id=job.new.person_id,
        )
        groups = await self._usage.groups(wanted)
        found = next((group for group in groups if group.job == job.new.name), None)
        if found is None:
            return None
        # Of a mean call: a price may depend on how long a prompt is.
        each = Usage(
            prompt=found.prompt // found.calls,
            completion=found.completion // found.calls,
            cached=found.cached // found.calls,
        )
        dollars = await self._priced(job.new.deliver_to, each)
        return RunCost(
            calls=max(round(found.calls / worked), 1),
            tokens=round(found.tokens / worked),
            dollars=None if dollars is None else dollars * found.calls / worked,
        )


def job_desk_of(
    place: Workplace, calendar: Calendar, stage: Stage, *, skills: SkillJobs
) -> JobDesk:
    """Over the calendar; what needs a running bot says so where none is."""
    settings, clock = place.settings, place.clock
    beats = BeatLists(place.home.workspace)

    async def rules() -> Rules:
        return Rules(
            daily_max=settings.scheduler.daily_max,
            heartbeats=await beats.have_tasks(settings.agents.by_name),
            hours=active_hours_of(settings.heartbeat.active_hours),
        )

    options = RehearsingOptions(
        output_tokens_max=settings.llm.max_output_tokens, redact=stage.redact
    )
    priced = stage.pool.dollars
    past = None
    if stage.usage is not None:
        past = RunsCounted(calendar.jobs, stage.usage, priced, payment=stage.payment)
    return JobDesk(
        Orders(calendar.book, calendar.jobs, clock=clock, timetable=calendar.timetable),
        Outlook(calendar.jobs, calendar.tellings, calendar.chats.zone, clock=clock, rules=rules),
        Rehearsals(
            turns=JobTurns(calendar.chats, stage.shelf, beats.text),
            stage=Rehearsing(
                stage.prompting.beginning,
                stage.pool,
                priced,
                options=options,
                payment=stage.payment,
            ),
            skills=skills,
        ),
        calendar.chats,
        clock=clock,
        past=past,
    )


def skill_jobs_of(place: Workplace, calendar: Calendar, shelf: SkillLibrary) -> SkillJobs:
    """Skills that run by the clock, as jobs."""
    return SkillJobs(
        calendar.jobs, shelf, calendar.chats, clock=place.clock, changed=calendar.changed
    )
