"""The rows of compactions: what a history was when it is looked at, and what was summed up of it.

Used by `agent.history.compaction`, and by /compact and /restore.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memory.database.connection import Database
from memory.database.rows import first, records, to_row
from memory.facts.tombstones import generation as forgotten_times
from memory.records.facts import Compaction
from memory.records.messages import ConversationId
from memory.records.sessions import Aside
from memory.stores.material import Dated, read_entries

_CONVERSATION = "select sent_from, shortened_to, is_private from conversations where id = ?"
_LAST = """
select id, kind, from_id, sent_from, summary, reason, messages, tokens_before, tokens_after,
    made_ms, tainted
from compactions where conversation_id = ? and undone_ms is null order by id desc limit 1
"""
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
    sent: Sequence[Dated]
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
        """How the history stands; None for a conversation that is not there."""
        return await self._database.read(lambda c: _stretch(c, conversation))

    async def unsummed(self, conversation: ConversationId, floor: int) -> list[Dated]:
        """All that was not summed up yet, whether it is sent or not."""
        return await self._database.read(lambda c: read_entries(c, conversation, floor))

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
            last = first(Compaction, connection.execute(_LAST, (conversation,)))
            if last is None:
                return None
            connection.execute(_UNDO, (now_ms, last.id))
            connection.execute(_MOVE_BACK, (last.from_id, conversation, last.sent_from))
            return last

        return await self._database.write(work)

    async def aside(self, conversation: ConversationId) -> Aside:
        """What of a conversation is not sent any more."""

        def work(connection: sqlite3.Connection) -> Aside:
            row = connection.execute(_CONVERSATION, (conversation,)).fetchone()
            last = first(Compaction, connection.execute(_LAST, (conversation,)))
            start = max(row[0] if row else 0, last.sent_from if last else 0)
            return records(Aside, connection.execute(_ASIDE, (conversation, start)))[0]

        return await self._database.read(work)


def _stretch(connection: sqlite3.Connection, conversation: ConversationId) -> HistoryStretch | None:
    row = connection.execute(_CONVERSATION, (conversation,)).fetchone()
    if row is None:
        return None
    sent_from, shortened_to, is_private = row
    former = first(Compaction, connection.execute(_LAST, (conversation,)))
    newest = _newest(connection, conversation)
    floor = former.sent_from if former else 0
    start = max(sent_from, floor)
    since = (conversation, newest.made_ms, start)
    return HistoryStretch(
        start=start,
        floor=floor,
        sent=read_entries(connection, conversation, start),
        shortened_to=shortened_to,
        former=former,
        newest=newest,
        answered_since=connection.execute(_ANSWERED_SINCE, since).fetchone()[0],
        is_private=bool(is_private),
        generation=forgotten_times(connection),
    )


def _newest(connection: sqlite3.Connection, conversation: ConversationId) -> Newest:
    return first(Newest, connection.execute(_NEWEST, (conversation,))) or NEVER
