"""What is forked is a process like any that was started."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.fork_server import Forked, plain_env, start


def ended(*arguments: str, anew: bool, **env: str) -> tuple[int, str, str]:
    own = plain_env(**env)
    with start("bot", arguments, env=own, anew=anew, stdout=PIPE, stderr=PIPE, text=True) as one:
        out, err = one.communicate(timeout=60)
    return one.returncode, out, err


@contextmanager
def waiting(**options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A stand-in that listens, and waits for requests."""
    with start("bot.lab.model", ["--port", "0"], env=plain_env(), stdout=PIPE, **options) as one:
        try:
            assert one.stdout is not None
            assert b"http://" in one.stdout.readline()
            yield one
        finally:
            one.kill()


def pipes(pid: int) -> set[str]:
    """The pipes and sockets that it has open, but for its errors, which are the test's."""
    opened = Path(f"/proc/{pid}/fd").iterdir()
    named = {str(one.readlink()) for one in opened if one.name != "2"}
    return {name for name in named if name.startswith(("pipe:", "socket:"))}


@pytest.mark.parametrize("arguments", [["--version"], ["nonsense"], ["access", "list"], ["status"]])
def test_it_says_what_one_that_was_started_says(arguments: list[str], tmp_path: Path) -> None:
    env = {"HEARTHBOT_HOME": str(tmp_path / "home")}

    forked, started = (ended(*arguments, anew=anew, **env) for anew in (False, True))

    assert forked == started


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_it_is_killed_as_any_other(number: signal.Signals) -> None:
    with waiting() as one:
        assert one.poll() is None

        one.send_signal(number)

        assert one.wait(60) == -number
        with pytest.raises(ProcessLookupError):
            os.kill(one.pid, 0)


def test_it_has_files_a_folder_and_a_session_of_its_own(tmp_path: Path) -> None:
    own = {"cwd": tmp_path, "start_new_session": True}
    nothing = subprocess.DEVNULL
    with waiting(stdin=nothing) as first, waiting(stdin=nothing, **own) as second:
        assert Path(f"/proc/{second.pid}/cwd").readlink() == tmp_path
        assert os.getsid(second.pid) == second.pid != os.getsid(first.pid)
        assert pipes(first.pid) & pipes(second.pid) == set()


def test_at_a_terminal_it_is_interrupted_by_a_key() -> None:
    ours, theirs = pty.openpty()
    with waiting(stdin=theirs, start_new_session=True) as one:
        os.write(ours, b"\x03")
        one.wait(60)
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("name", ["PYTHONNOUSERSITE", "LC_ALL"])
def test_what_python_itself_reads_makes_a_new_start(name: str) -> None:
    with start("bot", ["--version"], env=plain_env(**{name: "1"}), stdout=PIPE) as one:
        one.communicate(timeout=60)

    assert not isinstance(one, Forked)
