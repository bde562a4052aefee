"""Parameters and files of one request as multipart/form-data, piece by piece: a big file is never
in memory as a whole, and reading it holds up nobody. Sent by `bot.telegram_connections`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO

PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """One file. What is open stays open, and is read from its beginning if it can be rewound."""

    name: str
    content: bytes | IO[bytes]
    content_type: str


class Upload:
    """`length` is None where the size of a file cannot be known before it is read."""

    def __init__(self, fields: Mapping[str, str], files: Mapping[str, FilePart]) -> None:
        boundary = os.urandom(16).hex()
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self._begin = f"--{boundary}\r\nContent-Disposition: form-data; name="
        self._end = f"--{boundary}--\r\n".encode()
        self._fields = "".join(
            f"{self._begin}{_quoted(name)}\r\n\r\n{value}\r\n" for name, value in fields.items()
        ).encode("utf-8", "replace")
        self._files = [(self._head(name, file), file.content) for name, file in files.items()]

    @property
    def length(self) -> int | None:
        """Bytes in all."""
        sizes = [_size(content) for _, content in self._files]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes):
            return None
        frame = len(self._fields) + len(self._end)
        return frame + sum(known) + sum(len(head) + len(b"\r\n") for head, _ in self._files)

    async def pieces(self, sent: Callable[[], None]) -> AsyncIterator[bytes]:
        """Everything in order. `sent` is called when a piece is asked for: the last one is away."""
        sent()
        yield self._fields
        for head, content in self._files:
            sent()
            yield head
            async for piece in _read(content):
                sent()
                yield piece
            sent()
            yield b"\r\n"
        sent()
        yield self._end
        sent()

    def _head(self, field: str, file: FilePart) -> bytes:
        name = f"{_quoted(field)}; filename={_quoted(file.name)}"
        kind = "".join(file.content_type.split())
        return f"{self._begin}{name}\r\nContent-Type: {kind}\r\n\r\n".encode("utf-8", "replace")


def _quoted(name: str) -> str:
    """As browsers write names in forms: UTF-8, and three characters escaped."""
    for character in '"\r\n':
        name = name.replace(character, f"%{ord(character):02X}")
    return f'"{name}"'


def _size(content: bytes | IO[bytes]) -> int | None:
    if isinstance(content, bytes):
        return len(content)
    try:
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
    except (AttributeError, OSError, ValueError):  # a pipe, or something that only reads
        return None
    return size


async def _read(content: bytes | IO[bytes]) -> AsyncIterator[bytes]:
    if isinstance(content, bytes):
        for piece in _cut(content):
            yield piece
        return
    while piece := await asyncio.to_thread(content.read, PIECE_BYTES):
        yield piece


def _cut(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), PIECE_BYTES):
        yield content[start : start + PIECE_BYTES]
