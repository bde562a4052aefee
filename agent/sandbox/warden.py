"""Watches one program that runs without sandbox, and takes all of its processes down with it.

Started by `running` as a process of its own (`python -I -S warden.py FD`): it reads what to run
from a pipe, and when that pipe ends, because the bot says so or is dead, nothing of the program
may be left, daemons included. It stays small and imports little: it starts in some milliseconds.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator

GRACE_S = 0.3
"""Between a polite end and a hard one."""
LOOK_S = 0.2
MISSING = 127
CANNOT = 126

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """The program's exit code; 128 and the signal where one ended it."""
    pipe = int(sys.argv[1])
    order = _order(pipe)
    if order is None:
        return 1
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        _become(order)
    # A daemon of the program may keep the ends of its output; ours would keep them open for ever.
    for fd in (0, 1, 2):
        os.close(fd)
    code = _watched(child, pipe)
    _end_all(child, gently=code is None)
    return 128 + signal.SIGKILL if code is None else code


def _order(pipe: int) -> dict[str, object] | None:
    """Return what to run. None when the bot is gone before it said so."""
    text = b""
    while not text.endswith(b"\n"):
        part = os.read(pipe, 65_536)
        if not part:
            return None
        text += part
    order: dict[str, object] = json.loads(text)
    return order


def _become(order: dict[str, object]) -> None:
    """Turns into the program; never returns."""
    try:
        os.closerange(3, 1024)  # nothing but its own three streams
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for signal_number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(signal_number, signal.SIG_DFL)
        limits, command, environment = order["limits"], order["command"], order["environment"]
        assert isinstance(limits, list)
        assert isinstance(command, list)
        assert isinstance(environment, dict)
        os.chdir(str(order["folder"]))
        for kind, wanted in limits:
            _, hard = resource.getrlimit(kind)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(kind, (most, most))
        os.nice(int(str(order["nice"])))
        os.execvpe(command[0], command, environment)  # noqa: S606
    except (FileNotFoundError, NotADirectoryError):
        os.write(2, b"warden: not found\n")
        os._exit(MISSING)
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        os.write(2, f"warden: {number}\n".encode())
        os._exit(CANNOT)


def _watched(child: int, pipe: int) -> int | None:
    """The exit code once the program ends by itself; None when the pipe ended first."""
    handles = [pipe]
    if sys.platform == "linux":
        handles.append(os.pidfd_open(child))  # readable at its end
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        ready, _, _ = select.select(handles, [], [], LOOK_S)
        if pipe in ready:
            return None


def _end_all(child: int, *, gently: bool) -> None:
    """Until no process is left that came from the program: what it leaves behind becomes ours."""
    if gently:
        _send(os.killpg, child, signal.SIGTERM)
        _reap(until=time.monotonic() + GRACE_S)
    _send(os.killpg, child, signal.SIGKILL)
    while _reap(until=time.monotonic()):
        for process in _descendants():
            _send(os.kill, process, signal.SIGKILL)
        time.sleep(0.005)


def _reap(*, until: float) -> bool:
    """Return whether there are still children, after waiting for their end for so long."""
    while True:
        try:
            done, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not done:
            if time.monotonic() >= until:
                return True
            time.sleep(0.005)


def _descendants() -> Iterator[int]:
    """All processes below this one; without /proc nothing is known of those that are deeper."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib loads slowly
    except OSError:
        return
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, names):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - pathlib loads slowly
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # it has ended meanwhile
    ours = {os.getpid()}
    while found := {one for one, parent in parents.items() if parent in ours} - ours:
        ours |= found
    yield from ours - {os.getpid()}


def _send(kill: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        kill(target, number)
    except (ProcessLookupError, PermissionError):
        return


def _prctl(option: int, value: int) -> None:
    """Linux alone; elsewhere the group's end has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    os._exit(main())
