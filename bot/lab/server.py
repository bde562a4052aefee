"""What all stand-ins share: an HTTP server with a log, counters, faults and control routes.

A stand-in derives from `LabServer`, answers in `serve`, and names its operations in `controls`;
those are then reachable as `/lab/NAME` when the stand-in runs as its own process.
"""

import argparse
import asyncio
import json
import select
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from email.utils import formatdate
from functools import partial
from typing import Any, Literal, Self
from urllib.parse import parse_qsl

from aiohttp import web
from aiohttp.web_request import BaseRequest, FileField

from bot.lab.faults import Fault, FaultAction, FaultTable

UPLOAD_BYTES_MAX = 64 * 1024 * 1024
WAIT_S_MAX = 600.0
STALL_LOOK_S = 0.2
_HUNG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)


NOT_JSON = ""
"""The name of an argument that says that the body was to be JSON, and is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that came with a request."""

    name: str
    mime_type: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.name} ({len(self.data)} bytes)"


class RequestParams(dict[str, Any]):
    """Arguments by name: text from a form, anything from JSON."""

    def text(self, name: str) -> str:
        value = self.get(name)
        return "" if value is None else value if isinstance(value, str) else str(value)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in {"1", "true", "yes"}

    def nested(self, name: str, wrong: Exception) -> Any:
        """Return a JSON value, given as such or as text; raise `wrong` where it cannot be read."""
        value = self.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise wrong from None

    async def receive(self, request: BaseRequest) -> None:
        """Take in what a request brings."""
        self.update(request.query)
        if request.content_type == "multipart/form-data":
            for name, value in (await request.post()).items():
                self[name] = value
                if isinstance(value, FileField):
                    kind = value.content_type or "application/octet-stream"
                    data = value.file.read()
                    self[name] = Upload(name=value.filename, mime_type=kind, data=data)
            return
        body = await request.read()
        if request.content_type != "application/json":
            self.update(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
            return
        try:
            self.update(json.loads(body) if body else {})
        except (TypeError, ValueError):
            self[NOT_JSON] = True


@dataclass(slots=True, kw_only=True)
class Entry:
    """One request in the log; it is added on receipt and completed when the answer leaves."""

    number: int
    at: float
    method: str
    params: Mapping[str, Any]
    fault: str | None = None
    applied: bool = False
    status: int | None = None
    response: Any = None
    client_there: bool | None = None
    ended_at: float | None = None


@dataclass(slots=True)
class RequestGate:
    """How far the requests of one method came.

    `vanished`: applied, but the client had gone before the answer; the fate that it cannot know.
    """

    received: int = 0
    applied: int = 0
    answered: int = 0
    vanished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInAnswer:
    """What goes back: a body, or chunks that are written one by one."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    shown: Any = None
    chunks: tuple[bytes, ...] | None = None
    first_after_s: float = 0.0
    chunk_after_s: float = 0.0
    end: Literal["whole", "drop", "reset", "stall"] = "whole"
    fault: FaultAction | None = None
    upgrade: Callable[[BaseRequest], Awaitable[web.StreamResponse]] | None = None
    """Goes on with the connection, as a websocket does."""


def json_answer(
    payload: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> StandInAnswer:
    """An answer whose body is this payload as JSON."""
    return StandInAnswer(
        status=status,
        body=json.dumps(payload).encode(),
        headers={"Content-Type": "application/json", **(headers or {})},
        shown=payload,
    )


Effect = Callable[[FaultAction | None], Awaitable[StandInAnswer]]


class LabServer(ABC):
    """A stand-in on a loopback port; use it as an async context manager."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log_cap: int = 200_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.gate: dict[str, RequestGate] = defaultdict(RequestGate)
        self._host = host
        self._port = port
        self._clock = clock
        self._log: deque[Entry] = deque(maxlen=log_cap)
        self._received = 0
        self._faults = FaultTable()
        self._ahead_s = 0.0
        self._waiting: list[asyncio.Future[None]] = []
        self._held: set[asyncio.Event] = set()
        self._stopping = asyncio.Event()
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        def roomy(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> BaseRequest:
            parts = (message, payload, protocol, writer, task, loop)
            return BaseRequest(*parts, client_max_size=UPLOAD_BYTES_MAX)

        loop = asyncio.get_running_loop()
        server = web.Server(self._handle, request_factory=roomy)
        self._runner = web.ServerRunner(server, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        self._port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        # What is held would keep the runner from ending.
        self._stopping.set()
        self.release()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        """The root below which the stand-in answers."""
        return f"http://{self._host}:{self._port}"

    # What a test asks and orders ----------------------------------------------------------------

    def calls(self, method: str | None = None, *, since: int = 0) -> list[Entry]:
        """The log in order of receipt, from entry number `since` on."""
        return [e for e in self._log if e.number >= since and method in {None, e.method}]

    def fault(
        self,
        method: str = "*",
        *,
        action: FaultAction | Mapping[str, Any],
        times: int | None = 1,
        skip: int = 0,
        when: Mapping[str, Any] | None = None,
    ) -> Fault:
        """Misbehave at the next `times` matching requests (None: always), after `skip` good ones.

        `when` compares parameters as text; a key that ends in `~` asks for a part of the value.
        """
        if isinstance(action, Mapping):
            action = FaultAction(**action)
        fault = Fault(action=action, method=method, times=times, skip=skip, when=when or {})
        self._faults.add(fault)
        return fault

    def clear_faults(self) -> None:
        """Behave from now on; what is held stays held."""
        self._faults.clear()

    def release(self) -> int:
        """Let go all that is being held, and say how many there were."""
        held = list(self._held)
        for event in held:
            event.set()
        return len(held)

    async def until(self, true: Callable[[], object], *, timeout_s: float = 60.0) -> None:
        """Wait until the condition holds; it is tried again whenever something happened here."""
        async with asyncio.timeout(timeout_s):
            while not true():
                change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(change)
                await change

    def set_clock(self, *, ahead_s: float) -> None:
        """Date all answers from now on so many seconds ahead of the machine's clock."""
        self._ahead_s = ahead_s

    def changed(self) -> None:
        """Wake whoever waits in `until`."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for change in waiting:
                if not change.done():
                    change.set_result(None)

    # What a stand-in provides -------------------------------------------------------------------

    @abstractmethod
    async def serve(self, request: BaseRequest) -> web.StreamResponse:
        """Answer one request of the platform, through `perform`."""

    def controls(self) -> dict[str, Callable[..., Any]]:
        """Return the operations behind `/lab/NAME` that are no public method of that name."""
        return {}

    def _operation(self, name: str) -> Callable[..., Any] | None:
        """Return what is called with the JSON body or the query as keywords."""
        ours: dict[str, Callable[..., Any]] = {
            "log": self.calls,
            "gate": lambda: {name: asdict(gate) for name, gate in self.gate.items()},
            "clock": self.set_clock,
            "wait": self._wait_for_gate,
            **self.controls(),
        }
        # Whoever reaches loopback may order what a test may call: there is nothing to guard.
        is_public = not name.startswith("_") and callable(getattr(type(self), name, None))
        return ours.get(name) or (getattr(self, name) if is_public else None)

    async def perform(
        self, request: BaseRequest, method: str, params: Mapping[str, Any], effect: Effect
    ) -> web.StreamResponse:
        """Log the request, let it take effect, and answer, as far as the faults allow."""
        entry = Entry(number=self._received, at=self._clock(), method=method, params=params)
        self._received += 1
        self._log.append(entry)
        self.gate[method].received += 1
        self.changed()
        action = self._faults.take(method, params)
        if action is not None:
            entry.fault = action.kind
            if action.kind == "hold" and not action.after:
                await self.hold(action.seconds)
        reply = StandInAnswer()
        if action is None or not action.instead:
            reply = await effect(action)
            entry.applied = reply.status < 300 and not (reply.fault and reply.fault.instead)
            self.gate[method].applied += entry.applied
            self.changed()
        if action is not None:
            reply = await self._alter(action, reply)
        if reply.fault is not None:
            entry.fault = reply.fault.kind
            reply = await self._alter(reply.fault, reply)
        return await self._send(request, entry, reply)

    async def hold(self, seconds: float | None) -> bool:
        """Wait this long, or until `release()` or the end of the server; whether it was those."""
        event = asyncio.Event()
        self._held.add(event)
        self.changed()
        try:
            async with asyncio.timeout(WAIT_S_MAX if seconds is None else seconds):
                await event.wait()
        except TimeoutError:
            return self._stopping.is_set()
        finally:
            self._held.discard(event)
        return True

    async def pause(self, seconds: float) -> None:
        """Wait this long; only the end of the server cuts it short."""
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()
            except TimeoutError:
                pass

    # Inside -------------------------------------------------------------------------------------

    async def _alter(self, action: FaultAction, reply: StandInAnswer) -> StandInAnswer:
        match action.kind:
            case "answer" if isinstance(action.body, str):
                headers = {"Content-Type": "text/html", **action.headers}
                body, shown = action.body.encode(), action.body
                return StandInAnswer(status=action.status, body=body, headers=headers, shown=shown)
            case "answer":
                return json_answer(action.body, status=action.status, headers=action.headers)
            case "hold" if action.after:
                await self.hold(action.seconds)
            case "drop":
                return replace(reply, end="drop")
            case "reset":
                return replace(reply, end="reset", chunks=None)
            case "garble":
                whole = reply.body if reply.chunks is None else b"".join(reply.chunks)
                half = whole[: len(whole) // 2]
                return replace(reply, body=half, chunks=None if reply.chunks is None else (half,))
        return reply

    async def _send(
        self, request: BaseRequest, entry: Entry, reply: StandInAnswer
    ) -> web.StreamResponse:
        if reply.first_after_s:
            await self.pause(reply.first_after_s)
        entry.response = reply.shown
        if reply.end == "drop" or (reply.end == "reset" and reply.chunks is None):
            self._finish(entry, request, status=0)
            _sever(request, hard=reply.end == "reset")
            return web.Response()
        if reply.upgrade is not None:
            self._finish(entry, request, status=reply.status)
            return await reply.upgrade(request)
        date = formatdate(time.time() + self._ahead_s, usegmt=True)
        headers = {"Date": date, **reply.headers}
        if reply.chunks is not None:
            return await self._stream(request, entry, reply, headers)
        self._finish(entry, request, status=reply.status)
        return web.Response(status=reply.status, body=reply.body, headers=headers)

    async def _stream(
        self,
        request: BaseRequest,
        entry: Entry,
        reply: StandInAnswer,
        headers: Mapping[str, str],
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=reply.status, headers=headers)
        chunks: tuple[bytes, ...] = reply.chunks or ()
        # In one write where no time passes between: no client sees a difference.
        if not reply.chunk_after_s:
            chunks = (b"".join(chunks),)
        try:
            await response.prepare(request)
            for chunk in chunks:
                await response.write(chunk)
                await self.pause(reply.chunk_after_s)
            if reply.end == "stall":
                while client_there(request) and not await self.hold(STALL_LOOK_S):
                    pass
        except ConnectionError:
            self._finish(entry, request, status=reply.status)
            return response
        self._finish(entry, request, status=reply.status)
        if reply.end in {"reset", "stall"}:
            _sever(request, hard=reply.end == "reset")
        return response

    def _finish(self, entry: Entry, request: BaseRequest, *, status: int) -> None:
        entry.status = status
        entry.client_there = client_there(request)
        entry.ended_at = self._clock()
        gate = self.gate[entry.method]
        gate.answered += bool(status and entry.client_there)
        gate.vanished += entry.applied and not entry.client_there
        self.changed()

    async def _handle(self, request: BaseRequest) -> web.StreamResponse:
        if not request.path.startswith("/lab/"):
            return await self.serve(request)
        operation = self._operation(request.path.removeprefix("/lab/"))
        if operation is None:
            return web.json_response({"error": "no such operation"}, status=404)
        try:
            body = await request.read()
            # In a query, as of a browser, what is not JSON is text.
            asked = json.loads(body) if body else {k: _typed(v) for k, v in request.query.items()}
            # Wrong names and types are the caller's mistake, so they are answered and not logged.
            result = operation(**asked)
            if asyncio.iscoroutine(result):
                result = await result
        except (TypeError, ValueError, LookupError) as wrong:
            return web.json_response({"error": repr(wrong)}, status=400)
        except TimeoutError:
            return web.json_response({"error": "not within the time limit"}, status=408)
        return web.json_response({"result": result}, dumps=partial(json.dumps, default=_plain))

    async def _wait_for_gate(
        self, *, method: str, timeout_s: float = 30.0, **least: int
    ) -> dict[str, int]:
        gate = self.gate[method]
        await self.until(
            lambda: all(getattr(gate, name) >= count for name, count in least.items()),
            timeout_s=timeout_s,
        )
        return asdict(gate)


def client_there(request: BaseRequest) -> bool:
    """Return whether the other end of the connection is still open at this moment.

    The event loop learns of a client's death one turn late, so the kernel is asked.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        return False
    look = select.poll()
    look.register(transport.get_extra_info("socket").fileno(), _HUNG_UP)
    return not look.poll(0)


def common_options(about: str) -> argparse.ArgumentParser:
    """The command-line options that every stand-in takes."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log-cap", type=int, default=200_000)
    return parser


def serve_until_interrupted(make: Callable[[], LabServer]) -> None:
    """Run a stand-in from the command line: say its address in one JSON line, then serve."""

    async def main() -> None:
        async with make() as server:
            # Whoever started it on port 0 reads here where it is.
            sys.stdout.write(json.dumps({"url": server.base_url}) + "\n")
            sys.stdout.flush()
            await asyncio.Event().wait()

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)


def _sever(request: BaseRequest, *, hard: bool) -> None:
    transport = request.transport
    if transport is None:
        return
    if hard:
        # Lingering for zero seconds makes the kernel send a reset instead of an orderly end.
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _typed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)
