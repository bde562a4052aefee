"""A stretch of a conversation as it is summed up: what stands in it, and how it is shown in lines.

What came from outside (tool results, forwarded and quoted text) is named and never repeated: a
summary stands in later prompts as if it were known. The assistant's answers may quote it, so a
summary of those is marked (`agent.history.compaction`, which uses this).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from memory.records.hidden_text import visible
from memory.records.messages import ConversationId, RunId
from memory.records.ports import StoredEntry
from memory.records.text import one_line
from memory.records.transcript import (
    NOBODY,
    Answered,
    Entry,
    Said,
    ToolCall,
    ToolResult,
    entry_from_json,
)

ENTRIES_MAX = 3_000
"""Of one stretch; more stand in it only where nobody summed up for long, and the newest count."""

CALL_CHARS_MAX = 100

_ENTRIES = """
select id, run_id, body, created_ms from messages
where conversation_id = ? and id >= ? order by id desc limit ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """An entry, and when it was stored (epoch milliseconds)."""

    stored: StoredEntry
    at_ms: int

    @property
    def id(self) -> int:
        """Its place in the message store."""
        return self.stored.id


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialLine:
    """One message in plain words. `id` is that of its entry."""

    id: int
    text: str


def read_entries(
    connection: sqlite3.Connection, conversation: ConversationId, since: int
) -> list[Dated]:
    """What stands in a conversation from an id on, oldest first."""
    rows = connection.execute(_ENTRIES, (conversation, since, ENTRIES_MAX)).fetchall()
    return [
        Dated(
            stored=StoredEntry(
                id=row_id, run_id=RunId(run_id), entry=entry_from_json(json.loads(body))
            ),
            at_ms=at_ms,
        )
        for row_id, run_id, body, at_ms in reversed(rows)
    ]


def lines_of(entries: Sequence[Dated], zone: tzinfo) -> list[MaterialLine]:
    """Each message as one line; the first of a day says which day it is."""
    found: list[MaterialLine] = []
    shown: date | None = None
    for one, call in _with_calls(entries):
        text = _line(one.stored.entry, call)
        if not text:
            continue
        day = datetime.fromtimestamp(one.at_ms / 1000, zone).date()
        found.append(MaterialLine(id=one.id, text=text if day == shown else f"({day}) {text}"))
        shown = day
    return found


def own_words(said: Said) -> str:
    """What a person wrote here themselves; empty for what they only passed on, and for what no
    person wrote."""
    return "" if said.forwarded or said.by.startswith(NOBODY) else said.text.strip()


def effects_of(entries: Sequence[Dated]) -> list[str]:
    """What was really done, oldest first: the tool and what it was called with, in few words."""
    return [
        _called(call)
        for one, call in _with_calls(entries)
        if isinstance(entry := one.stored.entry, ToolResult) and entry.ok and entry.effect
    ]


def exchanges_in(entries: Sequence[Dated]) -> Iterator[list[Dated]]:
    """The turns, one after the other."""
    turn: list[Dated] = []
    for one in entries:
        if turn and turn[-1].stored.run_id != one.stored.run_id:
            yield turn
            turn = []
        turn.append(one)
    if turn:
        yield turn


# --- lines ---------------------------------------------------------------------------------------


def _with_calls(entries: Sequence[Dated]) -> Iterator[tuple[Dated, ToolCall | None]]:
    """Each entry, a result with the call that it answers: ids come again from answer to answer."""
    calls: dict[str, ToolCall] = {}
    for one in entries:
        entry = one.stored.entry
        if isinstance(entry, Answered):
            calls = {call.id: call for call in entry.calls}
        yield one, calls.get(entry.call_id) if isinstance(entry, ToolResult) else None


def _line(entry: Entry, call: ToolCall | None) -> str:
    match entry:
        case Said(forwarded=True):
            return f"{one_line(entry.sender) or 'person'}: (forwarded a message of somebody else)"
        case Said() if entry.by.startswith(NOBODY):
            return "(a background task reported)"
        case Said():
            return f"{one_line(entry.sender) or 'person'}: {entry.text.strip()}"
        case Answered():
            text = visible(entry.text).strip()
            return f"assistant: {text}" if text else ""
        case ToolResult():
            return f"(tool {_called(call)}: {_outcome(entry)})"
        case _:
            return ""


def _outcome(result: ToolResult) -> str:
    if not result.ok:
        return "failed, nothing changed" if not result.effect else "failed"
    return f"done, changed: {result.effect}" if result.effect else "done, changed nothing"


def _called(call: ToolCall | None) -> str:
    """`save_file files/lisbon.md`: the name, and the short values that it was called with."""
    if call is None:
        return "of an unknown name"
    values = " ".join(_values(call.arguments))
    return one_line(f"{call.name} {values}".strip(), chars_max=CALL_CHARS_MAX)


def _values(arguments: str) -> Iterator[str]:
    try:
        known = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return
    values = known.values() if isinstance(known, dict) else ()
    for value in values:
        if isinstance(value, str) and value.strip():
            yield one_line(value, chars_max=60)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield str(value)
