"""Server-sent events, read by hand: bytes in any pieces go in, the data of whole events comes out.

Used by `openai_compatible`. Lenient where servers are sloppy: CR, LF and CRLF, a missing last
blank line, a byte order mark, unknown fields.
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"
EVENT_BYTES_MAX = 16 * 1024 * 1024


class EventTooLarge(ValueError):
    """One event is larger than any answer we would accept."""


class EventReader:
    """Collects bytes; `feed` returns the events that became whole, `end` a last unfinished one."""

    def __init__(self) -> None:
        self._tail = b""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, piece: bytes) -> list[str]:
        """Raises EventTooLarge when a server never ends its event."""
        events: list[str] = []
        for line in self._lines(piece):
            self._take(line, events)
        if len(self._tail) + self._size > EVENT_BYTES_MAX:
            raise EventTooLarge(f"an event of more than {EVENT_BYTES_MAX} bytes")
        return events

    def end(self) -> list[str]:
        """What a server sent without the closing blank line. Cut JSON fails where it is parsed."""
        events: list[str] = []
        if self._tail:
            self._take(self._tail, events)
            self._tail = b""
        self._take(b"", events)
        return events

    def _lines(self, piece: bytes) -> list[bytes]:
        """Whole lines without their ends. A CR ends its line at once; an LF after it is skipped."""
        if not piece:
            return []
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_cr = piece.endswith(b"\r") if piece else False
        lines = (self._tail + piece).splitlines(keepends=True)
        self._tail = b""
        if lines and not lines[-1].endswith((b"\n", b"\r")):
            self._tail = lines.pop()
        return [line.rstrip(b"\r\n") for line in lines]

    def _take(self, line: bytes, events: list[str]) -> None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                events.append(b"\n".join(self._data).decode("utf-8", "replace"))
                self._data, self._size = [], 0
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._size += len(value)
