"""How a command reaches the bot: the running one by its socket, else one opened for the moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from bot.cli.context import Opened, exit_for, opened
from bot.rpc import ControlClient, NotRunning, Operation, RemoteMethod
from memory.records.errors import HomeBusy

if TYPE_CHECKING:
    from bot.app.app import App

T = TypeVar("T")
P = ParamSpec("P")

Make = Callable[["App"], Mapping[str, Operation]]
"""Returns what can be asked of an App."""

BUSY_TRIES, BUSY_PAUSE_S = 50, 0.1
"""How long a bot that is just starting, or stopping, is waited for."""


@asynccontextmanager
async def reach(home: Opened) -> AsyncIterator[ControlClient]:
    """A client of the running bot; if none runs, one is opened in this process meanwhile."""
    async with AsyncExitStack() as stack:
        yield await running_or(stack, home, lambda: _own_bot(home))


def call(method: Callable[P, Awaitable[T]], *given: P.args, **named: P.kwargs) -> T:
    """Call a method of a part, as `App.jobs.pause`, for a command that does nothing else."""
    with exit_for(), opened(log_to_terminal=False) as home:
        return asyncio.run(ask(home, method, *given, **named))


async def ask(
    home: Opened, method: Callable[P, Awaitable[T]], *given: P.args, **named: P.kwargs
) -> T:
    """Call a method of a part in the running bot, else of an App that is opened for the moment.

    Raises HomeBusy, StorageError, SettingsWrong, and what the method raises.
    """
    async with caller(home) as bot:
        return await bot.call(method, *given, **named)


@asynccontextmanager
async def caller(home: Opened) -> AsyncIterator[ControlClient | OpenedApp]:
    """Yield what calls methods, for a command that calls several: as `ask` does."""
    async with AsyncExitStack() as stack:
        found = await running_or(stack, home, lambda: new_app(home))
        yield found if isinstance(found, ControlClient) else OpenedApp(found)


class OpenedApp:
    """Calls methods of an App that was opened here, as a client calls those of a running bot."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def call(self, method: Callable[P, Awaitable[T]], *given: P.args, **named: P.kwargs) -> T:
        """Call a method of a part, as `App.jobs.pause`. Raises what the method raises."""
        remote = cast(RemoteMethod, method)
        part = getattr(self._app, remote.part)
        await self._app.ready()
        act: Callable[P, Awaitable[T]] = getattr(part, remote.name)
        return await act(*given, **named)


async def ask_running(
    home: Opened, method: Callable[P, Awaitable[T]], *given: P.args, **named: P.kwargs
) -> T:
    """Call a method of a part in the running bot. Raises NotRunning."""
    async with ControlClient(home.home.socket) as client:
        return await client.call(method, *given, **named)


def new_app(home: Opened) -> App:
    """An App to be opened for the moment: no turn is taken up and nothing sent."""
    from bot.app.app import App
    from scheduler.clock.machine import SystemClock

    return App(home.home, home.settings, env=home.env, clock=SystemClock())


@asynccontextmanager
async def opened_here(home: Opened, make: Make) -> AsyncIterator[Mapping[str, Operation]]:
    """What can be asked where no bot runs: no turn is taken up and nothing sent.

    Raises HomeBusy, StorageError, SettingsWrong.
    """
    async with new_app(home) as app:
        operations = make(app)
        await app.ready()
        yield operations


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
