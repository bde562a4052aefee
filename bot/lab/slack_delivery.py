"""Ways of payloads to the app: over a socket or by HTTP, and again until they are taken.

Called by `bot.lab.slack`. The app has three seconds to take each; an event comes again at once,
after one and after five minutes. Nothing is ordered: a later event may come first, as in Slack.
"""

import asyncio
import hashlib
import hmac
import json
import random
import secrets
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import parse_qs, urlencode

import aiohttp
from aiohttp import WSMsgType, web
from aiohttp.web_request import BaseRequest

from bot.lab.faults import FaultAction, FaultTable
from bot.lab.slack_events import VERIFICATION_TOKEN
from bot.lab.slack_state import APP, Json, SlackRules

RETRY_AFTER_S = (0.0, 60.0, 300.0)
SOCKETS_MAX = 10
PING_S = 30.0
CONNECTION_S = 3600
"""What a socket is told of its life; no test waits for the end of it."""

_SUMMED = ("type", "subtype", "channel", "ts", "thread_ts", "user", "text", "deleted_ts")
_FORM = "application/x-www-form-urlencoded"


def twice() -> FaultAction:
    """A fault of `event`: the payload is sent twice at the same moment."""
    return FaultAction(kind="twice")


def lose_ack() -> FaultAction:
    """A fault of `event`: sent and taken, but Slack does not see the acknowledgement."""
    return FaultAction(kind="lose_ack")


def forged() -> FaultAction:
    """A fault of `event`, over HTTP: signed with another secret."""
    return FaultAction(kind="forged")


def stale(seconds: float = 600.0) -> FaultAction:
    """A fault of `event`, over HTTP: signed rightly, but that long ago."""
    return FaultAction(kind="stale", seconds=seconds)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One sending: `failure` is Slack's reason for the next one, empty when it was taken."""

    number: int
    fault: str | None = None
    failure: str = ""
    status: int | None = None


@dataclass(slots=True, kw_only=True)
class Delivery:
    """A payload on its way; `lost` means that Slack has given it up."""

    id: str
    kind: str
    payload: Json
    about: Json
    """What a fault may ask for: the event's own fields, or those of a command or click."""
    state: Literal["pending", "taken", "lost"] = "pending"
    attempts: list[Attempt] = field(default_factory=list)
    answer: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """One payload for one way."""

    kind: str
    payload: Json
    number: int = 0
    reason: str = ""
    fault: FaultAction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """What became of one sending."""

    failure: str = ""
    status: int | None = None
    answer: Any = None
    retry: bool = True


class PayloadCarrier(Protocol):
    """Carries one payload to the app, and waits for it to be taken; never raises."""

    async def send(self, sending: Sending, *, within_s: float) -> DeliveryOutcome: ...


class Deliveries:
    """Everything that is told to the app, with its attempts."""

    def __init__(
        self,
        *,
        rules: SlackRules,
        way: Callable[[], PayloadCarrier],
        faults: FaultTable,
        hold: Callable[[float | None], Awaitable[bool]],
        answered: Callable[[Delivery], None],
        changed: Callable[[], None],
        cap: int,
    ) -> None:
        self.all: deque[Delivery] = deque(maxlen=cap)
        self._rules = rules
        self._way = way
        self._faults = faults
        self._hold = hold
        self._answered = answered
        self._changed = changed
        # Owned by this object: each removes itself, the rest is ended in `close`.
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0

    def deliver(self, kind: str, payload: Json) -> str:
        """Send this from now on; return the event's id, or one of ours where Slack has none."""
        self._count += 1
        event = payload.get("event")
        inner = event if isinstance(event, dict) else payload
        about = {name: inner[name] for name in _SUMMED if name in inner}
        outer = ("command", "channel_id", "user_id", "event_id")
        about |= {name: payload[name] for name in outer if name in payload}
        delivery = Delivery(
            id=str(payload.get("event_id") or f"lab-{self._count}"),
            kind=kind,
            payload=payload,
            about={"kind": kind, **about},
        )
        self.all.append(delivery)
        self.start(delivery)
        return delivery.id

    def start(self, delivery: Delivery) -> None:
        """Send something, or once more although it was taken or given up."""
        task = asyncio.get_running_loop().create_task(self._carry(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in (tasks := list(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5.0)

    async def _carry(self, delivery: Delivery) -> None:
        # Commands and clicks are sent once: their person sees that it failed, and tries again.
        rules, reason = self._rules, ""
        for number in range(1 + (rules.retries_max if delivery.kind == "events_api" else 0)):
            if number:
                last = RETRY_AFTER_S[min(number, len(RETRY_AFTER_S)) - 1]
                await asyncio.sleep(last * rules.retry_scale)
            outcome = await self._attempt(delivery, number, reason)
            reason = outcome.failure
            if not reason:
                delivery.state, delivery.answer = "taken", outcome.answer
            if not reason or not outcome.retry:
                break
        if delivery.state == "pending":
            delivery.state = "lost"
        self._answered(delivery)
        self._changed()

    async def _attempt(self, delivery: Delivery, number: int, reason: str) -> DeliveryOutcome:
        attempt = Attempt(number=number)
        delivery.attempts.append(attempt)
        fault = self._faults.take("event", {**delivery.about, "attempt": number})
        kind = attempt.fault = fault.kind if fault is not None else None
        if fault is not None and kind == "hold":
            await self._hold(fault.seconds)
        self._changed()
        sending = Sending(
            kind=delivery.kind,
            payload=delivery.payload,
            number=number,
            reason=reason,
            fault=fault,
        )
        outcome = DeliveryOutcome(failure="timeout")
        if kind != "drop":
            within_s, way = self._rules.ack_s, self._way()
            sent = (
                way.send(sending, within_s=within_s) for _ in range(2 if kind == "twice" else 1)
            )
            outcomes = await asyncio.gather(*sent)
            outcome = next((one for one in outcomes if not one.failure), outcomes[0])
            if kind == "lose_ack":
                outcome = DeliveryOutcome(failure="timeout", status=outcome.status)
        attempt.failure, attempt.status = outcome.failure, outcome.status
        self._changed()
        return outcome


@dataclass(slots=True, kw_only=True)
class SocketInfo:
    """An open socket; `leaving` after it was told to go."""

    number: int
    leaving: bool = False
    acked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Socket:
    about: SocketInfo
    ws: web.WebSocketResponse
    request: BaseRequest


class Sockets:
    """The app's open sockets, up to ten; each payload goes to one of them."""

    def __init__(self, *, changed: Callable[[], None]) -> None:
        self.tickets: set[str] = set()
        """The rights to open one socket each."""
        self._changed = changed
        # Seeded, so that a test that fails once fails again.
        self._random = random.Random(0)
        self._open: dict[int, _Socket] = {}
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._count = 0
        self._arrived = asyncio.Event()
        # Owned by this object: closings to come, ended in `close`.
        self._closings: set[asyncio.Task[None]] = set()

    def info(self) -> list[SocketInfo]:
        """The open sockets in the order in which they were opened."""
        return [socket.about for socket in self._open.values()]

    async def serve(self, request: BaseRequest) -> web.WebSocketResponse:
        """Keep one socket until either side closes it."""
        ws = web.WebSocketResponse(heartbeat=PING_S)
        await ws.prepare(request)
        self._count += 1
        socket = _Socket(about=SocketInfo(number=self._count), ws=ws, request=request)
        if len(self._open) >= SOCKETS_MAX:
            await ws.send_json(_disconnect("too_many_websockets"))
            await ws.close()
            return ws
        self._open[socket.about.number] = socket
        try:
            debug = {"host": "applink-lab", "approximate_connection_time": CONNECTION_S}
            hello = {"type": "hello", "num_connections": len(self._open), "debug_info": debug}
            await ws.send_json({**hello, "connection_info": {"app_id": APP}})
            self._arrived.set()
            self._changed()
            async for message in ws:
                if message.type is WSMsgType.TEXT:
                    self._take(socket, message.data)
        except ConnectionError:
            pass
        finally:
            self._open.pop(socket.about.number, None)
            self._changed()
        return ws

    async def send(self, sending: Sending, *, within_s: float) -> DeliveryOutcome:
        """To one of the sockets, whichever; wait for one if there is none."""
        envelope_id = str(uuid.uuid4())
        is_event = sending.kind == "events_api"
        envelope: Json = {"envelope_id": envelope_id, "payload": sending.payload}
        envelope |= {"type": sending.kind, "accepts_response_payload": not is_event}
        if is_event:
            envelope |= {"retry_attempt": sending.number, "retry_reason": sending.reason}
        waiting = self._waiting[envelope_id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within_s):
                while not self._open:
                    self._arrived.clear()
                    await self._arrived.wait()
            # Slack promises no order among sockets, and tests want all of them used.
            socket = self._random.choice(list(self._open.values()))
            await socket.ws.send_json(envelope)
            async with asyncio.timeout(within_s):
                return DeliveryOutcome(answer=await waiting)
        except (TimeoutError, ConnectionError):
            return DeliveryOutcome(failure="timeout")
        finally:
            del self._waiting[envelope_id]

    def disconnect(self, reason: str, *, after_s: float) -> list[int]:
        """Tell sockets to go, and close them after that time; return which."""
        told = list(self._open.values())
        for one in told:
            self._dismiss(one, reason, after_s)
        return [one.about.number for one in told]

    def cut(self) -> list[int]:
        """Break connections without a word; return which."""
        cut = list(self._open.values())
        for one in cut:
            if one.request.transport is not None:
                one.request.transport.abort()
        return [one.about.number for one in cut]

    async def close(self) -> None:
        for task in list(self._closings):
            task.cancel()
        for socket in list(self._open.values()):
            await socket.ws.close()

    def _take(self, socket: _Socket, text: str) -> None:
        try:
            frame = json.loads(text)
        except ValueError:
            frame = None
        envelope_id = frame.get("envelope_id") if isinstance(frame, dict) else None
        waiting = self._waiting.get(str(envelope_id))
        # An acknowledgement counts on whichever socket it comes: clients answer on the newest one.
        if waiting is not None and not waiting.done():
            socket.about.acked += 1
            waiting.set_result(frame.get("payload"))
        self._changed()

    def _dismiss(self, socket: _Socket, reason: str, after_s: float) -> None:
        async def leave() -> None:
            try:
                await socket.ws.send_json(_disconnect(reason))
            except ConnectionError:
                return
            await asyncio.sleep(after_s)
            await socket.ws.close()
            self._open.pop(socket.about.number, None)
            self._changed()

        socket.about.leaving = True
        closing = asyncio.get_running_loop().create_task(leave())
        self._closings.add(closing)
        closing.add_done_callback(self._closings.discard)


def _disconnect(reason: str) -> Json:
    return {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-lab"}}


def signature(secret: str, timestamp: str, body: str) -> str:
    """Slack's `v0` signature."""
    base = f"v0:{timestamp}:{body}".encode()
    return f"v0={hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()}"


class HttpOut:
    """Signed requests to one address of the app. An async context manager."""

    def __init__(self, url: str, *, secret: str) -> None:
        self._url = url
        self._secret = secret
        self._session = aiohttp.ClientSession()

    async def verify(self, *, within_s: float) -> bool:
        """Return whether the address gives the challenge back, as text, form or JSON."""
        challenge = secrets.token_urlsafe(24)
        payload = {"token": VERIFICATION_TOKEN, "challenge": challenge, "type": "url_verification"}
        sent = await self.send(Sending(kind="events_api", payload=payload), within_s=within_s)
        answer = sent.answer or {}
        text = str(answer.get("challenge") or answer.get("text", "")).strip()
        return not sent.failure and parse_qs(text).get("challenge", [text])[0] == challenge

    async def send(self, sending: Sending, *, within_s: float) -> DeliveryOutcome:
        body, kind = json.dumps(sending.payload), "application/json"
        if sending.kind == "slash_commands":
            body, kind = urlencode(sending.payload), _FORM
        elif sending.kind == "interactive":
            body, kind = urlencode({"payload": body}), _FORM
        fault = sending.fault or FaultAction(kind="")
        at = time.time() - (fault.seconds or 0.0 if fault.kind == "stale" else 0.0)
        secret = "not the secret" if fault.kind == "forged" else self._secret
        headers = {
            "Content-Type": kind,
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": str(int(at)),
            "X-Slack-Signature": signature(secret, str(int(at)), body),
        }
        if sending.number:
            retry = {"Num": str(sending.number), "Reason": sending.reason}
            headers |= {f"X-Slack-Retry-{name}": value for name, value in retry.items()}
        timeout = aiohttp.ClientTimeout(total=within_s)
        try:
            async with self._session.post(
                self._url, data=body.encode(), headers=headers, timeout=timeout
            ) as response:
                text = await response.text()
        except TimeoutError:
            return DeliveryOutcome(failure="http_timeout")
        except aiohttp.ClientError:
            return DeliveryOutcome(failure="connection_failed")
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {"text": text} if text else None
        return DeliveryOutcome(
            failure="" if 200 <= response.status < 300 else "http_error",
            status=response.status,
            answer=answer,
            retry=response.headers.get("X-Slack-No-Retry") != "1",
        )

    async def close(self) -> None:
        await self._session.close()
