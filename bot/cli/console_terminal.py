"""The terminal of the guided set-up: questions, hidden lines, and waiting."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from getpass import getpass
from io import StringIO
from typing import Any, TypeVar

import typer

T = TypeVar("T")

LINE_BYTES_MAX = 4_096


class ConsoleTerminal:
    """Implements `bot.setup.steps.SetupTerminal` on standard input and output: a terminal.

    The end of the input counts as Ctrl-C: a half-answered set-up is not saved.
    """

    def title(self, text: str) -> None:
        """A new step begins."""
        typer.secho(f"\n{text}", bold=True)

    def say(self, text: str) -> None:
        """What one has to know or do."""
        typer.echo(text)

    def good(self, text: str) -> None:
        """Something works."""
        typer.secho(f"✓ {text}", fg="green")

    def bad(self, text: str) -> None:
        """Something does not."""
        typer.secho(f"✗ {text}", fg="red")

    def ask(self, question: str, *, default: str = "") -> str:
        """One line; Enter is the default."""
        shown = f"{question} [{default}] " if default else f"{question} "
        return _line(lambda: input(shown)).strip() or default

    def ask_secret(self, question: str) -> str:
        """One line that is not shown."""
        return _line(lambda: getpass(f"{question}: "))

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Yes or no; asked again until it is one."""
        while True:
            typed = self.ask(f"{question} {'[Y/n]' if default else '[y/N]'}").lower()
            if typed in {"", "y", "yes", "n", "no"}:
                return default if not typed else typed.startswith("y")

    def pick(self, question: str, options: Sequence[str], *, default: int) -> int:
        """The place of one of the options."""
        for number, option in enumerate(options, start=1):
            typer.echo(f"  {number:2}  {option}")
        while True:
            typed = self.ask(question, default=str(default + 1))
            if typed.isdecimal() and 1 <= int(typed) <= len(options):
                return int(typed) - 1
            self.bad(f"A number from 1 to {len(options)}, please.")

    def live(self, doing: str, work: Coroutine[Any, Any, T]) -> T:
        """Runs it to its end, with a spinner."""
        with _spinner(doing):
            return asyncio.run(work)

    def live_or_enter(self, doing: str, work: Coroutine[Any, Any, T]) -> T | None:
        """The same, but Enter ends it without a result."""
        # One plain line: a spinner would draw over what is typed meanwhile.
        typer.echo(f"{doing} …")
        return asyncio.run(_unless_enter(work))


@contextmanager
def silent_logs() -> Iterator[None]:
    """No log lines: what is worth saying is said by the command itself."""
    from bot.settings.logging import set_up
    from bot.settings.schema.settings import LoggingSettings

    with set_up(LoggingSettings(), secrets=(), stream=StringIO(), file=None):
        yield


def _line(read: Callable[[], str]) -> str:
    try:
        return read()
    except EOFError:
        raise KeyboardInterrupt from None


@contextmanager
def _spinner(doing: str) -> Iterator[None]:
    from rich.console import Console

    with Console().status(f"{doing} …"):
        yield


async def _unless_enter(work: Coroutine[Any, Any, T]) -> T | None:
    loop = asyncio.get_running_loop()
    pressed = asyncio.Event()

    def read() -> None:
        # One line comes at a time. At the end of the input there is nothing more to wait for.
        os.read(sys.stdin.fileno(), LINE_BYTES_MAX)
        pressed.set()

    loop.add_reader(sys.stdin.fileno(), read)
    doing, waiting = asyncio.ensure_future(work), asyncio.ensure_future(pressed.wait())
    try:
        await asyncio.wait({doing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        loop.remove_reader(sys.stdin.fileno())
        doing.cancel()
        waiting.cancel()
        await asyncio.gather(doing, waiting, return_exceptions=True)
