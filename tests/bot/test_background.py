"""What the intake does beside what comes in: ended at a stop, and tried until storage lets it."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from bot.inbox.background import STORAGE_PAUSES_S, BackgroundTasks, patiently
from memory.records.errors import AssistantError, StorageError
from tests.fakes import FixedClock


class Troubled:
    """Fails so many times, and is done then."""

    def __init__(self, times: int, trouble: AssistantError) -> None:
        self.left = times
        self._trouble = trouble

    async def act(self) -> None:
        self.left -= 1
        if self.left >= 0:
            raise self._trouble


async def test_it_is_tried_until_it_is_done_with_longer_pauses_and_told_of_once() -> None:
    clock = FixedClock()
    tries = len(STORAGE_PAUSES_S) + 2

    with capture_logs() as logs:
        await patiently(Troubled(tries, StorageError("the disk is full")).act, clock)

    assert clock.pauses == [*STORAGE_PAUSES_S, STORAGE_PAUSES_S[-1], STORAGE_PAUSES_S[-1]]
    assert [entry["event"] for entry in logs] == ["inbox.storage"]


async def test_a_short_errand_may_finish_at_a_stop_and_a_long_one_is_cancelled() -> None:
    done: list[str] = []
    begun = asyncio.Event()

    async def short() -> None:
        await asyncio.sleep(0)
        done.append("short")

    async def long() -> None:
        begun.set()
        await asyncio.Event().wait()
        done.append("long")

    async with BackgroundTasks() as tasks:
        tasks.begin_long(long(), name="long")
        await begun.wait()
        tasks.begin(short(), name="short")

    assert done == ["short"]
