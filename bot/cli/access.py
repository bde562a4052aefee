"""`hearthbot access`: who may talk to the bot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import call
from memory.records.messages import Role

app = typer.Typer(help="Who may talk to the bot.", no_args_is_help=True)

Who = Annotated[
    str, typer.Argument(help="A code, an address (telegram:123), or a group (telegram:-100123).")
]
Known = Annotated[
    str, typer.Argument(help="Somebody who is let in: an address (telegram:123), or an id.")
]


@app.command("list")
def list_people(as_json: out.AsJson = False) -> None:
    """Show people, group chats, and who asked to be let in."""
    found = call(App.access.overview)
    if as_json:
        out.print_json(found)
        return
    # A table has it in its title; a pipe has no titles.
    if not out.is_terminal():
        out.print_lines([(f"policy\t{found['policy']}", "")])
    rows = []
    for person in found["people"]:
        about = [person["time_zone"]] if person["time_zone"] else []
        if then_ms := person["last_seen_ms"]:  # as this terminal has it
            at = datetime.fromtimestamp(then_ms / 1000, tz=UTC).astimezone()
            about.append(f"wrote {at:%Y-%m-%d %H:%M}")
        about.append(person["id"])
        addresses = ", ".join(person["addresses"])
        rows.append((person["role"], addresses, person["name"], "; ".join(about)))
    rows += [("group chat", chat, "", state) for chat, state in found["chats"].items()]
    rows += [("asked", entry["address"], "", f"code {entry['code']}") for entry in found["asking"]]
    rows += [("denied", address, "", "") for address in found["denied"]]
    rows += [("allow_from", address, "", "by the settings") for address in found["allow_from"]]
    columns: out.Columns[tuple[str, ...]] = {
        "Who": lambda row: row[0],
        "Address": lambda row: row[1],
        "Name": lambda row: row[2],
        "About": lambda row: row[3],
    }
    out.print_rows(rows, columns, title=f"Policy: {found['policy']}")
    if not found["people"] and out.is_terminal():
        typer.echo("Nobody yet: write to the bot, then approve the code it gives you.")


@app.command("approve")
def approve(
    who: Who,
    role: Annotated[
        Role | None, typer.Option(help="What they may do; member unless named.")
    ] = None,
    as_json: out.AsJson = False,
) -> None:
    """Let somebody in, or admit a group chat. The first one approved becomes the owner."""
    done = call(App.access.approve, who, role=role)
    out.say(done.text, as_json=as_json, address=done.address)


@app.command("deny")
def deny(who: Who, as_json: out.AsJson = False) -> None:
    """Shut somebody or a group chat out."""
    out.say(call(App.access.deny, who), as_json=as_json)


@app.command("role")
def role(
    who: Known,
    role: Annotated[Role, typer.Argument(help="What they may do from now on.")],
    as_json: out.AsJson = False,
) -> None:
    """Give somebody another role. One owner is always left."""
    out.say(call(App.access.set_role, who, role), as_json=as_json)


@app.command("remove")
def remove(who: Known, as_json: out.AsJson = False) -> None:
    """Make somebody a stranger again. What runs for them now goes on to its end."""
    out.say(call(App.access.remove, who), as_json=as_json)


@app.command("link")
def link(
    who: Known,
    address: Annotated[
        str, typer.Argument(help="One more address of theirs, or the code it was given.")
    ],
    as_json: out.AsJson = False,
) -> None:
    """Join one more address to somebody: both then share what is remembered, no transcripts."""
    out.say(call(App.access.link, who, address), as_json=as_json)
