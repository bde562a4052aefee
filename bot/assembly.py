"""Builds each object of a running bot once, in order, in steps that can be read one by one.

Called by `bot.app.open_bot`: stores and people first, then the way out, what thinks, what runs the
turns, and last the way in. What is entered here is left in the opposite order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from zoneinfo import ZoneInfo

from agent.aftermath import Aftermath
from agent.asking import Asking, AskingOptions, Payment
from agent.assistant import Assistant
from agent.attached import AttachedFiles
from agent.buckets import RateBuckets
from agent.budget import Budget
from agent.doing import Doing
from agent.gate import Gate
from agent.library import Library
from agent.loop import Loop
from agent.messages import OutboxId
from agent.models.choose import Choice
from agent.pictures import KeptPictures
from agent.ports import Drafts, Json, Models, NewRun, TurnEnd
from agent.sandbox.environment import close_to_others
from agent.skills.installing import sweep
from agent.snippets import Snippets
from agent.subagents import PeopleDrafts
from agent.tools.files import KeptResults
from agent.turns import LocalEngine
from agent.web.client import ClientOptions, WebClient
from bot.access import Access
from bot.agents import AgentsDesk
from bot.approvals import ApprovalDesk, ApprovalOptions
from bot.attaching import files_of
from bot.cards import Cards
from bot.channels import Channels, opened_channels
from bot.check_means import CheckMeans
from bot.command_tools import Tools
from bot.compacting import CompactingDesk
from bot.context import ContextTeller
from bot.door import Door
from bot.heartbeat import HeartbeatDesk
from bot.home import shipped
from bot.home_view import HomeView, Told
from bot.job_desk import Stage, job_desk_of, skill_jobs_of
from bot.jobs import JobDesk
from bot.logs import Redactor, secrets_of
from bot.mcp import McpDesk
from bot.memories import (
    Afterthoughts,
    Rights,
    afterthoughts_of,
    background_of,
    rights_of,
)
from bot.model_desk import ModelDesk
from bot.model_names import Configured, NameFinder, configured
from bot.model_pool import ModelPool
from bot.models import client_of
from bot.options import host_zone, limits_of, rules_of, tool_limits_of
from bot.options_tools import allowed_hosts_of, paces_of, policy_of
from bot.outbox import Outbox
from bot.outgoing import Outgoing
from bot.parts import (
    Abilities,
    Prompting,
    Stores,
    abilities_of,
    access_of,
    library_of,
    prompting_of,
    stores_of,
)
from bot.place import Workplace
from bot.reactions import Reactions
from bot.reception import Reception
from bot.reminding import RemindDesk
from bot.schedule import ScheduleDesk
from bot.schedules import Schedules, Surroundings, checks_for
from bot.skills import SkillDesk
from bot.spending import Telling, budget_of, pressed_by
from bot.status import BotStatus, Watched
from bot.toolmaking import Doors, opened_servers
from bot.usage import UsageDesk
from memory.approvals import SqliteApprovals
from memory.database import Database
from memory.inbox import SqliteInbox
from memory.mcp_tools import SqliteToolApprovals
from memory.models import SqliteChosenModels
from memory.outbox import SqliteOutbox
from memory.usage import SqliteUsage
from scheduler.kinds.idle import IdleOptions, IdleReset, IdleTimers
from scheduler.skill_jobs import SkillJobs


class Assembly:
    """The parts, as they come to be: each step sets what later ones use."""

    library: Library
    database: Database
    stores: Stores
    access: Access
    choice: Choice
    pool: ModelPool
    redact: Callable[[str], str]
    snippets: Snippets
    channels: Channels
    outbox: Outbox
    doors: Doors
    abilities: Abilities
    skills: SkillDesk
    servers: McpDesk
    usage: SqliteUsage
    budget: Budget
    payment: Payment
    afterthoughts: Afterthoughts
    prompting: Prompting
    skill_jobs: SkillJobs
    schedules: Schedules
    job_desk: JobDesk
    approvals: ApprovalDesk
    rights: Rights
    aftermath: Aftermath
    engine: LocalEngine
    spending: UsageDesk
    status: BotStatus

    def __init__(self, stack: AsyncExitStack, place: Workplace) -> None:
        self._stack = stack
        self._place = place

    async def open_stores(self) -> None:
        """What is stored, and who is known. Raises StorageError, SettingsWrong."""
        place = self._place
        # Before the database is touched: a broken template is no reason to upgrade anything.
        self.library = library_of(place)
        self.database = await opened_database(self._stack, place)
        self.stores = stores_of(place, self.database)

        def deliver(rows: Sequence[tuple[str, OutboxId]]) -> None:
            self.outbox.deliver(rows)  # which needs the channels, which need to know the people

        self.access = await access_of(place, self.database, deliver=deliver)
        models = await configured(place.settings, place.env)
        self.choice = models.main.choice
        self.redact = Redactor((*secrets_of(place.settings, place.env), *models.keys())).clean
        self.pool = await self._stack.enter_async_context(pool_of(place, models, self.database))
        await self.pool.open()

    async def open_doors_out(self) -> None:
        """Channels, and the way out through them. Raises SettingsWrong."""
        place = self._place
        self.snippets = Snippets(shipped=shipped("prompts"), workspace=place.home.workspace)
        self.channels = await opened_channels(
            self._stack, place.settings, self.access, self.snippets, clock=place.clock
        )
        self.outbox = await self._stack.enter_async_context(
            Outbox(
                SqliteOutbox(self.database),
                self.channels.by_name,
                clock=place.clock,
                clean=self.redact,
                copies=Outgoing(place.home.data / "outgoing"),
            )
        )
        self.doors = Doors(
            say=self.outbox.say,
            post=self.outbox.post_file,
            reactions=Reactions(self.channels.by_name),
            clean=self.redact,
        )

    async def make_minds(self) -> None:
        """Skills, tools, prompts, what they may cost, and what is made of finished turns."""
        place, stores = self._place, self.stores
        await asyncio.to_thread(sweep, place.home.workspace / "skills")
        close_to_others()
        servers = await opened_servers(self._stack, place, SqliteToolApprovals(self.database))
        self.servers = McpDesk(servers)
        self.abilities = abilities_of(place, stores, self.access, self.doors, servers)
        self.skills = SkillDesk(
            self.abilities.shelf, self.abilities.workshop, rules_of(place.settings)
        )
        self.usage = SqliteUsage(self.database)
        telling = Telling(self.access, self.outbox.say)
        self.budget = await self._stack.enter_async_context(
            budget_of(place, self.usage, self.pool, tell=telling).running()
        )
        self.payment = payment_of(place, self.budget)
        self.afterthoughts = afterthoughts_of(
            place,
            self.database,
            stores.memories,
            stores.conversations,
            access=self.access,
            models=self.pool,
            library=self.library,
            background=background_of(place, self.pool, payment=self.payment, redact=self.redact),
        )
        self.prompting = prompting_of(
            place,
            stores,
            self.abilities,
            access=self.access,
            models=self.pool,
            library=self.library,
            budget=self.budget,
            compactor=self.afterthoughts.compactor,
        )
        calendar, shelf = self.abilities.calendar, self.abilities.shelf
        self.skill_jobs = skill_jobs_of(place, calendar, shelf)
        self.schedules = Schedules(place, self._surroundings())
        stage = Stage(
            prompting=self.prompting,
            shelf=shelf,
            pool=self.pool,
            redact=self.redact,
            payment=self.payment,
            usage=self.usage,
        )
        self.job_desk = job_desk_of(place, calendar, stage, skills=self.skill_jobs)

    async def make_engine(self) -> None:
        """What runs the turns, with what stands between a model's wish and the world."""
        place, settings = self._place, self._place.settings

        async def signal(key: str, value: Json) -> bool:
            return await self.engine.signal(key, value)

        self.approvals = await self._stack.enter_async_context(
            ApprovalDesk(
                SqliteApprovals(self.database),
                self.access,
                self.outbox,
                signal,
                clock=place.clock,
                options=ApprovalOptions(
                    valid_s=settings.tools.approval_minutes * 60, host_zone=host_zone()
                ),
            )
        )
        assistant = assistant_of(
            place,
            self.pool,
            PeopleDrafts(self.outbox),
            self.stores,
            self.abilities,
            self.prompting,
            Checks(approvals=self.approvals, payment=self.payment, redact=self.redact),
            files=files_of(
                place,
                lambda: self.channels.by_name,
                self.abilities.workspace,
                self.pool,
                budget=self.budget,
            ),
        )
        works = [*self.afterthoughts.works(), *self.schedules.works()]
        self.aftermath = await self._stack.enter_async_context(Aftermath(works))
        self.engine = await self._stack.enter_async_context(
            LocalEngine(
                self.stores.journal,
                assistant,
                clock=place.clock,
                deliver=self.outbox.deliver,
                limits=limits_of(settings),
                held=self.budget.hand,
                ended=Followed(self.aftermath, self.schedules),
            )
        )
        self.doors.submit = self.engine.submit

    async def open_door_in(self, *, changed: Callable[[], bool]) -> Door:
        """Commands, buttons, and the way in. `changed` says whether the settings on the disk are
        others than those in use."""
        place, access = self._place, self.access
        self.spending = UsageDesk(
            self.usage,
            self.budget,
            lambda: access.directory.people,
            clock=place.clock,
            host_zone=host_zone(),
        )
        models = ModelDesk(self.pool)
        watched = Watched(
            choice=self.choice,
            models=models,
            access=access,
            channels=self.channels.by_name,
            engine=self.engine,
            outbox=self.outbox,
            budget=self.budget,
            servers=self.servers,
            runner=self.abilities.tools.runner,
            clock=self.schedules,
        )
        self.status = self.doors.status = BotStatus(watched, clock=place.clock, changed=changed)
        rights = self.rights = rights_of(
            place,
            self.database,
            self.stores.memories,
            self.stores.conversations,
            access=access,
            outbox=self.outbox,
        )
        await self._stack.enter_async_context(rights.erasing)
        schedule = self._schedule_desk()
        if self.channels.slack is not None:
            self.channels.slack.tells_home = self._home_view()
        tools = Tools(
            engine=self.engine,
            conversations=self.stores.conversations,
            status=self.status,
            context=ContextTeller(self.prompting.prompts),
            models=models,
            skills=self.skills,
            usage=self.spending,
            agents=AgentsDesk(self.abilities.subagents, self.engine, clock=place.clock),
            approvals=self.approvals,
            compacting=CompactingDesk(
                self.afterthoughts.compactor,
                self.stores.memories.compactions,
                self.stores.conversations,
                busy=self.engine.busy,
                host_zone=host_zone(),
            ),
            schedule=schedule,
            heartbeat=self._heartbeat_desk(),
            memory=rights.desk,
            undo=rights.undo,
            private=rights.private,
            people=Reception(access, clock=place.clock, host_zone=host_zone()),
            snippets=self.snippets,
        )
        door = await self._stack.enter_async_context(
            Door(
                SqliteInbox(self.database),
                access,
                self.engine,
                self.stores.conversations,
                self.outbox,
                command_tools=tools,
                clock=place.clock,
                presses={
                    "ok": self.approvals.press,
                    "brake": pressed_by(self.spending),
                    "mem": rights.desk.press,
                    "job": schedule.press,
                },
            )
        )
        if place.settings.telegram.ack_reaction:
            door.acknowledge = Reactions(self.channels.by_name).acknowledge
        door.freshen = IdleReset(
            self.stores.memories.idle,
            self.stores.conversations.start_new,
            place.clock,
            after_hours=place.settings.history.idle_reset_hours,
            busy=self.engine.busy,
        )
        return door

    async def start(self) -> None:
        """Takes up what a former process left, and goes on by itself. Raises StorageError."""
        await self.outbox.start()
        await self.engine.start()
        await self.approvals.start()
        self.rights.erasing.start()
        await self.rights.private.sweep()
        await self._stack.enter_async_context(self.schedules.running(self.engine))
        await self._stack.enter_async_context(self._idle_timers())

    def _schedule_desk(self) -> ScheduleDesk:
        calendar, clock = self.abilities.calendar, self._place.clock
        cards = Cards(self.outbox, calendar.cards)
        return ScheduleDesk(
            calendar.clerk,
            calendar.agenda,
            RemindDesk(calendar.clerk, cards, clock=clock),
            cards,
            clock=clock,
        )

    def _home_view(self) -> HomeView:
        calendar = self.abilities.calendar
        told = Told(
            book=calendar.clerk,
            agenda=calendar.agenda,
            facts=self.stores.memories.facts,
            sums=self.usage,
            counted=self.budget.flush,
            models=self.pool,
            jobs=calendar.jobs.kept,
            open_questions=SqliteApprovals(self.database).open_ones,
        )
        zone = ZoneInfo(host_zone())
        return HomeView(self.access, told, clock=self._place.clock, host_zone=zone)

    def _heartbeat_desk(self) -> HeartbeatDesk:
        calendar, wanted = self.abilities.calendar, self._place.settings.heartbeat
        return HeartbeatDesk(
            calendar.clerk,
            calendar.beats,
            calendar.switches,
            every_minutes=wanted.every_minutes if wanted.enabled else 0,
            ensure=self.schedules.ensure_heartbeat,
        )

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            calendar=self.abilities.calendar,
            conversations=self.stores.conversations,
            memories=self.stores.memories,
            shelf=self.abilities.shelf,
            library=self.library,
            outbox=self.outbox,
            held=self._is_held,
            skills=self.skill_jobs,
            checks=checks_for(self._place, self._check_means()),
        )

    def _check_means(self) -> CheckMeans:
        tools, settings = self.abilities.tools, self._place.settings
        client = WebClient(ClientOptions(allowed=allowed_hosts_of(settings)))
        return CheckMeans(client, tools.toolbox, tools.runner, owner=self.access.owner_id)

    def _is_held(self) -> bool:
        """Whether the owner paused everything."""
        return self.budget.hand.paused is not None

    def _idle_timers(self) -> AbstractAsyncContextManager[object]:
        """Looks for facts in conversations that have fallen silent, where the settings say so."""
        wanted = self._place.settings.memory.extraction
        if not wanted.enabled:
            return nullcontext()
        return IdleTimers(
            self.stores.memories.idle,
            self.afterthoughts.extractor,
            self._place.clock,
            options=IdleOptions(idle_s=wanted.idle_seconds),
            busy=lambda lane: self._is_held() or self.engine.busy(lane),
        )


async def opened_database(stack: AsyncExitStack, place: Workplace) -> Database:
    """The database of the home. Raises StorageError."""
    home = place.home
    return await stack.enter_async_context(
        Database.open(home.database, clock=place.clock, backups=home.backups)
    )


def pool_of(place: Workplace, models: Configured, database: Database) -> ModelPool:
    """The models that there are."""
    llm = place.settings.llm
    return ModelPool(
        models,
        SqliteChosenModels(database),
        partial(client_of, timeout_s=llm.timeout_s),
        finder=NameFinder(place.settings, place.env),
        clock=place.clock,
        output_tokens_max=llm.max_output_tokens,
    )


@dataclass(frozen=True, slots=True)
class Followed:
    """What hears of each turn's end."""

    aftermath: Aftermath
    schedules: Schedules

    def __call__(self, run: NewRun, end: TurnEnd) -> None:
        """Returns at once."""
        if end.job is not None:
            self.schedules.ended(end.job)
        self.aftermath.ended(run, end)


def payment_of(place: Workplace, budget: Budget) -> Payment:
    """What every model call has to pass, those behind the scenes too."""
    paces = paces_of(place.settings)
    return Payment(budget=budget, rates=RateBuckets(paces, place.clock) if paces else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What stands between a model's wish and the world."""

    approvals: ApprovalDesk
    payment: Payment
    redact: Callable[[str], str]


def assistant_of(
    place: Workplace,
    models: Models,
    drafts: Drafts,
    stores: Stores,
    abilities: Abilities,
    prompting: Prompting,
    checks: Checks,
    *,
    files: AttachedFiles,
) -> Assistant:
    """The program that the engine runs."""
    settings, tools = place.settings, abilities.tools
    return Assistant(
        begin=prompting.beginning,
        model=Asking(
            models,
            stores.conversations,
            drafts,
            stores.traces,
            toolbox=tools.toolbox,
            library=prompting.library,
            options=AskingOptions(
                temperature=settings.agents.default.temperature,
                max_output_tokens=settings.llm.max_output_tokens,
                redact=checks.redact,
                pictures=KeptPictures(abilities.workspace),
                cheap_model=settings.llm.cheap_model,
            ),
            payment=checks.payment,
        ),
        tool=Doing(
            tools.toolbox,
            tools.reach,
            drafts,
            Gate(policy_of(settings), checks.approvals, stores.conversations),
            clock=place.clock,
            keep=KeptResults(abilities.workspace),
            limits=tool_limits_of(settings),
            redact=checks.redact,
        ),
        loop=Loop(
            tools.toolbox,
            steps_max=settings.agents.default.max_steps,
            claims=prompting.library.texts()["words_claims"],
        ),
        drafts=drafts,
        files=files,
    )
