"""Runs a piece of our own code on outside data in a process that can be ended.

A thread could not be ended, and what others made can keep a library busy for hours or eat all
memory. Used by `agent.web.article` and `agent.files.extract`.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memory.records.errors import Temporary

_ROOT = Path(__file__).parents[2]
_PART_BYTES = 1 << 16


class NoRoom(Temporary):
    """The process could not be started, or its turn did not come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one process may take: seconds by the clock, and bytes of its answer."""

    read_s: float
    answer_bytes_max: int


async def answer_of(module: str, asked: bytes, bounds: Bounds) -> bytes:
    """What `main()` of a module of ours writes to standard output, given `asked` on its input.

    The process has an empty environment. Empty bytes when it died or answered too much; raises
    TimeoutError when it took too long, and OSError when it could not be started. However this
    ends, also by being cancelled, the process is gone then.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-s", "-B", "-c", f"import {module}; {module}.main()"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PYTHONPATH": str(_ROOT), "PYTHONUTF8": "1"},
        cwd=_ROOT,
    )
    try:
        async with asyncio.timeout(bounds.read_s):
            answer = await _exchange(process, asked, bounds.answer_bytes_max)
            code = await process.wait() if answer else 1
        return answer if code == 0 else b""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _exchange(process: asyncio.subprocess.Process, asked: bytes, bytes_max: int) -> bytes:
    """Both ways at once: a process may answer before it has read everything."""
    assert process.stdin is not None
    async with asyncio.TaskGroup() as both:
        both.create_task(_feed(process.stdin, asked))
        collecting = both.create_task(_collected(process, bytes_max))
    return collecting.result()


async def _feed(pipe: asyncio.StreamWriter, asked: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: the answer will tell
        pipe.write(asked)
        await pipe.drain()
        pipe.close()
        await pipe.wait_closed()


async def _collected(process: asyncio.subprocess.Process, bytes_max: int) -> bytes:
    assert process.stdout is not None
    parts: list[bytes] = []
    left = bytes_max
    while part := await process.stdout.read(_PART_BYTES):
        left -= len(part)
        if left < 0:
            process.kill()  # which ends the feeding too
            return b""
        parts.append(part)
    return b"".join(parts)


def bound_itself(*, cpu_s: int, memory_bytes: int) -> None:
    """Within the process, first thing: these hold even if nobody is left to end it.

    It can write no file either. Without effect where the system has no such limits.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
