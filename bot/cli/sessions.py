"""`hearthbot sessions`: the conversations that are kept, to look at, take along, or erase."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import call
from bot.cli.context import WRONG_USAGE

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

app = typer.Typer(help="Conversations: list, show, export, erase.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="As `list` names it; its beginning is enough.")]

FORMATS = ("json", "md")
SUMMARY_CHARS, RESULT_CHARS = 61, 201
GAP = 2
"""Columns between two cells."""
CHAT_COLUMNS_MIN = 12
"""With less left for it, the chat is named on the second line."""
HEADINGS = ("Id", "Last", "Msgs", "Tokens", "State", "Chat")


@app.command("list")
def list_sessions(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="So many, the last used.")] = 30,
    all_lanes: Annotated[
        bool, typer.Option("--all", help="Those of subagents too, which have no chat.")
    ] = False,
    as_json: out.AsJson = False,
) -> None:
    """Show the conversations, the last used first: where, who, when, and how large."""
    found = call(App.sessions.list, limit=limit, all_lanes=all_lanes)
    if as_json:
        out.print_json({"sessions": found})
    elif out.is_terminal():
        _print_list(found)
    else:
        out.print_lines(map(_row, found))


def _row(one: out.Json) -> out.Line:
    row = out.tabbed(
        one["id"],
        one["lane"],
        ", ".join(one["people"]),
        _time(one["last_ms"]),
        one["messages"],
        one["tokens"],
        _state(one),
        out.shortened(one["summary"], SUMMARY_CHARS),
    )
    return row, ""


def _print_list(found: Sequence[out.Json]) -> None:
    """Two lines each, what is counted and what it was about.

    What may be long has the end of a line to itself: in columns beside each other, words would get
    a few characters each.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not found:
        console.print("No conversation is kept here yet.")
        return
    rows = [HEADINGS, *map(_counted, found)]
    *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    is_narrow = console.width - sum(widths) - GAP * len(widths) < CHAT_COLUMNS_MIN
    console.print(_line_of(HEADINGS[:-1] if is_narrow else HEADINGS, widths, style="bold"))
    for one, row in zip(found, rows[1:], strict=True):
        console.print(_line_of(row[:-1] if is_narrow else row, widths))
        parts = (
            out.flat(one["lane"]) if is_narrow else "",
            "memory off" if one["private"] else "",
            out.flat(", ".join(one["people"])),
            out.flat(one["summary"]),
        )
        about = Text(f"  {' · '.join(filter(None, parts)) or 'not summed up yet'}", style="dim")
        about.truncate(console.width, overflow="ellipsis")
        console.print(about)


def _counted(one: out.Json) -> tuple[str, ...]:
    """The cells under `HEADINGS`."""
    sizes = f"{one['messages']:,}", f"{one['tokens']:,}"
    return one["id"], _time(one["last_ms"]), *sizes, _openness(one), out.flat(one["lane"])


def _line_of(cells: Sequence[str], widths: Sequence[int], *, style: str = "") -> Table:
    from rich.table import Table
    from rich.text import Text

    row = Table.grid(padding=(0, GAP, 0, 0))
    for heading, width in zip(HEADINGS[:-1], widths, strict=True):
        justify: JustifyMethod = "right" if heading in {"Msgs", "Tokens"} else "left"
        row.add_column(width=width, no_wrap=True, justify=justify)
    if len(cells) > len(widths):
        row.add_column(overflow="fold")
    row.add_row(*(Text(cell, style=style) for cell in cells))
    return row


@app.command("show")
def show(
    id: Id,
    limit: Annotated[
        int, typer.Option(min=1, max=1_000, help="So many entries, the newest ones.")
    ] = 20,
    as_json: out.AsJson = False,
) -> None:
    """Show one, with what was said last; `export` has all of it."""
    found = call(App.sessions.show, id, limit=limit)
    out.render(found, _lines(found), as_json=as_json)


def _lines(found: out.Json) -> out.Lines:
    session = found["session"]
    yield _sentence(session), "head"
    if session["summary"]:
        yield f"Summed up as: {session['summary']}", "dim"
    for entry in found["entries"]:
        text, look = _entry(entry)
        if text:
            yield "", ""
            yield f"{_time(entry['at_ms'])}  {text}", look


@app.command("export")
def export(
    id: Id,
    form: Annotated[str, typer.Option("--format", help="json or md (Markdown).")] = "json",
) -> None:
    """Print all of one: `hearthbot sessions export ID --format md > talk.md`."""
    if form not in FORMATS:
        typer.secho(f"--format {form[:40]!r} is not known: it takes json or md.", err=True)
        raise typer.Exit(WRONG_USAGE)
    found = call(App.sessions.whole, id)
    if form == "json":
        typer.echo(json.dumps(found, ensure_ascii=False, indent=1))
        return
    for line in _markdown(found):
        typer.echo(line)


def _markdown(found: out.Json) -> Iterator[str]:
    """All that was said and done; blocks of the prompt are left out."""
    session = found["session"]
    yield from (f"# Conversation {session['id']}", "", out.safe(_sentence(session)))
    if session["summary"]:
        yield from ("", f"Summed up as: {out.safe(session['summary'])}")
    for entry in found["entries"]:
        text, _ = _entry(entry)
        if text:
            yield from ("", f"**{_time(entry['at_ms'])}** {out.safe(text)}")


@app.command("clear")
def clear(id: Id, yes: out.Yes = False, as_json: out.AsJson = False) -> None:
    """Erase one for good, with all that was made of it: there is no way back.

    Facts that were learnt in it stay. Where it is the open one of a chat, a new one begins there.
    """
    session = call(App.sessions.show, id, limit=1)["session"]
    if not yes:
        if not out.is_interactive():
            typer.secho("Nobody is here to be asked: say --yes to erase it.", err=True)
            raise typer.Exit(WRONG_USAGE)
        out.print_lines([(_sentence(session), "head")])
        out.confirm("Erase it for good?")
    answer = call(App.sessions.clear, session["id"])
    out.render(answer, [(answer["text"], "")], as_json=as_json)


def _sentence(one: out.Json) -> str:
    """One conversation in a sentence."""
    who = f" with {out.flat(', '.join(one['people']))}" if one["people"] else ""
    return (
        f"{one['id']} in {out.flat(one['lane'])}{who}: {one['messages']:,} messages, about "
        f"{one['tokens']:,} tokens, {_time(one['began_ms'])} to {_time(one['last_ms'])} "
        f"({_state(one)})"
    )


def _entry(entry: out.Json) -> out.Line:
    """What it says, and how it looks on a terminal; nothing for what only the model reads."""
    match entry["kind"]:
        case "said":
            who = out.flat(entry["sender"]) or "person"
            forwarded = " (forwarded)" if entry["forwarded"] else ""
            return f"{who}{forwarded}: {entry['text']}", "good"
        case "answered":
            calls = [f"[calls {out.flat(call['name'])}]" for call in entry["calls"]]
            text = " ".join([entry["text"].strip(), *calls]).strip()
            return (f"assistant: {text}", "") if text else ("", "")
        case "result":
            return f"tool: {out.shortened(entry['content'], RESULT_CHARS)}", "dim"
        case "note":
            return f"note: {entry['text']}", "dim"
        case _:
            return "", ""


def _openness(one: out.Json) -> str:
    return "open" if one["closed_ms"] is None else "closed"


def _state(one: out.Json) -> str:
    return f"{_openness(one)}, memory off" if one["private"] else _openness(one)


def _time(ms: int) -> str:
    """By this machine's clock."""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
