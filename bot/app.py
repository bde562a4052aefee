"""The wiring: builds each object once, in order. The only file that knows all of them.

Called by `bot.cli`. `open_bot` yields a bot that works off what is waiting; `Bot.serve` adds the
channels' intake until it is told to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
)
from dataclasses import dataclass

import structlog

from agent.models.choose import Choice
from agent.tools.exec import Runner
from agent.turn.aftermath import Aftermath
from agent.turn.engine import LocalEngine
from agent.version import VERSION
from bot.commands.conversation import SessionDesk, session_operations
from bot.commands.job_service import job_operations
from bot.commands.mcp import McpDesk, mcp_operations
from bot.commands.memory_service import memory_operations
from bot.commands.model_names import configured
from bot.commands.models import model_operations
from bot.commands.prompts import Prompts, prompt_operations
from bot.commands.skills import SkillDesk, skill_operations
from bot.commands.status import BotStatus
from bot.commands.usage import UsageDesk, usage_operations
from bot.inbox.intake import Door
from bot.outbox.outbox import Outbox
from bot.people.access import Access
from bot.rpc import ControlServer, Operation
from bot.settings.home import Home, HomeLock, ensure_open_files, settings_changed
from bot.settings.schema.settings import Settings
from bot.wiring.assembly import Assembly, opened_database
from bot.wiring.channels import Channels
from bot.wiring.clock import checked
from bot.wiring.entrance import Entrance, opened_entrance
from bot.wiring.housekeeping import Housekeeping
from bot.wiring.memories import Memories, Rights
from bot.wiring.model_pool import ModelPool
from bot.wiring.operations import access_operations, status_operations, terminal_operations
from bot.wiring.options import rules_of
from bot.wiring.parts import abilities_of, access_of, pool_of, prompting_of, stores_of
from bot.wiring.schedules import Schedules
from bot.wiring.spending import Workplace
from bot.wiring.tools import Doors, opened_servers
from memory.database.connection import Database
from memory.records.ports import Clock
from memory.stores.switches import SqliteToolApprovals
from memory.stores.turns import SqliteJournal
from memory.stores.usage import SqliteUsage

log = structlog.get_logger()

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
    rights: Rights
    sessions: SessionDesk
    schedules: Schedules
    housekeeping: Housekeeping

    def operations(self) -> Mapping[str, Operation]:
        """What the private socket offers."""
        calendar = self.schedules.calendar
        assert calendar.dry_runs is not None, "a bot that runs has them"
        greeting = {"model": self.choice.model, "why": self.choice.why}
        return {
            **access_operations(self.access),
            **status_operations(self.status, self.housekeeping.troubles),
            **prompt_operations(self.prompts),
            **skill_operations(self.skills),
            **model_operations(self.pool),
            **usage_operations(self.spending),
            **mcp_operations(self.servers),
            **memory_operations(self.rights.office),
            **session_operations(self.sessions),
            **job_operations(calendar.jobs, calendar.dry_runs),
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
            await self.rights.erasing.idle()
            await self.outbox.idle(lane)
            if not self.engine.busy(lane) and not self.outbox.busy(lane):
                return

    async def serve(self, stopping: asyncio.Event) -> None:
        """Takes messages in until `stopping` is set; then drains within `turns.drain_s`.

        Raises SettingsWrong when no channel can work, StorageCorrupt when the database was damaged
        meanwhile: by then intake has ended, nothing more is confirmed, and the owner was told.
        """
        async with asyncio.TaskGroup() as group:
            harmed = group.create_task(self.database.harmed())
            tasks = [
                harmed,
                group.create_task(stopping.wait()),
                group.create_task(self._keep_house()),
                group.create_task(self.channels.take_in(self.door)),
            ]
            await asyncio.wait(tasks[:2], return_when=asyncio.FIRST_COMPLETED)
            is_harmed = harmed.done()
            for task in tasks:
                task.cancel()
        if is_harmed:
            trouble = await self.database.last_words()
            log.error("bot.database_harmed", why=str(trouble))
            await self.channels.tell_owner_at_once(str(trouble))
            raise trouble
        log.info("bot.stopping")
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

    async def _keep_house(self) -> None:
        # Found out before somebody waits for it.
        await asyncio.to_thread(self.runner.is_confined)
        await self.housekeeping.run()


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
    ensure_open_files()
    async with AsyncExitStack() as stack:
        stack.enter_context(HomeLock(home, started_at=clock.now()))
        place = Workplace(home=home, settings=settings, clock=checked(clock), env=env)
        whole = Assembly(stack, place)
        await whole.open_stores()
        await whole.open_doors_out()
        await whole.make_minds()
        await whole.make_engine()
        entrance = await opened_entrance(
            stack, place, whole, changed=lambda: settings_changed(home, digest, env)
        )
        bot = _bot_of(place, whole, entrance)
        choice = whole.choice
        log.info("bot.started", version=VERSION, model=choice.model, why=choice.why)
        await whole.start(entrance.rights)
        await entrance.door.resume(whole.channels.by_name)
        await stack.enter_async_context(ControlServer(home.socket, bot.operations()))
        yield bot


def _bot_of(place: Workplace, whole: Assembly, entrance: Entrance) -> Bot:
    return Bot(
        home=place.home,
        settings=place.settings,
        clock=place.clock,
        choice=whole.choice,
        access=whole.access,
        channels=whole.channels,
        outbox=whole.outbox,
        engine=whole.engine,
        door=entrance.door,
        database=whole.database,
        journal=whole.stores.journal,
        status=entrance.status,
        prompts=whole.prompting.prompts,
        skills=whole.skills,
        pool=whole.pool,
        usage=whole.usage,
        spending=entrance.spending,
        servers=whole.servers,
        runner=whole.abilities.tools.runner,
        aftermath=whole.aftermath,
        memories=whole.stores.memories,
        rights=entrance.rights,
        sessions=SessionDesk(whole.stores.memories.sessions),
        schedules=whole.schedules,
        housekeeping=whole.housekeeping,
    )


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
        pool_of(place, await configured(settings, env), database) as pool,
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
        yield await opened_database(stack, place)
