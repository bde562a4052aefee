"""The messages between us and an MCP server on their way: from lines to the SDK's values, watched
and mended. Called by `agent.mcp.connection`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import mimetypes
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO

import httpx2
import structlog

from agent.mcp.process import LineTooLong, ServerProgram
from agent.mcp.values import ServerRefused, mended
from agent.tools.tool import Caller
from agent.tools.workspace import RESULTS, Workspace, results_folder
from memory.records.errors import AssistantError
from memory.records.text import clean

if TYPE_CHECKING:
    from mcp.client import Transport
    from mcp.shared.message import SessionMessage
    from mcp_types import CallToolResult, ContentBlock

MESSAGE_BYTES_MAX = 32_000_000
"""Of one message of a server, by whichever way; a file of 20 MB is 27 MB of base64."""

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def spoken_to(running: ServerProgram, exceeded: Callable[[str], None]) -> AsyncIterator[Any]:
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
        yield _MendedStream(read, ended), write


class _MendedStream:
    """A read stream that says when it has ended, and mends lists of tools on their way."""

    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner = inner
        self._ended = ended

    def __aiter__(self) -> _MendedStream:
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

    async def __aenter__(self) -> _MendedStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._inner.__aexit__(*raised)

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)


# --- bodies -------------------------------------------------------------------------------------
#
# The bodies of an MCP server's answers by HTTP, which the SDK reads as a whole: bounded. Loaded by
# `agent.mcp.connection` with the first server that has an address.

EVENTS = "text/event-stream"
"""Read piece by piece, and bounded by the SDK."""


class _BoundedBody(httpx2.AsyncByteStream):
    """A body up to so many bytes. Beyond them reading it fails as the SDK expects of a body that is
    not what it should be."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, bytes_max: int, is_packed: bool) -> None:
        self._inner = inner
        self._left = bytes_max
        self._excess = f"it sent a message of more than {bytes_max // 1_000_000} MB"
        self._is_packed = is_packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._is_packed:  # a few bytes may unpack to anything, and nobody asked for that
            raise httpx2.StreamError("it sent a packed message, which was not asked for")
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.StreamError(self._excess)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class BoundedBodies:
    """A hook on each answer. Ask for content that is not packed besides."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max

    async def __call__(self, response: httpx2.Response) -> None:
        if response.headers.get("content-type", "").lower().startswith(EVENTS):
            return
        assert isinstance(response.stream, httpx2.AsyncByteStream), "the client is asynchronous"
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        response.stream = _BoundedBody(
            response.stream, bytes_max=self._bytes_max, is_packed=packed not in {"", "identity"}
        )


# --- stderr -------------------------------------------------------------------------------------
#
# What a server writes to its standard error: drained, and its end kept to say why it died.

KEPT_BYTES = 2_000
READ_BYTES = 65_536
LINE_CHARS_MAX = 200


class StderrTail:
    """The end of one server's standard error."""

    def __init__(self) -> None:
        self._tail = b""

    @property
    def last(self) -> str:
        """Its last line that is not empty, fit to be shown."""
        lines = clean(self._tail.decode("utf-8", "replace")).splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:LINE_CHARS_MAX]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[TextIO]:
        """The file to give to the server. It is read for as long as this is open, so that no
        server waits for somebody to read what it writes."""
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        loop.add_reader(reading, self._read, reading)
        try:
            with os.fdopen(writing, "w") as file:
                yield file
        finally:
            self._read(reading)
            loop.remove_reader(reading)
            os.close(reading)

    def _read(self, handle: int) -> None:
        try:
            found = os.read(handle, READ_BYTES)
        except BlockingIOError:
            return
        if not found:  # nobody writes any more
            asyncio.get_running_loop().remove_reader(handle)
        self._tail = (self._tail + found)[-KEPT_BYTES:]


# --- results ------------------------------------------------------------------------------------
#
# What a server answered, as text for the model; what is no text is kept as a file.
#
# Files go to where long results of the chat are kept. Links are told and never opened (case TO-13).

FILE_BYTES_MAX = 20_000_000
FILES_MAX = 20
PARTS_MAX = 500
MIME_CHARS_MAX = 60
WORD_CHARS_MAX = 500
FAILED = "the server says that it failed, without a reason"


class ResultReader:
    """Makes a text of a result. Raises ServerRefused with that text where it is an error."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def text(self, result: CallToolResult, caller: Caller) -> str:
        """Empty when the server said nothing."""
        said: list[str] = []
        files = 0
        for part in result.content[:PARTS_MAX]:
            match part.type:
                case "text":
                    said.append(part.text)
                case "resource_link":
                    about = ", ".join(
                        _word(one) for one in (part.name, part.mime_type or "") if one
                    )
                    uri = _word(str(part.uri))
                    said.append(f"[a link, not opened: {uri}{f' ({about})' if about else ''}]")
                case "resource" if isinstance(text := getattr(part.resource, "text", None), str):
                    uri = _word(str(part.resource.uri))
                    said.append(f"[{uri}]\n{text}" if uri else text)
                case _:
                    files += 1
                    said.append(await self._kept(part, caller, is_much=files > FILES_MAX))
        if len(result.content) > PARTS_MAX:
            said.append(f"[{len(result.content) - PARTS_MAX} more parts were left out]")
        structured = result.structured_content
        if structured is not None and not _is_told(structured, said):
            try:
                said.append(json.dumps(structured, ensure_ascii=False))
            except (ValueError, RecursionError):
                said.append("[structured content that is nested too deep]")
        text = "\n\n".join(one for one in said if one)
        if result.is_error:
            raise ServerRefused(text.strip() or FAILED)
        return text

    async def _kept(self, part: ContentBlock, caller: Caller, *, is_much: bool) -> str:
        """Keep an image, a sound or a file, in base64 as it came; return a line on it."""
        if part.type == "resource":
            data, uri = str(getattr(part.resource, "blob", "")), _word(str(part.resource.uri))
            kind = part.resource.mime_type or ""
        else:
            data, uri, kind = getattr(part, "data", ""), "", getattr(part, "mime_type", "")
        if is_much:
            return f"[one more file, {_word(kind)}, was not kept]"
        mime = _word(kind)[:MIME_CHARS_MAX] or "a file"
        about = f"{mime} from {uri}" if uri else mime
        if len(data) > FILE_BYTES_MAX * 4 // 3 + 4:
            return f"[{about}: too large to be kept (at most {FILE_BYTES_MAX:,} bytes)]"
        try:
            path, size = await asyncio.to_thread(self._write, data, kind, caller)
        except (binascii.Error, ValueError):
            return f"[{about}: its content cannot be read]"
        except AssistantError as error:
            return f"[{about}: it could not be kept, {error}]"
        return f"[{about}, {size:,} bytes, kept as {path}]"

    def _write(self, data: str, mime: str, caller: Caller) -> tuple[str, int]:
        """The same content gets the same name, so that a repeated call adds nothing."""
        content = base64.b64decode(data, validate=True)
        digest = hashlib.sha256(content).hexdigest()[:16]
        kind = mime.partition(";")[0].strip().lower()
        suffix = _SUFFIXES.get(kind) or mimetypes.guess_extension(kind) or ".bin"
        path = "/".join((*RESULTS, results_folder(caller), f"{digest}{suffix}"))
        self._workspace.write(path, content, caller, bytes_max=FILE_BYTES_MAX)
        return path, len(content)


_SUFFIXES = {"audio/wav": ".wav", "audio/ogg": ".ogg", "image/webp": ".webp"}
"""What not every machine knows."""


def _is_told(structured: Any, said: Sequence[str]) -> bool:
    """Return whether the text is the same value: most servers send it twice."""
    only = structured
    if isinstance(structured, dict) and len(structured) == 1:
        only = next(iter(structured.values()))  # a bare value is wrapped in one field
    for text in said:
        try:
            if json.loads(text) in (structured, only):
                return True
        except (ValueError, RecursionError):
            if text == only:
                return True
    return False


def _word(text: str) -> str:
    return " ".join(clean(text).split())[:WORD_CHARS_MAX]
