"""`hearthbot init`: the guided set-up, and the same without questions."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from getpass import getpass
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bot.cli.context import FAILED, WRONG_USAGE, Opened, exit_for, logged, read_home
from bot.lean import load_without
from memory.records.errors import StorageError

if TYPE_CHECKING:
    from bot.settings.home import Home
    from bot.settings.schema.settings import Settings
    from bot.setup.steps import Plan, SetupState

T = TypeVar("T")

LOOK_S = 2.0
LINE_BYTES_MAX = 4_096


def init(
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Ask nothing: test what the environment and config.toml set, and save."
        ),
    ] = False,
) -> None:
    """Set up the assistant: model, Telegram, Slack, and you. May be run again at any time."""
    with exit_for():
        load_without("click", "httpx")
        here = _Here.found()
        if yes:
            _without_asking(here)
            return
        if not sys.stdin.isatty() or not sys.stdout.isatty():
            typer.secho(
                "hearthbot init asks questions, so it needs a terminal. Without one: set the "
                "variables (HEARTHBOT_TELEGRAM__TOKEN …) and run `hearthbot init --yes`.",
                err=True,
                fg="yellow",
            )
            raise typer.Exit(WRONG_USAGE)
        try:
            starts = _guided(here)
        except KeyboardInterrupt:
            typer.echo("\nNothing was changed.")
            raise typer.Exit(FAILED) from None
    if starts:
        from bot.cli.run import start

        start()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    """The home before anything is done to it; it may not exist yet."""

    home: Home
    env: Mapping[str, str]
    settings: Settings

    @classmethod
    def found(cls) -> _Here:
        """Raises SettingsWrong, with every problem: they are mended in the file itself."""
        from bot.settings.home import find_home
        from bot.settings.load import load

        env = dict(os.environ)
        home = find_home(env)
        return cls(home=home, env=env, settings=load(home.path, env))

    def situation(self) -> SetupState:
        """Look at the database and for a running bot; change nothing."""
        from bot.doctor.checks import manifest
        from bot.settings.options import host_zone
        from bot.setup.steps import SetupState

        return SetupState(
            settings=self.settings,
            env=self.env,
            manifest=manifest(),
            zone=host_zone(),
            owners=_owners(self.home),
            is_running=asyncio.run(_is_running(self.home)),
        )


def _owners(home: Home) -> tuple[str, ...]:
    import time

    from memory.database.checkup import look

    if not home.database.exists():
        return ()
    try:
        return look(home.database, limit_s=LOOK_S, now_ms=int(time.time() * 1000)).owners
    except StorageError:
        return ()  # the bot, and `hearthbot doctor`, say what is wrong with it


async def _is_running(home: Home) -> bool:
    from bot.rpc import ControlClient, NotRunning

    try:
        async with ControlClient(home.socket):
            return True
    except (NotRunning, OSError):
        return False


# --- with questions ----------------------------------------------------------------------------


def _guided(here: _Here) -> bool:
    """Return whether the bot is to be started now."""
    from bot.settings.edit import write
    from bot.settings.home import prepare
    from bot.setup.wizard import ask_all, checked, summary

    terminal, situation = ConsoleTerminal(), here.situation()
    with silent_logs():
        plan = ask_all(terminal, situation)
    terminal.title("To be saved")
    if plan.is_empty and here.home.config.exists():
        terminal.say("Nothing new: everything stays as it is.")
    else:
        # Whatever the answers were, a file that the bot cannot read is not written.
        checked(here.home.config, plan, here.env)
        for line in summary(plan):
            terminal.say(f"  {line}")
        if not terminal.confirm(f"Save this in {here.home.path}?"):
            raise KeyboardInterrupt
        # Config first, then people: whoever is interrupted in between can run it again.
        prepare(here.home)
        write(here.home.config, plan.changes)
        if plan.owner is not None or plan.name or plan.zone:
            opened = read_home()
            with logged(opened, to_terminal=False):
                asyncio.run(_introduce(opened, plan, situation))
        terminal.good("Saved.")
    if situation.is_running:
        terminal.say("A bot runs on this home: restart it for the new settings to take effect.")
        return False
    terminal.say(f"The command that starts it: {start_command()}")
    return terminal.confirm("Start it now?")


async def _introduce(opened: Opened, plan: Plan, situation: SetupState) -> None:
    """Make the owner, and keep how they are called and where they live."""
    from bot.app.app import App
    from bot.cli.client import with_bot
    from bot.settings.home import HomeLock
    from memory.database.connection import Database
    from memory.records.messages import Role
    from memory.stores.people import SqlitePeople
    from scheduler.clock.machine import SystemClock

    clock = SystemClock()
    address = plan.owner.address if plan.owner else situation.owners[0]
    if plan.owner is not None:
        await with_bot(opened, lambda bot: bot.call(App.access.approve, address, role=Role.OWNER))
    if situation.is_running or not (plan.name or plan.zone):
        return
    home = opened.home
    with HomeLock(home, started_at=clock.now()):
        async with Database.open(home.database, clock=clock, backups=home.backups) as database:
            people = SqlitePeople(database)
            for person in (await people.directory()).people:
                if address in person.addresses:
                    await people.update_person(
                        replace(
                            person,
                            name=plan.name or person.name,
                            time_zone=plan.zone or person.time_zone,
                        )
                    )


# --- without -----------------------------------------------------------------------------------


def _without_asking(here: _Here) -> None:
    from bot.doctor.checks import manifest
    from bot.settings.edit import write
    from bot.settings.home import prepare
    from bot.setup.wizard import tested

    with silent_logs():
        lines = asyncio.run(tested(here.settings, here.env, manifest()))
    for line in lines:
        typer.echo(line)
    prepare(here.home)
    write(here.home.config, {})
    typer.echo(f"Home: {here.home.path}")
    if not _owners(here.home):
        typer.echo(
            "Nobody is the owner yet: write to the bot, and approve the code that it gives you "
            "with `hearthbot access approve CODE`."
        )
    if asyncio.run(_is_running(here.home)):
        typer.echo("A bot runs on this home: restart it for new settings to take effect.")
    else:
        typer.echo(f"Start it with: {start_command()}")


def start_command() -> str:
    """Return what to type in this shell to start the bot."""
    if shutil.which("hearthbot"):
        return "hearthbot run"
    program = sys.argv[0]
    if program.endswith("hearthbot"):
        return f"{shlex.quote(program)} run"
    return f"{shlex.quote(sys.executable)} -m bot run"


# --- the terminal: questions, hidden lines, and waiting -----------------------------------------


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
        """Return one line; Enter is the default."""
        shown = f"{question} [{default}] " if default else f"{question} "
        return _line(lambda: input(shown)).strip() or default

    def ask_secret(self, question: str) -> str:
        """Return one line that is not shown."""
        return _line(lambda: getpass(f"{question}: "))

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Yes or no; asked again until it is one."""
        while True:
            typed = self.ask(f"{question} {'[Y/n]' if default else '[y/N]'}").lower()
            if typed in {"", "y", "yes", "n", "no"}:
                return default if not typed else typed.startswith("y")

    def pick(self, question: str, options: Sequence[str], *, default: int) -> int:
        """Return the place of one of the options."""
        for number, option in enumerate(options, start=1):
            typer.echo(f"  {number:2}  {option}")
        while True:
            typed = self.ask(question, default=str(default + 1))
            if typed.isdecimal() and 1 <= int(typed) <= len(options):
                return int(typed) - 1
            self.bad(f"A number from 1 to {len(options)}, please.")

    def live(self, doing: str, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end, with a spinner."""
        from rich.console import Console

        with Console().status(f"{doing} …"):
            return asyncio.run(work)

    def live_or_enter(self, doing: str, work: Coroutine[Any, Any, T]) -> T | None:
        """Run it likewise, but let Enter end it without a result."""
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
