"""Socket Mode of the Slack stand-in: up to ten sockets, each payload to one of them.

Called by `bot.lab.slack`, which answers the upgrade, and by `bot.lab.slack_delivery`.
"""

import asyncio
import json
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from aiohttp.web_request import BaseRequest

from bot.lab.slack_delivery import DeliveryOutcome, Sending

SOCKETS_MAX = 10
PING_S = 30.0
WARNED_BEFORE_S = 10.0
CONNECTION_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketInfo:
    """An open socket; `leaving` after it was told to go."""

    number: int
    since: float
    leaving: bool
    sent: int
    acked: int


@dataclass(slots=True, kw_only=True)
class _Socket:
    number: int
    ws: web.WebSocketResponse
    request: BaseRequest
    since: float
    leaving: bool = False
    sent: int = 0
    acked: int = 0
    leave: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class _WaitingPayload:
    taken: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Sockets:
    """The app's open sockets."""

    def __init__(
        self,
        *,
        app_id: str,
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        seed: int = 0,
    ) -> None:
        self.frames: list[tuple[int, str, Any]] = []
        self.tickets: set[str] = set()
        self.frames_max = 200_000
        self.connection_s = CONNECTION_S
        self._app_id = app_id
        self._changed = changed
        self._clock = clock
        self._random = random.Random(seed)
        self._open: dict[int, _Socket] = {}
        self._waiting: dict[str, _WaitingPayload] = {}
        self._count = 0
        self._arrived = asyncio.Event()
        # Owned by this object: closings to come, ended in `close`.
        self._closings: set[asyncio.Task[None]] = set()

    def ticket(self) -> str:
        """The right to open one socket."""
        ticket = str(uuid.uuid4())
        self.tickets.add(ticket)
        return ticket

    def info(self) -> list[SocketInfo]:
        """The open sockets in the order in which they were opened."""
        return [
            SocketInfo(
                number=s.number, since=s.since, leaving=s.leaving, sent=s.sent, acked=s.acked
            )
            for s in self._open.values()
        ]

    async def serve(self, request: BaseRequest) -> web.WebSocketResponse:
        """Keep one socket until either side closes it."""
        ws = web.WebSocketResponse(heartbeat=PING_S)
        await ws.prepare(request)
        self._count += 1
        socket = _Socket(number=self._count, ws=ws, request=request, since=self._clock())
        if len(self._open) >= SOCKETS_MAX:
            await self._say(socket, _disconnect("too_many_websockets", socket.number))
            await ws.close()
            return ws
        self._open[socket.number] = socket
        warned_s = min(WARNED_BEFORE_S, self.connection_s / 2)
        loop = asyncio.get_running_loop()
        socket.leave = loop.call_later(
            self.connection_s - warned_s, self._dismiss, socket, "warning", warned_s
        )
        try:
            await self._say(socket, self._hello(socket))
            self._arrived.set()
            self._changed()
            async for message in ws:
                if message.type is WSMsgType.TEXT:
                    self._heard(socket, message.data)
        except ConnectionError:
            pass
        finally:
            self._gone(socket)
        return ws

    async def send(self, sending: Sending, *, within_s: float) -> DeliveryOutcome:
        """To one of the sockets, whichever; waits for one if there is none."""
        socket = await self._pick(within_s)
        if socket is None:
            return DeliveryOutcome(failure="timeout", via="no socket")
        via = f"socket {socket.number}"
        envelope_id = str(uuid.uuid4())
        envelope: dict[str, Any] = {
            "envelope_id": envelope_id,
            "payload": sending.payload,
            "type": sending.kind,
            "accepts_response_payload": sending.kind != "events_api",
        }
        if sending.kind == "events_api":
            envelope |= {"retry_attempt": sending.number, "retry_reason": sending.reason}
        waiting = self._waiting[envelope_id] = _WaitingPayload()
        try:
            await self._say(socket, envelope)
            socket.sent += 1
            async with asyncio.timeout(within_s):
                answer = await waiting.taken
        except (TimeoutError, ConnectionError):
            return DeliveryOutcome(failure="timeout", via=via)
        finally:
            del self._waiting[envelope_id]
        return DeliveryOutcome(via=via, answer=answer)

    def disconnect(
        self, *, reason: str = "refresh_requested", socket: int | None = None, after_s: float = 0.0
    ) -> list[int]:
        """Tell sockets to go, and close them after that time; returns which."""
        told = [s for s in self._open.values() if socket in {None, s.number}]
        for one in told:
            self._dismiss(one, reason, after_s)
        return [one.number for one in told]

    def cut(self, *, socket: int | None = None) -> list[int]:
        """Break connections without a word; returns which."""
        cut = [s for s in self._open.values() if socket in {None, s.number}]
        for one in cut:
            if one.request.transport is not None:
                one.request.transport.abort()
        return [one.number for one in cut]

    async def close(self) -> None:
        for task in list(self._closings):
            task.cancel()
        for socket in list(self._open.values()):
            await socket.ws.close()

    # Inside -------------------------------------------------------------------------------------

    def _hello(self, socket: _Socket) -> dict[str, Any]:
        return {
            "type": "hello",
            "num_connections": len(self._open),
            "debug_info": {
                "host": f"applink-lab-{socket.number}",
                "build_number": 1,
                "approximate_connection_time": int(self.connection_s),
            },
            "connection_info": {"app_id": self._app_id},
        }

    async def _pick(self, within_s: float) -> _Socket | None:
        try:
            async with asyncio.timeout(within_s):
                while not self._open:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return None
        return self._random.choice(list(self._open.values()))

    async def _say(self, socket: _Socket, frame: dict[str, Any]) -> None:
        self._note(socket, "out", frame)
        await socket.ws.send_str(json.dumps(frame))

    def _heard(self, socket: _Socket, text: str) -> None:
        try:
            frame = json.loads(text)
        except ValueError:
            frame = {"unreadable": text}
        self._note(socket, "in", frame)
        envelope_id = frame.get("envelope_id") if isinstance(frame, dict) else None
        waiting = self._waiting.get(str(envelope_id))
        # An acknowledgement counts on whichever socket it comes: clients answer on the newest one.
        if waiting is not None and not waiting.taken.done():
            socket.acked += 1
            waiting.taken.set_result(frame.get("payload"))
        self._changed()

    def _note(self, socket: _Socket, direction: str, frame: Any) -> None:
        self.frames.append((socket.number, direction, frame))
        if len(self.frames) > self.frames_max:
            del self.frames[: self.frames_max // 10]

    def _dismiss(self, socket: _Socket, reason: str, after_s: float) -> None:
        socket.leaving = True
        closing = asyncio.get_running_loop().create_task(self._leave(socket, reason, after_s))
        self._closings.add(closing)
        closing.add_done_callback(self._closings.discard)

    async def _leave(self, socket: _Socket, reason: str, after_s: float) -> None:
        try:
            await self._say(socket, _disconnect(reason, socket.number))
        except ConnectionError:
            return
        await asyncio.sleep(after_s)
        await socket.ws.close()
        self._gone(socket)

    def _gone(self, socket: _Socket) -> None:
        if socket.leave is not None:
            socket.leave.cancel()
        self._open.pop(socket.number, None)
        self._changed()


def _disconnect(reason: str, number: int) -> dict[str, Any]:
    host = {"host": f"applink-lab-{number}"}
    return {"type": "disconnect", "reason": reason, "debug_info": host}
