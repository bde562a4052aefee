"""The wiring: builds each object once, in order. The only file that knows all of them.

Called by `bot.cli`. `open_bot` yields a bot that works off what is waiting; `Bot.serve` adds the
channels' intake until it is told to stop.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import structlog

from agent.asking import Asking
from agent.assistant import Assistant
from agent.beginning import Beginning, PromptOptions
from agent.doing import Doing
from agent.errors import SettingsWrong, StorageError
from agent.gathering import Gathering, GatheringOptions
from agent.library import Library, PersonaSettings
from agent.loop import Loop
from agent.models.choose import Choice, Wanted, choose
from agent.models.retry import Patient
from agent.ports import Clock, Model
from agent.prompt import Placement
from agent.skills.places import Places
from agent.skills.rules import Rule
from agent.skills.shelf import SkillShelf
from agent.skills.skill import AutoInvoke
from agent.tools.files import KeptResults, file_tools
from agent.tools.tool import ToolLimits
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.turns import EngineLimits, LocalEngine
from agent.version import VERSION
from bot import commands
from bot.access import Access
from bot.channel import Channel
from bot.config import Settings
from bot.console import ConsoleChannel
from bot.control import ControlServer, Operation
from bot.door import Door
from bot.home import Home, HomeLock, settings_changed, shipped
from bot.logs import Redactor, secrets_of
from bot.operations import access_operations, status_operations, terminal_operations
from bot.outbox import Outbox
from bot.pace import Rates
from memory.conversations import SqliteConversations
from memory.database import Database
from memory.inbox import SqliteInbox
from memory.journal import SqliteJournal
from memory.outbox import SqliteOutbox
from memory.people import SqlitePeople
from memory.playbooks import SqliteSkillRecords
from memory.recall import SqliteRecall
from memory.traces import SqliteTraces

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
        library = _library(home, settings)
        library.check()
        database = await stack.enter_async_context(
            Database.open(home.database, clock=clock, backups=home.backups)
        )
        journal = SqliteJournal(database)
        conversations = SqliteConversations(database)
        access = _access(settings, SqlitePeople(database), clock)
        await access.load()
        choice = await choose(_wanted(settings), env=env)
        model = await stack.enter_async_context(_model(choice, settings, clock))
        console = ConsoleChannel()
        telegram = _telegram(settings, clock)
        if telegram is not None:
            await stack.enter_async_context(telegram)
        outbox = await stack.enter_async_context(
            Outbox(
                SqliteOutbox(database),
                _by_name(console, telegram),
                clock=clock,
                clean=Redactor(secrets_of(settings, env)).clean,
            )
        )
        skills = _skills(home, settings, SqliteSkillRecords(database), clock=clock, env=env)
        workspace = Workspace(home.workspace)
        toolbox = Toolbox(file_tools(workspace))
        beginning = Beginning(
            conversations,
            _gathering(settings, library, skills, database, clock),
            toolbox,
            traits=model.traits,
            options=_prompt_options(settings),
        )
        assistant = Assistant(
            begin=beginning,
            model=Asking(
                model,
                conversations,
                outbox,
                SqliteTraces(database),
                toolbox=toolbox,
                library=library,
                temperature=settings.agents.default.temperature,
                max_output_tokens=settings.llm.max_output_tokens,
            ),
            tool=_doing(settings, toolbox, outbox, workspace, clock),
            loop=Loop(toolbox, steps_max=settings.agents.default.max_steps),
            drafts=outbox,
        )
        engine = await stack.enter_async_context(
            LocalEngine(
                journal,
                assistant,
                clock=clock,
                deliver=outbox.deliver,
                limits=_engine_limits(settings),
            )
        )
        inbox = SqliteInbox(database)
        status = BotStatus(clock, choice, lambda: settings_changed(home, digest, env))
        tools = commands.Tools(engine=engine, conversations=conversations, status=status)
        door = await stack.enter_async_context(
            Door(inbox, access, engine, conversations, outbox, command_tools=tools, clock=clock)
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
        )
        status.watch(bot)
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
    async with AsyncExitStack() as stack:
        stack.enter_context(HomeLock(home, started_at=clock.now()))
        database = await stack.enter_async_context(
            Database.open(home.database, clock=clock, backups=home.backups)
        )
        access = _access(settings, SqlitePeople(database), clock)
        await access.load()
        yield access_operations(access)


class BotStatus:
    """Implements `bot.commands.Status`."""

    def __init__(self, clock: Clock, choice: Choice, changed: Callable[[], bool]) -> None:
        self._clock = clock
        self._choice = choice
        self._changed = changed
        self._since = clock.now()
        self._bot: Bot | None = None

    def watch(self, bot: Bot) -> None:
        """The bot whose state is told."""
        self._bot = bot

    async def lines(self, *, for_owner: bool) -> list[str]:
        """A line each; the owner sees the machine's side too."""
        up = self._clock.now() - self._since
        lines = [
            f"Hearthbot {VERSION}, up {_duration(up)}",
            f"Model: {self._choice.model}",
        ]
        bot = self._bot
        if bot is None or not for_owner:
            return lines
        people, chats = bot.access.directory.people, bot.access.directory.chats
        lines += [
            f"Why this model: {self._choice.why}",
            f"Channels: {', '.join(sorted(bot.channels))}",
            f"People: {len(people)}, group chats: {list(chats.values()).count('admitted')}",
            f"Turns running or waiting: {bot.engine.waiting()}",
            f"Replies on their way: {bot.outbox.waiting()}",
        ]
        unknown = (await bot.outbox.counts()).get("unknown", 0)
        if unknown:
            lines.append(f"Replies whose fate is unknown: {unknown}")
        if self._changed():
            lines.append("The settings were changed since the start: a restart is due.")
        return lines


# --- each object, built -----------------------------------------------------------------------


def _by_name(console: ConsoleChannel, telegram: TelegramChannel | None) -> Mapping[str, Channel]:
    channels: dict[str, Channel] = {console.name: console}
    if telegram is not None:
        channels[telegram.name] = telegram
    return channels


def _library(home: Home, settings: Settings) -> Library:
    agent = settings.agents.default
    persona = PersonaSettings(
        system_prompt=agent.system_prompt,
        system_prompt_file=_path(home, agent.system_prompt_file),
        persona_dir=_path(home, agent.persona_dir),
    )
    return Library(shipped("prompts"), home.workspace, persona)


def _path(home: Home, text: str) -> Path | None:
    """A path of the settings; a relative one begins at the workspace."""
    return home.workspace / Path(text).expanduser() if text.strip() else None


def _access(settings: Settings, people: SqlitePeople, clock: Clock) -> Access:
    return Access(
        people,
        policy=settings.access.policy,
        allowed=[f"telegram:{number}" for number in settings.telegram.allow_from],
        clock=clock,
    )


def _wanted(settings: Settings) -> Wanted:
    llm = settings.llm
    return Wanted(
        model=llm.model,
        api_base=llm.api_base,
        api_key=llm.api_key.get_secret_value(),
        window=llm.window,
    )


@asynccontextmanager
async def _model(choice: Choice, settings: Settings, clock: Clock) -> AsyncIterator[Model]:
    from agent.models.embedded import Embedded
    from agent.models.openai_compatible import Limits, OpenAICompatible

    limits = Limits(timeout_s=settings.llm.timeout_s)
    bare: Embedded | OpenAICompatible
    if choice.kind == "embedded":
        bare = Embedded(choice.model, limits=limits)
    else:
        bare = OpenAICompatible(
            choice.model,
            api_base=choice.api_base,
            api_key=choice.api_key,
            traits=choice.traits,
            dialect=choice.dialect,
            limits=limits,
        )
    async with bare:
        yield Patient(bare, clock=clock, chance=random.Random(secrets.randbits(64)))


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
        rates=Rates(
            per_chat=wanted.rate_per_chat,
            per_group_minute=wanted.rate_per_group_minute,
            total=wanted.rate_total,
        ),
    )
    return TelegramChannel(options, clock=clock)


def _engine_limits(settings: Settings) -> EngineLimits:
    turns = settings.turns
    return EngineLimits(
        parallel=turns.parallel,
        queue=turns.queue,
        collect_s=turns.collect_s,
        turn_s=turns.limit_s,
    )


def _skills(
    home: Home,
    settings: Settings,
    records: SqliteSkillRecords,
    *,
    clock: Clock,
    env: Mapping[str, str],
) -> SkillShelf:
    places = Places(
        workspace=home.workspace / "skills",
        shipped=shipped("skills"),
        user=_path(home, settings.skills.user_dir),
    )
    return SkillShelf(places, records, clock=clock, env=env)


def _gathering(
    settings: Settings,
    library: Library,
    skills: SkillShelf,
    database: Database,
    clock: Clock,
) -> Gathering:
    prompt = settings.prompt
    return Gathering(
        library,
        skills,
        SqliteRecall(database),
        clock=clock,
        rules=_rules(settings),
        options=GatheringOptions(
            language="" if prompt.language == "auto" else prompt.language,
            bootstrap_chars_max=prompt.bootstrap_chars_max,
            host_zone=host_zone(),
            skills_listed=prompt.skills_listed,
            daily_notes=prompt.daily_notes,
            reminder_turns=prompt.reminder_turns,
        ),
    )


def _rules(settings: Settings) -> list[Rule]:
    """The force-include rules of the settings."""
    return [
        Rule(
            source=f"prompt.force_include[{number}]",
            patterns=rule.patterns,
            skills=rule.skills,
            plugins=rule.plugins,
            instruction=rule.instruction,
            auto_invoke=tuple(
                AutoInvoke(tool=wish.tool, args=wish.args) for wish in rule.auto_invoke
            ),
        )
        for number, rule in enumerate(settings.prompt.force_include)
    ]


def _doing(
    settings: Settings, toolbox: Toolbox, outbox: Outbox, workspace: Workspace, clock: Clock
) -> Doing:
    return Doing(
        toolbox,
        outbox,
        clock=clock,
        keep=KeptResults(workspace),
        limits=ToolLimits(
            timeout_s=settings.tools.timeout_s,
            result_chars_max=settings.tools.result_chars_max,
        ),
    )


def _prompt_options(settings: Settings) -> PromptOptions:
    return PromptOptions(
        placement=Placement(
            turn_layers=settings.prompt.turn_layers,
            instruction=settings.prompt.instruction_position,
        ),
        messages_max=settings.history.messages_max,
        tokens_max=settings.history.tokens_max,
        prompt_tokens_max=settings.prompt.max_tokens,
        max_output_tokens=settings.llm.max_output_tokens,
        allowed_tools=settings.agents.default.allowed_tools,
        denied_tools=settings.agents.default.denied_tools,
    )


def host_zone() -> str:
    """The IANA name of this machine's zone; UTC where it has none."""
    link = Path("/etc/localtime")
    name = os.environ.get("TZ", "").lstrip(":")
    candidates = [name] if name else []
    if link.is_symlink():
        candidates.append(str(link.resolve()).partition("zoneinfo/")[2])
    for candidate in candidates:
        try:
            return ZoneInfo(candidate).key
        except (ZoneInfoNotFoundError, ValueError):
            continue
    return "UTC"


def _duration(span: timedelta) -> str:
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
