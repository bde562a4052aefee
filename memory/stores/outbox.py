"""The outbox: messages on their way out, each row until it is delivered or given up."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from memory.database.connection import BITE_ROWS, Database
from memory.database.rows import dump, named, record, records, storable, to_row
from memory.records.codec import from_json
from memory.records.messages import OutboxId, RunId
from memory.records.rows import (
    NewMessage,
    OutboxState,
    OutFile,
    OutPart,
    OutRow,
    PartState,
)

_OPEN_STATES = {OutboxState.DRAFT, OutboxState.READY}

_ADD = """
insert into outbox (lane, text, keyboard, buttons, file, about, state, created_ms)
values (:lane, :text, :keyboard, :buttons, :file, :about, 'ready', :now_ms)
returning id
"""
_ADD_DRAFT = """
insert into outbox (run_id, lane, state, created_ms) values (?, ?, 'draft', ?)
on conflict (run_id) where run_id is not null do nothing
returning id
"""
_ROW = """
select id, run_id, lane, text, state, attempts, not_before_ms, created_ms, keyboard, buttons,
    revision, file, tried_ms, about
from outbox
"""
_ROW_BY_ID = f"{_ROW} where id = ?"
_ROW_BY_RUN = f"{_ROW} where run_id = ?"
_OPEN_ROWS = f"{_ROW} where ended_ms is null and state = 'ready' order by id"
_PARTS = """
select n, markup, source, state, message_id, ref from outbox_parts where outbox_id = ? order by n
"""
# A draft row may be gone already when the last update of it comes back: then nothing is written.
_PUT_PART = """
insert into outbox_parts (outbox_id, n, markup, source, state, message_id, ref)
select id, :n, :markup, :source, :state, :message_id, :ref from outbox where id = :outbox_id
on conflict (outbox_id, n) do update set
    markup = excluded.markup, source = excluded.source,
    state = excluded.state, message_id = excluded.message_id, ref = excluded.ref
"""
_DROP_PARTS = "delete from outbox_parts where outbox_id = ? and n > ?"
_MARK_PART = """
insert into outbox_parts (outbox_id, n, markup, source, state, message_id, ref)
select id, :n, :markup, :source, :state, :message_id, :ref from outbox where id = :outbox_id
on conflict (outbox_id, n) do update set
    state = excluded.state, message_id = excluded.message_id, ref = excluded.ref
"""
# The copy of a file goes with the row's end, and so does its name: it is in the history.
_END = """
update outbox set state = ?, reason = ?, ended_ms = ?, file = ''
where id = ? and ended_ms is null
"""
# What the end of a message means for what waits for it. The time to answer a question runs from its
# arrival; a question that never arrives is over at once.
_ANSWER_FROM_NOW = """
update approvals set expires_ms = expires_ms - asked_ms + ?
where outbox_id = ? and state = 'open'
"""
_ANSWER_NEVER = "update approvals set expires_ms = ? where outbox_id = ? and state = 'open'"
_NOT_DELIVERED = """
update job_runs set state = 'failed', note = ? where outbox_id = ? and state = 'told'
"""
_NOTICES = "select count(*) from outbox where about = ? and created_ms > ?"
_POSTPONE = "update outbox set not_before_ms = ?, attempts = ? where id = ?"
# What waits behind a message waits for the same platform, so the time counts for it too.
_TRIED = """
update outbox set tried_ms = tried_ms + ?
where lane = (select lane from outbox where id = ?) and id >= ? and ended_ms is null
    and state = 'ready'
"""
# A row that reads so already is left alone.
_REVISE = """
update outbox set
    revision = ?,
    attempts = case when ended_ms is null then attempts else 0 end,
    not_before_ms = case when ended_ms is null then not_before_ms else 0 end
where id = ? and (revision is not null or buttons <> '' or text <> ?)
returning lane
"""
_ADOPT = """
update outbox set text = revision, buttons = '', revision = null
where id = ? and state = 'ready' and revision is not null and not exists (
    select 1 from outbox_parts
    where outbox_id = outbox.id and (message_id <> '' or outbox_parts.state <> 'ready')
)
returning id
"""
_REVISED = """
update outbox set text = revision, buttons = '', revision = null where id = ? and revision = ?
returning id
"""
_TO_REVISE = """
select lane, id from outbox where revision is not null and ended_ms is not null order by id
"""
_WITH_BUTTONS = f"""
{_ROW} where buttons <> '' and state = 'sent' and lane like ? and created_ms >= ?
order by id desc limit ?
"""
_FILES = "select file from outbox where file <> ''"
_COUNTS = """
select state, count(*) from outbox where reason <> 'the conversation was erased' group by state
"""
# The newest stays: else its number would be given again, and others refer to rows by number.
_PRUNED = """
select id from outbox
where ended_ms < ? and revision is null and id < (select max(id) from outbox)
    and id not in (
        select outbox_id from approvals where settled_ms is null and outbox_id is not null
        union all
        select outbox_id from job_runs where outbox_id is not null
            and state in ('taken', 'found', 'waiting', 'asked')
    )
order by ended_ms limit ?
"""


class SqliteOutbox:
    """Replies on their way out, kept until they are delivered."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open_rows(self) -> Sequence[OutRow]:
        """Rows in state READY, oldest first."""
        return await self._database.read(lambda c: _found(c, _OPEN_ROWS, ()))

    async def row(self, outbox_id: OutboxId) -> OutRow | None:
        """One row with its parts."""
        return await self._database.read(lambda c: _one(c, _ROW_BY_ID, outbox_id))

    async def row_of_run(self, run_id: RunId) -> OutRow | None:
        """The row of a turn: its draft or its reply."""
        return await self._database.read(lambda c: _one(c, _ROW_BY_RUN, run_id))

    async def add(self, message: NewMessage) -> OutboxId:
        """A message of its own, ready at once."""
        now_ms = self._database.now_ms()
        return await self._database.write(lambda c: add_message(c, message, now_ms=now_ms))

    async def open_draft(self, run_id: RunId, lane: str) -> OutRow:
        """Makes the draft row of a run with part 0 in state SENDING; or returns what there is."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> OutRow:
            made = connection.execute(_ADD_DRAFT, (run_id, lane, now_ms)).fetchone()
            if made is not None:
                part = OutPart(n=0, state=PartState.SENDING)
                connection.execute(_PUT_PART, _part_row(made[0], part))
            row = _one(connection, _ROW_BY_RUN, run_id)
            assert row is not None
            return row

        return await self._database.write(work)

    async def plan(self, outbox_id: OutboxId, parts: Sequence[OutPart]) -> None:
        """Stores the parts (replacing those with the same `n`, removing those beyond).

        Does nothing when the row is gone (a draft that was dropped).
        """
        last = max((part.n for part in parts), default=-1)

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_PUT_PART, [_part_row(outbox_id, part) for part in parts])
            connection.execute(_DROP_PARTS, (outbox_id, last))

        await self._database.write(work)

    async def mark(
        self,
        outbox_id: OutboxId,
        *parts: OutPart,
        end: OutboxState | None = None,
        reason: str = "",
        notices: Sequence[NewMessage] = (),
    ) -> Sequence[tuple[str, OutboxId]]:
        """Write the state and message id of parts, and end the row where `end` is given.

        A part that was not planned is added as it is; a row that is gone, or has ended, stays so.
        The end settles what waits for it: a job's slot says "not delivered", and a question's time
        begins, or is over. If this ends the row, `notices` are added as rows of their own; returns
        their chats and ids.
        """
        if end in _OPEN_STATES:
            raise ValueError(f"{end} is not an end")
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[tuple[str, OutboxId]]:
            connection.executemany(_MARK_PART, [_part_row(outbox_id, part) for part in parts])
            if end is None:
                return []
            why = storable(reason)
            ended = connection.execute(_END, (end, why, now_ms, outbox_id)).rowcount > 0
            if not ended:
                return []
            if end is OutboxState.FAILED:
                connection.execute(_ANSWER_NEVER, (now_ms, outbox_id))
                connection.execute(_NOT_DELIVERED, (f"not delivered: {why}", outbox_id))
            else:
                connection.execute(_ANSWER_FROM_NOW, (now_ms, outbox_id))
            if end is OutboxState.UNKNOWN:
                connection.execute(_NOT_DELIVERED, (f"perhaps not delivered: {why}", outbox_id))
            return [
                (notice.lane, add_message(connection, notice, now_ms=now_ms)) for notice in notices
            ]

        return await self._database.write(work)

    async def notices(self, about: str, *, since_ms: int) -> int:
        """Count the notices that something was not delivered in this chat."""
        return int(await self._database.value(_NOTICES, (about, since_ms)))

    async def postpone(
        self, outbox_id: OutboxId, *, not_before_ms: int, attempts: int, tried_ms: int = 0
    ) -> None:
        """Store when the row may be tried again. `tried_ms` is added to the row's own time of
        trying, and to that of the rows waiting behind it for its chat."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_POSTPONE, (not_before_ms, attempts, outbox_id))
            if tried_ms:
                connection.execute(_TRIED, (tried_ms, outbox_id, outbox_id))

        await self._database.write(work)

    # --- edits of what was sent: see bot.outbox.edits ---------------------------------------------

    async def revise(self, outbox_id: OutboxId, text: str) -> str | None:
        """Keeps what a row is to read instead, in place of an earlier wish; return its chat.

        None where nothing is to be done: there is no such row, or it reads so, without buttons.
        """
        text = storable(text)
        values = (text, outbox_id, text)

        def work(connection: sqlite3.Connection) -> str | None:
            found = connection.execute(_REVISE, values).fetchone()
            return None if found is None else str(found[0])

        return await self._database.write(work)

    async def adopt(self, outbox_id: OutboxId) -> OutRow | None:
        """Makes the revision of a row of which nothing went out its text; the row as it is then."""

        def work(connection: sqlite3.Connection) -> OutRow | None:
            if connection.execute(_ADOPT, (outbox_id,)).fetchone() is not None:
                connection.execute(_DROP_ROW_PARTS, (outbox_id,))
            return _one(connection, _ROW_BY_ID, outbox_id)

        return await self._database.write(work)

    async def revised(
        self, outbox_id: OutboxId, text: str, *, rest: NewMessage | None = None
    ) -> OutboxId | None:
        """A row reads so now. `rest` is what found no place in its messages: a row of its own,
        whose id is returned.

        Does nothing when another revision is wanted by now.
        """
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> OutboxId | None:
            done = connection.execute(_REVISED, (outbox_id, text)).fetchone()
            if done is None or rest is None:
                return None
            return add_message(connection, rest, now_ms=now_ms)

        return await self._database.write(work)

    async def to_revise(self) -> Sequence[tuple[str, OutboxId]]:
        """Chats and ids of rows that were sent and are to read otherwise, oldest first."""
        rows = await self._database.rows(_TO_REVISE)
        return [(lane, OutboxId(outbox_id)) for lane, outbox_id in rows]

    async def with_buttons(
        self, channel: str, *, since_ms: int, limit: int = 20
    ) -> Sequence[OutRow]:
        """The newest rows of a channel that were sent with buttons and have them, in order."""
        values = (f"{channel}:%", since_ms, limit)
        return (await self._database.read(lambda c: _found(c, _WITH_BUTTONS, values)))[::-1]

    async def files(self) -> Sequence[OutFile]:
        """Those of rows that have not ended."""
        rows = await self._database.rows(_FILES)
        return [from_json(OutFile, json.loads(stored)) for (stored,) in rows]

    async def prune(self, before_ms: int) -> int:
        """Delete messages whose delivery ended before then, with their parts, unless an open
        question or job refers to them. Returns how many rows went. For a daily caller. The answers
        stay in the history."""

        def work(connection: sqlite3.Connection) -> int:
            began = connection.total_changes
            for (outbox_id,) in connection.execute(_PRUNED, (before_ms, BITE_ROWS)).fetchall():
                connection.execute(_DROP_ROW_PARTS, (outbox_id,))
                connection.execute(_DROP_ROW, (outbox_id,))
                if connection.total_changes - began >= BITE_ROWS:
                    break
            return connection.total_changes - began

        return await self._database.in_bites(work)

    async def counts(self) -> dict[str, int]:
        """Rows by state."""
        return dict(await self._database.rows(_COUNTS))


def add_message(connection: sqlite3.Connection, message: NewMessage, *, now_ms: int) -> OutboxId:
    """Adds a ready row that belongs to no turn, inside the caller's transaction."""
    rows = [
        [replace(one, label=storable(one.label)) for one in row] for row in message.buttons if row
    ]
    values = {
        **to_row(message),
        "keyboard": dump(message.keyboard) if message.keyboard else "",
        "buttons": dump(rows) if rows else "",
        "file": dump(message.file) if message.file else "",
        "now_ms": now_ms,
    }
    return OutboxId(connection.execute(_ADD, values).fetchone()[0])


# --- the reply of a turn ---------------------------------------------------------------------

_REPLY_ROW = "select id, state from outbox where run_id = ?"
_ADD_REPLY = """
insert into outbox (run_id, lane, text, state, created_ms) values (?, ?, ?, 'ready', ?)
returning id
"""
_COMPLETE_DRAFT = """
update outbox set lane = ?, text = ?, state = 'ready' where id = ?
"""
_KEEP_TEXT = "update outbox set text = ? where id = ?"
_IS_SHOWN = """
select exists (
    select 1 from outbox_parts where outbox_id = ?
    and (message_id <> '' or state in ('sent', 'doubtful', 'resending', 'unknown'))
)
"""
_DROP_ROW_PARTS = "delete from outbox_parts where outbox_id = ?"
_DROP_ROW = "delete from outbox where id = ?"


def close_reply(
    connection: sqlite3.Connection, run_id: RunId, reply: NewMessage, *, now_ms: int
) -> OutboxId | None:
    """Makes a turn's draft, or a new row, its reply; with an empty text it ends the draft.

    Returns the row when it is ready to be delivered.
    """
    known = connection.execute(_REPLY_ROW, (run_id,)).fetchone()
    if known is None:
        if not reply.text:
            return None
        values = (run_id, reply.lane, storable(reply.text), now_ms)
        return OutboxId(connection.execute(_ADD_REPLY, values).fetchone()[0])
    outbox_id, state = known
    if state != OutboxState.DRAFT:
        # The chat was lost while the draft was shown: nothing can be delivered, the text is kept.
        connection.execute(_KEEP_TEXT, (storable(reply.text), outbox_id))
        return None
    if reply.text:
        connection.execute(_COMPLETE_DRAFT, (reply.lane, storable(reply.text), outbox_id))
        return OutboxId(outbox_id)
    if connection.execute(_IS_SHOWN, (outbox_id,)).fetchone()[0]:
        connection.execute(_END, (OutboxState.SENT, "", now_ms, outbox_id))
    else:
        connection.execute(_DROP_ROW_PARTS, (outbox_id,))
        connection.execute(_DROP_ROW, (outbox_id,))
    return None


# --- rows and values -------------------------------------------------------------------------


def _one(connection: sqlite3.Connection, sql: str, key: object) -> OutRow | None:
    return next(iter(_found(connection, sql, (key,))), None)


def _found(connection: sqlite3.Connection, sql: str, values: tuple[object, ...]) -> list[OutRow]:
    """Rows with their parts."""
    rows = list(named(connection.execute(sql, values)))
    return [
        record(OutRow, row, parts=tuple(records(OutPart, connection.execute(_PARTS, (row["id"],)))))
        for row in rows
    ]


def _part_row(outbox_id: int, part: OutPart) -> dict[str, object]:
    return {**to_row(part), "outbox_id": outbox_id}
