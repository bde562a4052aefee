"""Lines from a pipe: whole, in order, however they arrive."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from bot.cli.terminal.chat import typed_lines


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"o", b"ne\r\ntw", b"o"], ["one", "two"]),
        ([b"gr\xc3", b"\xbc\xc3\x9fe\n\n"], ["grüße", ""]),
        ([b"\xff\n"], ["\ufffd"]),
        ([], []),
    ],
)
async def test_lines_are_put_together(pieces: list[bytes], expected: list[str]) -> None:
    reading, writing = os.pipe()
    lines = typed_lines(reading)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        collecting = group.create_task(_all(lines))
        for piece in pieces:
            os.write(writing, piece)
            await asyncio.sleep(0.01)
        os.close(writing)

    os.close(reading)
    assert collecting.result() == expected


async def _all(lines: AsyncIterator[str]) -> list[str]:
    return [line async for line in lines]
