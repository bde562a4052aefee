"""A process that has loaded the program and its stand-ins, and forks what a test starts.

To load them anew takes longer than most tests do.

What is forked is a process like any other: it has an id, an environment, a folder, streams and a
session of its own, runs `python -m MODULE` from there on, can be killed, and ends with a status.
Only what comes before differs: nothing is loaded, and `/proc/PID/environ` is that of this server.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict

from tests.checkout import ROOT
from tests.thorough import THOROUGH

ORDER_BYTES_MAX = 65_536
LANGUAGE = {"LANG": "C.UTF-8"}
"""What Python reads as it starts. A process that is to start with anything else is not forked."""

STAND_INS = ("bot.lab.model", "bot.lab.slack", "bot.lab.telegram")
PACKAGES = ("memory", "agent", "scheduler", "bot")
LIBRARIES = (
    "anyio._backends._asyncio",
    "apscheduler.schedulers.asyncio",
    "apscheduler.triggers.date",
    "certifi",
    "encodings.idna",
    "httpcore",
    "jsonschema",
    "mcp.client.stdio",
    "prompt_toolkit",
    "regex",
    "rich.markdown",
    "rich.progress",
    "rich.table",
    "yaml",
)
"""What the program loads on first use, in many tests."""
NOT_LOADED = {"bot.__main__", "agent.models.embedded"}
"""What runs where it is imported, and what has threads of its own."""


def plain_env(**settings: str) -> dict[str, str]:
    """The least environment that a process needs, and these settings."""
    return {"PATH": os.environ["PATH"], **LANGUAGE, **settings}


class Order(TypedDict):
    """What to fork."""

    module: str
    arguments: Sequence[str]
    env: Mapping[str, str]
    folder: str
    is_session: bool


class ForkServer:
    """The process that forks. It ends with the one that made it."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                env=plain_env(),
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.close)

    def fork(self, order: Order, files: Sequence[int]) -> int:
        """Start a process with these files: input, output, errors, and where to tell its end."""
        socket.send_fds(self._line, [json.dumps(order).encode()], files)
        return int(self._line.recv(ORDER_BYTES_MAX))

    def close(self) -> None:
        """End it; what it forked goes on."""
        self._line.close()
        self._process.wait()


@cache
def fork_server() -> ForkServer:
    """The one of this process."""
    return ForkServer()


def start(
    module: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    anew: bool = False,
    **options: Any,
) -> subprocess.Popen[Any]:
    """Start `python -m MODULE`, with the options of `Popen`.

    It is forked where that makes no difference: `anew`, an environment that Python itself reads,
    code to run before it, and a thorough run have it loaded from the disk.
    """
    reads = {name: env[name] for name in env if name.startswith(("PYTHON", "LANG", "LC_"))}
    is_plain = reads == LANGUAGE and "preexec_fn" not in options and sys.platform == "linux"
    command = [sys.executable, "-m", module, *arguments]
    if is_plain and not anew and not THOROUGH:
        return Forked(command, env=env, **options)
    if options.get("start_new_session"):
        options.setdefault("preexec_fn", take_terminal)
    return subprocess.Popen(command, env=env, **options)


def take_terminal() -> None:
    """Make the terminal that the input comes from, if it does, that of this session."""
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Forked(subprocess.Popen[Any]):
    """A process that is the fork server's child, whose end it tells by a pipe."""

    _ended: int

    def _execute_child(
        self,
        args: Sequence[str],
        executable: object,
        preexec_fn: object,
        close_fds: object,
        pass_fds: object,
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str],
        startupinfo: object,
        creationflags: object,
        shell: object,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        restore_signals: object,
        gid: object,
        gids: object,
        uid: object,
        umask: object,
        start_new_session: bool,
        process_group: object,
    ) -> None:
        _, _, module, *arguments = args
        self._ended, end = os.pipe()
        order = Order(
            module=module,
            arguments=arguments,
            env=env,
            folder=str(Path(cwd or "").absolute()),
            is_session=start_new_session,
        )
        standard = [
            own if given == -1 else given for own, given in enumerate((p2cread, c2pwrite, errwrite))
        ]
        try:
            self.pid = fork_server().fork(order, [*standard, end])
            self._child_created = True
        finally:
            os.close(end)
            self._close_pipe_fds(  # type: ignore[attr-defined]
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite
            )

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        patience_s = 0 if wait_flags & os.WNOHANG else None
        if not select.select([self._ended], [], [], patience_s)[0]:
            return 0, 0
        status = int(os.read(self._ended, 16))
        os.close(self._ended)
        return self.pid, status

    def _internal_poll(self, _deadstate: object = None) -> int | None:
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def load() -> None:
    """Import what `python -m bot` and the stand-ins do, in the way of `bot.__main__`."""
    from bot.lean import late_methods, load_without, without_garbage_search
    from memory.search.vectors import Embedding

    with without_garbage_search(), late_methods():
        load_without("rich", "structlog")
        load_without("click", "httpx")
        for package in PACKAGES:
            for found in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
                if found.name not in NOT_LOADED:
                    importlib.import_module(found.name)
        for library in LIBRARIES:
            importlib.import_module(library)
        assert Embedding().table() is not None
    assert threading.active_count() == 1, threading.enumerate()


class Children:
    """What was forked and has not ended, and where its end is told."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        signal.signal(signal.SIGCHLD, self._told)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """No end is told meanwhile."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def add(self, pid: int, end: int) -> None:
        self._ends[pid] = end

    def leave(self) -> None:
        """Forget them, in a child."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for end in self._ends.values():
            os.close(end)

    def _told(self, number: int, frame: FrameType | None) -> None:
        while self._ends:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            end = self._ends.pop(pid)
            with suppress(BrokenPipeError):  # nobody may be there to read it
                os.write(end, str(status).encode())
            os.close(end)


def serve(line: socket.socket) -> Order | None:
    """Fork on demand, until nobody can ask any more. Return in a child, with what it is to be."""
    children = Children()
    while True:
        sent, files, _, _ = socket.recv_fds(line, ORDER_BYTES_MAX, 4)
        if not sent:
            return None
        with children.undisturbed():
            if (pid := os.fork()) == 0:
                children.leave()
                line.close()
                return settle(json.loads(sent), files)
            children.add(pid, files.pop())
        for file in files:
            os.close(file)
        line.send(str(pid).encode())


def settle(order: Order, files: Sequence[int]) -> Order:
    """Make the place of this process what a new one is given."""
    for standard, file in enumerate(files[:3]):
        os.dup2(file, standard)
    for file in files:
        os.close(file)
    if order["is_session"]:
        os.setsid()
        take_terminal()
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    sys.argv[1:] = order["arguments"]
    return order


def main() -> None:
    """Be the server, and in a child what it was forked to be."""
    with socket.socket(fileno=int(sys.argv[1])) as line:
        load()
        gc.freeze()
        order = serve(line)
    if order is None:
        return
    if (loaded := sys.modules.get(order["module"])) is not None and hasattr(loaded, "main"):
        loaded.main()  # a stand-in
    else:
        runpy.run_module(order["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
