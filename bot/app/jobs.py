"""Builds what keeps jobs and events and answers about them, whether a bot runs or not: without one
nothing is run, and what is kept counts from the next start.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from agent.budget.payment import NO_PAYMENT
from agent.trace.dry_run import DryRunner, DryRunOptions
from bot.app.schedules import Schedules
from bot.commands.jobs.messages import takes_words
from bot.outbox.edits import QuestionMessages
from bot.people.zone_question import ZoneQuestions
from bot.settings.options import host_zone
from bot.settings.schema.settings import Settings
from memory.records.jobs import Job
from memory.records.messages import DEFAULT_AGENT
from memory.stores.approvals import SqliteCards
from memory.stores.jobs import SqliteJobs
from memory.stores.schedule import SqliteEvents, SqliteHeartbeats, SqliteSwitches, SqliteTellings
from scheduler.jobs.events import EventService
from scheduler.jobs.forecast import Rules
from scheduler.jobs.heartbeats import HeartbeatService
from scheduler.jobs.service import JobService
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.jobs.times import TimeReader
from scheduler.kinds.dry_run import JobDryRuns, PastCosts
from scheduler.kinds.kinds import TurnKind, read_list
from scheduler.notify.delivery import read_hours
from scheduler.notify.findings import has_tasks

if TYPE_CHECKING:
    from bot.app.app import App


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
    def store(self) -> SqliteJobs:
        """Build what stores jobs and their runs."""
        return SqliteJobs(self.app.database)

    @cached_property
    def notifications(self) -> SqliteTellings:
        """Build what stores what was told unasked."""
        return SqliteTellings(self.app.database)

    @cached_property
    def times(self) -> TimeReader:
        """Build what reads times."""
        return TimeReader(
            self.app.chats.zone,
            clock=self.app.clock,
            is_open=lambda person_id: self.zones.is_open(person_id),
            ask_zone=lambda person_id: self.zones.ask(person_id),
        )

    @cached_property
    def jobs(self) -> JobService:
        """Build what keeps jobs, whoever asks."""

        async def estimate(job: Job) -> str:
            found = await self.dry_runs.estimate(job)
            return "" if found is None else takes_words(job, found)

        return JobService(
            self.store,
            self.notifications,
            self.app.chats,
            self.times,
            clock=self.app.clock,
            timetable=lambda: self.schedules.timetable if self.app.is_running else None,
            estimate=estimate,
        )

    @cached_property
    def events(self) -> EventService:
        """Build what keeps events."""
        return EventService(SqliteEvents(self.app.database), self.jobs, clock=self.app.clock)

    @cached_property
    def heartbeats(self) -> HeartbeatService:
        """Build what keeps the heartbeats."""
        settings = self.app.settings
        minutes = {name: beat_minutes(settings, name) for name in settings.agents.by_name}
        return HeartbeatService(
            self.jobs,
            self.store,
            SqliteHeartbeats(self.app.database),
            SqliteSwitches(self.app.database),
            self.app.chats,
            clock=self.app.clock,
            minutes={name: every for name, every in minutes.items() if every},
            deliver_to=settings.heartbeat.deliver_to,
        )

    @cached_property
    def zones(self) -> ZoneQuestions:
        """Build what asks people for their zone."""
        cards = QuestionMessages(self.app.outbox, SqliteCards(self.app.database))
        return ZoneQuestions(
            self.app.access,
            zone=host_zone(),
            clock=self.app.clock,
            post=cards.post,
            close=cards.close,
            busy=lambda lane: self.app.engine.busy(lane),
        )

    @cached_property
    def skill_jobs(self) -> SkillJobs:
        """Build what keeps a job for each skill that runs by the clock."""
        return SkillJobs(
            self.store,
            self.app.abilities.shelf.current,
            self.app.chats,
            clock=self.app.clock,
            changed=self.changed,
        )

    @cached_property
    def dry_runs(self) -> JobDryRuns:
        """Build what says beforehand what jobs do; without a running bot the calls of a rehearsal
        are neither counted nor bounded."""
        settings, workspace = self.app.settings, self.app.home.workspace

        async def rules() -> Rules:
            agents = settings.agents.by_name
            return Rules(
                daily_max=settings.scheduler.daily_max,
                heartbeats=any([has_tasks(await read_list(workspace, one)) for one in agents]),
                hours=read_hours(settings.heartbeat.active_hours),
            )

        options = DryRunOptions(
            output_tokens_max=settings.llm.max_output_tokens, redact=self.app.redact
        )
        payment = self.app.payment if self.app.is_running else NO_PAYMENT
        priced = self.app.models.dollars
        return JobDryRuns(
            self.jobs,
            self.notifications,
            self.turns,
            DryRunner(
                self.app.beginning.plan,
                self.app.models,
                priced,
                options=options,
                payment=payment,
            ),
            self.skill_jobs,
            clock=self.app.clock,
            rules=rules,
            past=PastCosts(self.store, self.app.usage_store, priced, payment=payment),
        )

    @cached_property
    def turns(self) -> TurnKind:
        """Build what makes the turns of jobs."""
        return TurnKind(
            self.app.chats,
            self.app.abilities.shelf.current,
            self.app.home.workspace,
            start_conversation=lambda lane: self.app.conversations.start_new(lane),
        )


def beat_minutes(settings: Settings, agent: str) -> int:
    """Minutes between two looks of an agent at its list; 0: none."""
    own = settings.agents.by_name.get(agent)
    minutes = own.heartbeat if own is not None else 0
    if agent != DEFAULT_AGENT:
        return minutes
    return (minutes or settings.heartbeat.every_minutes) if settings.heartbeat.enabled else 0
