"""What stands before every command: `hearthbot` alone, `--version`, and the bot itself.

`bot.cli.main` adds all other commands. Setting them all up takes a twentieth of the bot's start, so
a process that is to run it is given no more than this.
"""

from __future__ import annotations

from typing import Annotated

import typer

from agent.version import VERSION
from bot.cli import run


def new_app() -> typer.Typer:
    """The command line without any command but `run`."""
    app = typer.Typer(
        name="hearthbot",
        help="A self-hosted personal assistant for Telegram, Slack and this terminal.",
        no_args_is_help=False,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    app.command("run")(run.run)
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
        run.start()
