"""Builds what keeps jobs and events and answers about them, whether a bot runs or not: without one
nothing is run, and what is kept counts from the next start.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from agent.trace.dry_run import Priced, Rehearsing, RehearsingOptions
from agent.turn.steps.model import Payment
from bot.app.schedules import Schedules, active_hours_of
from bot.commands.job_messages import Rehearsals
from bot.commands.job_service import JobDesk
from bot.outbox.edits import QuestionMessages
from bot.people.zone_question import AssumedZones, ZoneQuestions
from bot.settings.options import host_zone
from memory.records.errors import Permanent
from memory.records.jobs import Job, JobStore, SlotState, Taken
from memory.records.schedule import RunCost
from memory.records.spending import UsageQuery
from memory.records.transcript import Usage
from memory.stores.approvals import SqliteCards
from memory.stores.jobs import SqliteJobs
from memory.stores.missed import SqliteEvents
from memory.stores.notifications import SqliteTellings
from memory.stores.people import SqliteAssumedZones
from memory.stores.usage import SqliteUsage
from scheduler.jobs.clerk import Clerk
from scheduler.jobs.events import EventAgenda
from scheduler.jobs.forecast import Rules
from scheduler.jobs.orders import BeatLists, JobTurns, Orders, Outlook
from scheduler.jobs.service import Book
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.jobs.zone_moves import ZoneMoves

if TYPE_CHECKING:
    from bot.app import App

RUNS_MIN, RUNS_COUNTED = 3, 20
"""Of a job: with fewer runs nothing is known yet, and so many of the newest are counted."""

RUNS_LOOKED_AT = 200
"""A heartbeat passes over many of its times without asking a model."""

FAR_MS = 2**62
"""Later than any call."""


class NoBotRuns(Permanent):
    """Something was to be done that only a running bot can do."""


class Calendar:
    """Jobs and events as commands and tools reach them."""

    def __init__(self, app: App) -> None:
        self.app = app

    @cached_property
    def schedules(self) -> Schedules:
        """What happens by the clock."""
        return Schedules(self.app)

    async def changed(self) -> None:
        """Look anew: a job was added or changed, or all may go on. Raises StorageError."""
        if self.app.is_running:
            await self.schedules.timetable.changed()

    @cached_property
    def book(self) -> Book:
        """Build what keeps jobs."""
        return Book(
            SqliteJobs(self.app.database),
            self.app.chats,
            self.app.chats.zone,
            clock=self.app.clock,
            changed=self.changed,
        )

    @cached_property
    def clerk(self) -> Clerk:
        """Build what commands and tools ask about jobs."""

        async def run_now(job: Job) -> Taken | None:
            if not self.app.is_running:
                raise NoBotRuns("No bot runs here, so no job can be run.")
            return await self.schedules.timetable.run_now(job)

        clerk = Clerk(
            self.book,
            SqliteJobs(self.app.database),
            SqliteTellings(self.app.database),
            self.app.chats.zone,
            clock=self.app.clock,
            run_now=run_now,
        )
        clerk.hears = self.assumed_zones
        clerk.foretold = lambda job: self.desk.takes(job)
        return clerk

    @cached_property
    def agenda(self) -> EventAgenda:
        """Build what keeps events."""
        return EventAgenda(SqliteEvents(self.app.database), self.clerk, clock=self.app.clock)

    @cached_property
    def assumed_zones(self) -> AssumedZones:
        """Build what knows which times were set up by this machine's zone."""
        return AssumedZones(
            SqliteAssumedZones(self.app.database),
            self.app.access,
            zone=host_zone(),
            is_anywhere=lambda time: self.clerk.is_anywhere(time),
        )

    @cached_property
    def zones(self) -> ZoneQuestions:
        """Build what asks people for their zone."""
        zones = self.assumed_zones
        return ZoneQuestions(
            zones,
            self.app.access,
            ZoneMoves(zones.store, self.clerk, self.agenda, clock=self.app.clock),
            QuestionMessages(self.app.outbox, SqliteCards(self.app.database)),
            clock=self.app.clock,
            deliver=self.app.outbox.deliver,
            busy=lambda lane: self.app.engine.busy(lane),
        )

    @cached_property
    def skill_jobs(self) -> SkillJobs:
        """Build what keeps a job for each skill that runs by the clock."""
        return SkillJobs(
            SqliteJobs(self.app.database),
            self.app.abilities.shelf,
            self.app.chats,
            clock=self.app.clock,
            changed=self.changed,
        )

    @cached_property
    def desk(self) -> JobDesk:
        """Build what answers `hearthbot schedule`; what needs a running bot says so without.

        Without a running bot the calls of a rehearsal are neither counted nor bounded.
        """
        settings, clock = self.app.settings, self.app.clock
        jobs = SqliteJobs(self.app.database)
        beats = BeatLists(self.app.home.workspace)

        async def rules() -> Rules:
            return Rules(
                daily_max=settings.scheduler.daily_max,
                heartbeats=await beats.have_tasks(settings.agents.by_name),
                hours=active_hours_of(settings.heartbeat.active_hours),
            )

        options = RehearsingOptions(
            output_tokens_max=settings.llm.max_output_tokens, redact=self.app.redact
        )
        payment = self.app.payment if self.app.is_running else None
        priced = self.app.models.dollars
        timetable = self.schedules.timetable if self.app.is_running else None
        return JobDesk(
            Orders(self.book, jobs, clock=clock, timetable=timetable),
            Outlook(
                jobs,
                SqliteTellings(self.app.database),
                self.app.chats.zone,
                clock=clock,
                rules=rules,
            ),
            Rehearsals(
                turns=JobTurns(self.app.chats, self.app.abilities.shelf, beats.text),
                stage=Rehearsing(
                    self.app.beginning.plan,
                    self.app.models,
                    priced,
                    options=options,
                    payment=payment,
                ),
                skills=self.skill_jobs,
            ),
            self.app.chats,
            clock=clock,
            past=RunsCounted(jobs, self.app.usage_store, priced, payment=payment),
        )


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
