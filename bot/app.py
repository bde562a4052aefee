"""The wiring: builds each object once, in order. The only file that knows all of them.

Called by `bot.cli`. `open_bot` yields a bot that works off what is waiting; `Bot.serve` adds the
channels' intake until it is told to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import structlog

from agent.aftermath import Aftermath
from agent.asking import Asking, AskingOptions, Payment
from agent.assistant import Assistant
from agent.buckets import RateBuckets
from agent.budget import Budget
from agent.doing import Doing
from agent.errors import StorageError
from agent.gate import Gate
from agent.loop import Loop
from agent.messages import OutboxId
from agent.models.choose import Choice
from agent.ports import Clock, Drafts, Json, Models, NewRun, TurnEnd
from agent.sandbox.environment import close_to_others
from agent.skills.installing import sweep
from agent.snippets import Snippets
from agent.subagents import PeopleDrafts
from agent.tools.exec import Runner
from agent.tools.files import KeptResults
from agent.turns import LocalEngine
from agent.version import VERSION
from bot import commands
from bot.access import Access
from bot.agents import AgentsDesk
from bot.approvals import ApprovalDesk, ApprovalOptions
from bot.channels import Channels, opened_channels
from bot.config import Settings
from bot.context import ContextTeller
from bot.control import ControlServer, Operation
from bot.door import Door
from bot.home import Home, HomeLock, settings_changed, shipped
from bot.logs import Redactor, secrets_of
from bot.mcp import McpDesk, mcp_operations
from bot.memories import Afterthoughts, Memories, afterthoughts_of, background_of
from bot.model_desk import ModelDesk
from bot.model_list import model_operations
from bot.model_names import Configured, NameFinder, configured
from bot.model_pool import ModelPool
from bot.models import client_of
from bot.operations import access_operations, status_operations, terminal_operations
from bot.options import (
    host_zone,
    limits_of,
    rules_of,
    tool_limits_of,
)
from bot.options_tools import paces_of, policy_of
from bot.outbox import Outbox
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
from bot.prompts import Prompts, prompt_operations
from bot.reception import Reception
from bot.schedules import Schedules, Surroundings
from bot.skills import SkillDesk, skill_operations
from bot.spending import Telling, budget_of, pressed_by
from bot.status import BotStatus, Watched
from bot.toolmaking import Doors, opened_servers
from bot.usage import UsageDesk, usage_operations
from memory.approvals import SqliteApprovals
from memory.database import Database
from memory.inbox import SqliteInbox
from memory.journal import SqliteJournal
from memory.mcp_tools import SqliteToolApprovals
from memory.models import SqliteChosenModels
from memory.outbox import SqliteOutbox
from memory.usage import SqliteUsage
from scheduler.kinds.idle import IdleOptions, IdleReset, IdleTimers

log = structlog.get_logger()

BACKUP_CHECK_S = 3_600.0

ENGINE_SHARE, OUTBOX_SHARE, AFTERMATH_SHARE = 0.65, 0.15, 0.05
"""How the seconds of `turns.drain_s` are divided at SIGTERM; the rest is for closing."""


@dataclass(slots=True)
class Bot:
    """A bot that is put together. Made by `open_bot`."""

    home: Home
    settings: Settings
    clock: Clock
    choice: Choice
    access: Access
    channels: Channels
    outbox: Outbox
    engine: LocalEngine
    door: Door
    database: Database
    journal: SqliteJournal
    status: BotStatus
    prompts: Prompts
    skills: SkillDesk
    pool: ModelPool
    usage: SqliteUsage
    spending: UsageDesk
    servers: McpDesk
    runner: Runner
    aftermath: Aftermath
    memories: Memories
    schedules: Schedules

    def operations(self) -> Mapping[str, Operation]:
        """What the private socket offers."""
        greeting = {"model": self.choice.model, "why": self.choice.why}
        return {
            **access_operations(self.access),
            **status_operations(self.status),
            **prompt_operations(self.prompts),
            **skill_operations(self.skills),
            **model_operations(self.pool),
            **usage_operations(self.spending),
            **mcp_operations(self.servers),
            **terminal_operations(
                self.channels.console,
                self.access,
                self.door,
                self.settled,
                clock=self.clock,
                greeting=greeting,
            ),
        }

    async def settled(self, lane: str | None = None) -> None:
        """Returns once nothing (in this lane) runs, waits or is on its way."""
        while True:
            await self.door.idle()
            await self.engine.idle(lane)
            await self.outbox.idle(lane)
            if not self.engine.busy(lane) and not self.outbox.busy(lane):
                return

    async def serve(self, stopping: asyncio.Event) -> None:
        """Takes messages in until `stopping` is set; then drains within `turns.drain_s`.

        Raises SettingsWrong when no channel can work.
        """
        async with asyncio.TaskGroup() as group:
            intake = [
                group.create_task(self._keep_house()),
                group.create_task(self.channels.take_in(self.door)),
            ]
            await stopping.wait()
            log.info("bot.stopping")
            for task in intake:
                task.cancel()
        await self.drain()

    async def drain(self) -> None:
        """Finishes or parks what runs; what is parked goes on at the next start."""
        drain_s = self.settings.turns.drain_s
        await self.engine.stop(drain_s * ENGINE_SHARE)
        await self.outbox.stop(drain_s * OUTBOX_SHARE)
        await self.aftermath.stop(drain_s * AFTERMATH_SHARE)

    async def once(self, stopping: asyncio.Event) -> None:
        """Works off what is waiting, here and at the platform, or as much until `stopping`."""
        async with asyncio.TaskGroup() as group:
            working = group.create_task(self._work_off())
            stop = group.create_task(stopping.wait())
            await asyncio.wait([working, stop], return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            stop.cancel()
        await self.drain()

    async def _work_off(self) -> None:
        await self.channels.fetch_waiting(self.door)
        while True:
            await self.door.idle()
            await self.engine.idle()
            lanes = [lane for lane in self.outbox.lanes() if self.channels.can_deliver(lane)]
            if not lanes and not self.engine.busy():
                await self.aftermath.idle()
                return
            for lane in lanes:
                await self.outbox.idle(lane)

    async def _drop_old_conversations(self) -> None:
        """Those that were closed so long ago, where the settings say how long (SPEC §10)."""
        days = self.settings.history.keep_days
        if days:
            before = self.clock.now() - timedelta(days=days)
            await self.memories.sessions.prune(int(before.timestamp() * 1000))

    async def _keep_house(self) -> None:
        """A daily backup, and the steps of old turns go. Trouble is told and tried again."""
        # Found out before somebody waits for it.
        await asyncio.to_thread(self.runner.is_confined)
        while True:
            try:
                await self.database.backup_if_due(self.home.backups)
                before = self.clock.now() - timedelta(days=self.settings.trace.keep_days)
                await self.journal.prune(int(before.timestamp() * 1000))
                await self.schedules.jobs.prune(int(before.timestamp() * 1000))
                await self._drop_old_conversations()
                before = self.clock.now() - timedelta(days=self.settings.budget.keep_days)
                await self.usage.prune(int(before.timestamp() * 1000))
            except StorageError as error:
                log.error("bot.backup", why=str(error))
            await self.clock.sleep(BACKUP_CHECK_S)


@asynccontextmanager
async def open_bot(
    home: Home,
    settings: Settings,
    *,
    env: Mapping[str, str],
    digest: str,
    clock: Clock,
) -> AsyncIterator[Bot]:
    """Opens everything and takes up what a former process left.

    Raises HomeBusy, StorageError, SettingsWrong. On leaving, what runs is parked.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(HomeLock(home, started_at=clock.now()))
        place = Workplace(home=home, settings=settings, clock=clock, env=env)
        # Before the database is touched: a broken template is no reason to upgrade anything.
        library = library_of(place)
        database = await _database(stack, place)
        stores = stores_of(place, database)
        journal = stores.journal

        def deliver(rows: Sequence[tuple[str, OutboxId]]) -> None:
            outbox.deliver(rows)  # which needs the channels, which need to know the people

        access = await access_of(place, database, deliver=deliver)
        models = await configured(settings, env)
        choice = models.main.choice
        pool = await stack.enter_async_context(_pool(place, models, database))
        await pool.open()
        snippets = Snippets(shipped=shipped("prompts"), workspace=home.workspace)
        channels = await opened_channels(stack, settings, access, snippets, clock=clock)
        redact = Redactor((*secrets_of(settings, env), *models.keys())).clean
        outbox = await stack.enter_async_context(
            Outbox(
                SqliteOutbox(database),
                channels.by_name,
                clock=clock,
                clean=redact,
            )
        )
        await asyncio.to_thread(sweep, home.workspace / "skills")
        close_to_others()
        doors = Doors(say=outbox.say)
        servers = await opened_servers(stack, place, SqliteToolApprovals(database))
        abilities = abilities_of(place, stores, access, doors, servers)
        skills = SkillDesk(abilities.shelf, abilities.workshop, rules_of(settings))
        usage = SqliteUsage(database)
        budget = await stack.enter_async_context(
            budget_of(place, usage, pool, tell=Telling(access, outbox.say)).running()
        )
        payment = payment_of(place, budget)
        afterthoughts = afterthoughts_of(
            place,
            database,
            stores.memories,
            access=access,
            models=pool,
            library=library,
            background=background_of(place, pool, payment=payment, redact=redact),
        )
        prompting = prompting_of(
            place,
            stores,
            abilities,
            access=access,
            models=pool,
            library=library,
            budget=budget,
            compactor=afterthoughts.compactor,
        )

        def is_held() -> bool:
            return budget.hand.paused is not None

        schedules = Schedules(
            place,
            Surroundings(
                database=database,
                access=access,
                conversations=stores.conversations,
                memories=stores.memories,
                shelf=abilities.shelf,
                library=library,
                outbox=outbox,
                held=is_held,
            ),
        )

        async def signal(key: str, value: Json) -> bool:
            return await engine.signal(key, value)

        approvals = await stack.enter_async_context(
            ApprovalDesk(
                SqliteApprovals(database),
                access,
                outbox,
                signal,
                clock=clock,
                options=ApprovalOptions(
                    valid_s=settings.tools.approval_minutes * 60, host_zone=host_zone()
                ),
            )
        )
        assistant = _assistant(
            place,
            pool,
            PeopleDrafts(outbox),
            stores,
            abilities,
            prompting,
            Checks(approvals=approvals, payment=payment, redact=redact),
        )
        aftermath = await stack.enter_async_context(
            Aftermath([*afterthoughts.works(), *schedules.works()])
        )
        engine = await stack.enter_async_context(
            LocalEngine(
                journal,
                assistant,
                clock=clock,
                deliver=outbox.deliver,
                limits=limits_of(settings),
                held=budget.hand,
                ended=Followed(aftermath, schedules),
            )
        )
        doors.submit = engine.submit
        spending = UsageDesk(
            usage,
            budget,
            lambda: access.directory.people,
            clock=clock,
            host_zone=host_zone(),
        )
        inbox = SqliteInbox(database)
        desk = ModelDesk(pool)
        watched = Watched(
            choice=choice,
            models=desk,
            access=access,
            channels=channels.by_name,
            engine=engine,
            outbox=outbox,
            budget=budget,
            servers=McpDesk(servers),
            runner=abilities.tools.runner,
        )
        status = doors.status = BotStatus(
            watched, clock=clock, changed=lambda: settings_changed(home, digest, env)
        )
        tools = commands.Tools(
            engine=engine,
            conversations=stores.conversations,
            status=status,
            context=ContextTeller(prompting.prompts),
            models=desk,
            skills=skills,
            usage=spending,
            agents=AgentsDesk(abilities.subagents, engine, clock=clock),
            approvals=approvals,
            people=Reception(access, clock=clock, host_zone=host_zone()),
            snippets=snippets,
        )
        door = await stack.enter_async_context(
            Door(
                inbox,
                access,
                engine,
                stores.conversations,
                outbox,
                command_tools=tools,
                clock=clock,
                presses={"ok": approvals.press, "brake": pressed_by(spending)},
            )
        )
        bot = Bot(
            home=home,
            settings=settings,
            clock=clock,
            choice=choice,
            access=access,
            channels=channels,
            outbox=outbox,
            engine=engine,
            door=door,
            database=database,
            journal=journal,
            status=status,
            prompts=prompting.prompts,
            skills=skills,
            pool=pool,
            usage=usage,
            spending=spending,
            servers=watched.servers,
            runner=watched.runner,
            aftermath=aftermath,
            memories=stores.memories,
            schedules=schedules,
        )
        log.info("bot.started", version=VERSION, model=choice.model, why=choice.why)
        await outbox.start()
        await engine.start()
        await approvals.start()
        door.freshen = IdleReset(
            stores.memories.idle,
            stores.conversations.start_new,
            clock,
            after_hours=settings.history.idle_reset_hours,
            busy=engine.busy,
        )
        await stack.enter_async_context(schedules.running(engine))
        await stack.enter_async_context(
            idle_timers_of(place, stores, afterthoughts, engine, is_held)
        )
        await door.resume(channels.by_name)
        await stack.enter_async_context(ControlServer(home.socket, bot.operations()))
        yield bot


@asynccontextmanager
async def open_access(
    home: Home, settings: Settings, *, clock: Clock
) -> AsyncIterator[Mapping[str, Operation]]:
    """What can be asked about people where no bot runs: opens the database and nothing else.

    Raises HomeBusy, StorageError.
    """
    place = Workplace(home=home, settings=settings, clock=clock, env={})
    async with _opened_database(place) as database:
        yield access_operations(await access_of(place, database))


@asynccontextmanager
async def open_prompts(
    home: Home, settings: Settings, *, env: Mapping[str, str], clock: Clock
) -> AsyncIterator[Mapping[str, Operation]]:
    """What can be asked about prompts where no bot runs: nothing is sent, and no turn taken up.

    Raises HomeBusy, StorageError, SettingsWrong.
    """
    place = Workplace(home=home, settings=settings, clock=clock, env=env)
    async with (
        _opened_database(place) as database,
        _pool(place, await configured(settings, env), database) as pool,
    ):
        stores = stores_of(place, database)
        access = await access_of(place, database)
        prompting = prompting_of(
            place,
            stores,
            abilities_of(place, stores, access, Doors()),
            access=access,
            models=pool,
        )
        yield prompt_operations(prompting.prompts)


@asynccontextmanager
async def open_skills(
    home: Home, settings: Settings, *, env: Mapping[str, str], clock: Clock
) -> AsyncIterator[Mapping[str, Operation]]:
    """What can be asked about skills where no bot runs: opens the database and nothing else.

    Raises HomeBusy, StorageError.
    """
    place = Workplace(home=home, settings=settings, clock=clock, env=env)
    async with _opened_database(place) as database:
        access = await access_of(place, database)
        abilities = abilities_of(place, stores_of(place, database), access, Doors())
        yield skill_operations(SkillDesk(abilities.shelf, abilities.workshop, rules_of(settings)))


@asynccontextmanager
async def open_mcp(
    home: Home, settings: Settings, *, env: Mapping[str, str], clock: Clock
) -> AsyncIterator[Mapping[str, Operation]]:
    """What can be asked about MCP servers where no bot runs: they are started for it.

    Raises HomeBusy, StorageError.
    """
    place = Workplace(home=home, settings=settings, clock=clock, env=env)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(_opened_database(place))
        servers = await opened_servers(stack, place, SqliteToolApprovals(database))
        yield mcp_operations(McpDesk(servers))


@asynccontextmanager
async def _opened_database(place: Workplace) -> AsyncIterator[Database]:
    async with AsyncExitStack() as stack:
        stack.enter_context(HomeLock(place.home, started_at=place.clock.now()))
        yield await _database(stack, place)


async def _database(stack: AsyncExitStack, place: Workplace) -> Database:
    home = place.home
    return await stack.enter_async_context(
        Database.open(home.database, clock=place.clock, backups=home.backups)
    )


# --- each object, built -----------------------------------------------------------------------


def _pool(place: Workplace, models: Configured, database: Database) -> ModelPool:
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


def idle_timers_of(
    place: Workplace,
    stores: Stores,
    afterthoughts: Afterthoughts,
    engine: LocalEngine,
    is_held: Callable[[], bool],
) -> AbstractAsyncContextManager[object]:
    """Looks for facts in conversations that have fallen silent, where the settings say so."""
    wanted = place.settings.memory.extraction
    if not wanted.enabled:
        return nullcontext()
    return IdleTimers(
        stores.memories.idle,
        afterthoughts.extractor,
        place.clock,
        options=IdleOptions(idle_s=wanted.idle_seconds),
        busy=lambda lane: is_held() or engine.busy(lane),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What stands between a model's wish and the world."""

    approvals: ApprovalDesk
    payment: Payment
    redact: Callable[[str], str]


def _assistant(
    place: Workplace,
    models: Models,
    drafts: Drafts,
    stores: Stores,
    abilities: Abilities,
    prompting: Prompting,
    checks: Checks,
) -> Assistant:
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
    )
