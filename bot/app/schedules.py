"""What happens by the clock: jobs, their kinds, what is told of them, the job of the heartbeat, and
the cheap checks before it.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from agent.skills.library import SkillLibrary
from agent.skills.skill import SkillState
from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.exec import Order, Runner
from agent.tools.tool import Caller, Effect
from agent.tools.toolbox import Toolbox
from agent.turn.aftermath import EndedTurn, FollowUp
from agent.web.client import ClientOptions, WebClient, WebRequest
from bot.commands.schedule_messages import missed_cards, stopped_card
from bot.commands.table import as_typed
from bot.settings.home import shipped
from bot.settings.options import allowed_hosts_of
from bot.settings.schema.settings import Settings
from memory.records.errors import AssistantError, Permanent, StorageError
from memory.records.job_specs import Every, Unit
from memory.records.jobs import Job, JobKind, NewJob, SetBy, Taken, What
from memory.records.messages import DEFAULT_AGENT, Address, ConversationId, PersonId, Role, RunId
from memory.records.ports import JobEnd, StoredRun
from memory.records.rows import NewMessage
from memory.records.schedule import due_words
from memory.stores.heartbeats import SqliteBeats, SqliteSwitches
from memory.stores.jobs import SqliteJobs
from memory.stores.notifications import SqliteTellings
from scheduler.clock.misfire import first_due
from scheduler.clock.outcomes import ASKED, Followers, Outcomes
from scheduler.clock.timetable import Hears, Kind, MissedRun, Timetable
from scheduler.jobs.service import BY_HAND, HEARTBEAT
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

if TYPE_CHECKING:
    from bot.app import App

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


class Schedules:
    """All of it, put together. `running` makes it go."""

    def __init__(self, app: App) -> None:
        self.settings, self._clock, self._home = app.settings, app.clock, app.home
        self.chats, self.jobs, self.book = app.chats, SqliteJobs(app.database), app.calendar.book
        self._beats, self._switches = SqliteBeats(app.database), SqliteSwitches(app.database)
        self._skills, self._outbox = app.calendar.skill_jobs, app.outbox
        self._adopt: Callable[[StoredRun], object] = lambda run: app.engine.adopt(run)
        self._held = app.acts_not
        self._group: asyncio.TaskGroup | None = None
        self._ended_early: list[JobEnd] = []
        self._ensuring = asyncio.Lock()
        self._heard_owner: PersonId | None = None
        self.teller = Teller(
            SqliteTellings(app.database),
            self.jobs,
            self.chats,
            app.outbox.deliver,
            clock=app.clock,
            options=_telling_options(app),
        )
        self.outcomes = Outcomes(
            self.jobs,
            self.teller,
            clock=app.clock,
            hears=Followers(stopped=self._stopped, beat=self._beat),
        )
        self.timetable = Timetable(
            self.jobs,
            self._kinds(app),
            Hears(
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
        await self.ensure_heartbeat()
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

    async def ensure_heartbeat(self) -> None:
        """Keeps the job of the heartbeat as the settings want it. Raises StorageError."""
        async with self._ensuring:
            beats = [job for job in await self.jobs.kept() if job.new.kind is JobKind.HEARTBEAT]
            by_agent = {job.new.agent: job for job in beats}
            for agent in dict.fromkeys([*self.settings.agents.by_name, *by_agent]):
                await self._ensure(agent, by_agent.get(agent))

    async def _ensure(self, agent: str, found: Job | None) -> None:
        wanted, owner = self.settings.heartbeat, self.chats.owner()
        by_hand = await self._switches.is_on(HEARTBEAT)
        minutes = beat_minutes(self.settings, agent)
        if owner is None or not minutes or by_hand is False:
            if found is not None and found.enabled:
                await self.book.pause(found, why=OFF_BY_HAND if minutes else OFF_BY_SETTINGS)
            return
        target = wanted.deliver_to or await self.chats.home_of(owner)
        if not target:
            return
        new = self._heartbeat(owner, target, agent=agent, minutes=minutes)
        if found is None:
            first = first_due(new.when, after=self._clock.now())
            if await self.jobs.add(new, first) is None:
                log.error("heartbeat.name_taken", job=new.name, person=owner)
        elif _differs(found.new, new) or found.paused in {OFF_BY_HAND, OFF_BY_SETTINGS}:
            first = first_due(new.when, after=self._clock.now())
            await self.jobs.remove(found.id)
            made = await self.jobs.add(new, first)
            if made is not None and found.paused == BY_HAND:
                await self.book.pause(made)

    def _heartbeat(self, owner: PersonId, target: str, *, agent: str, minutes: int) -> NewJob:
        now = self._clock.now()
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

    def _kinds(self, app: App) -> Mapping[JobKind, Kind]:
        turns = Turns(self.chats, app.conversations)
        return {
            JobKind.MESSAGE: MessageKind(self.chats, self.chats.zone),
            JobKind.AGENT: AgentKind(turns),
            JobKind.SKILL: SkillKind(turns, ShelfSkills(app.abilities.shelf)),
            JobKind.TOOL: ToolKind(turns),
            JobKind.HEARTBEAT: HeartbeatKind(
                turns,
                app.home.workspace,
                self,
                fresh=lambda: shipped("HEARTBEAT.md").read_text(encoding="utf-8"),
                local=self._local,
                hours=active_hours_of(self.settings.heartbeat.active_hours),
                checks=_checks(app),
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
        await self._beats.beat(agent, outcome, why)

    def _local(self, job: Job) -> datetime:
        return self._clock.now().astimezone(self.chats.zone(job.new.person_id))

    # --- what happens -----------------------------------------------------------------------

    def _taken(self, job: Job, taken: Taken) -> None:
        if taken.outbox_id is not None:
            self._outbox.deliver([(job.new.deliver_to, taken.outbox_id)])
        if taken.run is not None:
            self._adopt(taken.run)

    async def _missed(self, person_id: PersonId, runs: tuple[MissedRun, ...]) -> None:
        log.info("jobs.missed", person=person_id, jobs=[run.job.key for run in runs])
        home, cards = await self.chats.home_of(person_id), list[NewMessage]()
        if home:
            cards = [*map(_as_typed, missed_cards(home, runs, self.chats.zone(person_id)))]
        rows = await self.jobs.tell_missed([run.dues for run in runs], cards, asked=ASKED)
        self._outbox.deliver([(home, row) for row in rows])

    async def _stopped(self, job: Job, why: str) -> None:
        log.warning("job.stopped", job=job.key, why=why)
        if self.chats.may_hear(job.new.person_id, job.new.deliver_to):
            await self._say(stopped_card(job.new.deliver_to, job, why))

    async def _say(self, card: NewMessage) -> None:
        await self._outbox.say(_as_typed(card))

    async def _beat(self, job: Job, outcome: str, why: str) -> None:
        await self.beat(job.new.agent, outcome, why)

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
                    await self.teller.look()
                await self.ensure_heartbeat()
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


def active_hours_of(text: str) -> ActiveHours:
    """`08:00-22:00`; empty is all day."""
    found = quiet_hours(text)
    if found is None:
        return ActiveHours()
    return ActiveHours(from_minute=found.from_minute, to_minute=found.to_minute)


def _checks(app: App) -> tuple[Check, ...]:
    """Build the cheap looks of `heartbeat.checks`."""
    wishes = [read_check(text) for text in app.settings.heartbeat.checks]
    if not wishes:
        return ()
    client = WebClient(ClientOptions(allowed=allowed_hosts_of(app.settings)))
    means = CheckMeans(
        client, app.abilities.toolbox, app.abilities.runner, owner=app.access.owner_id
    )
    acts = Means(folder=app.home.workspace, fetch=means.fetch, call=means.call, run=means.run)
    return checks_of(wishes, acts, FileMarks(app.home.database.parent / "checks.json"))


def _telling_options(app: App) -> TellingOptions:
    """Build how often is told, and what not."""
    settings = app.settings.scheduler

    def likeness(one: str, other: str) -> float:
        found = app.memories.embedding.likeness(one, [other])
        return 0.0 if not found else found[0]

    return TellingOptions(
        daily_max=settings.daily_max,
        repeat_h=settings.repeat_hours,
        phrases=lambda: phrases_of(app.library.texts()["words_trivial"]),
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


# --- checks -------------------------------------------------------------------------------------
#
# What the cheap checks of the heartbeat act through: the guarded web client, tools that change
# nothing, and programs in the sandbox. The owner named them in the settings.

COMMAND_TIMEOUT_S = 30.0
_EXIT_CODE = re.compile(r"exit code (\d+)")


class CheckNotMade(Permanent):
    """A check cannot be made; the sentence says why."""


class CheckMeans:
    """Fetches, calls and runs for checks. Everything raises AssistantError."""

    def __init__(
        self,
        client: WebClient,
        toolbox: Toolbox,
        runner: Runner,
        *,
        owner: Callable[[], PersonId | None],
    ) -> None:
        self._client = client
        self._toolbox = toolbox
        self._runner = runner
        self._owner = owner

    async def fetch(self, url: str) -> str:
        """The text of a page, as it came."""
        fetched = await self._client.fetch(WebRequest(url=url))
        if fetched.status >= 400:
            raise CheckNotMade(f"the page answered with HTTP status {fetched.status}")
        return fetched.body.decode(fetched.charset or "utf-8", "replace")

    async def call(self, name: str) -> str:
        """What a tool that changes nothing says, called without arguments."""
        await self._toolbox.ready()
        tool = self._toolbox.get(name)
        if tool is None:
            raise CheckNotMade(f"there is no tool {name[:64]!r}")
        if tool.card.effect is not Effect.NONE:
            raise CheckNotMade(f"{name} changes something, so it is no check")
        try:
            arguments = parse_arguments(tool.card.arguments, json.dumps({}))
        except ArgumentsWrong as error:
            raise CheckNotMade(f"{name} cannot be called without arguments: {error}") from error
        return await tool.run(arguments, self._caller())

    async def run(self, command: str) -> int:
        """The exit code of a program, run as `exec` runs one."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise CheckNotMade(f"{command[:80]!r} cannot be read: {error}") from error
        order = Order(command=words, folder=self._runner.root, timeout_s=COMMAND_TIMEOUT_S)
        found = _EXIT_CODE.search(await self._runner.run(order, self._caller()))
        if found is None:
            raise CheckNotMade("the program did not end by itself")
        return int(found[1])

    def _caller(self) -> Caller:
        owner = self._owner()
        if owner is None:
            raise CheckNotMade("nobody owns this bot yet")
        return Caller(
            person_id=owner,
            role=Role.OWNER,
            address=Address(channel="job", chat_id="check"),
            conversation=ConversationId("check"),
            run_id=RunId("check"),
            unattended=True,
            agreed=True,
        )
