"""How a command reaches the bot: the running one by its socket, else one opened for the moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bot.cli.opening import Opened
from bot.control import ControlClient, NotRunning


@asynccontextmanager
async def reach(home: Opened) -> AsyncIterator[ControlClient]:
    """A client of the running bot; if none runs, one is opened in this process meanwhile."""
    try:
        async with ControlClient(home.home.socket) as client:
            yield client
            return
    except NotRunning:
        pass
    from bot.app import open_bot
    from bot.clock import SystemClock

    async with (
        open_bot(
            home.home, home.settings, env=home.env, digest=home.digest, clock=SystemClock()
        ) as bot,
        ControlClient(home.home.socket) as client,
    ):
        yield client
        await bot.drain()


async def ask(home: Opened, operation: str, **arguments: Any) -> dict[str, Any]:
    """One question to whichever bot there is."""
    async with reach(home) as client:
        return await client.ask(operation, **arguments)


async def ask_running(home: Opened, operation: str) -> dict[str, Any]:
    """One question to the running bot. Raises NotRunning."""
    async with ControlClient(home.home.socket) as client:
        return await client.ask(operation)
