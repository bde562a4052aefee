"""A program that is spoken to by lines: how they are read, how much of them, and how it ends."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from agent.mcp.process import LineTooLong, program
from tests.agent.mcp.kit import is_alive, pids, until

LONG = 1_000_000


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_a_line_beyond_the_measure_ends_the_program(tmp_path: Path) -> None:
    async with program(
        python("print('fits')\nwhile True: print('x' * 100, end='')"), env={}, folder=tmp_path
    ) as running:
        lines = running.lines(bytes_max=LONG)
        assert await anext(lines) == b"fits"
        with pytest.raises(LineTooLong, match="more than 1 MB"):
            await anext(lines)


@pytest.mark.parametrize(
    "stubborn",
    [
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', WAITS]).pid)",
    ],
    ids=["heeds no signal", "leaves a child that holds its output"],
)
async def test_nothing_of_it_is_left_in_the_end(tmp_path: Path, stubborn: str) -> None:
    seen = tmp_path / "pids"
    waits = (
        f"import os, time; open({str(seen)!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(99)"
    )
    code = f"WAITS = {waits!r}\n{stubborn}\nexec(WAITS)"
    alive = 2 if "Popen" in stubborn else 1

    async with program(python(code), env={}, folder=tmp_path, end_s=0.3):
        await until(lambda: len(pids(seen)) == alive)

    await until(lambda: not any(is_alive(pid) for pid in pids(seen)))


async def test_what_it_still_writes_at_its_end_holds_up_nobody(tmp_path: Path) -> None:
    done = tmp_path / "done"
    code = (
        "import sys\nsys.stdin.read()\nsys.stdout.write('x' * 3_000_000)\nsys.stdout.flush()\n"
        f"open({str(done)!r}, 'w')"
    )

    async with program(python(code), env={}, folder=tmp_path):
        pass

    assert done.exists()


async def test_a_stop_in_the_middle_ends_it_too(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    code = f"import os, time; open({str(seen)!r}, 'w').write(str(os.getpid())); time.sleep(99)"

    async def held() -> None:
        async with program(python(code), env={}, folder=tmp_path, end_s=0.3):
            await asyncio.Event().wait()

    task = asyncio.create_task(held())
    await until(lambda: bool(pids(seen)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not any(is_alive(pid) for pid in pids(seen))
