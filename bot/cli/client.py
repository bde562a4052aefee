"""How a command reaches the bot: the running one by its socket, else one opened for the moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from bot.cli.context import Opened, exit_for, opened
from bot.rpc import ControlClient, NotRunning, RemoteMethod
from memory.records.errors import HomeBusy

if TYPE_CHECKING:
    from bot.app.app import App

T = TypeVar("T")
P = ParamSpec("P")

BUSY_TRIES, BUSY_PAUSE_S = 50, 0.1
"""How long a bot that is just starting, or stopping, is waited for."""


@asynccontextmanager
async def reach(home: Opened) -> AsyncIterator[ControlClient]:
    """Open a client of the running bot; if none runs, one is opened in this process meanwhile."""
    async with AsyncExitStack() as stack:
        yield await running_or(stack, home, lambda: _own_bot(home))


class Bot:
    """Calls methods of the parts of a bot: of the running one by its socket, else of an App that is
    opened here for the moment, which takes up no turn and sends nothing."""

    def __init__(self, reached: ControlClient | App, home: Opened) -> None:
        self._reached = reached
        self.home = home

    async def call(self, method: Callable[P, Awaitable[T]], *given: P.args, **named: P.kwargs) -> T:
        """Call a method of a part, as `App.jobs.pause`. Raise what the method raises."""
        if isinstance(self._reached, ControlClient):
            return await self._reached.call(method, *given, **named)
        remote = cast(RemoteMethod, method)
        part = getattr(self._reached, remote.part)
        await self._reached.ready()
        act: Callable[P, Awaitable[T]] = getattr(part, remote.name)
        return await act(*given, **named)


def call(method: Callable[P, Awaitable[T]], *given: P.args, **named: P.kwargs) -> T:
    """Call a method of a part, as `App.jobs.pause`, for a command that does nothing else."""
    return run(lambda bot: bot.call(method, *given, **named))


def run(work: Callable[[Bot], Awaitable[T]]) -> T:
    """Do what calls several methods; what goes wrong on purpose is said, and ends the command."""
    with exit_for(), opened(log_to_terminal=False) as home:
        return asyncio.run(with_bot(home, work))


async def with_bot(home: Opened, work: Callable[[Bot], Awaitable[T]]) -> T:
    """Do it on a home that is open. Raise HomeBusy, StorageError, SettingsWrong, and what the
    methods raise."""
    from bot.app.app import App
    from scheduler.clock.machine import SystemClock

    def here() -> App:
        return App(home.home, home.settings, env=home.env, clock=SystemClock())

    async with AsyncExitStack() as stack:
        return await work(Bot(await running_or(stack, home, here), home))


async def ask_running(
    home: Opened, method: Callable[P, Awaitable[T]], *given: P.args, **named: P.kwargs
) -> T:
    """Call a method of a part in the running bot. Raises NotRunning."""
    async with ControlClient(home.home.socket) as client:
        return await client.call(method, *given, **named)


@asynccontextmanager
async def _own_bot(home: Opened) -> AsyncIterator[ControlClient]:
    from bot.app.app import App
    from scheduler.clock.machine import CheckedClock, SystemClock

    clock = CheckedClock(SystemClock(), file=home.home.database)
    app = App(home.home, home.settings, env=home.env, digest=home.digest, clock=clock)
    async with app.running(), ControlClient(home.home.socket) as client:
        yield client
        await app.drain()


async def running_or(
    stack: AsyncExitStack, home: Opened, here: Callable[[], AbstractAsyncContextManager[T]]
) -> ControlClient | T:
    """Return the running bot, or what `here` opens. Raise HomeBusy when there is long neither."""
    tries = 0
    while True:
        try:
            return await stack.enter_async_context(ControlClient(home.home.socket))
        except NotRunning:
            tries += 1
        try:
            # A bot that starts or stops holds the home's lock while its socket is not there.
            return await stack.enter_async_context(here())
        except HomeBusy:
            if tries >= BUSY_TRIES:
                raise
        await asyncio.sleep(BUSY_PAUSE_S)
