"""A way to a stand-in on which connections go wrong below HTTP."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.bot.delivery_answers import Wire

NAME = "localhost"


class Relay:
    """Passes on what is said to one port to another one, as long as the way is open."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._fault: Wire | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._shut()

    @property
    def url(self) -> str:
        """The root of the stand-in by this way."""
        return f"http://{NAME}:{self.port}"

    async def go_wrong(self, fault: Wire | None) -> None:
        """Have connections fail so from now on (None: no more). Those that stand are cut."""
        self._fault = fault
        if fault in {"refused", "no such name"}:
            await self._shut()
        else:
            self._cut()
            if self._server is None:
                await self._listen()

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self._server = server
        self.port = server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cut(self) -> None:
        for writer in self._open:
            writer.close()
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            await self._served(reader, writer)
        except (asyncio.CancelledError, OSError):
            pass
        finally:
            self._tasks.discard(task)
            self._open.discard(writer)
            writer.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._fault == "reset at once":
            await reader.read(1)
            linger = struct.pack("ii", 1, 0)
            plain = writer.get_extra_info("socket")
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return
        if self._fault == "half-open":
            await asyncio.Event().wait()
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._open.add(back)
        try:
            ways = [
                asyncio.ensure_future(_pass(reader, back)),
                asyncio.ensure_future(_pass(there, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            self._open.discard(back)
            back.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
