"""Builds what keeps jobs and events and answers about them, whether a bot runs or not: without one
nothing is run, and what is kept counts from the next start. And what happens by the clock: the
kinds of jobs, what is told of them, the job of the heartbeat, and the cheap checks before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import structlog

from agent.budget.payment import NO_PAYMENT
from agent.trace.dry_run import DryRunner, DryRunOptions
from agent.turn.aftermath import EndedTurn, FollowUp
from agent.web.client import ClientOptions, WebClient
from bot.commands.jobs.messages import missed_cards, stopped_card, takes_words
from bot.markup.command_text import as_typed
from bot.outbox.edits import QuestionMessages
from bot.people.zone_question import ZoneQuestions
from bot.settings.home import shipped
from bot.settings.options import allowed_hosts_of, host_zone
from bot.settings.schema.settings import Settings
from memory.records.errors import AssistantError, StorageError
from memory.records.jobs import Job, JobKind, Misfires, Taken
from memory.records.messages import DEFAULT_AGENT, PersonId
from memory.records.ports import JobEnd, StoredRun
from memory.records.rows import NewMessage
from memory.records.schedule import due_words
from memory.stores.approvals import SqliteCards
from memory.stores.jobs import SqliteJobs
from memory.stores.schedule import SqliteEvents, SqliteHeartbeats, SqliteSwitches, SqliteTellings
from scheduler.clock.outcomes import ASKED, Outcomes
from scheduler.clock.timetable import Kind, Timetable, TimetableHooks
from scheduler.jobs.events import EventService
from scheduler.jobs.forecast import Rules
from scheduler.jobs.heartbeats import HeartbeatService
from scheduler.jobs.service import JobService
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.jobs.times import TimeReader
from scheduler.kinds.checks import Check, CheckMeans, FileMarks
from scheduler.kinds.dry_run import JobDryRuns, PastCosts
from scheduler.kinds.kinds import HeartbeatKind, MessageKind, TurnKind, read_list
from scheduler.notify.delivery import Notifier, NotifyOptions, read_hours
from scheduler.notify.findings import has_tasks, phrases_of

if TYPE_CHECKING:
    from bot.app.app import App


log = structlog.get_logger()

LOOK_EVERY_S = 60.0
"""Pause between two looks at what waits to be told, and at the jobs that the settings want."""

NEXT_TOLD = 3
"""Jobs that /status names."""


class Schedules:
    """All of it, put together. `running` makes it go."""

    def __init__(self, app: App) -> None:
        self.settings, self._clock, self._home = app.settings, app.clock, app.home
        self.chats, self.jobs = app.chats, app.calendar.store
        self.heartbeats = app.calendar.heartbeats
        self._skills, self._outbox = app.calendar.skill_jobs, app.outbox
        self._adopt: Callable[[StoredRun], object] = lambda run: app.engine.adopt(run)
        self._held = app.acts_not
        self._group: asyncio.TaskGroup | None = None
        self._ended_early: list[JobEnd] = []
        self._heard_owner: PersonId | None = None
        self.notifier = Notifier(
            app.calendar.notifications,
            self.jobs,
            self.chats,
            app.outbox.deliver,
            clock=app.clock,
            options=_notify_options(app),
        )
        self.outcomes = Outcomes(
            self.jobs,
            self.notifier,
            clock=app.clock,
            stopped=self._stopped,
            beat=self._beat,
        )
        self.timetable = Timetable(
            self.jobs,
            self._kinds(app),
            TimetableHooks(
                taken=self._taken,
                missed=self._missed,
                failed=self.outcomes.not_run,
                stopped=self._stopped,
            ),
            clock=app.clock,
            held=app.acts_not,
            doubted=lambda: bool(app.clock.doubt),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Makes up for what was missed, and looks by itself from now on. Once the engine and the
        outbox have started. Raises StorageError."""
        await self.chats.load()
        await self._skills.keep_untold()
        await self.outcomes.catch_up()
        await self.heartbeats.ensure()
        await self._skills.sync()
        async with asyncio.TaskGroup() as group, self.timetable:
            self._group = group
            # The engine is at work since before `catch_up` looked: it has not seen all of these.
            while self._ended_early:
                self.ended(self._ended_early.pop(0))
            looking = group.create_task(self._look_on(), name="schedules")
            try:
                yield
            finally:
                looking.cancel()
                self._group = None

    def ended(self, end: JobEnd) -> None:
        """The run of a job is over, and its end stored. What cannot be seen to now is at the next
        start."""
        if self._group is None:
            self._ended_early.append(end)
            return
        self._group.create_task(self._see_to(end), name="job end")

    def _kinds(self, app: App) -> Mapping[JobKind, Kind]:
        turns = app.calendar.turns
        return {
            JobKind.MESSAGE: MessageKind(self.chats),
            **dict.fromkeys((JobKind.AGENT, JobKind.SKILL, JobKind.TOOL), turns),
            JobKind.HEARTBEAT: HeartbeatKind(
                turns,
                app.home.workspace,
                self.heartbeats.beat,
                fresh=lambda: shipped("HEARTBEAT.md").read_text(encoding="utf-8"),
                local=self._local,
                hours=read_hours(self.settings.heartbeat.active_hours),
                checks=_checks(app),
            ),
        }

    async def next_lines(self, person_id: PersonId | None) -> list[str]:
        """For /status of an owner: this person's jobs that are due next, and those that stand
        still; of other people's a number alone. Raises StorageError."""
        jobs = await self.jobs.kept()
        own = [job for job in jobs if job.person_id == person_id]
        due = [(job.next, job) for job in own if job.enabled and job.next is not None]
        lines = [
            f"Next by the clock: {due_words(at, self.chats.zone(job.person_id))}, "
            f"{job.key} {job.name}"
            for at, job in due[:NEXT_TOLD]
        ]
        if waiting := sum(job.enabled and job.next is not None for job in jobs if job not in own):
            lines.append(f"Other people's jobs that wait for their time: {waiting}")
        stopped = [job in own for job in jobs if job.failures > 0 and not job.enabled]
        if count := sum(stopped):
            lines.append(f"Jobs that were stopped, as they kept failing: {count} (`/jobs`)")
        if not all(stopped):
            lines.append(f"Other people's jobs that kept failing: {stopped.count(False)}")
        return lines

    def works(self) -> Sequence[FollowUp]:
        """Return what follows from each turn."""
        return (FollowUp(name="chats", run=self._hear),)

    async def _hear(self, ended: EndedTurn) -> None:
        turn = ended.turn
        if turn.job is not None or turn.report is not None:
            return
        self.chats.heard(turn.person_id, turn.message.address.key)
        if not turn.message.is_group and turn.person_id == self.chats.owner() != self._heard_owner:
            self._heard_owner = turn.person_id
            await self.heartbeats.ensure()  # this may be the chat that it waited for

    def _local(self, job: Job) -> datetime:
        return self._clock.now().astimezone(self.chats.zone(job.person_id))

    # --- what happens -----------------------------------------------------------------------

    def _taken(self, job: Job, taken: Taken) -> None:
        if taken.outbox_id is not None:
            self._outbox.deliver([(job.deliver_to, taken.outbox_id)])
        if taken.run is not None:
            self._adopt(taken.run)

    async def _missed(self, person_id: PersonId, runs: Sequence[tuple[Job, Misfires]]) -> None:
        log.info("jobs.missed", person=person_id, jobs=[job.key for job, _ in runs])
        home, cards = await self.chats.home_of(person_id), list[NewMessage]()
        if home:
            cards = [*map(_as_typed, missed_cards(home, runs, self.chats.zone(person_id)))]
        rows = await self.jobs.tell_missed([dues for _, dues in runs], cards, asked=ASKED)
        self._outbox.deliver([(home, row) for row in rows])

    async def _stopped(self, job: Job, why: str) -> None:
        log.warning("job.stopped", job=job.key, why=why)
        if self.chats.may_hear(job.person_id, job.deliver_to):
            await self._outbox.say(_as_typed(stopped_card(job.deliver_to, job, why)))

    async def _beat(self, job: Job, outcome: str, why: str) -> None:
        await self.heartbeats.beat(job.agent, outcome, why)

    async def _see_to(self, end: JobEnd) -> None:
        try:
            await self._skills.keep_untold()
            await self.outcomes.ended(end)
        except AssistantError as trouble:
            log.error("job.end", job=end.job_id, slot=end.slot, why=str(trouble))

    async def _look_on(self) -> None:
        """Digests whose time has come, and the jobs that the settings want; trouble with the
        storage is told once."""
        is_troubled = False
        while True:
            try:
                if not self._held():
                    await self.notifier.look()
                await self.heartbeats.ensure()
                await self._skills.sync()
                is_troubled = False
            except StorageError as trouble:
                if not is_troubled:
                    log.error("schedules.storage", why=str(trouble))
                is_troubled = True
            await self._clock.sleep(LOOK_EVERY_S)


def _as_typed(card: NewMessage) -> NewMessage:
    """A card of ours, with the commands in it as they are typed where it goes."""
    return replace(card, text=as_typed(card.text, card.lane))


def _checks(app: App) -> tuple[Check, ...]:
    """Build the cheap looks of `heartbeat.checks`."""
    if not app.settings.heartbeat.checks:
        return ()
    acts = CheckMeans(
        app.home.workspace,
        WebClient(ClientOptions(allowed=allowed_hosts_of(app.settings))),
        app.abilities.toolbox,
        app.abilities.runner,
        owner=app.access.owner_id,
    )
    marks = FileMarks(app.home.database.parent / "checks.json")
    return tuple(Check(text, acts, marks) for text in app.settings.heartbeat.checks)


def _notify_options(app: App) -> NotifyOptions:
    """Build how often is told, and what not."""
    settings = app.settings.scheduler

    def likeness(one: str, other: str) -> float:
        found = app.memories.embedding.likeness(one, [other])
        return 0.0 if not found else found[0]

    return NotifyOptions(
        daily_max=settings.daily_max,
        repeat_h=settings.repeat_hours,
        phrases=lambda: phrases_of(app.library.texts()["words_trivial"]),
        likeness=likeness,
    )


class Calendar:
    """Jobs and events as commands and tools reach them."""

    def __init__(self, app: App) -> None:
        self.app = app

    @cached_property
    def schedules(self) -> Schedules:
        """Return what happens by the clock."""
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
            # Looked up late: a dry run opens no conversation, and builds none.
            start_conversation=lambda lane: self.app.conversations.start_new(lane),
        )


def beat_minutes(settings: Settings, agent: str) -> int:
    """Minutes between two looks of an agent at its list; 0: none."""
    own = settings.agents.by_name.get(agent)
    minutes = own.heartbeat if own is not None else 0
    if agent != DEFAULT_AGENT:
        return minutes
    return (minutes or settings.heartbeat.every_minutes) if settings.heartbeat.enabled else 0
