"""The outbox: messages on their way out, each row until it is delivered or given up."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from itertools import starmap
from typing import Any

from memory.database.connection import BITE_ROWS, Database
from memory.database.stored_text import storable
from memory.records.messages import OutboxId, RunId
from memory.records.rows import (
    Button,
    ButtonRows,
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
values (?, ?, ?, ?, ?, ?, 'ready', ?)
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
_PART = "select outbox_id, n, markup, source, state, message_id, ref from outbox_parts"
_PARTS_OF_ROW = f"{_PART} where outbox_id = ? order by n"
_PARTS_OF_OPEN_ROWS = """
select outbox_id, n, markup, source, state, message_id, ref from outbox_parts
where outbox_id in (select id from outbox where ended_ms is null and state = 'ready')
order by outbox_id, n
"""
# A draft row may be gone already when the last update of it comes back: then nothing is written.
_PUT_PART = """
insert into outbox_parts (outbox_id, n, markup, source, state, message_id, ref)
select id, ?, ?, ?, ?, ?, ? from outbox where id = ?
on conflict (outbox_id, n) do update set
    markup = excluded.markup, source = excluded.source,
    state = excluded.state, message_id = excluded.message_id, ref = excluded.ref
"""
_DROP_PARTS = "delete from outbox_parts where outbox_id = ? and n > ?"
_MARK_PART = """
insert into outbox_parts (outbox_id, n, markup, source, state, message_id, ref)
select id, ?, ?, ?, ?, ?, ? from outbox where id = ?
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

        def work(connection: sqlite3.Connection) -> list[OutRow]:
            parts: defaultdict[int, list[OutPart]] = defaultdict(list)
            for outbox_id, *part in connection.execute(_PARTS_OF_OPEN_ROWS):
                parts[outbox_id].append(_part(*part))
            return [_row(row, parts[row[0]]) for row in connection.execute(_OPEN_ROWS)]

        return await self._database.read(work)

    async def row(self, outbox_id: OutboxId) -> OutRow | None:
        """One row with its parts."""
        return await self._database.read(lambda c: _find(c, _ROW_BY_ID, outbox_id))

    async def row_of_run(self, run_id: RunId) -> OutRow | None:
        """The row of a turn: its draft or its reply."""
        return await self._database.read(lambda c: _find(c, _ROW_BY_RUN, run_id))

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
            row = _find(connection, _ROW_BY_RUN, run_id)
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
        values = (about, since_ms)
        (count,) = await self._database.read(lambda c: c.execute(_NOTICES, values).fetchone())
        return int(count)

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
            return _find(connection, _ROW_BY_ID, outbox_id)

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
        found = await self._database.read(lambda c: c.execute(_TO_REVISE).fetchall())
        return [(lane, OutboxId(outbox_id)) for lane, outbox_id in found]

    async def with_buttons(
        self, channel: str, *, since_ms: int, limit: int = 20
    ) -> Sequence[OutRow]:
        """The newest rows of a channel that were sent with buttons and have them, in order."""

        def work(connection: sqlite3.Connection) -> list[OutRow]:
            found = connection.execute(_WITH_BUTTONS, (f"{channel}:%", since_ms, limit)).fetchall()
            return [_with_parts(connection, row) for row in reversed(found)]

        return await self._database.read(work)

    async def files(self) -> Sequence[OutFile]:
        """Those of rows that have not ended."""
        found = await self._database.read(lambda c: c.execute(_FILES).fetchall())
        return [_file(stored) for (stored,) in found]

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
        return dict(await self._database.read(lambda c: c.execute(_COUNTS).fetchall()))


def add_message(connection: sqlite3.Connection, message: NewMessage, *, now_ms: int) -> OutboxId:
    """Adds a ready row that belongs to no turn, inside the caller's transaction."""
    keyboard = json.dumps(message.keyboard) if message.keyboard else ""
    texts = (message.lane, storable(message.text))
    more = (_buttons_text(message.buttons), _file_text(message.file), message.about)
    values = (*texts, keyboard, *more, now_ms)
    return OutboxId(connection.execute(_ADD, values).fetchone()[0])


# --- the reply of a turn ---------------------------------------------------------------------

_REPLY_ROW = "select id, state from outbox where run_id = ?"
_ADD_REPLY = """
insert into outbox (run_id, lane, text, buttons, state, created_ms)
values (?, ?, ?, ?, 'ready', ?)
returning id
"""
_COMPLETE_DRAFT = """
update outbox set lane = ?, text = ?, buttons = ?, state = 'ready' where id = ?
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
        return _add_reply(connection, run_id, reply, now_ms=now_ms) if reply.text else None
    outbox_id, state = known
    if state != OutboxState.DRAFT:
        # The chat was lost while the draft was shown: nothing can be delivered, the text is kept.
        connection.execute(_KEEP_TEXT, (storable(reply.text), outbox_id))
        return None
    if reply.text:
        texts = (reply.lane, storable(reply.text), _buttons_text(reply.buttons))
        connection.execute(_COMPLETE_DRAFT, (*texts, outbox_id))
        return OutboxId(outbox_id)
    _end_draft(connection, outbox_id, now_ms=now_ms)
    return None


def _add_reply(
    connection: sqlite3.Connection, run_id: RunId, reply: NewMessage, *, now_ms: int
) -> OutboxId:
    texts = (reply.lane, storable(reply.text), _buttons_text(reply.buttons))
    values = (run_id, *texts, now_ms)
    return OutboxId(connection.execute(_ADD_REPLY, values).fetchone()[0])


def _end_draft(connection: sqlite3.Connection, outbox_id: int, *, now_ms: int) -> None:
    if connection.execute(_IS_SHOWN, (outbox_id,)).fetchone()[0]:
        connection.execute(_END, (OutboxState.SENT, "", now_ms, outbox_id))
        return
    connection.execute(_DROP_ROW_PARTS, (outbox_id,))
    connection.execute(_DROP_ROW, (outbox_id,))


# --- rows and values -------------------------------------------------------------------------


def _find(connection: sqlite3.Connection, sql: str, key: object) -> OutRow | None:
    row = connection.execute(sql, (key,)).fetchone()
    return None if row is None else _with_parts(connection, row)


def _with_parts(connection: sqlite3.Connection, row: tuple[Any, ...]) -> OutRow:
    parts = connection.execute(_PARTS_OF_ROW, (row[0],)).fetchall()
    return _row(row, list(starmap(_part, (part[1:] for part in parts))))


def _row(row: tuple[Any, ...], parts: Sequence[OutPart]) -> OutRow:
    outbox_id, run_id, lane, text, state, attempts, not_before_ms, created_ms, *more = row
    keyboard, buttons, revision, file, tried_ms, about = more
    return OutRow(
        id=OutboxId(outbox_id),
        run_id=None if run_id is None else RunId(run_id),
        lane=lane,
        text=text,
        state=OutboxState(state),
        parts=tuple(parts),
        attempts=attempts,
        not_before_ms=not_before_ms,
        created_ms=created_ms,
        keyboard=tuple(json.loads(keyboard)) if keyboard else (),
        buttons=_buttons(buttons),
        revision=revision,
        file=_file(file) if file else None,
        tried_ms=tried_ms,
        about=about,
    )


def _buttons_text(rows: ButtonRows) -> str:
    if not any(rows):
        return ""
    kept = [[[storable(one.label), one.data, one.style] for one in row] for row in rows if row]
    return json.dumps(kept)


def _buttons(stored: str) -> ButtonRows:
    if not stored:
        return ()
    return tuple(
        tuple(Button(label=label, data=data, style=style) for label, data, style in row)
        for row in json.loads(stored)
    )


def _file_text(file: OutFile | None) -> str:
    if file is None:
        return ""
    return json.dumps([file.digest, storable(file.name), storable(file.path), file.size_bytes])


def _file(stored: str) -> OutFile:
    digest, name, path, size_bytes = json.loads(stored)
    return OutFile(digest=digest, name=name, path=path, size_bytes=size_bytes)


def _part(n: int, markup: str, source: str, state: str, message_id: str, ref: str) -> OutPart:
    return OutPart(
        n=n, markup=markup, source=source, state=PartState(state), message_id=message_id, ref=ref
    )


def _part_row(outbox_id: int, part: OutPart) -> tuple[object, ...]:
    texts = (storable(part.markup), storable(part.source))
    return (part.n, *texts, part.state, part.message_id, part.ref, outbox_id)
