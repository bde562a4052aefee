"""Runs a piece of our own code on outside data in a process that can be ended.

A thread could not be ended, and what others made can keep a library busy for hours or eat all
memory. Used by `agent.web.article` and `agent.files.extract`.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from memory.records.errors import Temporary

_ROOT = Path(__file__).parents[2]
_PART_BYTES = 1 << 16


class NoRoom(Temporary):
    """The process could not be started, or its turn did not come."""


class Worker:
    """Runs `main()` of a module of ours, a few times at once."""

    def __init__(
        self,
        module: str,
        *,
        read_s: float,
        answer_bytes_max: int,
        at_once: int = 1,
        wait_s: float | None = None,
    ) -> None:
        """`read_s` is the limit of one process in seconds; within `wait_s` its turn has to come and
        it has to end."""
        self._module = module
        self._read_s = read_s
        self._wait_s = 2 * read_s if wait_s is None else wait_s
        self._answer_bytes_max = answer_bytes_max
        self._places = asyncio.Semaphore(at_once)

    async def answer(self, asked: bytes, *, sorry: str) -> bytes:
        """Return what the process writes to standard output, given `asked` on its input.

        It has an empty environment. Empty bytes when it died or answered too much; raises
        TimeoutError when it took too long. NoRoom, when it could not be started or its turn did not
        come, says `sorry` with the reason in the place of {why}. However this ends, also by being
        cancelled, the process is gone then.
        """
        try:
            async with asyncio.timeout(self._wait_s) as waiting, self._places:
                return await self._run(asked)
        except TimeoutError as error:
            if waiting.expired():
                raise NoRoom(sorry.replace("{why}", "others took too long")) from error
            raise
        except OSError as error:
            why = "this machine has no room for another process now"
            raise NoRoom(sorry.replace("{why}", why)) from error

    async def _run(self, asked: bytes) -> bytes:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-s", "-B", "-c", f"import {self._module}; {self._module}.main()"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PYTHONPATH": str(_ROOT), "PYTHONUTF8": "1"},
            cwd=_ROOT,
        )
        assert process.stdin is not None
        try:
            async with asyncio.timeout(self._read_s):
                # Both ways at once: a process may answer before it has read everything.
                async with asyncio.TaskGroup() as both:
                    both.create_task(_feed(process.stdin, asked))
                    collecting = both.create_task(_collected(process, self._answer_bytes_max))
                answer = collecting.result()
                code = await process.wait() if answer else 1
            return answer if code == 0 else b""
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


async def _feed(pipe: asyncio.StreamWriter, asked: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it has ended: the answer will tell
        pipe.write(asked)
        await pipe.drain()
        pipe.close()
        await pipe.wait_closed()


async def _collected(process: asyncio.subprocess.Process, bytes_max: int) -> bytes:
    assert process.stdout is not None
    answer = bytearray()
    while part := await process.stdout.read(_PART_BYTES):
        answer += part
        if len(answer) > bytes_max:
            process.kill()  # which ends the feeding too
            return b""
    return bytes(answer)


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
