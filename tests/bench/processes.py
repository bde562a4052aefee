"""Child processes, and what the kernel knows of them. Linux: it reads /proc."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
STOP_S_MAX = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS = slice(11, 13)  # utime and stime, counted from the state on


class ChildDied(RuntimeError):
    """A process ended that should be running."""


class Child:
    """One process of ours. Its output goes to a file, which is shown when it dies."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Path,
        env: Mapping[str, str] | None = None,
        folder: Path = ROOT,
    ) -> None:
        self.output = output
        self._name = " ".join(command[1:4])
        with output.open("wb") as file:
            self.began_at = time.monotonic()
            self._process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, env=env, cwd=folder
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends it as its owner would, and by force when it does not listen."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def require_running(self) -> None:
        """Raises ChildDied, with its last words."""
        if self._process.poll() is not None:
            raise ChildDied(
                f"{self._name} ended with {self._process.returncode}:\n{self.said()[-3000:]}"
            )

    def said(self) -> str:
        """Its output so far."""
        return self.output.read_text("utf-8", "replace")

    def first_line(self, *, within_s: float = 20.0) -> str:
        """Its first line of output, once there is one."""
        until = time.monotonic() + within_s
        while "\n" not in (text := self.said()):
            self.require_running()
            if time.monotonic() > until:
                raise ChildDied(f"{self._name} said nothing within {within_s:.0f} s")
            time.sleep(0.02)
        return text.partition("\n")[0]

    def cpu_s(self) -> float:
        """Processor time of all its threads, those that have ended too. Counted in 10 ms."""
        stat = Path(f"/proc/{self.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return sum(map(int, fields[_CPU_FIELDS])) / _TICKS

    def rss_mb(self) -> float:
        """What of it is in memory now."""
        return float(self._status("VmRSS").split()[0]) / 1024

    def threads(self) -> int:
        return int(self._status("Threads"))

    def _status(self, name: str) -> str:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return line.partition(":")[2]
        raise ChildDied(f"{self._name} is gone")


def cpu_of(command: Sequence[str], *, env: Mapping[str, str] | None = None) -> float:
    """Processor seconds of one run to its end."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd=ROOT
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ChildDied(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def machine_busy(seconds: float = 0.5) -> float:
    """The share of all cores that was in use during this time, whoever used them."""
    idle, whole = _machine_times()
    time.sleep(seconds)
    idle_then, whole_then = _machine_times()
    return 1 - (idle_then - idle) / max(1, whole_then - whole)


def _machine_times() -> tuple[int, int]:
    numbers = [int(n) for n in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return numbers[3] + numbers[4], sum(numbers)
