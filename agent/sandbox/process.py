"""Runs one program to its end: bounded in time, output and memory, and gone with all it started.

Called by the tools, with or without a sandbox. Whatever ends the wait (the limit, `/stop`, an
error), every process of the program is dead before the caller goes on.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from io import FileIO
from pathlib import Path

import structlog

from agent.sandbox import warden
from agent.sandbox.bubblewrap import Bubblewrap, Confinement
from agent.sandbox.environment import base_python
from memory.records.errors import Permanent

_log = structlog.get_logger(__name__)

KEPT_BYTES = 256 * 1024
"""Of each stream, from its beginning and again from its end."""
END_S = 3.0
"""How long the end of killed processes is waited for."""
LINGER_S = 0.5
"""How long output is still read after the program's end, where something else keeps it open."""


class ProgramRefused(Permanent):
    """A program that cannot be run, or not so; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What one program may take. Sizes in bytes, times in seconds; memory is address space of one
    process. `processes_max` holds for other users than root alone: the system knows no such limit
    for root."""

    timeout_s: float = 60.0
    memory_bytes: int = 4 * 1024**3
    file_bytes: int = 256 * 1024**2
    output_bytes: int = 64 * 1024**2
    processes_max: int = 256
    open_files: int = 1024
    nice: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run: `command` is an argument vector, `folder` where it starts."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    stdin: bytes | None = None


class StopReason(StrEnum):
    """Why a program was ended from outside."""

    TIME = "time"
    OUTPUT = "output"


@dataclass(slots=True)
class Caught:
    """One stream of a program: its beginning and its end; memory is bounded whatever comes."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        """The next piece."""
        self.total += len(data)
        room = KEPT_BYTES - len(self.head)
        self.head += data[:room]
        self.tail += data[max(room, 0) :]
        if len(self.tail) > 2 * KEPT_BYTES:
            del self.tail[:-KEPT_BYTES]

    @property
    def left_out(self) -> int:
        """Bytes between the beginning and the end that were not kept."""
        return self.total - len(self.head) - len(self.tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a program ended. `exit_code` is 128 and the number where a signal ended it."""

    exit_code: int
    stdout: Caught
    stderr: Caught
    stopped: StopReason | None = None
    told: bytes = b""
    """What bubblewrap said of it, apart from the program's own words."""


async def run_confined(
    program: Program, confinement: Confinement, bubblewrap: Bubblewrap, limits: RunLimits
) -> Ran:
    """In the sandbox. Raises ProgramRefused when it cannot be set up or has no such program."""
    _check(program)
    control = await asyncio.to_thread(
        bubblewrap.options, confinement, program.environment, folder=program.folder
    )
    rlimits = await asyncio.to_thread(_rlimits, limits)
    start = _Launch(
        argv=lambda pipe, told: bubblewrap.argv(program.command, pipe, told),
        control=control,
        stdin=program.stdin,
        # A confined program is limited before it exists: bubblewrap waits for its options.
        limit=lambda process: _limit(process, rlimits, nice=limits.nice),
        stays_open=False,
    )
    ran = await _run(start, limits)
    if why := _setup_failure(ran, program.command[0]):
        raise ProgramRefused(why)
    return ran


async def run_open(program: Program, limits: RunLimits) -> Ran:
    """Without sandbox, below a warden. Raises ProgramRefused when there is no such program."""
    _check(program)
    order = {
        "command": list(program.command),
        "environment": dict(program.environment),
        "folder": str(program.folder),
        "limits": await asyncio.to_thread(_rlimits, limits),
        "nice": limits.nice,
    }
    start = _Launch(
        argv=lambda pipe, _: (str(base_python()), "-I", "-S", warden.__file__, str(pipe)),
        control=json.dumps(order).encode() + b"\n",
        stdin=program.stdin,
        limit=lambda process: None,
        stays_open=True,
    )
    ran = await _run(start, limits)
    said = bytes(ran.stderr.head)
    if ran.exit_code == warden.MISSING and said == b"warden: not found\n":
        raise ProgramRefused(_missing(program.command[0]))
    number = said.removeprefix(b"warden: ").strip()
    if ran.exit_code == warden.CANNOT and said.startswith(b"warden: ") and number.isdigit():
        why = os.strerror(int(number[:4]))
        raise ProgramRefused(f"{program.command[0][:100]!r} cannot be run: {why}")
    return ran


# --- a process ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    argv: Callable[[int, int], Sequence[str]]
    control: bytes
    stdin: bytes | None
    limit: Callable[[int], None]
    stays_open: bool


class _Watch(asyncio.SubprocessProtocol):
    """Takes what a process writes, and knows when it is over."""

    def __init__(self, output_bytes: int) -> None:
        loop = asyncio.get_running_loop()
        self.streams = {1: Caught(), 2: Caught()}
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.flooded: asyncio.Future[None] = loop.create_future()
        self._room = output_bytes

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.streams[fd].add(data)
        self._room -= len(data)
        if self._room < 0 and not self.flooded.done():
            self.flooded.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


def _pipe() -> tuple[FileIO, FileIO]:
    """Its ends, to read and to write, each of which may be closed more than once."""
    theirs, ours = os.pipe()
    return FileIO(theirs, "r"), FileIO(ours, "w")


async def _run(start: _Launch, limits: RunLimits) -> Ran:
    watch = _Watch(limits.output_bytes)
    stopped: StopReason | None = None
    with ExitStack() as pipes:
        # One with the order, and one in which bubblewrap says what it has started.
        theirs, ours, told, telling = map(pipes.enter_context, (*_pipe(), *_pipe()))
        os.set_blocking(told.fileno(), False)
        transport = await _spawned(start, theirs.fileno(), telling.fileno(), watch)
        try:
            theirs.close()
            telling.close()
            start.limit(transport.get_pid())
            _hand_over(ours.fileno(), start.control)
            if not start.stays_open:
                ours.close()
            if start.stdin is not None:
                stdin = transport.get_pipe_transport(0)
                assert isinstance(stdin, asyncio.WriteTransport)
                stdin.write(start.stdin)
                stdin.write_eof()
            # Its own end, or a reason to end it.
            ends = {watch.exited, watch.flooded}
            await asyncio.wait(ends, timeout=limits.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if watch.exited.done():
                await asyncio.wait({watch.closed}, timeout=LINGER_S)
            else:
                stopped = StopReason.OUTPUT if watch.flooded.done() else StopReason.TIME
        finally:
            ours.close()
            try:
                said = await _gone(transport, watch, told.fileno(), has_warden=start.stays_open)
            finally:
                transport.close()
    code = transport.get_returncode()
    code = -signal.SIGKILL if code is None else code
    return Ran(
        exit_code=code if code >= 0 else 128 - code,
        stdout=watch.streams[1],
        stderr=watch.streams[2],
        stopped=stopped,
        told=said,
    )


async def _spawned(
    start: _Launch, order: int, telling: int, watch: _Watch
) -> asyncio.SubprocessTransport:
    """The started process. Its own environment is empty: what /proc shows of it holds nothing."""
    loop = asyncio.get_running_loop()
    spawning = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: watch,
            *start.argv(order, telling),
            stdin=asyncio.subprocess.DEVNULL if start.stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=(order, telling),
            start_new_session=True,
        )
    )
    try:
        transport, _ = await asyncio.shield(spawning)
    except OSError as error:
        raise ProgramRefused(f"the program could not be started: {error.strerror}") from error
    except asyncio.CancelledError:
        # It has no order yet, so there is nothing but the one process; asyncio's own end of it
        # would not wait until it is gone.
        spawning.add_done_callback(_discard)
        await asyncio.wait({spawning}, timeout=END_S)
        await asyncio.wait({watch.closed}, timeout=END_S)
        raise
    return transport


def _discard(spawning: asyncio.Future[tuple[asyncio.SubprocessTransport, _Watch]]) -> None:
    """Ends what nobody waits for any more."""
    if not spawning.cancelled() and spawning.exception() is None:
        transport, _ = spawning.result()
        _kill_group(transport.get_pid())
        transport.close()


def _hand_over(pipe: int, control: bytes) -> None:
    """In one piece, without waiting: the event loop must not hang on a process."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 2**20)
    os.set_blocking(pipe, False)
    with suppress(BrokenPipeError):
        try:
            written = os.write(pipe, control)
        except BlockingIOError:
            written = 0
        if written < len(control):
            raise ProgramRefused("the command and what the sandbox covers are too long together")


async def _gone(
    transport: asyncio.SubprocessTransport, watch: _Watch, told: int, *, has_warden: bool
) -> bytes:
    """Ends whatever is left of it, and waits until that is so; gives what was told of it. A second
    cancellation ends the wait, not the killing."""
    if not watch.exited.done():
        try:
            if has_warden:  # Its pipe is closed: it ends all by itself, and has a moment to do so.
                await asyncio.wait({watch.exited}, timeout=1.0)
        finally:
            if not watch.exited.done():
                _kill_group(transport.get_pid())
                # A sandbox ends by its first process: that asks to die with bubblewrap only after
                # it has left bubblewrap's group, and ended in between it would live on.
                with suppress(OSError, ValueError, KeyError, TypeError):
                    first = int(json.loads(_read(told).partition(b"\n")[0])["child-pid"])
                    if os.readlink(f"/proc/{first}/ns/pid") != os.readlink("/proc/self/ns/pid"):  # noqa: PTH115
                        os.kill(first, signal.SIGKILL)
    await asyncio.wait({watch.closed}, timeout=LINGER_S if watch.exited.done() else END_S)
    return _read(told)


def _read(told: int) -> bytes:
    """Return what is in the pipe by now."""
    with suppress(BlockingIOError):
        return os.read(told, 65_536)
    return b""


def _kill_group(process: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


# --- limits ------------------------------------------------------------------------------------


def _rlimits(limits: RunLimits) -> list[tuple[int, int]]:
    found = [
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CPU, int(limits.timeout_s) + 5),
        (resource.RLIMIT_CORE, 0),
    ]
    if os.geteuid() != 0:
        # It counts all processes of the user, the bot's own and a whole desktop's among them.
        user, tasks = os.geteuid(), 0
        with suppress(OSError), os.scandir("/proc") as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.isdigit() and entry.stat().st_uid == user:
                        tasks += os.stat(f"/proc/{entry.name}/task").st_nlink - 2  # noqa: PTH116
        found.append((resource.RLIMIT_NPROC, tasks + limits.processes_max))
    return found


def _limit(process: int, rlimits: Sequence[tuple[int, int]], *, nice: int) -> None:
    """Sets the limits of another process, and makes it the first to go when memory runs out."""
    if sys.platform != "linux":
        return
    for kind, wanted in rlimits:
        with suppress(OSError, ValueError):
            _, hard = resource.prlimit(process, kind)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(process, kind, (most, most))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, nice)
    with suppress(OSError):
        Path(f"/proc/{process}/oom_score_adj").write_text("1000")


# --- what can be wrong -------------------------------------------------------------------------


def _check(program: Program) -> None:
    if not program.command or not program.command[0]:
        raise ProgramRefused("the command is empty: give the program and its arguments as a list")
    if any(re.search("[\0\ud800-\udfff]", word) for word in program.command):
        raise ProgramRefused("the command has a character that no argument may have")


def _setup_failure(ran: Ran, command: str) -> str:
    """That bubblewrap did not come to run the program, in our words alone. By what bubblewrap tells
    through its own pipe: on stderr a program could write the same."""
    if ran.stopped is not None or b'"exit-code"' in ran.told:
        return ""
    said = bytes(ran.stderr.head[:2000]).decode(errors="replace")
    if not said.startswith("bwrap: execvp "):
        _log.warning("sandbox_not_set_up", exit_code=ran.exit_code)
        _log.debug("sandbox_said", said=said[:300])
        return "the sandbox could not be set up for this call; nothing was run"
    for why in map(os.strerror, (errno.EACCES, errno.ENOEXEC, errno.E2BIG)):
        if said.rstrip().endswith(f": {why}"):
            return f"{command[:100]!r} cannot be run: {why}"
    return _missing(command)


def _missing(command: str) -> str:
    return f"there is no program {command[:100]!r} here: choose one that is installed"
