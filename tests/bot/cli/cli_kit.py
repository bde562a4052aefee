"""A group of the command line as somebody types it: in a pipe, on a terminal, beside a bot."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stdout
from io import StringIO
from typing import Any

from typer.testing import CliRunner, Result

from bot.cli.main import app
from bot.rpc import ControlServer
from bot.settings.home import Home
from tests.bot.remote_kit import offered

Parts = Callable[[], AbstractAsyncContextManager[Mapping[str, object]]]
"""Opens parts of an App, by their names there."""


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Group:
    """The commands of one group; nothing is a terminal here."""

    def __init__(self, *words: str) -> None:
        self._words = words

    def typed(self, *words: str, given: str | None = None) -> Result:
        command = [*self._words, *words]
        return CliRunner().invoke(app, command, input=given, catch_exceptions=False)

    def said(self, *words: str, given: str | None = None) -> str:
        result = self.typed(*words, given=given)
        assert result.exit_code == 0, result.output
        return result.stdout

    def rows(self, *words: str) -> list[list[str]]:
        return [line.split("\t") for line in self.said(*words).splitlines()]

    def answer(self, *words: str) -> Any:
        return json.loads(self.said(*words, "--json"))

    def refused(self, *words: str, code: int = 1) -> str:
        result = self.typed(*words)
        assert result.exit_code == code, result.output
        return result.stderr or result.stdout


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(show: Callable[[], object]) -> str:
    """What this prints on a terminal, as wide as COLUMNS says; without its colours."""
    out = _Terminal()
    with redirect_stdout(out):
        show()
    return _COLOURS.sub("", out.getvalue())


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """No bot runs."""
    yield


@contextmanager
def beside_a_bot(home: Home, opened: Parts) -> Iterator[None]:
    """A bot as far as a command knows it: its socket, and these parts, in a thread of its own."""
    ready, stopping = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with opened() as parts, ControlServer(home.socket, offered(**parts)):
            ready.set()
            await stopping.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(30)
        loop.close()
