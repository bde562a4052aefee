"""Housekeeping: makes the daily backup and removes what is old. Each task stands alone: if one
fails, it is told once in the log, by /status and by doctor, and the others go on.

Nothing is done while the machine's clock is doubted: by a wrong one everything would be old.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent.budget.circuit_breaker import RESUME
from agent.tools.workspace import RESULTS
from bot.app.chats import OwnerNotices
from bot.channels.base import Outage
from memory.database.backup import remove_files
from memory.records.errors import AssistantError
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
