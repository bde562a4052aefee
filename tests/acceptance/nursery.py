"""A process that has the code of the stand-ins loaded, and forks each of them: to import it anew
takes longer than most tests do. Called by `tests.acceptance.rig`."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

ORDER_BYTES_MAX = 65_536
MODULES = ("bot.lab.model", "bot.lab.slack", "bot.lab.telegram")


class StandInProcess:
    """A stand-in that runs; its end of the pipe is open until it is gone."""

    def __init__(self, pid: int, said: int) -> None:
        self._pid = pid
        self._said = os.fdopen(said, "rb")
        self.url: str = json.loads(self._said.readline())["url"]

    def end(self) -> None:
        """Ends it; it is gone when this returns."""
        os.kill(self._pid, signal.SIGTERM)
        self._said.read()
        self._said.close()


class Nursery:
    """The process that forks. It ends with the one that made it."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )
        atexit.register(self.close)

    def start(self, module: str, arguments: Sequence[str]) -> StandInProcess:
        """A stand-in, which listens when this returns."""
        said, say = os.pipe()
        try:
            socket.send_fds(self._line, [json.dumps([module, *arguments]).encode()], [say])
        finally:
            os.close(say)
        return StandInProcess(int(self._line.recv(ORDER_BYTES_MAX)), said)

    def close(self) -> None:
        """Ends it; stand-ins that are left end by their own."""
        self._line.close()
        self._process.wait()


@cache
def nursery() -> Nursery:
    """That of this process."""
    return Nursery()


def main() -> None:
    """Forks on demand, until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for module in MODULES:
        importlib.import_module(module)
    with socket.socket(fileno=int(sys.argv[1])) as line:
        while True:
            order, fds, _, _ = socket.recv_fds(line, ORDER_BYTES_MAX, 1)
            if not order:
                return
            pid = os.fork()
            if pid == 0:
                line.close()
                become(json.loads(order), fds[0])
            os.close(fds[0])
            line.send(str(pid).encode())


def become(command: list[str], say: int) -> None:
    """Runs a stand-in in this process, as `python -m MODULE` does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(say, 1)
    os.close(say)
    sys.argv = command
    importlib.import_module(command[0]).main()
    os._exit(0)


if __name__ == "__main__":
    main()
