"""The private socket of a home: how the terminal and other commands reach the running bot.

One JSON object a line, both ways; the socket file has mode 0600 and lies in the home. The server
is the running bot's, the client any other `hearthbot` command's. A client pings while it waits, to
tell a bot that hangs from one that is busy.

A command calls a method of a part of the App by the method's own signature: `service` names the
methods that can be called, and all others are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import pkgutil
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import Signature, getattr_static, signature
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast, get_type_hints

import structlog

from memory.records.errors import AssistantError, Permanent

log = structlog.get_logger()

FOLLOWED = frozenset({"attach"})
"""Operations that last as long as the client listens. All others are done to their end."""

LINE_BYTES_MAX = 4 * 1024 * 1024

SOCKET_PATH_BYTES_MAX = 100
"""Longer paths do not fit a socket's address: 108 bytes on Linux, 104 on macOS, with a zero at the
end (`sun_path` in sys/un.h)."""

OPEN_FILES = Path("/proc/self/fd")
"""Only on Linux."""

SILENT_S, TICKS = 5.0, 5
"""A bot that is silent for so long hangs, since it answers a ping between any two steps. Counted in
ticks, so that a client that stood still itself does not blame the bot."""

WENT_AWAY = "The bot went away."

NOT_ANSWERING = (
    "The bot{process} is not responding: no answer for {silent_s:g} s. If that does not change, "
    "end it with `kill -9 {pid}` and start it again; nothing that was stored is lost. What you "
    "asked for now is not done later."
)

Emit = Callable[[dict[str, Any]], None]
Operation = Callable[[dict[str, Any], Emit], Coroutine[Any, Any, dict[str, Any]]]
"""Takes a request and may emit events before it answers. AssistantErrors go to the client."""


class NotRunning(Permanent):
    """No bot listens on the socket of this home."""


class NotAnswering(Permanent):
    """A bot is there but does not answer: it hangs, or was stopped."""


TELL = "tell"
"""An argument of this name takes a function that hears of each step (a text) while it lasts."""

PIECE_CHARS = 500_000
"""Longer answers go in several lines, whatever their characters take as JSON."""

PartT = TypeVar("PartT")
ResultT = TypeVar("ResultT")
P = ParamSpec("P")


# --- methods that can be called -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RemoteMethod:
    """A method that can be called: what `App.jobs.pause` is, where a type checker sees the method.

    Arguments and result travel as the JSON of their types in the method's signature.
    """

    part: str
    name: str
    kind: str
    """Where its class is: `package.module:Class`, loaded when it is called."""

    def request(self, *given: object, **named: object) -> dict[str, Any]:
        """Return the arguments by name, as JSON, without TELL. Raise TypeError for those it does
        not take."""
        shape, hints = _shape(self.kind, self.name)
        arguments = shape.bind(None, *given, **named).arguments
        own = [name for name in list(arguments)[1:] if name != TELL]
        return {
            name: _adapter(hints[name]).dump_python(arguments[name], mode="json") for name in own
        }

    def result(self, value: Any) -> Any:
        """Return the result that was sent as JSON. Raise ValueError for another version's."""
        return _adapter(_shape(self.kind, self.name)[1]["return"]).validate_python(value)

    async def answer(self, part: object, arguments: dict[str, Any], emit: Emit) -> Any:
        """Call it with arguments from JSON; return the result as JSON. Raise ValueError or
        TypeError for arguments it does not take."""
        shape, hints = _shape(self.kind, self.name)
        named = {
            name: _adapter(hints[name]).validate_python(value) for name, value in arguments.items()
        }
        if TELL in shape.parameters:
            named[TELL] = lambda step: emit({TELL: step})
        shape.bind(None, **named)
        result = await getattr(part, self.name)(**named)
        return _adapter(hints["return"]).dump_python(result, mode="json")


@cache
def _shape(kind: str, name: str) -> tuple[Signature, dict[str, Any]]:
    function = getattr(pkgutil.resolve_name(kind), name)
    return signature(function), get_type_hints(function)


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


class Service(Generic[PartT]):
    """A part with methods that can be called. On an App it is the part itself, built when it is
    first asked for; on the class it stands for its methods."""

    def __init__(self, build: Callable[[Any], PartT], kind: str, methods: frozenset[str]) -> None:
        self._build = build
        self._kind = kind
        self.methods = methods
        self._name = build.__name__

    def __get__(self, app: object | None, owner: type) -> PartT:
        if app is None:
            return cast("PartT", self)  # whose methods are those that `call` takes
        part: PartT = self._build(app)
        vars(app)[self._name] = part
        return part

    def __getattr__(self, name: str) -> RemoteMethod:
        if name not in self.methods:
            raise AttributeError(f"{self._name}.{name} cannot be called from outside")
        return RemoteMethod(self._name, name, self._kind)


def service(kind: str, *methods: str) -> Callable[[Callable[[Any], PartT]], Service[PartT]]:
    """Make a part of the App one whose `methods` can be called, by whoever can open the socket.

    `kind` is where its class is (`package.module:Class`): a client loads no more than that.
    """
    return lambda build: Service(build, kind, frozenset(methods))


async def call_method(app: object, request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    """Answer a request to call a method of a part. Raise KeyError for one that is closed."""
    found = getattr_static(type(app), request["part"], None)
    if not isinstance(found, Service) or request["method"] not in found.methods:
        raise KeyError(f"{request['part']}.{request['method']}")
    method: RemoteMethod = getattr(found, request["method"])
    part = getattr(app, request["part"])
    return {"result": await method.answer(part, request["arguments"], emit)}


# --- the running bot ----------------------------------------------------------------------------


async def _pong(request: dict[str, Any], emit: Emit) -> dict[str, Any]:
    return {}


class ControlServer:
    """Serves operations on the home's socket. An async context manager."""

    def __init__(self, path: Path, operations: Mapping[str, Operation]) -> None:
        self._path = path
        self._operations = {"ping": _pong, **operations}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._doing: set[asyncio.Task[dict[str, Any]]] = set()

    async def __aenter__(self) -> Self:
        # We hold the home's lock, so a socket that is there is left over from a kill.
        self._path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        with _short(self._path) as path:
            listening.bind(path)
        self._path.chmod(0o600)
        self._server = await asyncio.start_server(self._serve, sock=listening, limit=LINE_BYTES_MAX)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in [*self._tasks, *self._doing]:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._doing, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client: its requests run side by side, each answered under its own id."""
        own = asyncio.current_task()
        assert own is not None
        self._tasks.add(own)
        client = _RemoteCaller(writer)
        try:
            async with asyncio.TaskGroup() as group:
                while line := await reader.readline():
                    group.create_task(self._answer(line, client))
                client.gone.set()
                raise _ClientGone
        except* (_ClientGone, ConnectionError, ValueError):
            pass
        except* asyncio.CancelledError:
            # Only our own closing cancels this task, and it waits for us. asyncio's stream
            # callback would report a cancelled task as an error.
            pass
        finally:
            self._tasks.discard(own)
            client.gone.set()
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, line: bytes, client: _RemoteCaller) -> None:
        number: object = None
        try:
            request = json.loads(line)
            number = request.get("id")
            if request.get("by_s", math.inf) < time.monotonic():
                # Who asked was told that the bot hangs, and may have done something else since.
                log.info("control.too_late", op=request["op"])
                return
            operation = self._operations[request["op"]]
            doing = operation(request, lambda event: client.write({"id": number, "event": event}))
            answer = await (doing if request["op"] in FOLLOWED else self._to_its_end(doing))
            text = json.dumps(answer)
            if len(text) <= PIECE_CHARS:
                client.write({"id": number, "ok": True, "answer": answer})
                return
            for start in range(0, len(text), PIECE_CHARS):
                client.write({"id": number, "piece": text[start : start + PIECE_CHARS]})
            client.write({"id": number, "ok": True})
        except AssistantError as error:
            client.write({"id": number, "ok": False, "error": str(error)})
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            log.warning("control.bad_request", why=f"{type(error).__name__}: {error}")
            client.write({"id": number, "ok": False, "error": "this version does not know that"})

    async def _to_its_end(self, doing: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Do what was asked, even if whoever asked hangs up meanwhile: a message that was stored
        must be acted on, and a person who was let in must be known."""
        task = asyncio.ensure_future(doing)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Nobody is left to be told how it ends.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise


class _ClientGone(Exception):
    """Ends the task group of a client that hung up."""


class _RemoteCaller:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.gone = asyncio.Event()

    def write(self, value: dict[str, Any]) -> None:
        if not self.gone.is_set():
            # All ASCII: half a character in a request must not break the answer to it.
            self._writer.write(json.dumps(value).encode() + b"\n")


class ControlClient:
    """Asks the running bot. An async context manager; entering raises NotRunning.

    While an answer is awaited, a bot that is silent for `silent_s` raises NotAnswering. The work
    itself may take any time.
    """

    def __init__(self, path: Path, *, silent_s: float = SILENT_S) -> None:
        self._path = path
        self._silent_s = silent_s
        self._pid: int | None = None
        self._quiet_ticks = 0
        self._next = 0
        self._waiting: dict[int, asyncio.Queue[dict[str, Any]]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._lost: Permanent | None = None

    async def __aenter__(self) -> Self:
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        try:
            with _short(self._path) as path:
                connection.connect(path)
        except BaseException as error:
            connection.close()
            match error:
                case BlockingIOError():  # its queue of connections is full
                    raise self._not_answering() from error
                case FileNotFoundError() | ConnectionRefusedError():
                    raise NotRunning("No bot is running on this home.") from error
                case _:
                    raise
        self._pid = _pid_of(connection)
        reader, self._writer = await asyncio.open_unix_connection(
            sock=connection, limit=LINE_BYTES_MAX
        )
        self._tasks = [
            asyncio.create_task(self._read(reader)),
            asyncio.create_task(self._watch()),
        ]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._writer is not None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer; events are passed over. Raise Permanent with the bot's own words, and
        NotAnswering."""
        async for kind, value in self.follow(operation, **arguments):
            if kind == "answer":
                return value
        raise Permanent(WENT_AWAY)

    async def call(
        self,
        method: Callable[P, Awaitable[ResultT]],
        *given: P.args,
        **named: P.kwargs,
    ) -> ResultT:
        """Call a method of a part, as `App.jobs.pause`. Raise Permanent with the bot's own words,
        and NotAnswering."""
        remote = cast(RemoteMethod, method)
        asked = remote.request(*given, **named)
        tell = cast("Callable[[str], None] | None", named.get(TELL))
        request = {"part": remote.part, "method": remote.name, "arguments": asked}
        async for kind, value in self.follow("call", **request):
            if kind == "answer":
                result: ResultT = remote.result(value["result"])
                return result
            if tell is not None:
                tell(value[TELL])
        raise Permanent(WENT_AWAY)

    async def follow(
        self, operation: str, **arguments: Any
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """("event", ...) as they come, then ("answer", ...). Raises Permanent, NotAnswering."""
        assert self._writer is not None
        if self._lost is not None:
            raise self._lost
        self._next += 1
        number = self._next
        if not self._waiting:
            self._quiet_ticks = 0
        queue = self._waiting[number] = asyncio.Queue()
        pieces: list[str] = []
        try:
            by_s = time.monotonic() + self._silent_s
            asked = {"id": number, "op": operation, "by_s": by_s, **arguments}
            line = json.dumps(asked, ensure_ascii=False)
            self._writer.write(line.encode() + b"\n")
            self._ping()
            while True:
                message = await queue.get()
                if self._lost is not None and not message:
                    raise self._lost
                if "event" in message:
                    yield "event", message["event"]
                elif "piece" in message:
                    pieces.append(message["piece"])
                elif message.get("ok"):
                    yield "answer", json.loads("".join(pieces)) if pieces else message["answer"]
                    return
                else:
                    raise Permanent(str(message.get("error", WENT_AWAY)))
        finally:
            del self._waiting[number]

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._quiet_ticks = 0
                message = json.loads(line)
                queue = self._waiting.get(message.get("id"))
                if queue is not None:
                    queue.put_nowait(message)
        except (ConnectionError, ValueError) as error:
            log.debug("control.lost", why=str(error))
        self._lose(Permanent(WENT_AWAY))

    async def _watch(self) -> None:
        """Ping while somebody waits, and end the wait if nothing comes back."""
        while True:
            await asyncio.sleep(self._silent_s / TICKS)
            if not self._waiting:
                continue
            self._quiet_ticks += 1
            if self._quiet_ticks >= TICKS:
                self._lose(self._not_answering())
                return
            if self._quiet_ticks == 1:
                self._ping()

    def _ping(self) -> None:
        """Send a ping. Any line counts as an answer: an older bot replies with a refusal."""
        assert self._writer is not None
        self._writer.write(b'{"op": "ping"}\n')

    def _lose(self, why: Permanent) -> None:
        self._lost = why
        for queue in self._waiting.values():
            queue.put_nowait({})

    def _not_answering(self) -> NotAnswering:
        return NotAnswering(
            NOT_ANSWERING.format(
                process=f" (process {self._pid})" if self._pid else "",
                silent_s=self._silent_s,
                pid=self._pid or "PID",
            )
        )


def _pid_of(connection: socket.socket) -> int | None:
    """Return the id of the process at the other end, if the system tells it."""
    if sys.platform != "linux":
        return None
    size = struct.calcsize("3i")
    pid, _, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return int(pid) or None


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a name for `path` short enough for a socket's address, by way of its open folder.

    If the system has no names for open files, change into the folder and back: nothing may be
    awaited meanwhile.
    """
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if OPEN_FILES.exists():
            yield f"{OPEN_FILES}/{folder}/{path.name}"
            return
        before = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fchdir(folder)
            yield path.name
        finally:
            os.fchdir(before)
            os.close(before)
    finally:
        os.close(folder)
