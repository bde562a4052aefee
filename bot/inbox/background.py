"""What the intake does beside what comes in: each task has an owner, and ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Self

import structlog

from memory.records.errors import StorageError
from memory.records.ports import Clock

CLOSING_S = 1.0
"""What answers and albums get to finish at a stop; the rest is taken up at the next start."""


class BackgroundTasks:
    """Tasks, short ones and long ones. An async context manager, within which they run."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._short: set[asyncio.Task[None]] = set()
        self._long: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._long:
            task.cancel()
        if self._short:
            _, late = await asyncio.wait(self._short, timeout=CLOSING_S)
            for task in late:
                task.cancel()
        await self._group.__aexit__(kind, error, traceback)

    def begin(self, work: Coroutine[None, None, None], *, name: str) -> asyncio.Task[None]:
        """What takes a moment: at a stop it may finish, for so long."""
        return self._kept(self._short, self._group.create_task(work, name=name))

    def begin_long(self, work: Coroutine[None, None, None], *, name: str) -> asyncio.Task[None]:
        """What may take minutes, and is stored: a stop cancels it at once."""
        return self._kept(self._long, self._group.create_task(work, name=name))

    async def idle(self) -> None:
        """Returns once nothing short runs."""
        while self._short:
            await asyncio.wait(self._short)

    async def worked_off(self) -> None:
        """Returns once nothing long runs: minutes, perhaps."""
        while self._long:
            await asyncio.wait(self._long)

    @staticmethod
    def _kept(kind: set[asyncio.Task[None]], task: asyncio.Task[None]) -> asyncio.Task[None]:
        kind.add(task)
        task.add_done_callback(kind.discard)
        return task


# --- patience -----------------------------------------------------------------------------------
#
# What has to be done is tried until storage lets it be done. Used by the intake and its parts.

log = structlog.get_logger()

STORAGE_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between tries while the disk is full or the database is locked; the last one repeats."""

Act = Callable[[], Awaitable[None]]
Hears = Callable[[StorageError], None]
"""Called after each failed try; returns at once."""


async def patiently(act: Act, clock: Clock, *, troubled: Hears | None = None) -> None:
    """Until it is done, while storage is in trouble: told once. `act` may be called again."""
    tries = 0
    while True:
        try:
            return await act()
        except StorageError as trouble:
            pause_s = STORAGE_PAUSES_S[min(tries, len(STORAGE_PAUSES_S) - 1)]
            if tries == 0:
                log.error("inbox.storage", why=str(trouble))
            if troubled is not None:
                troubled(trouble)
            tries += 1
        await clock.sleep(pause_s)
