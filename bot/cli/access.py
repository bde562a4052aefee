"""`hearthbot access`: who may talk to the bot."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from bot.app.app import App
from bot.cli.client import call
from memory.records.messages import Role

app = typer.Typer(help="Who may talk to the bot.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Who = Annotated[
    str, typer.Argument(help="A code, an address (telegram:123), or a group (telegram:-100123).")
]
Known = Annotated[
    str, typer.Argument(help="Somebody who is let in: an address (telegram:123), or an id.")
]


@app.command("list")
def list_people(as_json: AsJson = False) -> None:
    """Show people, group chats, and who asked to be let in."""
    answer = call(App.access.overview)
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    elif sys.stdout.isatty():
        print_people(answer)
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
    done = call(App.access.approve, who, role=role)
    _show({"text": done.text, "address": done.address}, as_json=as_json)


@app.command("deny")
def deny(who: Who, as_json: AsJson = False) -> None:
    """Shut somebody or a group chat out."""
    _show({"text": call(App.access.deny, who)}, as_json=as_json)


@app.command("role")
def role(
    who: Known,
    role: Annotated[Role, typer.Argument(help="What they may do from now on.")],
    as_json: AsJson = False,
) -> None:
    """Give somebody another role. One owner is always left."""
    _show({"text": call(App.access.set_role, who, role)}, as_json=as_json)


@app.command("remove")
def remove(who: Known, as_json: AsJson = False) -> None:
    """Make somebody a stranger again. What runs for them now goes on to its end."""
    _show({"text": call(App.access.remove, who)}, as_json=as_json)


@app.command("link")
def link(
    who: Known,
    address: Annotated[
        str, typer.Argument(help="One more address of theirs, or the code it was given.")
    ],
    as_json: AsJson = False,
) -> None:
    """Join one more address to somebody: both then share what is remembered, no transcripts."""
    _show({"text": call(App.access.link, who, address)}, as_json=as_json)


def _show(answer: dict[str, str], *, as_json: bool) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False) if as_json else answer["text"])


def _rows(answer: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [_person(person) for person in answer["people"]]
    rows += [("group chat", chat, "", state) for chat, state in answer["chats"].items()]
    rows += [("asked", entry["address"], "", f"code {entry['code']}") for entry in answer["asking"]]
    rows += [("denied", address, "", "") for address in answer["denied"]]
    rows += [("allow_from", address, "", "by the settings") for address in answer["allow_from"]]
    return rows


def _person(person: dict[str, Any]) -> tuple[str, ...]:
    seen = [f"wrote {_moment(person['last_seen_ms'])}"] if person["last_seen_ms"] else []
    zone = [person["time_zone"]] if person["time_zone"] else []
    about = "; ".join([*zone, *seen, person["id"]])
    return person["role"], ", ".join(person["addresses"]), person["name"], about


def _moment(then_ms: int) -> str:
    """In the time of this terminal."""
    return datetime.fromtimestamp(then_ms / 1000, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _lines(answer: dict[str, Any]) -> list[str]:
    return [f"policy\t{answer['policy']}", *("\t".join(row) for row in _rows(answer))]


def print_people(answer: dict[str, Any]) -> None:
    """For a terminal: who may talk to the bot, and who asked, as a table."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from memory.records.text import clean

    table = Table(title=f"Policy: {answer['policy']}", title_justify="left")
    for heading in ("Who", "Address", "Name", ""):
        table.add_column(heading)
    for row in _rows(answer):
        # People choose their names: one in brackets is no markup, and none steers the terminal.
        table.add_row(*(Text(clean(cell)) for cell in row))
    Console().print(table)
    if not answer["people"]:
        typer.echo("Nobody yet: write to the bot, then approve the code it gives you.")
