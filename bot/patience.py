"""What has to be done is tried until storage lets it be done. Used by the door and its parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import structlog

from agent.errors import StorageError
from agent.ports import Clock
from bot.errands import Errands

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
                log.error("door.storage", why=str(trouble))
            if troubled is not None:
                troubled(trouble)
            tries += 1
        await clock.sleep(pause_s)


class Patience:
    """Does one thing after the other. If storage fails, that one waits with all that come after it,
    in a task of its own, so that commands are still taken in and answered."""

    def __init__(self, clock: Clock, errands: Errands) -> None:
        self._clock = clock
        self._errands = errands
        self._waiting: deque[tuple[Act, Hears]] = deque()
        self._trouble: StorageError | None = None

    async def do(self, act: Act, *, troubled: Hears) -> None:
        """Return once it is done or queued behind what waits. `act` may be called again."""
        if self._trouble is None:
            try:
                return await act()
            except StorageError as trouble:
                self._trouble = trouble
                self._errands.begin(self._work_off(), name="waits for storage")
        self._waiting.append((act, troubled))
        troubled(self._trouble)

    async def _work_off(self) -> None:
        while self._waiting:
            act, troubled = self._waiting[0]
            await patiently(act, self._clock, troubled=troubled)
            self._waiting.popleft()
        self._trouble = None
