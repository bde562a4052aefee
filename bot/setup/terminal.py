"""The terminal of the set-up: questions, hidden lines, and waiting with a sign of life."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from getpass import getpass
from typing import Any, TypeVar

import typer

T = TypeVar("T")

LINE_BYTES_MAX = 4_096


class SetupTerminal:
    """Standard input and output, where a person sits. Each question may raise KeyboardInterrupt:
    then nothing is saved. The end of the input counts as that, since a set-up that was half
    answered is none."""

    def title(self, text: str) -> None:
        """Begin a new step."""
        typer.secho(f"\n{text}", bold=True)

    def say(self, text: str) -> None:
        """Say what one has to know or do."""
        typer.echo(text)

    def good(self, text: str) -> None:
        """Say that something was tested and works."""
        typer.secho(f"✓ {text}", fg="green")

    def bad(self, text: str) -> None:
        """Say that something was tested and does not work, and what to do."""
        typer.secho(f"✗ {text}", fg="red")

    def ask(self, question: str, *, default: str = "") -> str:
        """Ask for one line; Enter is the default."""
        shown = f"{question} [{default}] " if default else f"{question} "
        return _line(lambda: input(shown)).strip() or default

    def ask_secret(self, question: str) -> str:
        """Ask for one line that is not shown; Enter is empty."""
        return _line(lambda: getpass(f"{question}: "))

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Ask yes or no, again until it is one."""
        while True:
            typed = self.ask(f"{question} {'[Y/n]' if default else '[y/N]'}").lower()
            if typed in {"", "y", "yes", "n", "no"}:
                return default if not typed else typed.startswith("y")

    def pick(self, question: str, options: Sequence[str], *, default: int) -> int:
        """Return the place of one of the options; Enter is the default."""
        for number, option in enumerate(options, start=1):
            typer.echo(f"  {number:2}  {option}")
        while True:
            typed = self.ask(question, default=str(default + 1))
            if typed.isdecimal() and 1 <= int(typed) <= len(options):
                return int(typed) - 1
            self.bad(f"A number from 1 to {len(options)}, please.")

    def live(self, doing: str, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end, with a spinner."""
        from rich.console import Console

        with Console().status(f"{doing} …"):
            return asyncio.run(work)

    def live_or_enter(self, doing: str, work: Coroutine[Any, Any, T]) -> T | None:
        """Do the same, but Enter ends it without a result."""
        # One plain line: a spinner would draw over what is typed meanwhile.
        typer.echo(f"{doing} …")
        return asyncio.run(_unless_enter(work))


def _line(read: Callable[[], str]) -> str:
    try:
        return read()
    except EOFError:
        raise KeyboardInterrupt from None


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
