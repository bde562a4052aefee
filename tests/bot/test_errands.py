"""What the intake does beside what comes in: waited for a while, or cancelled at once."""

from __future__ import annotations

import asyncio

from bot.inbox.background import BackgroundTasks


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


async def test_idle_waits_for_short_errands_alone() -> None:
    done: list[str] = []

    async def short() -> None:
        await asyncio.sleep(0)
        done.append("short")

    async def long() -> None:
        await asyncio.Event().wait()

    async with BackgroundTasks() as tasks:
        tasks.begin_long(long(), name="long")
        tasks.begin(short(), name="short")
        await tasks.idle()

        assert done == ["short"]
