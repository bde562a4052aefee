"""Cuts a document into the passages that it is found by. Pure.

A passage ends where a paragraph, a sentence or a word does, if one is near, and repeats the end of
the one before it, so that what stands at a border is found whole. Of a table each passage begins
with the table's first line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PASSAGE_CHARS = 800
OVERLAP_CHARS = 100
_EARLIEST_END = 600
"""No passage that another follows is shorter, so that their number is bounded."""
_HEADER_CHARS_MAX = 200

_ENDS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"(?<=[.!?…])[\"'”’»)]?\s|(?<=[。！？])"),
    re.compile(r"\n"),
    re.compile(r"\s"),
)
"""Where a passage would rather end, the best first."""
_WORD_START = re.compile(r"(?<=\s)\S")


def passages(text: str) -> Iterator[str]:
    """Of running text."""
    start = 0
    while start < len(text):
        end = _end(text, start)
        if passage := text[start:end].strip():
            yield passage
        if end >= len(text):
            return
        start = _next_start(text, end)


def table_passages(text: str) -> Iterator[str]:
    """Of lines that stand for themselves, each passage under the first line of all."""
    header, _, body = text.strip("\n").partition("\n")
    if len(header) > _HEADER_CHARS_MAX or not body.strip():
        header, body = "", text
    room = PASSAGE_CHARS - len(header) - bool(header)
    lines: list[str] = []
    left = room
    for line in _lines(body, room):
        if len(line) + bool(lines) > left:
            yield "\n".join([header, *lines] if header else lines)
            lines, left = [], room
        left -= len(line) + bool(lines)
        lines.append(line)
    if lines:
        yield "\n".join([header, *lines] if header else lines)


def _lines(body: str, chars_max: int) -> Iterator[str]:
    for line in body.split("\n"):
        if line.strip():
            yield from (line[at : at + chars_max] for at in range(0, len(line), chars_max))


def _end(text: str, start: int) -> int:
    last = start + PASSAGE_CHARS
    if last >= len(text):
        return len(text)
    for ends in _ENDS:
        found = [place.end() for place in ends.finditer(text, start + _EARLIEST_END, last)]
        if found:
            return found[-1]
    return last


def _next_start(text: str, end: int) -> int:
    """Some words before the end; right at it where the text has no words."""
    word = _WORD_START.search(text, max(end - OVERLAP_CHARS, 0), end)
    return word.start() if word else end
