"""The private socket of a home: how the terminal and other commands reach the running bot.

One JSON object a line, both ways; the socket file has mode 0600 and lies in the home. The server
is the running bot's, the client any other `hearthbot` command's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from agent.errors import AssistantError, Permanent

log = structlog.get_logger()

FOLLOWED = frozenset({"attach"})
"""Operations that last as long as the client listens. All others are done to their end."""

LINE_BYTES_MAX = 4 * 1024 * 1024

WENT_AWAY = "The bot went away."

Emit = Callable[[dict[str, Any]], None]
Operation = Callable[[dict[str, Any], Emit], Coroutine[Any, Any, dict[str, Any]]]
"""Takes a request and may emit events before it answers. AssistantErrors go to the client."""


class NotRunning(Permanent):
    """No bot listens on the socket of this home."""


class ControlServer:
    """Serves operations on the home's socket. An async context manager."""

    def __init__(self, path: Path, operations: Mapping[str, Operation]) -> None:
        self._path = path
        self._operations = operations
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._doing: set[asyncio.Task[dict[str, Any]]] = set()

    async def __aenter__(self) -> Self:
        # We hold the home's lock, so a socket that is there is left over from a kill.
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(
            self._serve, path=self._path, limit=LINE_BYTES_MAX
        )
        self._path.chmod(0o600)
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
        client = _Client(writer)
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

    async def _answer(self, line: bytes, client: _Client) -> None:
        number: object = None
        try:
            request = json.loads(line)
            number = request.get("id")
            operation = self._operations[request["op"]]
            doing = operation(request, lambda event: client.write({"id": number, "event": event}))
            answer = await (doing if request["op"] in FOLLOWED else self._to_its_end(doing))
            client.write({"id": number, "ok": True, "answer": answer})
        except AssistantError as error:
            client.write({"id": number, "ok": False, "error": str(error)})
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            log.warning("control.bad_request", why=f"{type(error).__name__}: {error}")
            client.write({"id": number, "ok": False, "error": "this version does not know that"})

    async def _to_its_end(self, doing: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """What was asked is done, even if whoever asked hangs up meanwhile: a message that was
        stored must be acted on, and a person who was let in must be known."""
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


class _Client:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.gone = asyncio.Event()

    def write(self, value: dict[str, Any]) -> None:
        if not self.gone.is_set():
            # All ASCII: half a character in a request must not break the answer to it.
            self._writer.write(json.dumps(value).encode() + b"\n")


class ControlClient:
    """Asks the running bot. An async context manager; entering raises NotRunning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next = 0
        self._waiting: dict[int, asyncio.Queue[dict[str, Any]]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._lost = False

    async def __aenter__(self) -> Self:
        try:
            reader, self._writer = await asyncio.open_unix_connection(
                self._path, limit=LINE_BYTES_MAX
            )
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NotRunning("No bot is running on this home.") from error
        self._reading = asyncio.create_task(self._read(reader))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._writer is not None
        assert self._reading is not None
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """The answer; events are passed over. Raises Permanent with the bot's own words."""
        async for kind, value in self.follow(operation, **arguments):
            if kind == "answer":
                return value
        raise Permanent(WENT_AWAY)

    async def follow(
        self, operation: str, **arguments: Any
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """("event", ...) as they come, then ("answer", ...). Raises Permanent."""
        assert self._writer is not None
        if self._lost:
            raise Permanent(WENT_AWAY)
        self._next += 1
        number = self._next
        queue = self._waiting[number] = asyncio.Queue()
        try:
            line = json.dumps({"id": number, "op": operation, **arguments}, ensure_ascii=False)
            self._writer.write(line.encode() + b"\n")
            while True:
                message = await queue.get()
                if "event" in message:
                    yield "event", message["event"]
                elif message.get("ok"):
                    yield "answer", message["answer"]
                    return
                else:
                    raise Permanent(str(message.get("error", WENT_AWAY)))
        finally:
            del self._waiting[number]

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                message = json.loads(line)
                queue = self._waiting.get(message.get("id"))
                if queue is not None:
                    queue.put_nowait(message)
        except (ConnectionError, ValueError) as error:
            log.debug("control.lost", why=str(error))
        self._lost = True
        for queue in self._waiting.values():
            queue.put_nowait({"ok": False, "error": WENT_AWAY})
