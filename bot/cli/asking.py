"""How a command reaches the bot: the running one by its socket, else one opened for the moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from bot.cli.opening import Opened
from bot.rpc import ControlClient, NotRunning, Operation
from memory.records.errors import HomeBusy

T = TypeVar("T")

Here = Callable[[], AbstractAsyncContextManager[Mapping[str, Operation]]]
"""Opens what can be asked where no bot runs."""

BUSY_TRIES, BUSY_PAUSE_S = 50, 0.1
"""How long a bot that is just starting, or stopping, is waited for."""


@asynccontextmanager
async def reach(home: Opened) -> AsyncIterator[ControlClient]:
    """A client of the running bot; if none runs, one is opened in this process meanwhile."""
    async with AsyncExitStack() as stack:
        yield await running_or(stack, home, lambda: _own_bot(home))


async def ask_access(home: Opened, operation: str, **arguments: Any) -> dict[str, Any]:
    """One question about people: to the running bot, else to the database alone."""
    from bot.app import open_access
    from scheduler.clock.machine import SystemClock

    async with asker(
        home, lambda: open_access(home.home, home.settings, clock=SystemClock())
    ) as ask:
        return await ask(operation, **arguments)


async def ask_running(home: Opened, operation: str) -> dict[str, Any]:
    """One question to the running bot. Raises NotRunning."""
    async with ControlClient(home.home.socket) as client:
        return await client.ask(operation)


@asynccontextmanager
async def asker(
    home: Opened, here: Here
) -> AsyncIterator[Callable[..., Awaitable[dict[str, Any]]]]:
    """Asks the running bot; where none runs, what `here` opens."""
    async with AsyncExitStack() as stack:
        found = await running_or(stack, home, here)
        if isinstance(found, ControlClient):
            yield found.ask
            return
        operations = found

        async def ask(operation: str, **arguments: Any) -> dict[str, Any]:
            return await operations[operation](arguments, lambda event: None)

        yield ask


@asynccontextmanager
async def _own_bot(home: Opened) -> AsyncIterator[ControlClient]:
    from bot.app import open_bot
    from scheduler.clock.machine import CheckedClock, SystemClock

    clock = CheckedClock(SystemClock(), file=home.home.database)
    async with (
        open_bot(home.home, home.settings, env=home.env, digest=home.digest, clock=clock) as bot,
        ControlClient(home.home.socket) as client,
    ):
        yield client
        await bot.drain()


async def running_or(
    stack: AsyncExitStack, home: Opened, here: Callable[[], AbstractAsyncContextManager[T]]
) -> ControlClient | T:
    """The running bot, or what `here` opens. Raises HomeBusy when there is long neither."""
    tries = 0
    while True:
        try:
            return await stack.enter_async_context(ControlClient(home.home.socket))
        except NotRunning:
            tries += 1
        try:
            return await stack.enter_async_context(here())
        except HomeBusy:
            if tries >= BUSY_TRIES:
                raise
        await asyncio.sleep(BUSY_PAUSE_S)
