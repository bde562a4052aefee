"""What `hearthbot sessions` prints: a list, lines for a pipe, a conversation, and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bot.cli.skills_shown import Line
from memory.records.text import clean

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

Answer = dict[str, Any]

SUMMARY_CHARS = 60
RESULT_CHARS = 200
GAP = 2
"""Columns between two cells."""
CHAT_COLUMNS_MIN = 12
"""With less left for it, the chat is named on the second line."""
HEADINGS = ("Id", "Last", "Msgs", "Tokens", "State", "Chat")


def list_table(answer: Answer) -> None:
    """For a terminal: two lines each, what is counted and what it was about.

    What may be long has the end of a line to itself: in columns beside each other, words would get
    a few characters each.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not answer["sessions"]:
        console.print("No conversation is kept here yet.")
        return
    rows = [HEADINGS, *(_counted(one) for one in answer["sessions"])]
    *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    is_narrow = console.width - sum(widths) - GAP * len(widths) < CHAT_COLUMNS_MIN
    console.print(_row(HEADINGS[:-1] if is_narrow else HEADINGS, widths, style="bold"))
    for one, row in zip(answer["sessions"], rows[1:], strict=True):
        console.print(_row(row[:-1] if is_narrow else row, widths))
        about = Text(f"  {_about(one, names_chat=is_narrow)}", style="dim")
        about.truncate(console.width, overflow="ellipsis")
        console.print(about)


def _counted(one: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells under `HEADINGS`."""
    state = "open" if one["closed_ms"] is None else "closed"
    sizes = f"{one['messages']:,}", f"{one['tokens']:,}"
    return one["id"], _time(one["last_ms"]), *sizes, state, _flat(one["lane"])


def _row(cells: Sequence[str], widths: Sequence[int], *, style: str = "") -> Table:
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


def _about(one: Mapping[str, Any], *, names_chat: bool) -> str:
    """Whether it is left out of memory, with whom it was, and how it was summed up."""
    parts = (
        _flat(one["lane"]) if names_chat else "",
        "memory off" if one["private"] else "",
        _flat(", ".join(one["people"])),
        _flat(one["summary"]),
    )
    return " · ".join(part for part in parts if part) or "not summed up yet"


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
