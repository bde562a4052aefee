"""The inbox: events, stored before they are confirmed to their platform."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memory.database.connection import BITE_ROWS, Database
from memory.database.rows import dump, storable, to_row
from memory.records.messages import InboxId, OutboxId
from memory.records.ports import InboxState
from memory.records.rows import NewEvent, NewMessage, StoredEvent
from memory.records.transcript import Answered, Note, kind_of, to_json
from memory.stores.conversations import random_id
from memory.stores.outbox import add_message

_OPEN_STATES = {InboxState.RECEIVED, InboxState.QUEUED}

_STORE = """
insert into inbox (source, event_id, lane, payload, state, reason, received_ms, ended_ms)
values (:source, :event_id, :lane, :payload, :state, :reason, :now_ms, :ended_ms)
on conflict (source, event_id) do nothing
returning id
"""
_UNFINISHED = """
select id, source as "event.source", event_id as "event.event_id", lane as "event.lane",
    payload as "event.payload"
from inbox where ended_ms is null and state = 'received' order by id
"""
_END = """
update inbox set state = ?, reason = ?, payload = null, ended_ms = ?
where id = ? and ended_ms is null
returning id
"""
_STATE = "select state from inbox where source = ? and event_id = ?"
_COUNTS = "select state, count(*) from inbox group by state"
# The newest stays: else its number would be given again, and turns are named after it.
_ENDED = """
select id from inbox where ended_ms < ? and id < (select max(id) from inbox)
order by ended_ms limit ?
"""
_LET_GO = "update turns set inbox_id = null where inbox_id = ? and ended_ms is not null"
_PRUNE = """
delete from inbox where id = ?1 and not exists (select 1 from turns where inbox_id = ?1)
"""


class SqliteInbox:
    """Inbound events, kept before they are confirmed to the platform."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, events: Sequence[NewEvent]) -> Sequence[StoredEvent]:
        """Stores all in one transaction; returns, in order, those that were not known.

        Strangers' events (no payload) end at once, and nothing but id and time is kept.
        """
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[StoredEvent]:
            stored = []
            for event in events:
                is_refused = event.payload is None
                values = {
                    **to_row(event),
                    "lane": "" if is_refused else event.lane,
                    "state": InboxState.REFUSED if is_refused else InboxState.RECEIVED,
                    "reason": "stranger" if is_refused else "",
                    "now_ms": now_ms,
                    "ended_ms": now_ms if is_refused else None,
                }
                row = connection.execute(_STORE, values).fetchone()
                if row is not None:
                    stored.append(StoredEvent(id=InboxId(row[0]), event=event))
            return stored

        return await self._database.write(work) if events else ()

    async def unfinished(self) -> Sequence[StoredEvent]:
        """Events that were stored and neither ended nor queued as a turn, oldest first."""
        return await self._database.records(StoredEvent, _UNFINISHED)

    async def end(
        self,
        inbox_id: InboxId,
        state: InboxState,
        *,
        reason: str = "",
        reply: NewMessage | None,
    ) -> OutboxId | None:
        """Gives an event its terminal state, together with the reply it gets, if any.

        Its payload goes: what has to be kept of it stands in the history.
        """
        if state in _OPEN_STATES:
            raise ValueError(f"{state} is not an end")
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> OutboxId | None:
            values = (state, storable(reason), now_ms, inbox_id)
            if connection.execute(_END, values).fetchone() is None or reply is None:
                return None
            return add_message(connection, reply, now_ms=now_ms)

        return await self._database.write(work)

    async def state(self, source: str, event_id: str) -> InboxState | None:
        """Where an event is."""
        found = await self._database.value(_STATE, (source, event_id))
        return None if found is None else InboxState(found)

    async def prune(self, before_ms: int) -> int:
        """Delete events that ended before then; return how many rows went or changed. For a daily
        caller.

        An event comes again within a day (Telegram) or an hour (Slack), if at all. After a silent
        week Telegram starts its numbers anew at random, so with numbers kept for ever a new message
        would one day be taken for an old one.
        """

        def work(connection: sqlite3.Connection) -> int:
            began, gone = connection.total_changes, 0
            for (inbox_id,) in connection.execute(_ENDED, (before_ms, BITE_ROWS // 2)).fetchall():
                connection.execute(_LET_GO, (inbox_id,))
                gone += connection.execute(_PRUNE, (inbox_id,)).rowcount
            return connection.total_changes - began if gone else 0

        return await self._database.in_bites(work)

    async def counts(self) -> dict[str, int]:
        """Events by state."""
        return dict(await self._database.rows(_COUNTS))


# --- joining ------------------------------------------------------------------------------------
#
# What the bot says unasked joins the history of the chat it is said in, so that it can be answered
# there. Called inside the transactions that send it.

_CURRENT = "select id from conversations where lane = ? and closed_ms is null"
_OPEN = "insert into conversations (id, lane, created_ms) values (?, ?, ?)"
_ADD = """
insert into messages (conversation_id, run_id, kind, body, created_ms) values (?, ?, ?, ?, ?)
"""


def join_history(
    connection: sqlite3.Connection,
    lane: str,
    *,
    run_id: str,
    note: str,
    text: str,
    tainted: bool,
    now_ms: int,
) -> None:
    """Adds a note on how it came, and the words as the assistant's own. `tainted`: they may rest on
    text from outside, and whoever answers them acts on that."""
    row = connection.execute(_CURRENT, (lane,)).fetchone()
    if row is None:
        row = (random_id(),)
        connection.execute(_OPEN, (*row, lane, now_ms))
    for entry in (Note(text=note, untrusted=tainted), Answered(text=text)):
        values = (row[0], run_id, kind_of(entry), dump(to_json(entry)), now_ms)
        connection.execute(_ADD, values)
