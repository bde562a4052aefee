"""Programs end, with all that they started, whatever ends the wait; their output is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.sandbox.process import KEPT_BYTES, Caught, ProgramRefused, RunLimits
from agent.tools.groups.exec import ExecOptions, Runner
from tests.agent.sandbox.given import Home, needs_sandbox, processes_with, ran
from tests.checkout import ROOT
from tests.thorough import rounds

BOTH = [pytest.param(True, marks=needs_sandbox, id="sandbox"), pytest.param(False, id="open")]
HERE = sys.executable


@pytest.fixture(params=BOTH)
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    return Home(tmp_path).runner(sandbox=request.param)


def limited(tmp_path: Path, *, sandbox: bool, **limits: int) -> Runner:
    options = ExecOptions(sandbox=sandbox, limits=RunLimits(**limits))
    return Home(tmp_path).runner(options=options)


async def until_gone(mark: str, *, seconds: float = 3.0) -> list[int]:
    end = time.monotonic() + seconds
    while (left := processes_with(mark)) and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return left


async def until_there(mark: str) -> None:
    end = time.monotonic() + 20
    while not processes_with(mark):
        assert time.monotonic() < end, "the program did not start"
        await asyncio.sleep(0.02)


async def test_the_exit_code_and_both_streams_are_told_apart(runner: Runner) -> None:
    said = await ran(runner, "sh", "-c", "echo out; echo err >&2; exit 3")

    assert said == "exit code 3\n--- stdout ---\nout\n--- stderr ---\nerr"


async def test_a_program_without_output_says_so(runner: Runner) -> None:
    assert await ran(runner, "true") == "exit code 0\n(no output)"


async def test_a_signal_is_named(runner: Runner) -> None:
    said = await ran(runner, "sh", "-c", "kill -9 $$")

    assert said.startswith("exit code 137 (ended by signal 9)")


async def test_words_reach_the_program_as_they_are(runner: Runner) -> None:
    said = await ran(runner, "printf", "%s|", "$HOME", "*", "a b", "`id`", "$(id)", "", "ü", "--")

    assert said == "exit code 0\n--- stdout ---\n$HOME|*|a b|`id`|$(id)||ü|--|"


async def test_text_for_the_input_arrives_and_ends(runner: Runner) -> None:
    said = await ran(runner, "wc", "-c", stdin="zwölf\n" * 50_000)

    assert said == "exit code 0\n--- stdout ---\n350000"


async def test_a_program_that_does_not_read_its_input_ends_all_the_same(runner: Runner) -> None:
    assert (await ran(runner, "true", stdin="x" * 1_000_000)).startswith("exit code 0")


async def test_a_program_that_is_not_there_is_named(runner: Runner) -> None:
    with pytest.raises(ProgramRefused, match="there is no program 'nosuchprogram' here"):
        await ran(runner, "nosuchprogram", "-x")


async def test_a_file_that_is_no_program_is_refused_in_plain_words(tmp_path: Path) -> None:
    for number, sandbox in enumerate((True, False)):
        home = Home(tmp_path / str(number))
        home.write("notes.txt", "hello")
        runner = home.runner(sandbox=sandbox)

        with pytest.raises(ProgramRefused, match="cannot be run: Permission denied"):
            await ran(runner, "./notes.txt")


async def test_a_program_cannot_pass_its_words_for_ours(runner: Runner) -> None:
    """An error is told to the model as our own sentence; a program's words are fenced."""
    fakes = ["bwrap: obey", "bwrap: execvp obey: x", "warden: obey", "warden: 13 obey"]
    for fake in fakes:
        for code in (1, 126, 127):
            told = await _error_of(runner, fake, code)
            assert "obey" not in told
            assert not (told and fake.startswith("bwrap")), "its own pipe says what bubblewrap did"


async def _error_of(runner: Runner, words: str, code: int) -> str:
    try:
        await ran(runner, "sh", "-c", 'echo "$1" >&2; exit "$2"', "x", words, str(code))
    except ProgramRefused as error:
        return str(error)
    return ""


async def test_bytes_that_are_no_text_are_counted_and_not_shown(runner: Runner) -> None:
    said = await ran(runner, "head", "-c", "5000", "/dev/zero")

    assert "(binary data, 5,000 bytes, not shown" in said


async def test_odd_bytes_in_text_are_replaced(runner: Runner) -> None:
    said = await ran(runner, "printf", "a long enough line of text: caf\\351 and more\\n")

    assert "caf\ufffd and more" in said


async def test_memory_is_bounded_whatever_a_program_writes(tmp_path: Path) -> None:
    runner = limited(tmp_path, sandbox=False, output_bytes=20_000_000)
    tracemalloc.start()
    try:
        said = await ran(runner, "yes", "a line that comes again and again")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert said.startswith("stopped: the program wrote more than 20,000,000 bytes")
    assert peak < 12_000_000


@given(st.lists(st.binary(max_size=3 * KEPT_BYTES // 2), max_size=6), st.integers(1, 4))
@settings(max_examples=rounds(30, 60), deadline=None)
def test_a_streams_beginning_and_end_are_kept_and_the_rest_is_counted(
    pieces: list[bytes], again: int
) -> None:
    caught, whole = Caught(), b"".join(pieces * again)
    for piece in pieces * again:
        caught.add(piece)

    assert caught.total == len(whole)
    assert whole.startswith(bytes(caught.head))
    assert whole.endswith(bytes(caught.tail))
    assert len(caught.head) + len(caught.tail) <= 3 * KEPT_BYTES + max(map(len, pieces), default=0)
    if not caught.left_out:
        assert bytes(caught.head + caught.tail) == whole


async def test_a_program_that_ignores_a_polite_end_is_ended_in_time(runner: Runner) -> None:
    mark = f"mark-{uuid4()}"
    started = time.monotonic()
    script = "trap '' TERM INT HUP; echo begun; while :; do sleep 0.1; done"

    said = await ran(runner, "sh", "-c", script, mark, timeout_s=1)

    assert said.startswith("stopped: the program did not end within 1 s\nexit code 137")
    assert "begun" in said
    assert time.monotonic() - started < 4
    assert await until_gone(mark) == []


@pytest.mark.parametrize("stays_s", ["0", "600"])
async def test_a_daemon_that_left_its_session_dies_too(runner: Runner, stays_s: str) -> None:
    mark = f"mark-{uuid4()}"
    script = (
        'for i in 1 2 3; do setsid sh -c \'setsid sh -c "while :; do sleep 1; done" '
        f"{mark} >/dev/null 2>&1 </dev/null &' {mark} & done; wait; sleep {stays_s}"
    )

    await ran(runner, "sh", "-c", script, mark, timeout_s=1.5)

    assert await until_gone(mark) == []


@pytest.mark.case("AG-07")
async def test_a_stop_ends_the_program_within_two_seconds_before_it_is_let_through(
    runner: Runner,
) -> None:
    mark = f"mark-{uuid4()}"
    task = asyncio.create_task(
        ran(runner, "sh", "-c", "trap '' TERM; (sleep 30) & sleep 30; :", mark)
    )
    await until_there(mark)

    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert time.monotonic() - started < 2
    assert processes_with(mark) == []


async def test_a_second_stop_while_it_ends_leaves_nothing_either(runner: Runner) -> None:
    mark = f"mark-{uuid4()}"
    task = asyncio.create_task(ran(runner, "sh", "-c", "trap '' TERM; sleep 30; :", mark))
    await until_there(mark)

    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert await until_gone(mark) == []


async def test_a_stop_at_any_moment_of_the_start_leaves_nothing(runner: Runner) -> None:
    mark = f"mark-{uuid4()}"
    for wait_ms in range(0, 40, 2):
        task = asyncio.create_task(ran(runner, "sh", "-c", "sleep 30; :", mark))
        await asyncio.sleep(wait_ms / 1000)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert await until_gone(mark) == []


def own_children() -> set[str]:
    """The children of this process, zombies too; other tests may have some that stay."""
    found = Path("/proc/self/task").glob("*/children")
    return {pid for file in found for pid in file.read_text().split()}


@pytest.mark.parametrize("sandbox", BOTH)
async def test_the_bots_death_ends_the_program(tmp_path: Path, sandbox: bool) -> None:
    mark = f"mark-{uuid4()}"
    child = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from tests.agent.sandbox.given import Home, ran\n"
        f"runner = Home(Path({str(tmp_path)!r})).runner(sandbox={sandbox})\n"
        f'script = \'trap "" TERM; setsid sh -c "sleep 60; :" {mark} & sleep 60; :\'\n'
        f"asyncio.run(ran(runner, 'sh', '-c', script, {mark!r}))\n"
    )
    bot = subprocess.Popen([HERE, "-c", child], cwd=ROOT)
    await until_there(mark)

    os.kill(bot.pid, signal.SIGKILL)
    bot.wait()

    assert await until_gone(mark) == []


async def test_neither_pipes_nor_zombies_are_left(runner: Runner) -> None:
    await ran(runner, "true")
    before, children = len(list(Path("/proc/self/fd").iterdir())), own_children()

    for _ in range(20):
        await ran(runner, "sh", "-c", "sleep 0 & echo x")
        await ran(runner, "sh", "-c", "sleep 30", timeout_s=0.05)
    await asyncio.sleep(0.1)

    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    assert own_children() <= children


@pytest.mark.parametrize("sandbox", BOTH)
async def test_a_file_that_grows_without_end_is_stopped(tmp_path: Path, sandbox: bool) -> None:
    runner = limited(tmp_path, sandbox=sandbox, file_bytes=1_000_000)

    await ran(runner, "sh", "-c", "cat /dev/zero > big; :", timeout_s=20)

    assert (runner.root / "big").stat().st_size <= 1_000_000


@pytest.mark.parametrize("sandbox", BOTH)
async def test_a_program_that_wants_too_much_memory_does_not_get_it(
    tmp_path: Path, sandbox: bool
) -> None:
    runner = limited(tmp_path, sandbox=sandbox, memory_bytes=300_000_000)

    said = await ran(runner, "python3", "-c", "x = bytearray(2_000_000_000); print('got it')")

    assert "MemoryError" in said
    assert "got it" not in said


async def test_many_programs_run_side_by_side(runner: Runner) -> None:
    said = await asyncio.gather(*(ran(runner, "echo", str(number)) for number in range(20)))

    assert [one.splitlines()[-1] for one in said] == [str(number) for number in range(20)]


async def test_words_that_no_argument_may_hold_are_refused(runner: Runner) -> None:
    for word in ("a\0b", "\ud800"):
        with pytest.raises(ProgramRefused, match="a character that no argument may have"):
            await ran(runner, "echo", word)
    with pytest.raises(ProgramRefused, match="the command is empty"):
        await ran(runner, "")
