"""What a server writes to its standard error: drained, and its end kept to say why it died."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

from agent.text import clean

KEPT_BYTES = 2_000
READ_BYTES = 65_536
LINE_CHARS_MAX = 200


class LastWords:
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
