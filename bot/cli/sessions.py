"""`hearthbot sessions`: the conversations that are kept, to look at, take along, or erase."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import call
from memory.records.transcript import Session

if TYPE_CHECKING:
    from bot.commands.conversation import SessionShown

app = typer.Typer(help="Conversations: list, show, export, erase.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="As `list` names it; its beginning is enough.")]

FORMATS = ("json", "md")
SUMMARY_CHARS, RESULT_CHARS = 61, 201


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
        out.print_json({"sessions": [_row(one) for one in found]})
    elif not found and out.is_terminal():
        out.print_lines([("No conversation is kept here yet.", "dim")])
    else:
        columns: out.Columns[Session] = {
            "Id": lambda one: one.id,
            "Chat": lambda one: one.lane,
            "Who": lambda one: ", ".join(one.people),
            "Last": lambda one: _time(one.last_ms),
            "Msgs": lambda one: one.messages,
            "Tokens": lambda one: one.tokens,
            "State": _state,
            "About": lambda one: out.shortened(one.summary, SUMMARY_CHARS),
        }
        out.print_rows(found, columns)


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
    lines: list[out.Line] = [(_sentence(found.session), "head")]
    if found.session.summary:
        lines.append((f"Summed up as: {found.session.summary}", "dim"))
    for one in found.entries:
        text, look = _entry(one)
        if text:
            lines += [("", ""), (f"{_time(one['at_ms'])}  {text}", look)]
    out.render(_json(found), lines, as_json=as_json)


@app.command("export")
def export(
    id: Id,
    form: Annotated[str, typer.Option("--format", help="json or md (Markdown).")] = "json",
) -> None:
    """Print all of one: `hearthbot sessions export ID --format md > talk.md`."""
    if form not in FORMATS:
        raise out.wrong_usage(f"--format {form[:40]!r} is not known: it takes json or md.")
    found = call(App.sessions.whole, id)
    if form == "json":
        typer.echo(json.dumps(_json(found), ensure_ascii=False, indent=1))
        return
    session = found.session
    lines = [f"# Conversation {session.id}", "", out.safe(_sentence(session))]
    if session.summary:
        lines += ["", f"Summed up as: {out.safe(session.summary)}"]
    # Blocks of the prompt are left out: nobody said them.
    for one in found.entries:
        text, _ = _entry(one)
        if text:
            lines += ["", f"**{_time(one['at_ms'])}** {out.safe(text)}"]
    typer.echo("\n".join(lines))


@app.command("clear")
def clear(id: Id, yes: out.Yes = False, as_json: out.AsJson = False) -> None:
    """Erase one for good, with all that was made of it: there is no way back.

    Facts that were learnt in it stay. Where it is the open one of a chat, a new one begins there.
    """
    # What a beginning of an id means is settled before somebody says yes to it.
    session = call(App.sessions.show, id, limit=1).session
    if not yes:
        if not out.is_interactive():
            raise out.wrong_usage("Nobody is here to be asked: say --yes to erase it.")
        out.print_lines([(_sentence(session), "head")])
        out.confirm("Erase it for good?")
    out.say(call(App.sessions.clear, session.id), as_json=as_json)


def _json(found: SessionShown) -> out.Json:
    return {"session": _row(found.session), "entries": found.entries}


def _row(session: Session) -> out.Json:
    row = asdict(session)
    return {"private": row.pop("is_private"), **row}


def _sentence(one: Session) -> str:
    """Return one conversation in a sentence."""
    who = f" with {out.flat(', '.join(one.people))}" if one.people else ""
    return (
        f"{one.id} in {out.flat(one.lane)}{who}: {one.messages:,} messages, about "
        f"{one.tokens:,} tokens, {_time(one.began_ms)} to {_time(one.last_ms)} ({_state(one)})"
    )


def _entry(entry: Mapping[str, Any]) -> out.Line:
    """Return what it says, and how it looks on a terminal; nothing if only the model reads it."""
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


def _state(one: Session) -> str:
    openness = "open" if one.closed_ms is None else "closed"
    return f"{openness}, memory off" if one.is_private else openness


def _time(ms: int) -> str:
    """Return a moment by this machine's clock."""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
