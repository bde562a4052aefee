"""The rows of compactions: what a history was when it is looked at, and what was summed up of it.

Used by `agent.history.compaction`, and by /compact and /restore.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from itertools import groupby

from memory.database.connection import Database
from memory.database.rows import first, records, to_row
from memory.facts.tombstones import generation as forgotten_times
from memory.records.facts import Compaction
from memory.records.messages import ConversationId
from memory.records.ports import StoredEntry
from memory.records.text import one_line, visible
from memory.records.transcript import (
    NOBODY,
    Answered,
    Aside,
    Entry,
    Said,
    ToolCall,
    ToolResult,
)
from memory.stores.conversations import LAST_COMPACTION, read_entries

# --- material -----------------------------------------------------------------------------------
#
# A stretch of a conversation as it is summed up: what stands in it, and how it is shown in lines.
#
# What came from outside (tool results, forwarded and quoted text) is named and never repeated: a
# summary stands in later prompts as if it were known. The assistant's answers may quote it, so a
# summary of those is marked (`agent.history.compaction`, which uses this).

ENTRIES_MAX = 3_000
"""Of one stretch; more stand in it only where nobody summed up for long, and the newest count."""

CALL_CHARS_MAX = 100

_ENTRIES = """
select id, run_id, body, created_ms from messages
where conversation_id = ? and id >= ? order by id desc limit ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialLine:
    """One message in plain words. `id` is that of its entry."""

    id: int
    text: str


def stretch_from(
    connection: sqlite3.Connection, conversation: ConversationId, since: int
) -> tuple[StoredEntry, ...]:
    """Return what stands in a conversation from an id on, oldest first."""
    rows = connection.execute(_ENTRIES, (conversation, since, ENTRIES_MAX)).fetchall()
    return read_entries(reversed(rows))


def lines_of(entries: Sequence[StoredEntry], zone: tzinfo) -> list[MaterialLine]:
    """Each message as one line; the first of a day says which day it is."""
    found: list[MaterialLine] = []
    shown: date | None = None
    for one, call in _with_calls(entries):
        text = _line(one.entry, call)
        if not text:
            continue
        day = datetime.fromtimestamp(one.at_ms / 1000, zone).date()
        found.append(MaterialLine(id=one.id, text=text if day == shown else f"({day}) {text}"))
        shown = day
    return found


def own_words(said: Said) -> str:
    """Return what a person wrote here themselves; empty for what they only passed on, and for what
    no person wrote."""
    return "" if said.forwarded or said.by.startswith(NOBODY) else said.text.strip()


def effects_of(entries: Sequence[StoredEntry]) -> list[str]:
    """Return what was really done, oldest first: the tool and what it was called with, in few
    words."""
    return [
        _called(call)
        for one, call in _with_calls(entries)
        if isinstance(entry := one.entry, ToolResult) and entry.ok and entry.effect
    ]


def exchanges_in(entries: Sequence[StoredEntry]) -> Iterator[list[StoredEntry]]:
    """The turns, one after the other."""
    for _, turn in groupby(entries, key=lambda one: one.run_id):
        yield list(turn)


# --- lines ---------------------------------------------------------------------------------------


def _with_calls(entries: Sequence[StoredEntry]) -> Iterator[tuple[StoredEntry, ToolCall | None]]:
    """Each entry, a result with the call that it answers: ids come again from answer to answer."""
    calls: dict[str, ToolCall] = {}
    for one in entries:
        entry = one.entry
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
            changed = f"changed: {entry.effect}" if entry.effect else "changed nothing"
            failed = "failed" if entry.effect else "failed, nothing changed"
            return f"(tool {_called(call)}: {f'done, {changed}' if entry.ok else failed})"
        case _:
            return ""


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


_CONVERSATION = "select sent_from, shortened_to, is_private from conversations where id = ?"
_NEWEST = """
select id, tokens_before, made_ms, undone_ms from compactions
where conversation_id = ? order by id desc limit 1
"""
_ANSWERED_SINCE = """
select count(*) from (
    select 1 from messages
    where conversation_id = ? and kind = 'answered' and created_ms > ? and id >= ? limit 10
)
"""
_ADD = """
insert into compactions (conversation_id, kind, from_id, sent_from, summary, reason, messages,
    tokens_before, tokens_after, made_ms, tainted)
select id, :kind, :from_id, :sent_from, :summary, :reason, :messages, :tokens_before, :tokens_after,
    :made_ms, :tainted
from conversations where id = :conversation
returning id, kind, from_id, sent_from, summary, reason, messages, tokens_before, tokens_after,
    made_ms, tainted
"""
_UNDO = "update compactions set undone_ms = ? where id = ?"
_MOVE_BACK = "update conversations set sent_from = ? where id = ? and sent_from >= ?"
_ASIDE = """
select count(*) as messages, min(created_ms) as first_ms, max(created_ms) as last_ms from messages
where conversation_id = ? and id < ? and kind in ('said', 'answered', 'result')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest compaction of a conversation, whether or not it still counts."""

    id: int = 0
    tokens_before: int = 0
    made_ms: int = 0
    undone_ms: int | None = None


NEVER = Newest()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStretch:
    """A history as it stands, after something was forgotten `generation` times. `sent` is what is
    sent of it, from the id `start` on; `floor` is from where on nothing was summed up yet,
    `answered_since` how many answers of the model there are since the newest compaction (counted up
    to ten)."""

    start: int
    floor: int
    sent: Sequence[StoredEntry]
    shortened_to: int
    former: Compaction | None
    newest: Newest
    answered_since: int
    is_private: bool
    generation: int


class SqliteCompactions:
    """What was summed up, made by `agent.history.compaction`. Raises StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stretch(self, conversation: ConversationId) -> HistoryStretch | None:
        """Return how the history stands; None for a conversation that is not there."""

        def work(connection: sqlite3.Connection) -> HistoryStretch | None:
            row = connection.execute(_CONVERSATION, (conversation,)).fetchone()
            if row is None:
                return None
            sent_from, shortened_to, is_private = row
            former = first(Compaction, connection.execute(LAST_COMPACTION, (conversation,)))
            newest = _newest(connection, conversation)
            floor = former.sent_from if former else 0
            start = max(sent_from, floor)
            since = (conversation, newest.made_ms, start)
            return HistoryStretch(
                start=start,
                floor=floor,
                sent=stretch_from(connection, conversation, start),
                shortened_to=shortened_to,
                former=former,
                newest=newest,
                answered_since=connection.execute(_ANSWERED_SINCE, since).fetchone()[0],
                is_private=bool(is_private),
                generation=forgotten_times(connection),
            )

        return await self._database.read(work)

    async def unsummed(self, conversation: ConversationId, floor: int) -> Sequence[StoredEntry]:
        """All that was not summed up yet, whether it is sent or not."""
        return await self._database.read(lambda c: stretch_from(c, conversation, floor))

    async def add(
        self, conversation: ConversationId, new: Compaction, *, after: Newest, generation: int
    ) -> Compaction | None:
        """Store one, if `after` still is the newest one, and nothing was forgotten since
        `generation`: the summary may tell of it. None where it is not, or all is erased."""
        made = {"made_ms": self._database.now_ms(), "conversation": conversation}
        values = {**to_row(new), **made}

        def work(connection: sqlite3.Connection) -> Compaction | None:
            if _newest(connection, conversation) != after:
                return None
            if forgotten_times(connection) != generation:
                return None
            return first(Compaction, connection.execute(_ADD, values))

        return await self._database.write(work)

    async def undo(self, conversation: ConversationId) -> Compaction | None:
        """Takes the last one back; where its start counts already, that moves back too."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> Compaction | None:
            last = first(Compaction, connection.execute(LAST_COMPACTION, (conversation,)))
            if last is None:
                return None
            connection.execute(_UNDO, (now_ms, last.id))
            connection.execute(_MOVE_BACK, (last.from_id, conversation, last.sent_from))
            return last

        return await self._database.write(work)

    async def aside(self, conversation: ConversationId) -> Aside:
        """Return what of a conversation is not sent any more."""

        def work(connection: sqlite3.Connection) -> Aside:
            row = connection.execute(_CONVERSATION, (conversation,)).fetchone()
            last = first(Compaction, connection.execute(LAST_COMPACTION, (conversation,)))
            start = max(row[0] if row else 0, last.sent_from if last else 0)
            return records(Aside, connection.execute(_ASIDE, (conversation, start)))[0]

        return await self._database.read(work)


def _newest(connection: sqlite3.Connection, conversation: ConversationId) -> Newest:
    return first(Newest, connection.execute(_NEWEST, (conversation,))) or NEVER
