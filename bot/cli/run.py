"""`hearthbot run`, and `hearthbot` alone: the bot itself.

`bot.cli.main` adds all other commands. Setting them all up takes a twentieth of the bot's start, so
a process that is to run it is given no more than this.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from agent.version import VERSION
from bot.cli.context import Opened, exit_for, last_words, logged, opened, read_home
from bot.lean import late_methods, load_without, without_garbage_search
from memory.records.errors import SettingsWrong

if TYPE_CHECKING:
    pass

log = structlog.get_logger()


def new_app() -> typer.Typer:
    """Return the command line without any command but `run`."""
    app = typer.Typer(
        name="hearthbot",
        help="A self-hosted personal assistant for Telegram, Slack and this terminal.",
        no_args_is_help=False,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    app.command("run")(run)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hearthbot {VERSION}")
        raise typer.Exit


def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Without a command: serve Telegram if a token is set, else chat in this terminal."""
    if context.invoked_subcommand is None:
        start()


def run(
    once: Annotated[
        bool, typer.Option("--once", help="Work off what is waiting, then exit.")
    ] = False,
    trust_clock: Annotated[
        bool,
        typer.Option("--trust-clock", help="Trust this machine's clock, even if it looks wrong."),
    ] = False,
) -> None:
    """Start every configured channel; Ctrl-C or SIGTERM drains and stops."""
    with exit_for(), last_words(), opened(log_to_terminal=True) as home:
        if not _has_channel(home) and not once:
            raise SettingsWrong(
                "No channel is configured. Set up Telegram or Slack by hearthbot init (or set "
                f"telegram.token or slack.bot_token in {home.home.config}), or talk here: "
                "hearthbot chat"
            )
        asyncio.run(_run(home, once=once, trust_clock=trust_clock))


def start() -> None:
    """What `hearthbot` alone does: serve the channels that are set up, else chat here."""
    with exit_for(), last_words():
        home = read_home()
        if _has_channel(home):
            with logged(home, to_terminal=True):
                asyncio.run(_run(home, once=False))
            return
        from bot.cli.terminal.chat import converse

        typer.echo(
            "No channel is set up (hearthbot init does that), so here is a chat in this terminal."
        )
        with logged(home, to_terminal=False):
            asyncio.run(converse(home, ""))


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """How the running bot is doing."""
    # `hearthbot run` loads this module too, and needs none of these.
    from bot.app.app import App
    from bot.cli.client import ask_running

    with exit_for(), opened(log_to_terminal=True) as home:
        lines = asyncio.run(ask_running(home, App.status.lines, for_owner=True))
    from bot.cli.render import render
    from bot.markup.command_text import on_command_line

    render({"lines": lines}, ((on_command_line(line), "") for line in lines), as_json=as_json)


def _has_channel(home: Opened) -> bool:
    return bool(_channels(home))


def _channels(home: Opened) -> list[str]:
    """Return the platforms that are set up, as a person calls them."""
    settings = home.settings
    found = {
        "Telegram": settings.telegram.token.get_secret_value(),
        "Slack": settings.slack.bot_token.get_secret_value(),
    }
    return [name for name, token in found.items() if token]


async def _run(home: Opened, *, once: bool, trust_clock: bool = False) -> None:
    stopping = asyncio.Event()
    with _stopped_by_signals(stopping, drain_s=home.settings.turns.drain_s):
        async with AsyncExitStack() as stack:
            # What is put together here lives as long as the bot: no search would find garbage.
            with without_garbage_search(), late_methods():
                load_without("click", "httpx")
                from bot.app.app import App
                from scheduler.clock.machine import CheckedClock, SystemClock

                clock = CheckedClock(SystemClock(), file=home.home.database, is_trusted=trust_clock)
                app = App(home.home, home.settings, env=home.env, digest=home.digest, clock=clock)
                bot = await stack.enter_async_context(app.running())
            if once:
                await bot.once(stopping)
                return
            _tell(f"Model: {bot.choice.model}. {bot.choice.why}")
            _tell(f"Serving {' and '.join(_channels(home))}. Ctrl-C stops.")
            await bot.serve(stopping)
    log.info("bot.stopped")


@contextmanager
def _stopped_by_signals(stopping: asyncio.Event, *, drain_s: float) -> Iterator[None]:
    """SIGTERM and Ctrl-C let what runs come to its end; a second Ctrl-C parks it at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def interrupt() -> None:
        if stopping.is_set():
            task.cancel()
            return
        stopping.set()
        _tell(f"Stopping, {drain_s:g} s at most. Ctrl-C again stops at once: nothing is lost.")

    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    except asyncio.CancelledError:
        if not stopping.is_set():
            raise


def _tell(line: str) -> None:
    """For a person at the terminal; a service has the log."""
    if sys.stderr.isatty():
        typer.secho(line, err=True)
