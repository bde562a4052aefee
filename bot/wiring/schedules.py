"""Puts together what happens by the clock: jobs, their kinds, what is told of them, and the list of
the heartbeat. Called by `bot.app`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from agent.prompt.templates import Library
from agent.skills.library import SkillShelf
from agent.skills.skill import Skill
from agent.turn.aftermath import Ended, Work
from agent.turn.engine import LocalEngine
from bot.commands.schedule_messages import missed_cards, stopped_card
from bot.commands.table import as_typed
from bot.outbox.outbox import Outbox
from bot.settings.home import shipped
from bot.wiring.calendar import Calendar
from bot.wiring.memories import Memories
from bot.wiring.spending import CheckMeans, Workplace
from memory.records.errors import AssistantError, StorageError
from memory.records.jobs import Job, JobKind, Misfires, Taken
from memory.records.messages import PersonId
from memory.records.ports import JobEnd
from memory.records.rows import NewMessage
from memory.records.schedule import due_words
from memory.stores.conversations import SqliteConversations
from scheduler.clock.outcomes import ASKED, Followers, Outcomes
from scheduler.clock.timetable import Hears, Kind, Timetable
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.kinds.agent_turn import (
    AgentKind,
    Check,
    HeartbeatKind,
    SkillKind,
    ToolKind,
    Turns,
    usable_skill,
)
from scheduler.kinds.checks import FileMarks, Means, checks_of, read_check
from scheduler.kinds.message import MessageKind
from scheduler.notify.delivery import Notifier, NotifyOptions
from scheduler.notify.quiet_hours import read_hours
from scheduler.notify.trivial import phrases_of

log = structlog.get_logger()

LOOK_EVERY_S = 60.0
"""Pause between two looks at what waits to be told, and at the jobs that the settings want."""

NEXT_TOLD = 3
"""Jobs that /status names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the clock acts on."""

    calendar: Calendar
    conversations: SqliteConversations
    memories: Memories
    shelf: SkillShelf
    library: Library
    outbox: Outbox
    held: Callable[[], bool]
    doubted: Callable[[], bool]
    skills: SkillJobs
    checks: tuple[Check, ...] = ()


class Schedules:
    """All of it, put together. `running` makes it go."""

    def __init__(self, place: Workplace, around: Surroundings) -> None:
        self.place = place
        self.calendar = around.calendar
        self.chats, self.jobs = around.calendar.chats, around.calendar.store
        self.heartbeats = around.calendar.heartbeats
        self._around = around
        self._engine: LocalEngine | None = None
        self._group: asyncio.TaskGroup | None = None
        self._ended_early: list[JobEnd] = []
        self._heard_owner: PersonId | None = None
        self.notifier = Notifier(
            around.calendar.notifications,
            self.jobs,
            self.chats,
            around.outbox.deliver,
            clock=place.clock,
            options=notify_options_of(place, around),
        )
        self.outcomes = Outcomes(
            self.jobs,
            self.notifier,
            clock=place.clock,
            hears=Followers(stopped=self._stopped, beat=self._beat),
        )
        self.timetable = Timetable(
            self.jobs,
            self._kinds(),
            Hears(
                taken=self._taken,
                missed=self._missed,
                failed=self.outcomes.not_run,
                stopped=self._stopped,
            ),
            clock=place.clock,
            held=around.held,
            doubted=around.doubted,
        )
        self.calendar.timetable = self.timetable

    @asynccontextmanager
    async def running(self, engine: LocalEngine) -> AsyncIterator[None]:
        """Makes up for what was missed, and looks by itself from now on. Once the engine and the
        outbox have started. Raises StorageError."""
        self._engine = engine
        await self.chats.load()
        await self._around.skills.keep_untold()
        await self.outcomes.catch_up()
        await self.heartbeats.ensure()
        await self._around.skills.sync()
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

    def _kinds(self) -> Mapping[JobKind, Kind]:
        around, home = self._around, self.place.home
        turns = Turns(self.chats, around.conversations.start_new)
        return {
            JobKind.MESSAGE: MessageKind(self.chats),
            JobKind.AGENT: AgentKind(turns),
            JobKind.SKILL: SkillKind(turns, skill_finder(around.shelf)),
            JobKind.TOOL: ToolKind(turns),
            JobKind.HEARTBEAT: HeartbeatKind(
                turns,
                home.workspace,
                self.heartbeats.beat,
                fresh=lambda: shipped("HEARTBEAT.md").read_text(encoding="utf-8"),
                local=self._local,
                hours=read_hours(self.place.settings.heartbeat.active_hours),
                checks=around.checks,
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

    def works(self) -> Sequence[Work]:
        """What follows from each turn."""
        return (Work(name="chats", run=self._hear),)

    async def _hear(self, ended: Ended) -> None:
        turn = ended.turn
        if turn.job is not None or turn.report is not None:
            return
        self.chats.heard(turn.person_id, turn.message.address.key)
        if not turn.message.is_group and turn.person_id == self.chats.owner() != self._heard_owner:
            self._heard_owner = turn.person_id
            await self.heartbeats.ensure()  # this may be the chat that it waited for

    def _local(self, job: Job) -> datetime:
        return self.place.clock.now().astimezone(self.chats.zone(job.person_id))

    # --- what happens -----------------------------------------------------------------------

    def _taken(self, job: Job, taken: Taken) -> None:
        if taken.outbox_id is not None:
            self._around.outbox.deliver([(job.deliver_to, taken.outbox_id)])
        if taken.run is not None and self._engine is not None:
            self._engine.adopt(taken.run)

    async def _missed(self, person_id: PersonId, runs: Sequence[tuple[Job, Misfires]]) -> None:
        log.info("jobs.missed", person=person_id, jobs=[job.key for job, _ in runs])
        home, cards = await self.chats.home_of(person_id), list[NewMessage]()
        if home:
            cards = [*map(_as_typed, missed_cards(home, runs, self.chats.zone(person_id)))]
        rows = await self.jobs.tell_missed([dues for _, dues in runs], cards, asked=ASKED)
        self._around.outbox.deliver([(home, row) for row in rows])

    async def _stopped(self, job: Job, why: str) -> None:
        log.warning("job.stopped", job=job.key, why=why)
        if self.chats.may_hear(job.person_id, job.deliver_to):
            await self._say(stopped_card(job.deliver_to, job, why))

    async def _say(self, card: NewMessage) -> None:
        await self._around.outbox.say(_as_typed(card))

    async def _beat(self, job: Job, outcome: str, why: str) -> None:
        await self.heartbeats.beat(job.agent, outcome, why)

    async def _see_to(self, end: JobEnd) -> None:
        try:
            await self._around.skills.keep_untold()
            await self.outcomes.ended(end)
        except AssistantError as trouble:
            log.error("job.end", job=end.job_id, slot=end.slot, why=str(trouble))

    async def _look_on(self) -> None:
        """Digests whose time has come, and the jobs that the settings want; trouble with the
        storage is told once."""
        is_troubled = False
        while True:
            try:
                if not self._around.held():
                    await self.notifier.look()
                await self.heartbeats.ensure()
                await self._around.skills.sync()
                is_troubled = False
            except StorageError as trouble:
                if not is_troubled:
                    log.error("schedules.storage", why=str(trouble))
                is_troubled = True
            await self.place.clock.sleep(LOOK_EVERY_S)


def _as_typed(card: NewMessage) -> NewMessage:
    """A card of ours, with the commands in it as they are typed where it goes."""
    return replace(card, text=as_typed(card.text, card.lane))


def skill_finder(shelf: SkillShelf) -> Callable[[str], Awaitable[Skill]]:
    """Finds the skill of a job as it is now. Raises SkillGone."""

    async def skill(name: str) -> Skill:
        return usable_skill(await shelf.current(), name)

    return skill


def checks_for(place: Workplace, means: CheckMeans) -> tuple[Check, ...]:
    """The cheap looks of `heartbeat.checks`."""
    wishes = [read_check(text) for text in place.settings.heartbeat.checks]
    if not wishes:
        return ()
    home = place.home
    acts = Means(folder=home.workspace, fetch=means.fetch, call=means.call, run=means.run)
    return checks_of(wishes, acts, FileMarks(home.database.parent / "checks.json"))


def notify_options_of(place: Workplace, around: Surroundings) -> NotifyOptions:
    """How often, and what not."""
    settings, embedding = place.settings.scheduler, around.memories.embedding

    def likeness(one: str, other: str) -> float:
        found = embedding.likeness(one, [other])
        return 0.0 if not found else found[0]

    return NotifyOptions(
        daily_max=settings.daily_max,
        repeat_h=settings.repeat_hours,
        phrases=lambda: phrases_of(around.library.texts()["words_trivial"]),
        likeness=likeness,
    )
