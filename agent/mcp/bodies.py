"""The bodies of an MCP server's answers by HTTP, which the SDK reads as a whole: bounded. Loaded by
`agent.mcp.session` with the first server that has an address.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

EVENTS = "text/event-stream"
"""Read piece by piece, and bounded by the SDK."""


class _Bounded(httpx2.AsyncByteStream):
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
        response.stream = _Bounded(
            response.stream, bytes_max=self._bytes_max, is_packed=packed not in {"", "identity"}
        )
