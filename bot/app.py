"""The wiring: builds each object once, in order. The only file that knows all of them.

Called by `bot.cli`. `open_bot` yields a bot that works off what is waiting; `Bot.serve` adds the
channels' intake until it is told to stop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from agent.asking import Asking
from agent.assistant import Assistant
from agent.doing import Doing
from agent.errors import SettingsWrong, StorageError
from agent.loop import Loop
from agent.models.choose import Choice, choose
from agent.ports import Clock, Model
from agent.tools.files import KeptResults
from agent.turns import LocalEngine
from agent.version import VERSION
from bot import commands
from bot.access import Access
from bot.channel import Channel
from bot.config import Settings
from bot.console import ConsoleChannel
from bot.context import ContextTeller
from bot.control import ControlServer, Operation
from bot.door import Door
from bot.home import Home, HomeLock, settings_changed
from bot.logs import Redactor, secrets_of
from bot.models import keys_of, models_of, opened_model
from bot.operations import access_operations, status_operations, terminal_operations
from bot.options import (
    limits_of,
    rates_of,
    tool_limits_of,
    wanted_of,
)
from bot.outbox import Outbox
from bot.parts import (
    Abilities,
    Prompting,
    Stores,
    Workplace,
    abilities_of,
    access_of,
    library_of,
    prompting_of,
    stores_of,
)
from bot.prompts import Prompts, prompt_operations
from bot.status import BotStatus, Watched
from memory.database import Database
from memory.inbox import SqliteInbox
from memory.journal import SqliteJournal
from memory.outbox import SqliteOutbox

if TYPE_CHECKING:
    from bot.telegram import TelegramChannel

log = structlog.get_logger()

BACKUP_CHECK_S = 3_600.0

ENGINE_SHARE, OUTBOX_SHARE = 0.7, 0.15
"""How the seconds of `turns.drain_s` are divided at SIGTERM; the rest is for closing."""


@dataclass(slots=True)
class Bot:
    """A bot that is put together. Made by `open_bot`."""

    home: Home
    settings: Settings
    clock: Clock
    choice: Choice
    access: Access
    console: ConsoleChannel
    telegram: TelegramChannel | None
    outbox: Outbox
    engine: LocalEngine
    door: Door
    database: Database
    journal: SqliteJournal
    status: BotStatus
    prompts: Prompts

    @property
    def channels(self) -> Mapping[str, Channel]:
        """By name."""
        return _by_name(self.console, self.telegram)

    def operations(self) -> Mapping[str, Operation]:
        """What the private socket offers."""
        greeting = {"model": self.choice.model, "why": self.choice.why}
        return {
            **access_operations(self.access),
            **status_operations(self.status),
            **prompt_operations(self.prompts),
            **terminal_operations(
                self.console,
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

        Raises TelegramRefused when the only channel cannot work.
        """
        async with asyncio.TaskGroup() as group:
            intake = [group.create_task(self._keep_house())]
            if self.telegram is not None:
                intake.append(group.create_task(self._take_in(self.telegram)))
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
        if self.telegram is not None:
            await self.telegram.connect()
            await self.telegram.fetch_waiting(self.door)
        while True:
            await self.door.idle()
            await self.engine.idle()
            lanes = [lane for lane in self.outbox.lanes() if self._can_deliver(lane)]
            if not lanes and not self.engine.busy():
                return
            for lane in lanes:
                await self.outbox.idle(lane)

    def _can_deliver(self, lane: str) -> bool:
        """A reply to the terminal waits until somebody is there, perhaps for days."""
        return self.console.attended or not lane.startswith(f"{self.console.name}:")

    async def _take_in(self, telegram: TelegramChannel) -> None:
        await telegram.connect()
        async with asyncio.TaskGroup() as group:
            group.create_task(telegram.announce([(c.name, c.help) for c in commands.COMMANDS]))
            if self.settings.telegram.mode == "webhook":
                await self._listen(telegram)
            else:
                await telegram.poll(self.door)

    async def _listen(self, telegram: TelegramChannel) -> None:
        from bot.webhook import serve_webhook

        try:
            await serve_webhook(telegram, self.door, self.settings.telegram)
        except OSError as error:
            raise SettingsWrong(
                f"Cannot listen on {self.settings.telegram.webhook_listen} "
                f"({os.strerror(error.errno or 0)}). Close what uses that port, or choose another "
                "in telegram.webhook_listen."
            ) from error

    async def _keep_house(self) -> None:
        """A daily backup, and the steps of old turns go. Trouble is told and tried again."""
        while True:
            try:
                await self.database.backup_if_due(self.home.backups)
                before = self.clock.now() - timedelta(days=self.settings.trace.keep_days)
                await self.journal.prune(int(before.timestamp() * 1000))
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
        library_of(place)
        database = await _database(stack, place)
        journal = SqliteJournal(database)
        stores = stores_of(database)
        access = await access_of(place, database)
        models = await models_of(place)
        choice = models[0]
        model = await stack.enter_async_context(opened_model(place, models))
        console = ConsoleChannel()
        telegram = _telegram(settings, clock)
        if telegram is not None:
            await stack.enter_async_context(telegram)
        outbox = await stack.enter_async_context(
            Outbox(
                SqliteOutbox(database),
                _by_name(console, telegram),
                clock=clock,
                clean=Redactor((*secrets_of(settings, env), *keys_of(models))).clean,
            )
        )
        abilities = abilities_of(place, stores)
        prompting = prompting_of(place, stores, abilities, access=access, choice=choice)
        assistant = _assistant(place, model, outbox, stores, abilities, prompting)
        engine = await stack.enter_async_context(
            LocalEngine(
                journal,
                assistant,
                clock=clock,
                deliver=outbox.deliver,
                limits=limits_of(settings),
            )
        )
        inbox = SqliteInbox(database)
        watched = Watched(
            choice=choice,
            access=access,
            channels=_by_name(console, telegram),
            engine=engine,
            outbox=outbox,
        )
        status = BotStatus(
            watched, clock=clock, changed=lambda: settings_changed(home, digest, env)
        )
        tools = commands.Tools(
            engine=engine,
            conversations=stores.conversations,
            status=status,
            context=ContextTeller(prompting.prompts),
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
            )
        )
        bot = Bot(
            home=home,
            settings=settings,
            clock=clock,
            choice=choice,
            access=access,
            console=console,
            telegram=telegram,
            outbox=outbox,
            engine=engine,
            door=door,
            database=database,
            journal=journal,
            status=status,
            prompts=prompting.prompts,
        )
        log.info("bot.started", version=VERSION, model=choice.model, why=choice.why)
        await outbox.start()
        await engine.start()
        await door.resume(bot.channels)
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
    async with _opened_database(place) as database:
        stores = stores_of(database)
        prompting = prompting_of(
            place,
            stores,
            abilities_of(place, stores),
            access=await access_of(place, database),
            choice=await choose(wanted_of(settings), env=env),
        )
        yield prompt_operations(prompting.prompts)


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


def _assistant(
    place: Workplace,
    model: Model,
    outbox: Outbox,
    stores: Stores,
    abilities: Abilities,
    prompting: Prompting,
) -> Assistant:
    settings, toolbox = place.settings, abilities.toolbox
    return Assistant(
        begin=prompting.beginning,
        model=Asking(
            model,
            stores.conversations,
            outbox,
            stores.traces,
            toolbox=toolbox,
            library=prompting.library,
            temperature=settings.agents.default.temperature,
            max_output_tokens=settings.llm.max_output_tokens,
        ),
        tool=Doing(
            toolbox,
            outbox,
            clock=place.clock,
            keep=KeptResults(abilities.workspace),
            limits=tool_limits_of(settings),
        ),
        loop=Loop(toolbox, steps_max=settings.agents.default.max_steps),
        drafts=outbox,
    )


def _by_name(console: ConsoleChannel, telegram: TelegramChannel | None) -> Mapping[str, Channel]:
    channels: dict[str, Channel] = {console.name: console}
    if telegram is not None:
        channels[telegram.name] = telegram
    return channels


def _telegram(settings: Settings, clock: Clock) -> TelegramChannel | None:
    wanted = settings.telegram
    token = wanted.token.get_secret_value()
    if not token:
        return None
    from bot.telegram import TelegramChannel, TelegramOptions

    options = TelegramOptions(
        token=token,
        base_url=wanted.base_url,
        group_policy=wanted.group_policy,
        streaming=wanted.streaming,
        stream_every_s=wanted.stream_every_s,
        stream_every_group_s=wanted.stream_every_group_s,
        poll_timeout_s=wanted.poll_timeout_s,
        send_timeout_s=wanted.send_timeout_s,
        rates=rates_of(wanted),
    )
    return TelegramChannel(options, clock=clock)
