"""`hearthbot sessions`: the conversations that are kept, to look at, take along, or erase."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.app import App
from bot.cli.client import ask, call
from bot.cli.context import WRONG_USAGE, exit_for, opened
from bot.cli.sessions_shown import entry_lines, list_lines, list_table, markdown, session_line
from bot.cli.skills_shown import print_lines

if TYPE_CHECKING:
    pass

app = typer.Typer(help="Conversations: list, show, export, erase.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="As `list` names it; its beginning is enough.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

FORMATS = ("json", "md")


@app.command("list")
def list_sessions(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="So many, the last used.")] = 30,
    all_lanes: Annotated[
        bool, typer.Option("--all", help="Those of subagents too, which have no chat.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the conversations, the last used first: where, who, when, and how large."""
    answer = call(App.sessions.list, limit=limit, all_lanes=all_lanes)
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    elif sys.stdout.isatty():
        list_table(answer)
    else:
        print_lines(list_lines(answer))


@app.command("show")
def show(
    id: Id,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000, help="So many entries, the newest ones.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show one, with what was said last; `export` has all of it."""
    answer = call(App.sessions.show, id, limit=limit)
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        print_lines(entry_lines(answer))


@app.command("export")
def export(
    id: Id,
    form: Annotated[str, typer.Option("--format", help="json or md (Markdown).")] = "json",
) -> None:
    """Print all of one: `hearthbot sessions export ID --format md > talk.md`."""
    if form not in FORMATS:
        typer.secho(f"--format {form[:40]!r} is not known: it takes json or md.", err=True)
        raise typer.Exit(WRONG_USAGE)
    answer = call(App.sessions.whole, id)
    if form == "json":
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=1))
        return
    for line in markdown(answer):
        typer.echo(line)


@app.command("clear")
def clear(
    id: Id,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase one for good, with all that was made of it: there is no way back.

    Facts that were learnt in it stay. Where it is the open one of a chat, a new one begins there.
    """
    with exit_for(), opened(log_to_terminal=False) as home:
        shown = asyncio.run(ask(home, App.sessions.show, id, limit=1))["session"]
        if not yes:
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                typer.secho("Nobody is here to be asked: say --yes to erase it.", err=True)
                raise typer.Exit(WRONG_USAGE)
            print_lines([(session_line(shown), "head")])
            # Nothing is held open while somebody reads: another command may run meanwhile.
            typer.confirm("Erase it for good?", abort=True)
        answer = asyncio.run(ask(home, App.sessions.clear, shown["id"]))
    typer.echo(json.dumps(answer, ensure_ascii=False) if as_json else answer["text"])
