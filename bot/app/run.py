"""The start of a running bot, in order, its private socket, and its housekeeping.

The socket is the owner's alone. Each task of the housekeeping stands alone: if one fails, it is
told once in the log, by /status and by doctor, and the others go on. Nothing is removed while the
machine's clock is doubted: by a wrong one everything would be old.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from agent.budget.circuit_breaker import RESUME
from agent.sandbox.environment import close_to_others
from agent.skills.install import sweep
from agent.tools.workspace import RESULTS
from agent.version import VERSION
from bot.app.chats import OwnerNotices
from bot.channels.base import Outage
from bot.channels.console import ADDRESS, SENDER, ConsoleChannel
from bot.inbox.intake import InboundEvent, Intake
from bot.people.access import Access
from bot.rpc import ControlServer, Emit, Operation, call_method
from memory.database.backup import remove_files
from memory.records.errors import AssistantError
from memory.records.ports import Clock
from memory.records.usage import Notice
from memory.stores.approvals import SqliteApprovals
from memory.stores.inbox import SqliteInbox
from memory.stores.jobs import SqliteJobs
from memory.stores.outbox import SqliteOutbox
from memory.stores.turns import SqliteJournal
from memory.stores.usage import SqliteUsage
from scheduler.clock.machine import CheckedClock

if TYPE_CHECKING:
    from bot.app.app import App


log = structlog.get_logger()

EVERY_S = 3_600.0
DOUBTED_EVERY_S = 5.0
"""Pause until the next look while the clock is doubted."""

TOLD_AFTER_S = 60.0
"""How long it is doubted before the owner is told; a platform usually tells the time sooner."""

INBOX_DAYS = 30
"""Days for which an event is remembered: Telegram repeats for one day, Slack for an hour."""

UNFORESEEN = "an unexpected error; the log has the details"

Task = Callable[[], Awaitable[object]]


class Housekeeping:
    """Does the tasks in their order, over and over."""

    def __init__(
        self,
        tasks: Mapping[str, Task],
        clock: CheckedClock,
        *,
        tell: Callable[[Notice], Awaitable[None]],
        resumed: Task,
    ) -> None:
        """`tasks` are named as the owner reads when one fails; `tell` tells the owner. `resumed`
        starts what waited for the clock."""
        self._clock = clock
        self._tell = tell
        self._tasks = tasks
        self._resumed = resumed
        self._outages = defaultdict[str, Outage](lambda: Outage("housekeeping.failed", clock))

    async def troubles(self) -> list[str]:
        """Return what the owner should know, a line each."""
        found = [self._clock.doubt] if self._clock.doubt else []
        for name, outage in self._outages.items():
            if outage.trouble is not None:
                found.append(f"{name} did not work: {outage.trouble.why}")
        return found

    async def run(self) -> None:
        """Do the tasks every hour until cancelled."""
        doubted_s, is_told = 0.0, False
        while True:
            if doubt := self._clock.doubt:
                if doubted_s >= TOLD_AFTER_S and not is_told:
                    log.error("clock.doubted_still", why=doubt)
                    try:
                        await self._tell(Notice(key="clock", text=doubt, buttons=(RESUME,)))
                        is_told = True
                    except AssistantError as error:  # it is tried again with the next look
                        log.error("clock.untold", why=str(error))
                doubted_s += DOUBTED_EVERY_S
                await self._clock.sleep(DOUBTED_EVERY_S)
                continue
            if doubted_s:
                await self._do("Going on after the clock was doubted", self._resumed)
            doubted_s = 0.0
            await self.once()
            await self._clock.sleep(EVERY_S)

    async def once(self) -> None:
        """Do each task once. Never raises because a task failed."""
        for name, task in self._tasks.items():
            if not self._clock.doubt:
                await self._do(name, task)

    async def _do(self, name: str, task: Task) -> None:
        outage = self._outages[name]
        try:
            await task()
        except (AssistantError, OSError) as error:
            outage.tell(str(error), task=name)
        except Exception:  # a job's run, one of the three places (STYLE §6)
            if outage.trouble is None:
                log.exception("housekeeping.broke", task=name)
            outage.tell(UNFORESEEN, task=name)
        else:
            outage.over()


def housekeeping_of(app: App) -> Housekeeping:
    """Build it with its tasks. For what each keeps, see docs/reliability.md."""
    settings, database, clock, home = app.settings, app.database, app.clock, app.home
    said_days = settings.history.keep_days
    trace_days = min(settings.trace.keep_days, said_days or settings.trace.keep_days)

    def before_ms(days: int) -> int:
        return int((clock.now() - timedelta(days=days)).timestamp() * 1000)

    async def forget_said() -> None:
        if said_days:
            await app.memories.sessions.prune(before_ms(said_days))

    async def forget_results() -> None:
        before_s = before_ms(trace_days) / 1000
        results = home.workspace.joinpath(*RESULTS)
        await asyncio.to_thread(lambda: remove_files(_older(results, before_s)))

    tasks: dict[str, Task] = {
        "The daily backup": lambda: database.backup_if_due(home.backups),
        "Removing old backups": lambda: database.drop_old_backups(home.backups),
        "Removing old conversations": forget_said,
        "Removing old records of delivery": lambda: SqliteOutbox(database).prune(
            before_ms(trace_days)
        ),
        "Removing old approvals": lambda: SqliteApprovals(database).prune(before_ms(trace_days)),
        "Removing old job runs": lambda: SqliteJobs(database).prune(before_ms(trace_days)),
        "Removing old traces": lambda: SqliteJournal(database).prune(before_ms(trace_days)),
        "Removing old events": lambda: SqliteInbox(database).prune(before_ms(INBOX_DAYS)),
        "Removing old cost figures": lambda: SqliteUsage(database).prune(
            before_ms(settings.budget.keep_days)
        ),
        "Removing old tool results": forget_results,
        "Sending what an error held up": app.outbox.try_again,
        "Removing ended private conversations": app.memories.service.private.sweep,
        "Giving free space back to the disk": database.shrink,
    }
    return Housekeeping(
        tasks, clock, tell=OwnerNotices(app.access, app.outbox.say), resumed=app.calendar.changed
    )


def _older(folder: Path, before_s: float) -> Iterator[Path]:
    """Plain files in and below the folder that were last changed before then; follows no links."""
    for where, _, names in os.walk(folder):
        for name in names:
            file = Path(where, name)
            try:
                changed_s = file.lstat().st_mtime
            except OSError:
                continue
            if changed_s < before_s:
                yield file


# --- run ------------------------------------------------------------------------------------------

Request = dict[str, Any]


async def start(app: App) -> None:
    """Open every part, and take up what a former process left.

    Raise StorageError, SettingsWrong.
    """
    settings = app.settings
    tokens = (settings.telegram.token, settings.slack.bot_token)
    is_told = any(token.get_secret_value() for token in tokens)
    # First of all: whatever is opened after it reckons with the time.
    app.clock.compare(await app.database.newest_ms(), is_told=is_told)
    await app.ready(app.access, app.models)
    await app.models.open()
    await app.ready(app.channels, app.outbox, app.full_disk)
    # An installation that was cut short may have left files.
    await asyncio.to_thread(sweep, app.home.workspace / "skills")
    # Before the first program of somebody else's is started.
    close_to_others()
    await app.ready(app.mcp, app.abilities.toolbox, app.budget)
    await app.ready(app.approvals, app.aftermath, app.engine)
    await app.ready(app.memories.questions, app.pairing, app.status, app.intake)
    log.info("bot.started", version=VERSION, model=app.choice.model, why=app.choice.why)
    await app.outbox.start()
    await app.engine.start()
    await app.approvals.start()
    app.memories.questions.start()
    await app.memories.service.private.sweep()
    await app.ready(app.entered(app.calendar.schedules.running()))
    if settings.memory.extraction.enabled:
        await app.ready(app.entered(app.memories.idle_timers()))
    await app.intake.resume(app.channels.by_name)
    # Last: who can ask finds a bot that can answer.
    await app.ready(app.entered(ControlServer(app.home.socket, operations_of(app))))


def terminal_operations(
    console: ConsoleChannel,
    access: Access,
    intake: Intake,
    settled: Callable[[str], Awaitable[None]],
    *,
    clock: Clock,
    greeting: Mapping[str, str],
) -> Mapping[str, Operation]:
    """Build what a conversation in the terminal asks for. `settled` returns once nothing of a chat
    runs, waits or is on its way."""

    async def attach(request: Request, emit: Emit) -> Request:
        await access.owner_of_this_machine()
        # Who is told that it is attached knows the open cards: what is typed next may press one.
        console.attach(emit)
        emit({"kind": "attached", **greeting})
        try:
            await asyncio.Event().wait()
        finally:
            console.detach(emit)
        return {}

    async def say(request: Request, emit: Emit) -> Request:
        """Return `state`; to who wants its answer alone (`once`) also the ids of `others`, messages
        that do not belong to it, and whether these are shown elsewhere (`shared`)."""
        if not str(request["text"]).strip():
            return {}
        await access.owner_of_this_machine()
        number = str(request["message_id"])
        now_ms = int(clock.now().timestamp() * 1000)
        inbound = InboundEvent(
            source="console",
            event_id=number,
            address=ADDRESS,
            sender=SENDER,
            is_group=False,
            payload=ConsoleChannel.payload(str(request["text"]), number, now_ms=now_ms),
        )
        await intake.handle(console, await intake.store([inbound]))
        await settled(ADDRESS.key)
        answer: Request = {"state": await intake.state_of(inbound) or ""}
        if request.get("once") and console.others is not None:
            others = await console.others(ADDRESS.key, "console", number)
            answer.update(others=sorted(others), shared=console.shared)
        return answer

    return {"attach": attach, "say": say}


def operations_of(app: App) -> Mapping[str, Operation]:
    """Return all that the private socket of a running bot offers."""
    return {
        "call": lambda request, emit: call_method(app, request, emit),
        **terminal_operations(
            app.channels.console,
            app.access,
            app.intake,
            app.settled,
            clock=app.clock,
            greeting={"model": app.choice.model, "why": app.choice.why},
        ),
    }
