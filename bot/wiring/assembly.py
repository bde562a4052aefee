"""Builds each object of a running bot once, in order, in steps that can be read one by one.

Called by `bot.app.open_bot`: stores and people first, then the way out, what thinks, and what runs
the turns; the way in is `bot.wiring.entrance`. What is entered here is left in the opposite order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass

from agent.budget.budget import Budget
from agent.models.choose import Choice
from agent.prompt.snippets import Snippets
from agent.prompt.templates import Library
from agent.sandbox.environment import close_to_others
from agent.skills.install import sweep
from agent.subagents.subagents import PeopleDrafts
from agent.turn.aftermath import Aftermath, Work
from agent.turn.engine import LocalEngine
from agent.turn.steps.model import Payment
from agent.web.client import ClientOptions, WebClient
from bot.channels.tokens import TokenNotices
from bot.commands.mcp import McpDesk
from bot.commands.model_names import configured
from bot.commands.skills import SkillDesk
from bot.inbox.full_disk import FullDisk
from bot.outbox.edits import Cards
from bot.outbox.files import Outgoing
from bot.outbox.outbox import Outbox
from bot.outbox.undelivered import DeliveryNotices
from bot.people.access import Access
from bot.people.approvals import ApprovalDesk, ApprovalOptions
from bot.people.zone_question import ZoneDesk
from bot.settings.home import shipped
from bot.settings.logging import Redactor, secrets_of
from bot.wiring.channels import Channels, opened_channels
from bot.wiring.clock import CheckedClock, checked
from bot.wiring.housekeeping import Housekeeping
from bot.wiring.jobs import Stage, dry_runs_of, skill_jobs_of
from bot.wiring.memories import Afterthoughts, Rights, afterthoughts_of, background_of
from bot.wiring.model_pool import ModelPool
from bot.wiring.options import allowed_hosts_of, host_zone, limits_of, rules_of
from bot.wiring.parts import (
    Abilities,
    Checks,
    Prompting,
    Stores,
    abilities_of,
    access_of,
    assistant_of,
    library_of,
    payment_of,
    pool_of,
    prompting_of,
    stores_of,
)
from bot.wiring.schedules import Schedules, Surroundings, checks_for
from bot.wiring.spending import CheckMeans, Telling, Workplace, budget_of
from bot.wiring.tools import Doors, Reactions, files_of, opened_servers
from memory.database.connection import Database
from memory.records.errors import StorageError, StorageFull
from memory.records.messages import OutboxId
from memory.records.ports import Json, NewRun, TurnEnd
from memory.records.rows import NewMessage
from memory.stores.approvals import SqliteApprovals, SqliteCards
from memory.stores.outbox import SqliteOutbox
from memory.stores.switches import SqliteToolApprovals
from memory.stores.usage import SqliteUsage
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.jobs.zone_moves import ZoneMoves
from scheduler.kinds.idle import IdleOptions, IdleTimers


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
    full_disk: FullDisk
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
    approvals: ApprovalDesk
    zones: ZoneDesk
    aftermath: Aftermath
    engine: LocalEngine
    clock: CheckedClock
    housekeeping: Housekeeping

    def __init__(self, stack: AsyncExitStack, place: Workplace) -> None:
        self._stack = stack
        self._place = place
        self.clock = checked(place.clock)

    async def open_stores(self) -> None:
        """What is stored, and who is known. Raises StorageError, SettingsWrong."""
        place = self._place
        # Before the database is touched: a broken template is no reason to upgrade anything.
        self.library = library_of(place)
        self.database = await opened_database(self._stack, place)
        settings = place.settings
        tokens = (settings.telegram.token, settings.slack.bot_token)
        is_told = any(token.get_secret_value() for token in tokens)
        self.clock.compare(await self.database.newest_ms(), is_told=is_told)
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

        async def say(message: NewMessage) -> None:
            await self.outbox.say(message)  # which needs the channels

        self.channels = await opened_channels(
            self._stack,
            place.settings,
            self.access,
            self.snippets,
            clock=self.clock,
            notices=TokenNotices(self.access, say),
        )
        store = SqliteOutbox(self.database)
        self.outbox = await self._stack.enter_async_context(
            Outbox(
                store,
                self.channels.by_name,
                clock=place.clock,
                clean=self.redact,
                copies=Outgoing(place.home.data / "outgoing"),
                undelivered=DeliveryNotices(self.access, store, clock=place.clock),
            )
        )
        self.full_disk = await self._stack.enter_async_context(
            FullDisk(self.channels.by_name, clock=place.clock)
        )
        self.channels.console.others = SqliteCards(self.database).others
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
        calendar.dry_runs = dry_runs_of(place, calendar, stage, skills=self.skill_jobs)

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
        self.zones = self._zone_desk()
        asks = Work(name="time zone", run=self.zones.after_turn)
        works = [asks, *self.afterthoughts.works(), *self.schedules.works()]
        self.aftermath = await self._stack.enter_async_context(Aftermath(works))
        self.engine = await self._stack.enter_async_context(
            LocalEngine(
                self.stores.journal,
                assistant,
                clock=place.clock,
                deliver=self.outbox.deliver,
                limits=limits_of(settings),
                held=self.budget.hand,
                troubled=self._turn_troubled,
                ended=Followed(self.aftermath, self.schedules),
            )
        )
        self.doors.submit = self.engine.submit

    async def start(self, rights: Rights) -> None:
        """Takes up what a former process left, and goes on by itself. Raises StorageError."""
        await self.outbox.start()
        await self.engine.start()
        await self.approvals.start()
        rights.erasing.start()
        await rights.private.sweep()
        await self._stack.enter_async_context(self.schedules.running(self.engine))
        await self.zones.start()
        await self._stack.enter_async_context(self._idle_timers())

    def _zone_desk(self) -> ZoneDesk:
        calendar, zones = self.abilities.calendar, self.abilities.zones
        clock = self._place.clock

        def busy(lane: str) -> bool:
            return self.engine.busy(lane)  # which is built with this

        return ZoneDesk(
            zones,
            self.access,
            ZoneMoves(zones.store, calendar.jobs, calendar.events, clock=clock),
            Cards(self.outbox, calendar.cards),
            clock=clock,
            deliver=self.outbox.deliver,
            busy=busy,
        )

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            calendar=self.abilities.calendar,
            conversations=self.stores.conversations,
            memories=self.stores.memories,
            shelf=self.abilities.shelf,
            library=self.library,
            outbox=self.outbox,
            held=self._acts_not,
            doubted=lambda: bool(self.clock.doubt),
            skills=self.skill_jobs,
            checks=checks_for(self._place, self._check_means()),
        )

    def _check_means(self) -> CheckMeans:
        tools, settings = self.abilities.tools, self._place.settings
        client = WebClient(ClientOptions(allowed=allowed_hosts_of(settings)))
        return CheckMeans(client, tools.toolbox, tools.runner, owner=self.access.owner_id)

    def _turn_troubled(self, run: NewRun, trouble: StorageError) -> None:
        if run.message_id and isinstance(trouble, StorageFull):
            self.full_disk.holds_up_chat(run.lane)

    def _acts_not(self) -> bool:
        """Whether the owner paused everything, or the clock is doubted."""
        return self.budget.hand.paused is not None or bool(self.clock.doubt)

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
            busy=lambda lane: self._acts_not() or self.engine.busy(lane),
        )


async def opened_database(stack: AsyncExitStack, place: Workplace) -> Database:
    """The database of the home. Raises StorageError."""
    home = place.home
    return await stack.enter_async_context(
        Database.open(home.database, clock=place.clock, backups=home.backups)
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
