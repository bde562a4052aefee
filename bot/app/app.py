"""`App`: every part of the bot, built when it is first asked for.

A command asks an opened App for what it needs. `running` takes up what a former process left and
serves the private socket; `serve` adds what comes in by the channels, until it is told to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import structlog

from bot.rpc import service

if TYPE_CHECKING:
    from agent.budget.budget import Budget
    from agent.budget.payment import Payment
    from agent.budget.service import UsageService
    from agent.models.choose import Choice
    from agent.models.router import Router
    from agent.prompt.snippets import Snippets
    from agent.prompt.templates import PromptLibrary
    from agent.skills.service import SkillService
    from agent.turn.aftermath import Aftermath
    from agent.turn.engine import LocalEngine
    from agent.turn.steps.begin import BeginStep
    from bot.app.channels import Channels
    from bot.app.chats import Chats
    from bot.app.jobs import Calendar
    from bot.app.memory import Memories
    from bot.app.run import Housekeeping
    from bot.app.tools import Abilities
    from bot.commands.conversation import SessionService
    from bot.commands.logs import LogReader
    from bot.commands.mcp import McpService
    from bot.commands.pairing import PairingQuestions
    from bot.commands.status import BotStatus
    from bot.commands.trace.prompts import Prompts
    from bot.commands.trace.why import WhyCommand
    from bot.inbox.full_disk import FullDisk
    from bot.inbox.intake import Intake
    from bot.outbox.outbox import Outbox
    from bot.people.access import Access
    from bot.people.approvals import ApprovalService
    from bot.settings.home import Home
    from bot.settings.logging import Redactor
    from bot.settings.schema.settings import Settings
    from memory.database.connection import Database
    from memory.erasure.erase import Forgetting
    from memory.facts.export import Transfer
    from memory.facts.store import SqliteFacts
    from memory.records.messages import PersonId
    from memory.records.ports import Clock
    from memory.service import MemoryService
    from memory.stores.conversations import SqliteConversations
    from memory.stores.turns import SqliteJournal
    from memory.stores.usage import SqliteUsage
    from scheduler.clock.machine import CheckedClock
    from scheduler.jobs.service import JobService
    from scheduler.kinds.dry_run import JobDryRuns

log = structlog.get_logger()

ENGINE_SHARE, OUTBOX_SHARE, AFTERMATH_SHARE = 0.65, 0.15, 0.05
"""How the seconds of `turns.drain_s` are divided at SIGTERM; the rest is for closing."""

PartT = TypeVar("PartT", bound=AbstractAsyncContextManager[Any])


class App:
    """All parts of a bot on one home. An async context manager: entering takes the home's lock and
    opens the database; leaving closes all that was entered, the last first.

    Imports wait inside of the parts: what a command does not ask for is not even loaded.
    """

    database: Database

    def __init__(
        self,
        home: Home,
        settings: Settings,
        *,
        env: Mapping[str, str],
        clock: Clock,
        digest: str = "",
    ) -> None:
        """`digest` names the settings as they were read."""
        from scheduler.clock.machine import checked

        self.home = home
        self.settings = settings
        self.env = env
        self.clock: CheckedClock = checked(clock)
        self.is_running = False
        self._digest = digest
        self._stack = AsyncExitStack()
        self._built: list[AbstractAsyncContextManager[Any]] = []

    # --- opening and closing ------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Raises HomeBusy, StorageError."""
        from bot.settings.home import HomeLock
        from memory.database.connection import Database

        try:
            self._stack.enter_context(HomeLock(self.home, started_at=self.clock.now()))
            opened = Database.open(self.home.database, clock=self.clock, backups=self.home.backups)
            self.database = await self._stack.enter_async_context(opened)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, traceback)

    def entered(self, part: PartT) -> PartT:
        """Have a part that was just built entered by the next `ready`."""
        self._built.append(part)
        return part

    async def ready(self, *parts: object) -> None:
        """Enter all that was built for these parts and not entered yet."""
        while self._built:
            await self._stack.enter_async_context(self._built.pop(0))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Open everything and take up what a former process left. On leaving, what runs is parked.

        Raises HomeBusy, StorageError, SettingsWrong.
        """
        from bot.app.run import start
        from bot.settings.home import ensure_open_files

        ensure_open_files()
        # Before the database is touched: a broken template is no reason to upgrade anything.
        self.library.check()
        async with self:
            self.is_running = True
            await start(self)
            yield self

    # --- running ------------------------------------------------------------------------------

    async def serve(self, stopping: asyncio.Event) -> None:
        """Take messages in until `stopping` is set; then drain within `turns.drain_s`.

        Raises SettingsWrong when no channel can work, StorageCorrupt when the database was damaged
        meanwhile: by then intake has ended, nothing more is confirmed, and the owner was told.
        """
        from memory.records.errors import SettingsWrong

        try:
            async with asyncio.TaskGroup() as group:
                harmed = group.create_task(self.database.harmed())
                tasks = [
                    harmed,
                    group.create_task(stopping.wait()),
                    group.create_task(self._keep_house()),
                    group.create_task(self.channels.take_in(self.intake)),
                ]
                await asyncio.wait(tasks[:2], return_when=asyncio.FIRST_COMPLETED)
                is_harmed = harmed.done()
                for task in tasks:
                    task.cancel()
        except* SettingsWrong:
            await self.engine.stop(0)  # an end of our own, as often as we are started
            raise
        if is_harmed:
            trouble = await self.database.last_words()
            log.error("bot.database_harmed", why=str(trouble))
            await self.channels.tell_owner_at_once(str(trouble))
            raise trouble
        log.info("bot.stopping")
        await self.drain()

    async def once(self, stopping: asyncio.Event) -> None:
        """Work off what is waiting, here and at the platform, or as much until `stopping`."""
        async with asyncio.TaskGroup() as group:
            working = group.create_task(self._work_off())
            stop = group.create_task(stopping.wait())
            await asyncio.wait([working, stop], return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            stop.cancel()
        await self.drain()

    async def drain(self) -> None:
        """Finish or park what runs; what is parked goes on at the next start."""
        drain_s = self.settings.turns.drain_s
        await self.engine.stop(drain_s * ENGINE_SHARE)
        await self.outbox.stop(drain_s * OUTBOX_SHARE)
        await self.aftermath.stop(drain_s * AFTERMATH_SHARE)

    async def settled(self, lane: str | None = None) -> None:
        """Return once nothing (of this chat) runs, waits or is on its way."""
        while True:
            await self.intake.idle()
            await self.engine.idle(lane)
            await self.memories.questions.idle()
            await self.outbox.idle(lane)
            if not self.engine.busy(lane) and not self.outbox.busy(lane):
                return

    async def _work_off(self) -> None:
        await self.channels.fetch_waiting(self.intake)
        while True:
            await self.intake.idle()
            await self.engine.idle()
            lanes = [lane for lane in self.outbox.lanes() if self.channels.can_deliver(lane)]
            if not lanes and not self.engine.busy():
                await self.aftermath.idle()
                return
            for lane in lanes:
                await self.outbox.idle(lane)

    async def _keep_house(self) -> None:
        # Found out before somebody waits for it.
        await asyncio.to_thread(self.abilities.runner.is_confined)
        await self.housekeeping.run()

    # --- what parts ask of it -----------------------------------------------------------------

    @property
    def choice(self) -> Choice:
        """Return the usual model, and why it was chosen."""
        return self.models.models.main.choice

    def redact(self, text: str) -> str:
        """Return a text without the secrets of the settings and the keys in use."""
        return self._redactor.clean(text)

    def name_of(self, person_id: PersonId) -> str:
        """Return what somebody is called; empty if they were removed."""
        person = self.access.person(person_id)
        return person.name if person is not None else ""

    def acts_not(self) -> bool:
        """Return whether the owner paused everything, or the clock is doubted."""
        return self.budget.hand.paused is not None or bool(self.clock.doubt)

    def are_settings_changed(self) -> bool:
        """Return whether the settings on the disk are others than those in use."""
        from bot.settings.home import settings_changed

        return settings_changed(self.home, self._digest, self.env)

    # --- people ----------------------------------------------------------------------------------

    @service(
        "bot.people.access:Access",
        *("overview", "named", "called", "approve", "deny", "set_role", "remove", "link"),
    )
    def access(self) -> Access:
        from bot.people.access import Access
        from bot.settings.options import allowed_of
        from memory.stores.people import SqlitePeople

        access = Access(
            SqlitePeople(self.database),
            policy=self.settings.access.policy,
            allowed=allowed_of(self.settings),
            clock=self.clock,
            # Without a running bot, what was stored to be sent goes out at the next start.
            deliver=lambda rows: self.outbox.deliver(rows) if self.is_running else None,
        )
        self.entered(_loaded(access.load))
        return access

    @cached_property
    def chats(self) -> Chats:
        from bot.app.chats import Chats
        from bot.settings.options import bindings_of

        chats = Chats(self.access, bindings_of(self.settings))
        self.entered(_loaded(chats.load))
        return chats

    @cached_property
    def approvals(self) -> ApprovalService:
        from bot.app.turns import approvals_of

        return self.entered(approvals_of(self))

    @cached_property
    def pairing(self) -> PairingQuestions:
        from bot.app.commands import pairing_of

        return self.entered(pairing_of(self))

    # --- in and out ------------------------------------------------------------------------------

    @cached_property
    def channels(self) -> Channels:
        from bot.app.channels import channels_of

        return channels_of(self)

    @cached_property
    def outbox(self) -> Outbox:
        from bot.outbox.delivery import DeliveryNotices
        from bot.outbox.files import OutgoingFiles
        from bot.outbox.outbox import Outbox
        from memory.stores.outbox import SqliteOutbox

        store = SqliteOutbox(self.database)
        return self.entered(
            Outbox(
                store,
                self.channels.by_name,
                clock=self.clock,
                clean=self.redact,
                copies=OutgoingFiles(self.home.data / "outgoing"),
                undelivered=DeliveryNotices(self.access, store, clock=self.clock),
            )
        )

    @cached_property
    def full_disk(self) -> FullDisk:
        from bot.inbox.full_disk import FullDisk

        return self.entered(FullDisk(self.channels.by_name, clock=self.clock))

    @cached_property
    def intake(self) -> Intake:
        from bot.app.commands import intake_of

        return self.entered(intake_of(self))

    @service("bot.commands.status:BotStatus", "lines")
    def status(self) -> BotStatus:
        from bot.app.commands import status_of

        return status_of(self)

    @cached_property
    def logs(self) -> LogReader:
        from bot.commands.logs import LogReader

        return LogReader(self.home.log_file, self.redact)

    @cached_property
    def why(self) -> WhyCommand:
        from bot.app.commands import why_of

        return why_of(self)

    @service("bot.app.run:Housekeeping", "troubles")
    def housekeeping(self) -> Housekeeping:
        from bot.app.run import housekeeping_of

        return housekeeping_of(self)

    # --- models and cost -------------------------------------------------------------------------

    @service("agent.models.router:Router", "resting")
    def models(self) -> Router:
        from bot.app.turns import models_of

        return self.entered(models_of(self))

    @cached_property
    def _redactor(self) -> Redactor:
        from bot.settings.logging import Redactor, secrets_of

        keys = self.models.models.keys()
        return Redactor((*secrets_of(self.settings, self.env), *keys))

    @cached_property
    def usage_store(self) -> SqliteUsage:
        from memory.stores.usage import SqliteUsage

        return SqliteUsage(self.database)

    @service("agent.budget.service:UsageService", "report")
    def usage(self) -> UsageService:
        from bot.app.commands import usage_of

        return usage_of(self)

    @cached_property
    def budget(self) -> Budget:
        from bot.app.turns import budget_of

        budget = budget_of(self)
        self.entered(budget.running())
        return budget

    @cached_property
    def payment(self) -> Payment:
        from bot.app.turns import payment_of

        return payment_of(self)

    # --- assemblies ----------------------------------------------------------------------------

    @cached_property
    def abilities(self) -> Abilities:
        from bot.app.tools import Abilities

        return Abilities(self)

    @cached_property
    def memories(self) -> Memories:
        from bot.app.memory import Memories

        return Memories(self)

    @cached_property
    def calendar(self) -> Calendar:
        from bot.app.jobs import Calendar

        return Calendar(self)

    @service("memory.service:MemoryService", "fact", "correct", "wish", "keeps")
    def memory(self) -> MemoryService:
        return self.memories.service

    @service("memory.facts.store:SqliteFacts", "list", "closed", "past", "search", "get")
    def facts(self) -> SqliteFacts:
        return self.memories.facts

    @service("memory.erasure.erase:Forgetting", "find", "under_way", "forget")
    def forgetting(self) -> Forgetting:
        return self.memories.service.forgetting

    @service("memory.facts.export:Transfer", "export", "load")
    def transfer(self) -> Transfer:
        return self.memories.service.transfer

    @service(
        "agent.skills.service:SkillService",
        *("list", "show", "why", "tested", "test", "now", "install", "approve", "enable"),
        *("remove", "set_playbook", "remove_playbook"),
    )
    def skills(self) -> SkillService:
        return self.abilities.skills

    @service(
        "scheduler.jobs.service:JobService",
        *("list", "show", "owner_chat", "require_free"),
        *("add", "update", "pause", "resume", "remove", "run_now"),
    )
    def jobs(self) -> JobService:
        return self.calendar.jobs

    @service(
        "scheduler.kinds.dry_run:JobDryRuns",
        *("details", "estimate", "skill_estimate", "dry_run", "forecast"),
    )
    def dry_runs(self) -> JobDryRuns:
        return self.calendar.dry_runs

    @service("bot.commands.mcp:McpService", "listed", "waiting", "approve")
    def mcp(self) -> McpService:
        from bot.commands.mcp import McpService

        return McpService(self.abilities.servers)

    # --- turns -----------------------------------------------------------------------------------

    @cached_property
    def library(self) -> PromptLibrary:
        from bot.settings.options import texts_of

        return texts_of(self.home, self.settings)

    @cached_property
    def snippets(self) -> Snippets:
        from agent.prompt.snippets import Snippets
        from bot.settings.home import shipped

        return Snippets(shipped=shipped("prompts"), workspace=self.home.workspace)

    @cached_property
    def journal(self) -> SqliteJournal:
        from memory.stores.turns import SqliteJournal

        return SqliteJournal(self.database)

    @cached_property
    def conversations(self) -> SqliteConversations:
        from memory.stores.conversations import SqliteConversations

        return SqliteConversations(self.database)

    @cached_property
    def beginning(self) -> BeginStep:
        from bot.app.turns import beginning_of

        return beginning_of(self)

    @service("bot.commands.trace.prompts:Prompts", "show", "compare")
    def prompts(self) -> Prompts:
        from bot.app.turns import prompts_of

        return prompts_of(self)

    @cached_property
    def engine(self) -> LocalEngine:
        from bot.app.turns import engine_of

        return self.entered(engine_of(self))

    @cached_property
    def aftermath(self) -> Aftermath:
        from bot.app.turns import aftermath_of

        return self.entered(aftermath_of(self))

    @service("bot.commands.conversation:SessionService", "list", "show", "whole", "clear")
    def sessions(self) -> SessionService:
        from bot.commands.conversation import SessionService

        return SessionService(self.memories.sessions)


@asynccontextmanager
async def _loaded(load: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Load a part when it is entered; nothing is to be closed."""
    await load()
    yield
