"""`hearthbot init`: the guided set-up, and the same without questions."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.context import FAILED, WRONG_USAGE, Opened, exit_for, logged, read_home
from bot.lean import load_without
from memory.records.errors import StorageError

if TYPE_CHECKING:
    from bot.settings.home import Home
    from bot.settings.schema.settings import Settings
    from bot.setup.steps import Plan, SetupState

LOOK_S = 2.0


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
    from bot.setup.steps import SetupTerminal
    from bot.setup.wizard import ask_all, checked, summary

    terminal, situation = SetupTerminal(), here.situation()
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


@contextmanager
def silent_logs() -> Iterator[None]:
    """No log lines: what is worth saying is said by the command itself."""
    from bot.settings.logging import set_up
    from bot.settings.schema.settings import LoggingSettings

    with set_up(LoggingSettings(), secrets=(), stream=StringIO(), file=None):
        yield
