"""A tiny model server on loopback: it answers what a test tells it, and keeps what was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.agent.web.sites import site

Script = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ModelServer:
    """Plays its scripts in order, the last one for ever."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.asked: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.api_base = ""
        self.left = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.bodies.append(body)
        self.asked.append(json.loads(body))
        self.headers.append(request.headers)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        return await script(request)

    def streams(self, *pieces: bytes, then: str = "end") -> None:
        """Sends the pieces one by one; `then` the answer ends, is reset, or hangs."""

        async def script(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
            if then == "hang":
                await self._until_left(request)
            if then == "reset":
                assert request.transport is not None
                await asyncio.sleep(0.02)
                request.transport.abort()
            return response

        self.scripts.append(script)

    def says(self, *chunks: dict[str, Any] | str, then: str = "end", done: bool = True) -> None:
        """Streams chunks as events."""
        self.streams(*events(*chunks, done=done), then=then)

    def replies(
        self, status: int, body: str | dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        """One whole HTTP answer."""
        text = body if isinstance(body, str) else json.dumps(body)
        kind = "text/html" if text.startswith("<") else "application/json"

        async def script(_: web.Request) -> web.StreamResponse:
            return web.Response(status=status, text=text, content_type=kind, headers=headers)

        self.scripts.append(script)

    async def _until_left(self, request: web.Request) -> None:
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.005)
        self.left.set()


def events(*chunks: dict[str, Any] | str, done: bool = True) -> list[bytes]:
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    texts += ["[DONE]"] if done else []
    return [f"data: {text}\n\n".encode() for text in texts]


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of the first choice."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(
    index: int | None = 0, *, id: str | None = None, name: str | None = None, args: Any = None
) -> dict[str, Any]:
    """A piece of a tool call; what is None is left out."""
    function = {key: v for key, v in (("name", name), ("arguments", args)) if v is not None}
    piece = {"index": index, "id": id, "function": function}
    return {key: value for key, value in piece.items() if value is not None}


@asynccontextmanager
async def serving() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    async with site(server.handle) as served:
        server.api_base = f"{served.url}/v1"
        yield server
