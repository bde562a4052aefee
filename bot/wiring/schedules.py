"""Puts together what happens by the clock: jobs, their kinds, what is told of them, and the list of
the heartbeat. Called by `bot.app`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from agent.prompt.templates import PromptLibrary
from agent.skills.library import SkillLibrary
from agent.skills.skill import SkillState
from agent.turn.aftermath import EndedTurn, FollowUp
from agent.turn.engine import LocalEngine
from bot.commands.schedule_messages import missed_cards, stopped_card
from bot.commands.table import as_typed
from bot.outbox.outbox import Outbox
from bot.settings.home import shipped
from bot.settings.schema.settings import Settings
from bot.wiring.calendar import Calendar
from bot.wiring.memories import Memories
from bot.wiring.spending import CheckMeans, Workplace
from memory.records.errors import AssistantError, StorageError
from memory.records.job_specs import Every, Unit
from memory.records.jobs import Job, JobKind, NewJob, SetBy, Taken, What
from memory.records.messages import DEFAULT_AGENT, PersonId
from memory.records.ports import JobEnd
from memory.records.rows import NewMessage
from memory.records.schedule import due_words
from memory.stores.conversations import SqliteConversations
from scheduler.clock.misfire import first_due
from scheduler.clock.outcomes import ASKED, Followers, Outcomes
from scheduler.clock.timetable import Hears, Kind, MissedRun, Timetable
from scheduler.jobs.service import BY_HAND, HEARTBEAT
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.kinds.agent_turn import (
    ActiveHours,
    AgentKind,
    Check,
    HeartbeatKind,
    SkillGone,
    SkillKind,
    SkillWork,
    ToolKind,
    Turns,
)
from scheduler.kinds.checks import FileMarks, Means, checks_of, read_check
from scheduler.kinds.message import MessageKind
from scheduler.notify.delivery import Teller, TellingOptions
from scheduler.notify.quiet_hours import quiet_hours
from scheduler.notify.trivial import phrases_of

log = structlog.get_logger()

LOOK_EVERY_S = 60.0
"""Pause between two looks at what waits to be told, and at the jobs that the settings want."""

NEXT_TOLD = 3
"""Jobs that /status names."""

OFF_BY_HAND, OFF_BY_SETTINGS = "switched off by hand", "off in the settings"


class ShelfSkills:
    """Implements `scheduler.kinds.agent_turn.Skills` over the shelf."""

    def __init__(self, shelf: SkillLibrary) -> None:
        self._shelf = shelf

    async def work(self, name: str) -> SkillWork:
        """Raises SkillGone."""
        skill = (await self._shelf.current()).get(name)
        if skill is None:
            raise SkillGone(f"there is no skill {name!r} any more")
        if skill.state is not SkillState.USABLE:
            raise SkillGone(
                f"the skill {name} is {skill.state.value}: hearthbot skills show {name}"
            )
        return SkillWork(
            text=skill.text.strip(),
            full_context=skill.full_context,
            no_tools=skill.no_tools,
            required_tools=skill.required_tools,
            max_steps=skill.max_steps or 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the clock acts on."""

    calendar: Calendar
    conversations: SqliteConversations
    memories: Memories
    shelf: SkillLibrary
    library: PromptLibrary
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
        self.chats, self.jobs = around.calendar.chats, around.calendar.jobs
        self.book = around.calendar.book
        self._around = around
        self._engine: LocalEngine | None = None
        self._group: asyncio.TaskGroup | None = None
        self._ended_early: list[JobEnd] = []
        self._ensuring = asyncio.Lock()
        self._heard_owner: PersonId | None = None
        self.teller = Teller(
            around.calendar.tellings,
            self.jobs,
            self.chats,
            around.outbox.deliver,
            clock=place.clock,
            options=telling_options_of(place, around),
        )
        self.outcomes = Outcomes(
            self.jobs,
            self.teller,
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
        await self.ensure_heartbeat()
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

    async def ensure_heartbeat(self) -> None:
        """Keeps the job of the heartbeat as the settings want it. Raises StorageError."""
        async with self._ensuring:
            beats = [job for job in await self.jobs.kept() if job.new.kind is JobKind.HEARTBEAT]
            by_agent = {job.new.agent: job for job in beats}
            for agent in dict.fromkeys([*self.place.settings.agents.by_name, *by_agent]):
                await self._ensure(agent, by_agent.get(agent))

    async def _ensure(self, agent: str, found: Job | None) -> None:
        wanted, owner = self.place.settings.heartbeat, self.chats.owner()
        by_hand = await self.calendar.switches.is_on(HEARTBEAT)
        minutes = beat_minutes(self.place.settings, agent)
        if owner is None or not minutes or by_hand is False:
            if found is not None and found.enabled:
                await self.book.pause(found, why=OFF_BY_HAND if minutes else OFF_BY_SETTINGS)
            return
        target = wanted.deliver_to or await self.chats.home_of(owner)
        if not target:
            return
        new = self._heartbeat(owner, target, agent=agent, minutes=minutes)
        if found is None:
            first = first_due(new.when, after=self.place.clock.now())
            if await self.jobs.add(new, first) is None:
                log.error("heartbeat.name_taken", job=new.name, person=owner)
        elif _differs(found.new, new) or found.paused in {OFF_BY_HAND, OFF_BY_SETTINGS}:
            first = first_due(new.when, after=self.place.clock.now())
            await self.jobs.remove(found.id)
            made = await self.jobs.add(new, first)
            if made is not None and found.paused == BY_HAND:
                await self.book.pause(made)

    def _heartbeat(self, owner: PersonId, target: str, *, agent: str, minutes: int) -> NewJob:
        now = self.place.clock.now()
        return NewJob(
            name=HEARTBEAT if agent == DEFAULT_AGENT else f"{HEARTBEAT} {agent}",
            agent=agent,
            person_id=owner,
            kind=JobKind.HEARTBEAT,
            what=What(),
            when=Every(
                count=minutes,
                unit=Unit.MINUTE,
                start=now + timedelta(minutes=minutes),
                zone=self.chats.zone(owner).key,
            ),
            deliver_to=target,
            set_by=SetBy.BOT,
            missed_within_s=minutes * 60,
        )

    def _kinds(self) -> Mapping[JobKind, Kind]:
        around, home = self._around, self.place.home
        turns = Turns(self.chats, around.conversations)
        return {
            JobKind.MESSAGE: MessageKind(self.chats, self.chats.zone),
            JobKind.AGENT: AgentKind(turns),
            JobKind.SKILL: SkillKind(turns, ShelfSkills(around.shelf)),
            JobKind.TOOL: ToolKind(turns),
            JobKind.HEARTBEAT: HeartbeatKind(
                turns,
                home.workspace,
                self,
                fresh=lambda: shipped("HEARTBEAT.md").read_text(encoding="utf-8"),
                local=self._local,
                hours=active_hours_of(self.place.settings.heartbeat.active_hours),
                checks=around.checks,
            ),
        }

    async def next_lines(self, person_id: PersonId | None) -> list[str]:
        """For /status of an owner: this person's jobs that are due next, and those that stand
        still; of other people's a number alone. Raises StorageError."""
        jobs = await self.jobs.kept()
        own = [job for job in jobs if job.new.person_id == person_id]
        due = [(job.next, job) for job in own if job.enabled and job.next is not None]
        lines = [
            f"Next by the clock: {due_words(at, self.chats.zone(job.new.person_id))}, "
            f"{job.key} {job.new.name}"
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
        """What follows from each turn."""
        return (FollowUp(name="chats", run=self._hear),)

    async def _hear(self, ended: EndedTurn) -> None:
        turn = ended.turn
        if turn.job is not None or turn.report is not None:
            return
        self.chats.heard(turn.person_id, turn.message.address.key)
        if not turn.message.is_group and turn.person_id == self.chats.owner() != self._heard_owner:
            self._heard_owner = turn.person_id
            await self.ensure_heartbeat()  # this may be the chat that it waited for

    async def beat(self, agent: str, outcome: str, why: str) -> None:
        """Implements `scheduler.kinds.agent_turn.KeepsBeats`."""
        log.info("heartbeat", agent=agent, outcome=outcome)
        await self.calendar.beats.beat(agent, outcome, why)

    def _local(self, job: Job) -> datetime:
        return self.place.clock.now().astimezone(self.chats.zone(job.new.person_id))

    # --- what happens -----------------------------------------------------------------------

    def _taken(self, job: Job, taken: Taken) -> None:
        if taken.outbox_id is not None:
            self._around.outbox.deliver([(job.new.deliver_to, taken.outbox_id)])
        if taken.run is not None and self._engine is not None:
            self._engine.adopt(taken.run)

    async def _missed(self, person_id: PersonId, runs: tuple[MissedRun, ...]) -> None:
        log.info("jobs.missed", person=person_id, jobs=[run.job.key for run in runs])
        home, cards = await self.chats.home_of(person_id), list[NewMessage]()
        if home:
            cards = [*map(_as_typed, missed_cards(home, runs, self.chats.zone(person_id)))]
        rows = await self.jobs.tell_missed([run.dues for run in runs], cards, asked=ASKED)
        self._around.outbox.deliver([(home, row) for row in rows])

    async def _stopped(self, job: Job, why: str) -> None:
        log.warning("job.stopped", job=job.key, why=why)
        if self.chats.may_hear(job.new.person_id, job.new.deliver_to):
            await self._say(stopped_card(job.new.deliver_to, job, why))

    async def _say(self, card: NewMessage) -> None:
        await self._around.outbox.say(_as_typed(card))

    async def _beat(self, job: Job, outcome: str, why: str) -> None:
        await self.beat(job.new.agent, outcome, why)

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
                    await self.teller.look()
                await self.ensure_heartbeat()
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


def active_hours_of(text: str) -> ActiveHours:
    """`08:00-22:00`; empty is all day."""
    found = quiet_hours(text)
    if found is None:
        return ActiveHours()
    return ActiveHours(from_minute=found.from_minute, to_minute=found.to_minute)


def checks_for(place: Workplace, means: CheckMeans) -> tuple[Check, ...]:
    """The cheap looks of `heartbeat.checks`."""
    wishes = [read_check(text) for text in place.settings.heartbeat.checks]
    if not wishes:
        return ()
    home = place.home
    acts = Means(folder=home.workspace, fetch=means.fetch, call=means.call, run=means.run)
    return checks_of(wishes, acts, FileMarks(home.database.parent / "checks.json"))


def telling_options_of(place: Workplace, around: Surroundings) -> TellingOptions:
    """How often, and what not."""
    settings, embedding = place.settings.scheduler, around.memories.embedding

    def likeness(one: str, other: str) -> float:
        found = embedding.likeness(one, [other])
        return 0.0 if not found else found[0]

    return TellingOptions(
        daily_max=settings.daily_max,
        repeat_h=settings.repeat_hours,
        phrases=lambda: phrases_of(around.library.texts()["words_trivial"]),
        likeness=likeness,
    )


def beat_minutes(settings: Settings, agent: str) -> int:
    """Minutes between two looks of an agent at its list; 0: none."""
    own = settings.agents.by_name.get(agent)
    minutes = own.heartbeat if own is not None else 0
    if agent != DEFAULT_AGENT:
        return minutes
    return (minutes or settings.heartbeat.every_minutes) if settings.heartbeat.enabled else 0


def _differs(one: NewJob, other: NewJob) -> bool:
    """Whether the settings want the heartbeat otherwise; when it began is no difference."""
    steps = [job.when.count for job in (one, other) if isinstance(job.when, Every)]
    zones = [job.when.zone for job in (one, other)]
    return (
        len(set(steps)) > 1
        or zones[0] != zones[1]
        or one.deliver_to != other.deliver_to
        or one.person_id != other.person_id
    )
