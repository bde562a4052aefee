"""Turns and their steps, so that a crash repeats nothing: the `Journal` that the engine needs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence

from memory.database.connection import BITE_ROWS, Database
from memory.database.rows import dump, records, storable, to_row
from memory.records.errors import StorageError
from memory.records.messages import OutboxId, RunId
from memory.records.ports import (
    ChildRun,
    Finished,
    InboxState,
    JobEnd,
    Json,
    NewRun,
    RunStatus,
    StepRecord,
    StoredRun,
    TurnEnd,
)
from memory.records.rows import NewMessage
from memory.records.transcript import kind_of, to_json
from memory.stores.conversations import stored_note
from memory.stores.outbox import add_message, close_reply
from memory.stores.people import owner_address

_SUBMIT = """
insert into turns (run_id, lane, person_id, message_id, inbox_id, payload, limit_s, status,
    started_ms, resumes, created_ms)
values (:run_id, :lane, :by, :message_id, :inbox_id, :payload, :limit_s, :status, :started_ms,
    :resumes, :now_ms)
on conflict (run_id) do nothing
returning seq
"""
_SUBMIT_CHILD = """
insert into children (run_id, parent_run, parent_lane, waits, head, number)
select :child, :run_id, :lane, :waits, :head, coalesce(max(number), 0) + 1
from children where parent_lane = :lane
"""
_QUEUE_INBOX = """
update inbox set state = 'queued', run_id = ? where id = ? and ended_ms is null
"""
_UNFINISHED = """
select seq, status, stopping, resumes, turns.run_id as "run.run_id", lane as "run.lane",
    person_id as "run.by", message_id as "run.message_id", inbox_id as "run.inbox_id",
    payload as "run.payload", limit_s as "run.limit_s", parent_run as "run.child_of.run_id",
    parent_lane as "run.child_of.lane", waits as "run.child_of.waits", head as "run.child_of.head"
from turns left join children on children.run_id = turns.run_id
where ended_ms is null order by seq
"""
_CHILDREN = """
select children.run_id, number, person_id as by, lane, head, waits, status, created_ms, ended_ms
from children join turns on turns.run_id = children.run_id
where parent_lane = ? order by ended_ms is not null, number desc limit ?
"""
_BEGIN = """
update turns set status = 'running', started_ms = coalesce(started_ms, ?),
    resumes = resumes + 1, waits_for = null
where run_id = ? and ended_ms is null
returning seq
"""
_STEPS = "select n, name, output from steps where run_id = ? order by n"
_INTEND = """
insert into steps (run_id, n, name, started_ms) values (?, ?, ?, ?)
on conflict (run_id, n) do nothing
"""
_RECORD = """
insert into steps (run_id, n, name, output, started_ms, ended_ms) values (?, ?, ?, ?, ?, ?)
on conflict (run_id, n) do update set output = excluded.output, ended_ms = excluded.ended_ms
where output is null
"""
_PARKED = """
update turns set resumes = max(resumes - 1, 0) where run_id = ? and ended_ms is null
"""
_PROGRESS = "update turns set resumes = 0 where run_id = ?"
_JOIN = """
update turns set status = 'joined', joined_to = ?, ended_ms = ?
where run_id = ? and ended_ms is null
returning inbox_id
"""
# An ended event needs no payload: its words stand in the history, and in one place alone.
_END_INBOX = """
update inbox set state = ?, payload = null, ended_ms = ? where id = ? and ended_ms is null
"""
_SUSPEND = """
update turns set status = 'suspended', waits_for = ? where run_id = ? and ended_ms is null
"""
_SIGNAL = """
insert into signals (key, value, created_ms) values (?, ?, ?) on conflict (key) do nothing
"""
_WAKE = """
update turns set status = 'queued', waits_for = null
where waits_for = ? and status = 'suspended' and ended_ms is null
returning run_id
"""
_SIGNALLED = "select value from signals where key = ?"
_STOPPING = "update turns set stopping = ? where run_id = ? and ended_ms is null"
_REPLACE = """
update turns set payload = ? where seq = (
    select seq from turns
    where lane = ? and message_id = ? and ended_ms is null
        and status = 'queued' and started_ms is null
    order by seq desc limit 1
)
returning run_id
"""
_OPEN_TURN = "select inbox_id, ended_ms from turns where run_id = ?"
_ADD_ENTRY = """
insert into messages (conversation_id, run_id, kind, body, created_ms) values (?, ?, ?, ?, ?)
"""
_TAKE_NOTE = "update notes set run_id = ? where id = ? and run_id is null"
_LEAVE_NOTE = """
insert into notes (conversation_id, text, created_ms)
select id, ?, ? from conversations where id = ?
"""
_MOVE_START = "update conversations set sent_from = ? where id = ?"
_SHORTEN_TO = """
update conversations set shortened_to = ? where id = ? and shortened_to < ?
"""
# What a job found is told, or kept silent, by whoever keeps the clock.
_JOB_FOUND = """
update job_runs set state = ?, result = ?, note = ?, ended_ms = ?
where job_id = ? and slot = ? and state = 'taken'
"""
_USED = "update facts set uses = uses + 1, last_used_ms = ? where id = ?"
# A conversation in which somebody spoke is looked at once it is idle; its message store has no
# say in when: what counts is the end of its last turn.
_TOUCH = """
insert into idle_timers (conversation_id, lane, touched_ms, is_open)
select id, lane, ?, 1 from conversations
where id = ? and not is_private and lane not like 'job:%'
on conflict (conversation_id) do update
set touched_ms = excluded.touched_ms, is_open = 1, tries = 0, not_before_ms = 0
"""
_END_TURN = """
update turns set status = ?, ended_ms = ?, waits_for = null where run_id = ?
"""
# A turn stays whole while its job or its parent turn may not have heard of its end.
_TRACED = """
select run_id from turns
where ended_ms < ? and (payload <> '{}' or erased_ms is not null)
    and (
        payload <> '{}' or exists (select 1 from steps where steps.run_id = turns.run_id)
        or not exists (
            select 1 from messages where messages.run_id = turns.run_id
            union all select 1 from outbox where outbox.run_id = turns.run_id
            union all select 1 from approvals where approvals.run_id = turns.run_id
        )
    )
    and not exists (
        select 1 from job_runs where job_runs.run_id = turns.run_id and job_runs.ended_ms is null
        union all
        select 1 from children join turns parent on parent.run_id = children.parent_run
        where children.run_id = turns.run_id and parent.ended_ms is null
    )
order by ended_ms limit ?
"""
_PRUNE_STEPS = """
delete from steps where run_id = ?1 and n in (select n from steps where run_id = ?1 limit ?2)
"""
_PRUNE_CHILD = "delete from children where run_id = ?"
# A turn tells who said what in the history, and whose a reply or a question is, so it stays as long
# as they do.
_PRUNE_TURN = """
delete from turns where run_id = ?
    and not exists (select 1 from messages where messages.run_id = turns.run_id)
    and not exists (select 1 from outbox where outbox.run_id = turns.run_id)
    and not exists (select 1 from approvals where approvals.run_id = turns.run_id)
"""
_CLEAR_TURN = "update turns set payload = '{}' where run_id = ?"
# A result that was heard stands in the step of who waited, and in the subagent's transcript.
_PRUNE_RESULTS = """
delete from signals where key in (
    select key from signals
    where key like 'child:%' and created_ms < ? and not exists (
        select 1 from children join turns on turns.run_id = parent_run
        where 'child:' || children.run_id = key and ended_ms is null
    )
    limit ?
)
"""

_TERMINAL = {RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED}


class SqliteJournal:
    """Implements `memory.records.ports.Journal`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def submit(self, run: NewRun, *, begins: bool = False) -> StoredRun | None:
        """Stores a queued run and marks its inbox row queued; None if `run_id` is known.

        With `begins` it is stored as what `begin` would make of it.
        """
        stores = submission(run, begins=begins, now_ms=self._database.now_ms())
        return await self._database.write(stores)

    async def unfinished(self) -> Sequence[StoredRun]:
        """All runs that are not terminal, in order of submission."""
        return await self._database.records(StoredRun, _UNFINISHED)

    async def begin(self, run_id: RunId) -> Mapping[int, StepRecord]:
        """Marks the run running, counts a resumption, and returns its steps by number.

        Raises StorageError when the run is not known or has ended.
        """
        values = (self._database.now_ms(), run_id)

        def work(connection: sqlite3.Connection) -> list[StepRecord]:
            if connection.execute(_BEGIN, values).fetchone() is None:
                raise StorageError(f"The turn {run_id} cannot begin: it is unknown or has ended.")
            return records(StepRecord, connection.execute(_STEPS, (run_id,)))

        return {step.n: step for step in await self._database.write(work)}

    async def parked(self, run_ids: Sequence[RunId]) -> None:
        """Takes the last resumption of each back: it was cut off by an orderly stop."""

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_PARKED, [(run_id,) for run_id in run_ids])

        await self._database.write(work)

    async def intend(self, run_id: RunId, n: int, name: str) -> None:
        """Writes that a `once` step is about to run."""
        await self._database.execute(_INTEND, (run_id, n, name, self._database.now_ms()))

    async def record(
        self, run_id: RunId, n: int, name: str, output: Json, *, joined: Sequence[RunId] = ()
    ) -> None:
        """Writes a step's output; runs in `joined` (and their inbox rows) become JOINED with it.

        An output that is there already stays.
        """
        now_ms = self._database.now_ms()
        values = (run_id, n, name, dump(output), now_ms, now_ms)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_RECORD, values)
            connection.execute(_PROGRESS, (run_id,))
            for other in joined:
                row = connection.execute(_JOIN, (run_id, now_ms, other)).fetchone()
                if row is not None:
                    connection.execute(_END_INBOX, (InboxState.JOINED, now_ms, row[0]))

        await self._database.write(work)

    async def suspend(self, run_id: RunId, key: str) -> bool:
        """Marks the run suspended on `key`; False if the key was already signalled."""

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(_SIGNALLED, (key,)).fetchone() is not None:
                return False
            connection.execute(_SUSPEND, (key, run_id))
            return True

        return await self._database.write(work)

    async def signal(self, key: str, value: Json) -> RunId | None:
        """Keeps the value for `key` (the first one stands); returns the run that it wakes."""
        signals = [(key, dump(value), self._database.now_ms())]
        woken = await self._database.write(lambda c: _signal(c, signals))
        return woken[0] if woken else None

    async def signalled(self, key: str) -> Json | None:
        """The value of `key`, if it was signalled."""
        found = await self._database.value(_SIGNALLED, (key,))
        return None if found is None else json.loads(found)

    async def stopping(self, run_id: RunId, reason: str) -> None:
        """Writes that the run is to end, so that a restart does not revive it."""
        await self._database.execute(_STOPPING, (storable(reason), run_id))

    async def replace(self, lane: str, message_id: str, payload: Json) -> RunId | None:
        """Replaces the payload of a run of this message that has not begun; None if none is."""
        if not message_id:
            return None
        values = (dump(payload), lane, message_id)

        def work(connection: sqlite3.Connection) -> RunId | None:
            row = connection.execute(_REPLACE, values).fetchone()
            return None if row is None else RunId(row[0])

        return await self._database.write(work)

    async def finish(
        self, run_id: RunId, end: TurnEnd, *, steps: Sequence[StepRecord] = ()
    ) -> Finished:
        """History, outbox row, inbox state, run status, signals and the run that follows, in one
        transaction; with the `steps` that were not recorded before.

        Nothing for a run that has ended already.
        """
        if end.status not in _TERMINAL:
            raise ValueError(f"{end.status} is not an end")
        now_ms = self._database.now_ms()
        # Dumped here: the writer's thread is for SQL.
        entries = [
            (end.conversation, run_id, kind_of(entry), dump(to_json(entry)), now_ms)
            for entry in end.turn.entries
        ]
        done = [(run_id, step.n, step.name, dump(step.output), now_ms, now_ms) for step in steps]
        signals = [(key, dump(value), now_ms) for key, value in end.signals]
        notes = [
            (stored_note(note.text, untrusted=note.untrusted), now_ms, note.conversation)
            for note in end.notes_left
        ]
        used = [(now_ms, fact_id) for fact_id in end.used]
        follow = None if end.follow is None else submission(end.follow, now_ms=now_ms)

        def work(connection: sqlite3.Connection) -> Finished:
            turn = connection.execute(_OPEN_TURN, (run_id,)).fetchone()
            if turn is None:
                raise StorageError(f"The turn {run_id} cannot end: it is unknown.")
            inbox_id, ended_ms = turn
            if ended_ms is not None:
                return Finished()
            connection.executemany(_RECORD, done)
            connection.executemany(_ADD_ENTRY, entries)
            connection.executemany(_TAKE_NOTE, [(run_id, note_id) for note_id in end.notes_taken])
            if end.sent_from is not None:
                connection.execute(_MOVE_START, (end.sent_from, end.conversation))
            if end.shortened_to:
                values = (end.shortened_to, end.conversation, end.shortened_to)
                connection.execute(_SHORTEN_TO, values)
            connection.executemany(_USED, used)
            if entries:
                connection.execute(_TOUCH, (now_ms, end.conversation))
            ready = _put_out(connection, run_id, end, now_ms=now_ms)
            connection.execute(_END_INBOX, (end.inbox, now_ms, inbox_id))
            connection.execute(_END_TURN, (end.status, now_ms, run_id))
            connection.executemany(_LEAVE_NOTE, notes)
            if end.job is not None:
                _keep_job(connection, end.job, now_ms=now_ms)
            return Finished(
                ready=tuple(ready),
                woken=tuple(_signal(connection, signals)),
                followed=None if follow is None else follow(connection),
            )

        return await self._database.write(work)

    async def children(self, lane: str, *, limit: int) -> Sequence[ChildRun]:
        """Subagents that turns of this chat started: those that are not over, then the newest."""
        return await self._database.records(ChildRun, _CHILDREN, (lane, max(limit, 0)))

    async def prune(self, before_ms: int) -> int:
        """Delete what turns that ended before then needed to run, and the whole turn if none of its
        messages is kept. Return how many rows went. For a daily caller. What was said and done
        stays: it is in the messages."""

        def bite(connection: sqlite3.Connection) -> int:
            # A turn with more steps than fit is finished by the next bite.
            began = connection.total_changes
            for (run_id,) in connection.execute(_TRACED, (before_ms, BITE_ROWS)).fetchall():
                left = BITE_ROWS - (connection.total_changes - began)
                if (
                    left <= 2
                    or connection.execute(_PRUNE_STEPS, (run_id, left)).rowcount >= left - 2
                ):
                    break
                connection.execute(_PRUNE_CHILD, (run_id,))
                if not connection.execute(_PRUNE_TURN, (run_id,)).rowcount:
                    connection.execute(_CLEAR_TURN, (run_id,))
            return connection.total_changes - began

        results = await self._database.prune(_PRUNE_RESULTS, before_ms)
        return results + await self._database.in_bites(bite)


def submission(
    run: NewRun, *, begins: bool = False, now_ms: int
) -> Callable[[sqlite3.Connection], StoredRun | None]:
    """Return what stores a queued run inside the caller's transaction: None where `run_id` is
    known. With `begins` it is stored as what `Journal.begin` would make of it."""
    status = RunStatus.RUNNING if begins else RunStatus.QUEUED
    resumes = int(begins)
    # Made here: the writer's thread is for SQL.
    values = {
        **to_row(run),
        "status": status,
        "started_ms": now_ms if begins else None,
        "resumes": resumes,
        "now_ms": now_ms,
    }

    def store(connection: sqlite3.Connection) -> StoredRun | None:
        row = connection.execute(_SUBMIT, values).fetchone()
        if row is None:
            return None
        if run.inbox_id is not None:
            connection.execute(_QUEUE_INBOX, (run.run_id, run.inbox_id))
        ended = [(InboxState.JOINED, now_ms, one) for one in run.inbox_joined]
        connection.executemany(_END_INBOX, ended)
        if run.child_of is not None:
            connection.execute(_SUBMIT_CHILD, {**to_row(run.child_of), "child": run.run_id})
        return StoredRun(run=run, seq=row[0], status=status, resumes=resumes)

    return store


def _signal(connection: sqlite3.Connection, signals: Sequence[tuple[str, str, int]]) -> list[RunId]:
    """Keeps values for their keys; returns the runs that they wake."""
    connection.executemany(_SIGNAL, signals)
    woken = (connection.execute(_WAKE, (key,)).fetchone() for key, _, _ in signals)
    return [RunId(row[0]) for row in woken if row is not None]


def _keep_job(connection: sqlite3.Connection, end: JobEnd, *, now_ms: int) -> None:
    found = end.ok and not end.silent
    state = "found" if found else "silent" if end.ok else "failed"
    result = dump({"text": end.text, "tainted": end.tainted}) if found else None
    note = "nothing to report" if end.silent else "" if end.ok else storable(end.text)
    if end.put_off is not None:
        state, note = "skipped", f"put off: {note}"
        result = dump({"anew": end.put_off.anew, "free_at_ms": end.put_off.free_at_ms})
    # Only silence needs nothing more; a failure has to be counted, and waited out.
    values = (state, result, note, now_ms if state == "silent" else None, end.job_id, end.slot)
    connection.execute(_JOB_FOUND, values)


def _put_out(
    connection: sqlite3.Connection, run_id: RunId, end: TurnEnd, *, now_ms: int
) -> list[tuple[str, OutboxId]]:
    ready = []
    reply = NewMessage(lane=end.reply_to.key, text=end.reply)
    outbox_id = close_reply(connection, run_id, reply, now_ms=now_ms)
    if outbox_id is not None:
        ready.append((reply.lane, outbox_id))
    owner = owner_address(connection) if end.owner_notice else None
    if owner is not None:
        notice = NewMessage(lane=owner, text=end.owner_notice)
        ready.append((owner, add_message(connection, notice, now_ms=now_ms)))
    return ready
