"""Lines from standard input, without ever holding up the end of the program.

For a pipe or a file; a person at a terminal types into prompt_toolkit instead.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

READ_BYTES_MAX = 65_536


async def typed_lines(descriptor: int = 0) -> AsyncIterator[str]:
    """Each line as it comes, without its end, until there are no more."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        rest = b""
        while piece := os.read(descriptor, READ_BYTES_MAX):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                put(line)
        if rest:
            put(rest)
        tell(None)

    def put(line: bytes) -> None:
        tell(line.decode("utf-8", "replace").removesuffix("\r"))

    def tell(line: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lines.put_nowait, line)

    # A read cannot be cancelled. asyncio's own threads are waited for at the end of the program,
    # and sys.stdin would be locked by it; so a thread that may be left behind reads the bytes.
    threading.Thread(target=read, name="standard input", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line
