"""How Slack's events come: over a web socket that we open, or posted to us, each signed.

The library's client closes its socket before it opens the next one, and what came in on it dies
with it. Here the next one is open first, and the old one is read to its end.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
import structlog
from aiohttp import web

from bot.channels.base import Outage
from bot.channels.slack.intake import Acknowledgement, SlackIntake
from bot.channels.wire import RefusalLog, listening, read_json
from memory.records.errors import Temporary
from memory.records.ports import Clock

log = structlog.get_logger()

HEARTBEAT_S = 15.0
"""A socket that does not answer a ping within half of this is dead."""

LINGER_S = 30.0
"""How long a socket that was told to go is still read."""

FRAME_BYTES_MAX = 16 * 1024 * 1024

SHORT_S = 10.0
SHORT_MAX = 3
"""So many sockets in a row may end this soon before we wait with the next one."""

LINK_OFF = (
    "Socket Mode is switched off in the settings of the Slack app; switch it on there (Socket "
    'Mode, Enable), or set slack.mode = "http"'
)

Receive = Callable[[dict[str, Any], Mapping[str, str]], Awaitable[Acknowledgement]]
OpenAddress = Callable[[], Awaitable[str]]
"""A fresh address for one socket. Waits out what is temporary, raises what is not."""


@dataclass(slots=True)
class _SlackSocket:
    ws: aiohttp.ClientWebSocketResponse
    since: float
    told_to_go: asyncio.Event = field(default_factory=asyncio.Event)


class SlackSockets:
    """Keeps a socket open, and each one read until it is closed."""

    def __init__(
        self,
        open_address: OpenAddress,
        session: aiohttp.ClientSession,
        receive: Receive,
        *,
        outage: Outage,
        clock: Clock,
    ) -> None:
        """`outage` is told of sockets that do not open, or end at once."""
        self._open_address = open_address
        self._session = session
        self._receive = receive
        self._clock = clock
        self._outage = outage
        self._short = 0
        self.greeted = asyncio.Event()
        self.heard_at = clock.monotonic()

    async def run(self) -> None:
        """Until cancelled. Raises what `open_address` raises."""
        async with asyncio.TaskGroup() as group:
            while True:
                socket = await self._opened()
                group.create_task(self._keep(socket), name="slack socket")
                await socket.told_to_go.wait()
                # A refresh is followed at once; sockets that end again and again are not.
                lived_s = self._clock.monotonic() - socket.since
                self._short = self._short + 1 if lived_s < SHORT_S else 0
                if self._short > SHORT_MAX:
                    await self._outage.wait("sockets end as soon as they are open")

    async def _opened(self) -> _SlackSocket:
        while True:
            address = await self._open_address()
            try:
                ws = await self._session.ws_connect(
                    address, heartbeat=HEARTBEAT_S, max_msg_size=FRAME_BYTES_MAX
                )
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                await self._outage.wait(type(error).__name__)
                continue
            return _SlackSocket(ws=ws, since=self._clock.monotonic())

    async def _keep(self, socket: _SlackSocket) -> None:
        """Reads a socket to its end. It may be told to go before: then another one is opened,
        while this one still brings events."""
        try:
            async with asyncio.timeout(None) as limit:
                async for frame in socket.ws:
                    if frame.type is aiohttp.WSMsgType.TEXT:
                        await self._hear(socket, frame.data)
                    if socket.told_to_go.is_set() and limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + LINGER_S)
        except TimeoutError:
            log.debug("slack.socket_kept_open", after_s=LINGER_S)
        except ConnectionError as error:
            log.debug("slack.socket_broken", why=type(error).__name__)
        finally:
            socket.told_to_go.set()
            await socket.ws.close()

    async def _hear(self, socket: _SlackSocket, text: str) -> None:
        self.heard_at = self._clock.monotonic()
        try:
            frame = read_json(text)
        except ValueError:
            log.warning("slack.unreadable", why="a frame is not JSON")
            return
        if not isinstance(frame, dict):
            return
        match frame.get("type"):
            case "hello":
                self._outage.over()
                self.greeted.set()
                log.info("slack.connected")
            case "disconnect":
                reason = str(frame.get("reason"))[:60]
                if reason == "link_disabled":
                    self._short = SHORT_MAX
                    log.error("slack.socket_mode_off", why=LINK_OFF)
                elif reason == "too_many_websockets":
                    self._short = SHORT_MAX
                    others = "other copies of this bot hold all sockets"
                    log.warning("slack.too_many_sockets", why=others)
                else:
                    log.debug("slack.refresh", reason=reason)
                socket.told_to_go.set()
            case _:
                await self._envelope(socket, frame)

    async def _envelope(self, socket: _SlackSocket, frame: dict[str, Any]) -> None:
        """Acknowledged on the socket that brought it, once it is stored; where that is gone by
        then, Slack brings it again, and it is known."""
        envelope, payload = frame.get("envelope_id"), frame.get("payload")
        if not isinstance(envelope, str) or not isinstance(payload, dict):
            return
        headers = {
            f"x-slack-retry-{name}": str(value)[:60]
            for name, key in (("num", "retry_attempt"), ("reason", "retry_reason"))
            if (value := frame.get(key)) not in (None, "", 0)
        }
        acknowledged = await self._receive(payload, headers)
        if acknowledged.taken and not socket.ws.closed:
            await socket.ws.send_str(json.dumps({"envelope_id": envelope}))


# --- for `run --once` -----------------------------------------------------------------------------
#
# What Slack brings within a moment, read once: for `run --once`. Called by
# `bot.channels.slack.channel`.

QUIET_S = 2.0
"""Slack says nothing of how much waits, so this long without news means none."""


async def read_once(
    intake: SlackIntake, sockets: SlackSockets, *, clock: Clock, greeted_s: float
) -> None:
    """Takes in what comes until there is nothing new for a moment, and acts on it.

    Raises Temporary when no socket opens within `greeted_s`, and what `sockets` raises.
    """
    working = asyncio.create_task(intake.work())
    reading = asyncio.create_task(sockets.run())
    try:
        await _until_quiet(sockets, reading, clock=clock, greeted_s=greeted_s)
        await intake.idle()
    finally:
        for task in (reading, working):
            task.cancel()
        await asyncio.gather(reading, working, return_exceptions=True)


async def _until_quiet(
    sockets: SlackSockets, reading: asyncio.Task[None], *, clock: Clock, greeted_s: float
) -> None:
    greeted = asyncio.create_task(sockets.greeted.wait())
    await asyncio.wait({greeted, reading}, timeout=greeted_s, return_when=FIRST_COMPLETED)
    greeted.cancel()
    if not sockets.greeted.is_set() and not reading.done():
        raise Temporary("Slack opened no socket within the time that a send may take.")
    while not reading.done():
        if clock.monotonic() - sockets.heard_at >= QUIET_S:
            return
        await clock.sleep(QUIET_S / 8)
    try:
        await reading
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors


# --- events by HTTP -------------------------------------------------------------------------------

PATH = "/slack/events"
FIELDS_MAX = 100

FRESH_S = 300
"""A request that is older was recorded by somebody, or our clock is wrong."""

_SECONDS = re.compile(r"[0-9]{1,15}")


def is_signed(secret: bytes, body: bytes, *, timestamp: str, signature: str, now_s: float) -> bool:
    """Return whether Slack signed this body, not longer than five minutes ago."""
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
