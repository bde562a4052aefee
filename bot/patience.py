"""What has to be done is tried until storage lets it be done. Used by the door and its parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from agent.errors import StorageError
from agent.ports import Clock

log = structlog.get_logger()

STORAGE_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between tries while the disk is full or the database is locked; the last one repeats."""


async def patiently(act: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Until it is done, while storage is in trouble: told once. `act` may be called again."""
    tries = 0
    while True:
        try:
            return await act()
        except StorageError as trouble:
            pause_s = STORAGE_PAUSES_S[min(tries, len(STORAGE_PAUSES_S) - 1)]
            if tries == 0:
                log.error("door.storage", why=str(trouble))
            tries += 1
        await clock.sleep(pause_s)
