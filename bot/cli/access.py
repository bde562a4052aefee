"""`hearthbot access`: who may talk to the bot."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Annotated, Any

import typer

from agent.messages import Role
from bot.cli.opening import exit_for, opened

app = typer.Typer(help="Who may talk to the bot.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Who = Annotated[
    str, typer.Argument(help="A code, an address (telegram:123), or a group (telegram:-100123).")
]


@app.command("list")
def list_people(as_json: AsJson = False) -> None:
    """Show people, group chats, and who asked to be let in."""
    answer = _ask("access.list")
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    elif sys.stdout.isatty():
        _print_table(answer)
    else:
        for line in _lines(answer):
            typer.echo(line)


@app.command("approve")
def approve(
    who: Who,
    role: Annotated[
        Role | None, typer.Option(help="What they may do; member unless named.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let somebody in, or admit a group chat. The first one approved becomes the owner."""
    _show(_ask("access.approve", who=who, role=role.value if role else ""), as_json=as_json)


@app.command("deny")
def deny(who: Who, as_json: AsJson = False) -> None:
    """Shut somebody or a group chat out."""
    _show(_ask("access.deny", who=who), as_json=as_json)


def _ask(operation: str, **arguments: str) -> dict[str, Any]:
    from bot.cli.asking import ask_access

    with exit_for(), opened(log_to_terminal=False) as home:
        return asyncio.run(ask_access(home, operation, **arguments))


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False) if as_json else answer["text"])


def _rows(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    rows = [
        (person["role"], ", ".join(person["addresses"]), person["id"])
        for person in answer["people"]
    ]
    rows += [("group chat", chat, state) for chat, state in answer["chats"].items()]
    rows += [("asked", entry["address"], f"code {entry['code']}") for entry in answer["asking"]]
    rows += [("denied", address, "") for address in answer["denied"]]
    rows += [("allow_from", address, "by the settings") for address in answer["allow_from"]]
    return rows


def _lines(answer: dict[str, Any]) -> list[str]:
    return [f"policy\t{answer['policy']}", *("\t".join(row) for row in _rows(answer))]


def _print_table(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Policy: {answer['policy']}", title_justify="left")
    for heading in ("Who", "Address", ""):
        table.add_column(heading)
    for row in _rows(answer):
        table.add_row(*row)
    Console().print(table)
    if not answer["people"]:
        typer.echo("Nobody yet: write to the bot, then approve the code it gives you.")
