"""A server that is a program of this machine: started, spoken to by lines, and ended. Called by
`agent.mcp.connection`; knows nothing of the protocol.

Not by the SDK's own: that takes a line of any length, and one of 100 MB costs half a gigabyte.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from asyncio.subprocess import DEVNULL, PIPE, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TextIO

from agent.mcp.values import ServerDown, ServerOptions
from memory.records.errors import Permanent

CHUNK_BYTES = 65_536
END_S = 2.0
"""As long as a program gets to end by itself, and then to heed the signal that asks it to."""


class LineTooLong(Permanent):
    """The program wrote a line of more than may be; it is being ended."""


class ServerProgram:
    """One that runs. Its lines are read by one task; written by any."""

    def __init__(
        self, transport: asyncio.SubprocessTransport, streams: _Streams, *, end_s: float
    ) -> None:
        self._transport = transport
        self._streams = streams
        self._end_s = end_s

    async def lines(self, *, bytes_max: int) -> AsyncIterator[bytes]:
        """Each line without its end, until the program closes its output. No more than one line
        is held, and no line is read ahead. Raises LineTooLong."""
        line = bytearray()
        while chunk := await self._read():
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                line += end
                yield bytes(line)
                line.clear()
            line += rest
            if len(line) > bytes_max:
                self._signal(signal.SIGTERM)
                raise LineTooLong(f"it sent a message of more than {bytes_max // 1_000_000} MB")

    async def write(self, line: bytes) -> None:
        """One line, its end included. Raises OSError when nobody reads any more."""
        stdin = self._streams.stdin
        assert stdin is not None, "it was started with a pipe"
        stdin.write(line)
        await stdin.drain()

    async def end(self) -> None:
        """The program and all that it started are gone; a few seconds at most. What it still
        writes is thrown away, so that it does not wait for a reader."""
        stdin = self._streams.stdin
        assert stdin is not None, "it was started with a pipe"
        draining = asyncio.create_task(self._drained())
        try:
            stdin.close()
            if not await self._exited():
                self._signal(signal.SIGTERM)
                await self._exited()
        finally:
            self._signal(signal.SIGKILL)
            draining.cancel()
            await self._exited()
            self._transport.close()

    async def _read(self) -> bytes:
        assert self._streams.stdout is not None, "it was started with a pipe"
        return await self._streams.stdout.read(CHUNK_BYTES)

    async def _drained(self) -> None:
        with suppress(OSError):
            while await self._read():
                pass

    async def _exited(self) -> bool:
        """Return whether the program itself is gone within its time; those it left behind may be
        not."""
        try:
            async with asyncio.timeout(self._end_s):
                await self._streams.exited.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        """To the program and whatever it started: it leads a group of its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)


class _Streams(SubprocessStreamProtocol):
    """Says when the program itself is gone. The library's own `wait` also waits for its pipes,
    which a process that it left behind may hold open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=CHUNK_BYTES, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@asynccontextmanager
async def program(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path,
    errors: TextIO | None = None,
    end_s: float = END_S,
) -> AsyncIterator[ServerProgram]:
    """Runs a command in a folder, with this environment and no other, for as long as this is
    open. `errors` gets its standard error. Raises OSError, ValueError when it cannot be started.
    """
    import anyio

    loop = asyncio.get_running_loop()
    transport, streams = await loop.subprocess_exec(
        lambda: _Streams(loop),
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL if errors is None else errors,
        env=dict(env),
        cwd=folder,
        start_new_session=True,
    )
    running = ServerProgram(transport, streams, end_s=end_s)
    try:
        yield running
    finally:
        with anyio.CancelScope(shield=True):
            await running.end()


# --- the folder -----------------------------------------------------------------------------------
#
# Where the program of an MCP server lives: a folder of its own, which no tool can write to.
#
# Called by `agent.mcp.servers` and the doctor. Not the workspace: of the folder in which a program
# is started Python takes modules, and npm packages, and in the workspace a tool may write a file
# without being asked to: a page could have its words run outside of any sandbox (threat T23).

PRIVATE_FOLDER = 0o700
INHERITED = ("PATH", "HOME", "LANG")
SAFE_PATH = "PYTHONSAFEPATH"
"""With it Python takes no modules from the folder in which it was started."""

SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".jar")
CODE_FROM = ("PATH", "PYTHONPATH", "NODE_PATH")
SHOWN_CHARS = 100


def server_folder(servers: Path, name: str, *, workspace: Path) -> Path:
    """The folder of one server in that of all, made when it is not there, for the bot's user alone.
    Blocks. Raises ServerDown when it is none, or leads elsewhere.
    """
    folder = servers / name
    for each in (servers, folder):
        try:
            each.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            status = each.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o077:
                each.chmod(PRIVATE_FOLDER)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise ServerDown(f"its folder {each} cannot be used ({why}): move it away") from error
        if not stat.S_ISDIR(status.st_mode):
            raise ServerDown(f"its folder {each} is a link: put a folder in its place")
    if folder.resolve().is_relative_to(workspace.resolve()):
        raise ServerDown(f"its folder {folder} is in the workspace: move {servers.parent} out")
    return folder


def server_env(options: ServerOptions, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of its program. What the settings name wins.

    A script that is named by its file keeps its neighbours: Python would not find them with
    PYTHONSAFEPATH, and looks beside the script in place of the folder in which it was started.
    """
    given = {name: env[name] for name in INHERITED if name in env}
    if not any(one.endswith(".py") for one in (options.command, *options.args)):
        given[SAFE_PATH] = "1"
    return given | dict(options.env)


def misplaced_paths(options: ServerOptions, workspace: Path) -> Iterator[tuple[str, str]]:
    """Yield what of its settings may be meant for another folder, or lets a tool change its
    program: each as what is wrong, and what to do. Blocks."""
    section = f"mcp.{options.name}"
    for key, said, value, is_run in _named(options):
        path = Path(value)
        try:
            is_inside = path.is_absolute() and path.resolve().is_relative_to(workspace.resolve())
            is_beside = not path.is_absolute() and (workspace / path).exists()
        except (OSError, ValueError, RuntimeError):
            continue  # a text that is no path, or one that leads to itself
        if is_inside and is_run:
            yield (
                f"{said} has it run what is in the workspace, which tools write unasked",
                f"Move that out of {workspace}, and correct {section}.{key}.",
            )
        elif is_beside:
            yield (
                f"{said} is also a path in the workspace, where the server does not run",
                f"If it is meant, write {os.path.normpath(workspace / path)} in {section}.{key}.",
            )


def _named(options: ServerOptions) -> Iterator[tuple[str, str, str, bool]]:
    """Yield what may be a path: the key where it stands, what to call it, the path, and whether it
    is or holds a program. Of a variable its value is not told. A command that is one word is looked
    for in PATH."""
    if os.sep in options.command:
        yield "command", f"the command {options.command[:SHOWN_CHARS]}", options.command, True
    for arg in options.args if options.command else ():
        if value := arg.partition("=")[2] if arg.startswith("-") else arg:
            is_run = Path(value).suffix.lower() in SCRIPTS
            yield "args", f"the argument {arg[:SHOWN_CHARS]}", value, is_run
    for name, values in options.env.items() if options.command else ():
        for value in filter(None, values.split(os.pathsep)):
            yield "env", f"a value of {name}", value, name in CODE_FROM
