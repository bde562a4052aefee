"""A server that is a program of this machine: started, spoken to by lines, and ended. Called by
`agent.mcp.session`; knows nothing of the protocol.

Not by the SDK's own: that takes a line of any length, and one of 100 MB costs half a gigabyte.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TextIO

from agent.errors import Permanent

CHUNK_BYTES = 65_536
END_S = 2.0
"""As long as a program gets to end by itself, and then to heed the signal that asks it to."""


class LineTooLong(Permanent):
    """The program wrote a line of more than may be; it is being ended."""


class Program:
    """One that runs. Its lines are read by one task; written by any."""

    def __init__(
        self, transport: asyncio.SubprocessTransport, streams: _Streams, *, end_s: float
    ) -> None:
        self._transport = transport
        self._streams = streams
        self._end_s = end_s

    async def lines(self, *, bytes_max: int) -> AsyncIterator[bytes]:
        """Each line without its end, until the program closes its output. No more than one line
        is held, and no line is read ahead. Raises LineTooLong."""
        line = bytearray()
        while chunk := await self._read():
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                line += end
                yield bytes(line)
                line.clear()
            line += rest
            if len(line) > bytes_max:
                self._signal(signal.SIGTERM)
                raise LineTooLong(f"it sent a message of more than {bytes_max // 1_000_000} MB")

    async def write(self, line: bytes) -> None:
        """One line, its end included. Raises OSError when nobody reads any more."""
        stdin = self._streams.stdin
        assert stdin is not None, "it was started with a pipe"
        stdin.write(line)
        await stdin.drain()

    async def end(self) -> None:
        """The program and all that it started are gone; a few seconds at most. What it still
        writes is thrown away, so that it does not wait for a reader."""
        stdin = self._streams.stdin
        assert stdin is not None, "it was started with a pipe"
        draining = asyncio.create_task(self._drained())
        try:
            stdin.close()
            if not await self._exited():
                self._signal(signal.SIGTERM)
                await self._exited()
        finally:
            self._signal(signal.SIGKILL)
            draining.cancel()
            await self._exited()
            self._transport.close()

    async def _read(self) -> bytes:
        assert self._streams.stdout is not None, "it was started with a pipe"
        return await self._streams.stdout.read(CHUNK_BYTES)

    async def _drained(self) -> None:
        with suppress(OSError):
            while await self._read():
                pass

    async def _exited(self) -> bool:
        """Whether the program itself is gone within its time; those it left behind may be not."""
        try:
            async with asyncio.timeout(self._end_s):
                await self._streams.exited.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        """To the program and whatever it started: it leads a group of its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)


class _Streams(SubprocessStreamProtocol):
    """Says when the program itself is gone. The library's own `wait` also waits for its pipes,
    which a process that it left behind may hold open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=CHUNK_BYTES, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@asynccontextmanager
async def program(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path,
    errors: TextIO | None = None,
    end_s: float = END_S,
) -> AsyncIterator[Program]:
    """Runs a command in a folder, with this environment and no other, for as long as this is
    open. `errors` gets its standard error. Raises OSError, ValueError when it cannot be started.
    """
    import anyio

    loop = asyncio.get_running_loop()
    transport, streams = await loop.subprocess_exec(
        lambda: _Streams(loop),
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL if errors is None else errors,
        env=dict(env),
        cwd=folder,
        start_new_session=True,
    )
    running = Program(transport, streams, end_s=end_s)
    try:
        yield running
    finally:
        with anyio.CancelScope(shield=True):
            await running.end()
