"""The real program as processes of its own: `hearthbot run`, and commands, also at a terminal.
Called by `docs.make_pictures`."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

from bot.lab.model import ScriptedModel
from bot.lab.telegram import FakeTelegram
from docs.pictures.shapes import Shell
from docs.pictures.stage import telegram_env

HEARTHBOT = Path(sys.executable).with_name("hearthbot")
COLUMNS = 96


def surroundings() -> dict[str, str]:
    """The environment of this shell, without settings of a bot and keys of its owner."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"TERM": "xterm"}


class Process:
    """`hearthbot run` on a home, and commands beside it."""

    def __init__(self, home: Path, telegram: FakeTelegram, model: ScriptedModel) -> None:
        self._telegram = telegram
        self._env = {
            **surroundings(),
            **telegram_env(telegram),
            "HEARTHBOT_HOME": str(home),
            "HEARTHBOT_LLM__API_BASE": model.api_base,
            "HEARTHBOT_LLM__MODEL": "lab-model",
        }

    async def start(self) -> asyncio.subprocess.Process:
        """Returns once it takes messages."""
        polls = len(self._telegram.calls("getUpdates"))
        quiet = subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            HEARTHBOT, "run", env=self._env, stdin=quiet, stdout=quiet, stderr=quiet
        )
        await self._telegram.until(
            lambda: len(self._telegram.calls("getUpdates")) > polls, timeout_s=20
        )
        return process

    async def command(self, line: str) -> Shell:
        """A command of the owner's, and what it printed."""
        process = await asyncio.create_subprocess_exec(
            HEARTHBOT, *line.split()[1:], env=self._env, stdout=subprocess.PIPE
        )
        out, _ = await process.communicate()
        return Shell(heading=line, lines=tuple(out.decode().rstrip().splitlines()))


async def at_a_terminal(arguments: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """The lines that a command prints where it has a terminal, without their colours."""
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        process = await asyncio.create_subprocess_exec(
            HEARTHBOT, *arguments, env=env, stdin=theirs, stdout=theirs, stderr=theirs
        )
    finally:
        os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as screen:
        printed = await asyncio.to_thread(_all_of, screen)
    if await process.wait():
        raise RuntimeError(f"hearthbot {' '.join(arguments)} failed: {printed}")
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed).splitlines()
    return tuple(line.rstrip() for line in lines)


def _all_of(screen: FileIO) -> str:
    """What comes until the other end is closed, which Linux tells as an error."""
    found = []
    with suppress(OSError):
        while piece := screen.read(65_536):
            found.append(piece)
    return b"".join(found).decode()
