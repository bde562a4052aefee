"""A route for what a platform posts, behind a check of the channel's own.

Not the libraries' routes: python-telegram-bot's compares the secret with `!=`, logs wrong ones and
needs tornado; Bolt reads a body before it looks at the signature, and logs what it refuses (DESIGN
§2). The answer is 200 only after the event is stored.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from aiohttp import web

from memory.records.errors import SettingsWrong

log = structlog.get_logger()

BODY_BYTES_MAX = 1_048_576

REFUSED_TOLD_EVERY_S = 60.0
"""Whoever tries secrets does not fill the log."""


class RefusalLog:
    """Tells of refused requests, once a minute at most."""

    def __init__(self, event: str, why: str) -> None:
        self._event = event
        self._why = why
        self._told_at = -REFUSED_TOLD_EVERY_S

    def tell(self) -> None:
        """Tell of one, unless another was told just now."""
        now = asyncio.get_running_loop().time()
        if now - self._told_at >= REFUSED_TOLD_EVERY_S:
            self._told_at = now
            log.warning(self._event, why=self._why)


@asynccontextmanager
async def listening(
    receive: Callable[[web.Request], Awaitable[web.Response]],
    *,
    path: str,
    listen: str,
    setting: str,
) -> AsyncIterator[None]:
    """Serve the route while the block runs. Raise SettingsWrong where nothing can listen, with the
    name of the setting that says where."""
    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_post(path, receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        host, _, port = listen.rpartition(":")
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        except OSError as error:
            raise SettingsWrong(
                f"Cannot listen on {listen} ({os.strerror(error.errno or 0)}). Close what uses "
                f"that port, or choose another in {setting}."
            ) from error
        yield
    finally:
        await runner.cleanup()
