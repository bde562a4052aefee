"""The messages between us and an MCP server on their way: from lines to the SDK's values, watched
and mended. Called by `agent.mcp.session`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import structlog

from agent.mcp.listing import mended
from agent.mcp.program import LineTooLong, Program

if TYPE_CHECKING:
    from mcp.client import Transport
    from mcp.shared.message import SessionMessage

MESSAGE_BYTES_MAX = 32_000_000
"""Of one message of a server, by whichever way; a file of 20 MB is 27 MB of base64."""

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def spoken_to(running: Program, exceeded: Callable[[str], None]) -> AsyncIterator[Any]:
    """The program as a transport. `exceeded` hears why nothing more is taken from it."""
    import anyio
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    heard: MemoryObjectSendStream[SessionMessage]
    said: MemoryObjectReceiveStream[SessionMessage]
    heard, read = anyio.create_memory_object_stream[SessionMessage](0)
    write, said = anyio.create_memory_object_stream[SessionMessage](0)

    async def hear() -> None:
        async with heard:
            try:
                async for line in running.lines(bytes_max=MESSAGE_BYTES_MAX):
                    if (message := _message(line)) is not None:
                        await heard.send(message)
            except LineTooLong as error:
                exceeded(str(error))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return  # nobody listens any more

    async def say() -> None:
        async with said:
            async for one in said:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await running.write(text.encode() + b"\n")
                except OSError:
                    await heard.aclose()  # it may live on, but an answer will never come
                    return

    async with anyio.create_task_group() as group, read, write:
        group.start_soon(hear)
        group.start_soon(say)
        yield read, write
        group.cancel_scope.cancel()


def _message(line: bytes) -> SessionMessage | None:
    """A line as a message. None for whatever else a program writes to its output: there may be
    much of it, and nobody waits for it."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False)
    except ValueError:
        return None
    return SessionMessage(found)


@asynccontextmanager
async def watched(transport: Transport, ended: Callable[[], None]) -> AsyncIterator[Any]:
    """The transport, with word of the moment at which the other side is gone: the SDK tells it
    to calls alone."""
    async with transport as (read, write):
        yield _Watched(read, ended), write


class _Watched:
    """A read stream that says when it has ended, and mends lists of tools on their way."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner = inner
        self._ended = ended

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        has_ended = True
        try:
            item = await self._inner.__anext__()
            has_ended = False
            if lost := mended(getattr(getattr(item, "message", None), "result", None)):
                _log.warning("mcp.unreadable_tools", count=lost)
            return item
        finally:
            if has_ended:
                self._ended()

    async def receive(self) -> Any:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> _Watched:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._inner.__aexit__(*raised)

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)
