"""Slack's events, commands and buttons by HTTP, each signed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from bot.channels.http import RefusalLog, listening
from bot.channels.slack.socket_mode import Receive
from bot.channels.wire import read_json

log = structlog.get_logger()

PATH = "/slack/events"
FIELDS_MAX = 100

FRESH_S = 300
"""A request that is older was recorded by somebody, or our clock is wrong."""

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


async def serve_events(
    receive: Receive, *, secret: str, listen: str, now_s: Callable[[], float]
) -> None:
    """Take what Slack posts, until cancelled. Raise SettingsWrong where nothing can listen."""
    refusals = RefusalLog(
        "slack.forged",
        "a request without Slack's signature, or with one that is older than five minutes; if all "
        "are refused, check slack.signing_secret and this machine's clock",
    )

    async def posted(request: web.Request) -> web.Response:
        """Check the signature, store, then confirm."""
        body = await request.read()
        if not is_signed(
            secret.encode(),
            body,
            timestamp=request.headers.get("X-Slack-Request-Timestamp", ""),
            signature=request.headers.get("X-Slack-Signature", ""),
            now_s=now_s(),
        ):
            refusals.tell()
            return web.Response(status=401)
        try:
            payload = read_body(body, request.content_type)
        except ValueError:
            log.warning("slack.unreadable", why="a signed body is not what it says")
            return web.Response(status=400)
        retried = ("X-Slack-Retry-Num", "X-Slack-Retry-Reason")
        headers = {name: request.headers[name] for name in retried if name in request.headers}
        done = await receive(payload, headers)
        kind = "application/json" if done.body.startswith("{") else "text/plain"
        return web.Response(status=done.status, text=done.body, content_type=kind)

    async with listening(posted, path=PATH, listen=listen, setting="slack.listen"):
        log.info("slack.listening", listen=listen, path=PATH)
        await asyncio.Event().wait()
