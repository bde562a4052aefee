"""A process of our own is gone when its answer is there, and when there will be none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agent.sandbox.worker import Worker, bound_itself

WORKER = Worker(__name__, read_s=30.0, answer_bytes_max=100_000)


def children() -> set[str]:
    me = os.getpid()
    return set(Path(f"/proc/{me}/task/{me}/children").read_text().split())


def main() -> None:
    """What the process does, by the first word that it is given."""
    word, _, rest = sys.stdin.buffer.read().partition(b" ")
    if word == b"echo":
        sys.stdout.buffer.write(rest)
    elif word == b"much":
        sys.stdout.buffer.write(b"x" * 1_000_000)
    elif word == b"fail":
        sys.stdout.write("half an answer")
        sys.stdout.flush()
        raise SystemExit(3)
    elif word == b"eat":
        bound_itself(cpu_s=10, memory_bytes=300_000_000)
        sys.stdout.write(str(len(b"x" * 1_000_000_000)))
    elif word == b"write":
        bound_itself(cpu_s=10, memory_bytes=300_000_000)
        Path(rest.decode()).write_text("x")
        sys.stdout.write("written")
    elif word == b"spin":
        bound_itself(cpu_s=1, memory_bytes=300_000_000)
        while True:
            pass


async def test_a_long_question_is_read_and_answered_whole() -> None:
    long = bytes(range(256)) * 300

    assert await WORKER.answer(b"echo " + long, sorry="") == long


@pytest.mark.parametrize("word", [b"much", b"fail", b"eat", b"spin"])
async def test_who_answers_too_much_or_dies_has_answered_nothing(word: bytes) -> None:
    before = children()

    assert await WORKER.answer(word + b" now", sorry="") == b""

    assert children() <= before


async def test_the_process_can_write_no_file(tmp_path: Path) -> None:
    target = tmp_path / "written"

    assert await WORKER.answer(f"write {target}".encode(), sorry="") == b""

    assert not target.exists() or target.read_text() == ""


async def test_what_takes_too_long_is_ended() -> None:
    before = children()

    with pytest.raises(TimeoutError):
        await Worker(__name__, read_s=0.3, answer_bytes_max=10).answer(b"spin", sorry="")

    assert children() <= before
