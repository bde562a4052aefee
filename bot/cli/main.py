"""The root of the command line: `hearthbot`, and what stands behind it."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.version import VERSION
from bot.cli import (
    access,
    chat,
    doctor,
    init,
    lab,
    mcp,
    memory,
    model,
    prompt,
    run,
    schedule,
    sessions,
    skills,
    usage,
)

app = typer.Typer(
    name="hearthbot",
    help="A self-hosted personal assistant for Telegram, Slack and this terminal.",
    no_args_is_help=False,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hearthbot {VERSION}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
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


app.command("run")(run.run)
app.command("chat")(chat.chat)
app.command("init")(init.init)
app.command("doctor")(doctor.doctor)
app.command("status")(run.status)
app.command("lab")(lab.lab)
app.command("usage")(usage.usage)
app.add_typer(access.app, name="access")
app.add_typer(mcp.app, name="mcp")
app.add_typer(memory.app, name="memory")
app.add_typer(model.app, name="model")
app.add_typer(prompt.app, name="prompt")
app.add_typer(schedule.app, name="schedule")
app.add_typer(sessions.app, name="sessions")
app.add_typer(skills.app, name="skills")
