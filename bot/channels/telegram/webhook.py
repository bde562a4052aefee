"""Telegram updates by webhook, behind a secret. Called by `bot.app` instead of the poll loop.

A route of our own: the library's compares the secret with `!=`, logs wrong ones, and needs
tornado (DESIGN §2). The answer is 200 only after the update is stored.
"""

from __future__ import annotations

import asyncio
import hmac
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from bot.channels.odd_json import read_json
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.raw import ALLOWED_UPDATES, update_id
from bot.inbox.intake import Intake
from bot.settings.schema.settings import TelegramSettings
from memory.records.errors import StorageError

log = structlog.get_logger()

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
BODY_BYTES_MAX = 1_048_576
REFUSED_TOLD_EVERY_S = 60.0


class TelegramWebhook:
    """The route. Updates are taken one at a time, so that their order is kept."""

    def __init__(self, telegram: TelegramChannel, inbox: Intake, *, secret: str) -> None:
        self._telegram = telegram
        self._inbox = inbox
        self._secret = secret.encode()
        self._one_at_a_time = asyncio.Lock()
        self._refused_told_at = -REFUSED_TOLD_EVERY_S

    async def receive(self, request: web.Request) -> web.Response:
        """Checks the secret before a byte of the body is read, stores, then confirms."""
        given = request.headers.get(SECRET_HEADER, "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, self._secret):
            self._tell_refused()
            return web.Response(status=403)
        try:
            update = read_json((await request.read()).decode(errors="replace"))
        except ValueError:
            return web.Response(status=400)
        if update_id(update) is None:
            return web.Response(status=400)
        try:
            async with self._one_at_a_time:
                await self._telegram.take(self._inbox, [update])
        except StorageError as error:
            log.error("webhook.storage", why=str(error))
            return web.Response(status=503)
        return web.Response(status=200)

    def _tell_refused(self) -> None:
        """Once a minute at most: whoever tries secrets does not fill the log."""
        now = asyncio.get_running_loop().time()
        if now - self._refused_told_at >= REFUSED_TOLD_EVERY_S:
            self._refused_told_at = now
            log.warning("webhook.refused", why="the secret is missing or wrong")


async def serve_webhook(
    telegram: TelegramChannel, inbox: Intake, settings: TelegramSettings
) -> None:
    """Listens until cancelled. The settings made sure that there is a secret and an address."""
    secret = settings.webhook_secret.get_secret_value()
    webhook = TelegramWebhook(telegram, inbox, secret=secret)
    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_post(urlsplit(settings.webhook_url).path or "/", webhook.receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        host, _, port = settings.webhook_listen.rpartition(":")
        await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        await telegram.updates.set_webhook(settings.webhook_url, secret=secret)
        log.info("webhook.listening", listen=settings.webhook_listen, updates=ALLOWED_UPDATES)
        await telegram.updates.keep_webhook(settings.webhook_url, secret=secret)
    finally:
        await runner.cleanup()
