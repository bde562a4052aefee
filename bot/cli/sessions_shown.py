"""What `hearthbot sessions` prints: a table, lines for a pipe, a conversation, and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from agent.text import clean
from bot.cli.skills_shown import Line

Answer = dict[str, Any]

SUMMARY_CHARS = 60
RESULT_CHARS = 200
WIDE = 110
"""Columns of a terminal that shows the summaries too."""


def list_table(answer: Answer) -> None:
    """For a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not answer["sessions"]:
        console.print("No conversation is kept here yet.")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("Id", "Chat", "Last"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Msgs", "Tokens"):
        table.add_column(heading, justify="right", no_wrap=True)
    is_wide = console.width >= WIDE
    for heading in ("State", "Who", "Summed up as")[: 3 if is_wide else 2]:
        table.add_column(heading, overflow="fold")
    for one in answer["sessions"]:
        id, lane, who, last, *_, state, summary = _cells(one)
        sizes = f"{one['messages']:,}", f"{one['tokens']:,}"
        cells = [id, lane, last, *sizes, state, who, summary]
        table.add_row(*(Text(cell) for cell in (cells if is_wide else cells[:-1])))
    console.print(table)


def list_lines(answer: Answer) -> Iterator[Line]:
    """For a pipe: one a line, its cells parted by tabs."""
    for one in answer["sessions"]:
        yield "\t".join(_cells(one)), ""


def session_line(one: Mapping[str, Any]) -> str:
    """One conversation in a sentence."""
    who = f" with {_flat(', '.join(one['people']))}" if one["people"] else ""
    return (
        f"{one['id']} in {_flat(one['lane'])}{who}: {one['messages']:,} messages, about "
        f"{one['tokens']:,} tokens, {_time(one['began_ms'])} to {_time(one['last_ms'])} "
        f"({_state(one)})"
    )


def entry_lines(answer: Answer) -> Iterator[Line]:
    """One with its newest entries."""
    session = answer["session"]
    yield session_line(session), "head"
    if session["summary"]:
        yield f"Summed up as: {session['summary']}", "dim"
    for entry in answer["entries"]:
        text, look = _entry(entry)
        if text:
            yield "", ""
            yield f"{_time(entry['at_ms'])}  {text}", look


def markdown(answer: Answer) -> Iterator[str]:
    """All that was said and done; blocks of the prompt are left out."""
    session = answer["session"]
    yield f"# Conversation {session['id']}"
    yield ""
    yield clean(session_line(session))
    if session["summary"]:
        yield ""
        yield f"Summed up as: {clean(session['summary'])}"
    for entry in answer["entries"]:
        text, _ = _entry(entry)
        if text:
            yield ""
            yield f"**{_time(entry['at_ms'])}** {clean(text)}"


def _entry(entry: Mapping[str, Any]) -> tuple[str, str]:
    """What it says, and how it looks on a terminal; nothing for what only the model reads."""
    match entry["kind"]:
        case "said":
            who = _flat(entry["sender"]) or "person"
            forwarded = " (forwarded)" if entry["forwarded"] else ""
            return f"{who}{forwarded}: {entry['text']}", "good"
        case "answered":
            calls = [f"[calls {_flat(call['name'])}]" for call in entry["calls"]]
            text = " ".join([entry["text"].strip(), *calls]).strip()
            return (f"assistant: {text}", "") if text else ("", "")
        case "result":
            content = _flat(entry["content"])
            cut = f"{content[:RESULT_CHARS]}…" if len(content) > RESULT_CHARS else content
            return f"tool: {cut}", "dim"
        case "note":
            return f"note: {entry['text']}", "dim"
        case _:
            return "", ""


def _cells(one: Mapping[str, Any]) -> list[str]:
    summary = _flat(one["summary"])
    if len(summary) > SUMMARY_CHARS:
        summary = f"{summary[:SUMMARY_CHARS]}…"
    return [
        one["id"],
        _flat(one["lane"]),
        _flat(", ".join(one["people"])),
        _time(one["last_ms"]),
        str(one["messages"]),
        str(one["tokens"]),
        _state(one),
        summary,
    ]


def _state(one: Mapping[str, Any]) -> str:
    state = "open" if one["closed_ms"] is None else "closed"
    return f"{state}, memory off" if one["private"] else state


def _time(ms: int) -> str:
    """By this machine's clock."""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")


def _flat(text: str) -> str:
    """What others named must not be able to steer a terminal, nor break a row."""
    return " ".join(clean(text).split())
