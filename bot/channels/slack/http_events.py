"""Slack's events, commands and buttons by HTTP, each signed. Called by
`bot.channels.slack.channel`.

A route of our own: Bolt reads a body before it looks at the signature, and logs what it refuses.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from bot.channels.odd_json import read_json
from bot.channels.slack.intake import Acknowledgement
from bot.channels.slack.socket_mode import Receive
from memory.records.errors import SettingsWrong

log = structlog.get_logger()

PATH = "/slack/events"
BODY_BYTES_MAX = 1_048_576
FIELDS_MAX = 100

FRESH_S = 300
"""A request that is older was recorded by somebody, or our clock is wrong."""

TOLD_EVERY_S = 60.0

_SECONDS = re.compile(r"[0-9]{1,15}")


def is_signed(secret: bytes, body: bytes, *, timestamp: str, signature: str, now_s: float) -> bool:
    """Whether Slack signed this body, not longer than five minutes ago."""
    if not _SECONDS.fullmatch(timestamp) or abs(now_s - int(timestamp)) > FRESH_S:
        return False
    base = b"v0:" + timestamp.encode() + b":" + body
    wanted = "v0=" + hmac.new(secret, base, hashlib.sha256).hexdigest()
    given = signature.encode(errors="surrogateescape")
    return hmac.compare_digest(wanted.encode(), given)


def read_body(body: bytes, content_type: str) -> dict[str, Any]:
    """An event, a command, or a button's payload within a form. Raises ValueError."""
    text = body.decode(errors="replace")
    if content_type == "application/json":
        found = read_json(text)
    else:
        form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_MAX))
        found = read_json(form["payload"]) if set(form) == {"payload"} else form
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


class SlackHttpRoute:
    """The route."""

    def __init__(self, receive: Receive, *, secret: str, now_s: Callable[[], float]) -> None:
        self._receive = receive
        self._secret = secret.encode()
        self._now_s = now_s
        self._told_at = -TOLD_EVERY_S

    async def receive(self, request: web.Request) -> web.Response:
        """Checks the signature, stores, then confirms."""
        body = await request.read()
        if not is_signed(
            self._secret,
            body,
            timestamp=request.headers.get("X-Slack-Request-Timestamp", ""),
            signature=request.headers.get("X-Slack-Signature", ""),
            now_s=self._now_s(),
        ):
            self._tell_refused()
            return web.Response(status=401)
        try:
            payload = read_body(body, request.content_type)
        except ValueError:
            log.warning("slack.unreadable", why="a signed body is not what it says")
            return web.Response(status=400)
        headers = {
            name: request.headers[name]
            for name in ("X-Slack-Retry-Num", "X-Slack-Retry-Reason")
            if name in request.headers
        }
        return _answer(await self._receive(payload, headers))

    def _tell_refused(self) -> None:
        """Once a minute at most: whoever tries does not fill the log."""
        now = asyncio.get_running_loop().time()
        if now - self._told_at >= TOLD_EVERY_S:
            self._told_at = now
            log.warning(
                "slack.forged",
                why="a request without Slack's signature, or with one that is older than five "
                "minutes; if all are refused, check slack.signing_secret and this machine's clock",
            )


def _answer(acknowledged: Acknowledgement) -> web.Response:
    kind = "application/json" if acknowledged.body.startswith("{") else "text/plain"
    return web.Response(status=acknowledged.status, text=acknowledged.body, content_type=kind)


async def serve_events(events: SlackHttpRoute, listen: str) -> None:
    """Listens until cancelled. Raises SettingsWrong when it cannot."""
    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_post(PATH, events.receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        host, _, port = listen.rpartition(":")
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        except OSError as error:
            raise SettingsWrong(
                f"Cannot listen on {listen} ({os.strerror(error.errno or 0)}). Close what uses "
                "that port, or choose another in slack.listen."
            ) from error
        log.info("slack.listening", listen=listen, path=PATH)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
