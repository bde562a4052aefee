"""Jobs and the ledger of their runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import Any

import structlog

from memory.database.connection import Database
from memory.database.rows import dump, named, record, storable, to_row
from memory.records import jobs as recurrence
from memory.records.codec import from_json
from memory.records.jobs import (
    COUNTED_MAX,
    BrokenJob,
    Due,
    Job,
    JobKind,
    JobRun,
    Misfires,
    NotTaken,
    SlotState,
    Taken,
    Taking,
    What,
)
from memory.records.messages import OutboxId, PersonId
from memory.records.rows import NewMessage
from memory.stores.inbox import join_history
from memory.stores.outbox import add_message
from memory.stores.turns import submission

log = structlog.get_logger()

_JOBS = """
select id, name, person_id, agent, kind, what, runs_when, deliver_to, missed, missed_within_s,
    quiet, urgent, set_by, nag_s, max_runs, expires_ms, enabled, paused, next_slot as "next.slot",
    next_ms as "next.at_ms", not_before_ms, failures, runs, nullif(run_id, '') as run_id, created_ms
from jobs
"""
_ADD = """
insert into jobs (name, person_id, agent, kind, what, runs_when, deliver_to, missed,
    missed_within_s, quiet, urgent, set_by, nag_s, max_runs, expires_ms, enabled, next_slot,
    next_ms, run_id, created_ms, updated_ms)
values (:name, :person_id, :agent, :kind, :what, :runs_when, :deliver_to, :missed,
    :missed_within_s, :quiet, :urgent, :set_by, :nag_s, :max_runs, :expires_ms, :enabled,
    :next_slot, :next_ms, coalesce(:run_id, ''), :now_ms, :now_ms)
on conflict (person_id, name) do nothing
returning id
"""
_PUT = """
update jobs set name = :name, person_id = :person_id, agent = :agent, kind = :kind, what = :what,
    runs_when = :runs_when, deliver_to = :deliver_to, missed = :missed,
    missed_within_s = :missed_within_s, quiet = :quiet, urgent = :urgent, set_by = :set_by,
    nag_s = :nag_s, max_runs = :max_runs, expires_ms = :expires_ms, enabled = :enabled,
    next_slot = :next_slot, next_ms = :next_ms, run_id = coalesce(:run_id, ''), paused = :paused,
    not_before_ms = :not_before_ms, failures = :failures,
    runs = case when :anew then 0 else runs end, updated_ms = :now_ms
where id = :id
"""
_ONE = f"{_JOBS} where id = ?"
_ALL = f"{_JOBS} order by next_ms is null, next_ms, id"
_OF = f"{_JOBS} where person_id = ? order by next_ms is null, next_ms, id"
_DUE = f"""
{_JOBS} where enabled and next_ms <= ? and not_before_ms <= ? and kind = coalesce(?, kind)
order by next_ms, id
"""
_NEXT = """
select min(max(next_ms, not_before_ms)) from jobs
where enabled and next_ms is not null and max(next_ms, not_before_ms) > ?
    and typeof(next_ms) = 'integer' and typeof(not_before_ms) = 'integer'
"""
_NEWEST = """
select max(at) from
    (select max(taken_ms) at from job_runs union all select max(updated_ms) from jobs)
"""
_REMOVE = "delete from jobs where id = ?"
_TAKE = """
insert into job_runs (job_id, slot, due_ms, state, run_id, note, late_s, taken_ms, ended_ms)
select id, ?, ?, ?, ?, ?, ?, ?, ? from jobs where id = ?
on conflict (job_id, slot) do nothing
returning 1
"""
_TAKEN_AT = "select due_ms from job_runs where job_id = ? and slot = ?"
_SENT = "update job_runs set outbox_id = ? where job_id = ? and slot = ?"
_ADVANCE = (
    "update jobs set next_slot = ?, next_ms = ?, runs = runs + ?, updated_ms = ? where id = ?"
)
_END = """
update job_runs set state = ?, result = coalesce(?, result),
    note = case when ? <> '' then ? else note end, ended_ms = ?
where job_id = ? and slot = ? and ended_ms is null
"""
_FAILED = """
update jobs set failures = ?, not_before_ms = ?, paused = ?,
    enabled = case when ? <> '' then 0 else enabled end, updated_ms = ?
where id = ?
"""
_RESET = """
update jobs set next_slot = ?, next_ms = ?, not_before_ms = ?, updated_ms = ? where id = ?
"""
_AGAIN = """
update jobs set next_slot = ?, next_ms = ?, updated_ms = ? where id = ? and next_ms is null
"""
_PUT_OFF = """
update job_runs set ended_ms = ? where job_id = ? and slot = ? and ended_ms is null
"""
_COMES_AGAIN = """
update jobs set runs = max(runs - 1, 0),
    next_slot = case when coalesce(next_ms, ?1 + 1) > ?1 then ?2 else next_slot end,
    next_ms = min(coalesce(next_ms, ?1), ?1), updated_ms = ?3
where id = ?4
"""
_WORKED = "update jobs set failures = 0, not_before_ms = 0 where id = ? and failures > 0"
_RUNS = """
select job_id, slot as "due.slot", due_ms as "due.at_ms", state, taken_ms,
    nullif(run_id, '') as run_id, result, note, late_s, ended_ms
from job_runs
"""
_OPEN_RUNS = f"{_RUNS} where ended_ms is null order by taken_ms, job_id"
_RUNS_OF = f"{_RUNS} where job_id = ? order by taken_ms desc, due_ms desc limit ?"

_PRUNE = (
    """
    delete from job_runs where rowid in (
        select rowid from job_runs where taken_ms < ?1 and ended_ms < ?1 limit ?2
    )
    """,
    "delete from tellings where id in (select id from tellings where told_ms < ?1 limit ?2)",
    """
    delete from jobs where id in (
        select id from jobs
        where next_ms is null and paused = '' and updated_ms < ?1 and not exists (
            select 1 from job_runs where job_runs.job_id = jobs.id
        )
        limit ?2
    )
    """,
)
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What a row that no version of ours wrote can lead to."""

_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, where `datetime` ends; in epoch milliseconds."""

_OVER = frozenset({SlotState.TOLD, SlotState.SILENT, SlotState.FAILED, SlotState.SKIPPED})
"""States in which nothing more comes of a slot."""


class SqliteJobs:
    """Keeps jobs and their runs. Each method is one transaction, and raises StorageError. A row
    that cannot be read is never run, never dropped, and takes no other with it (case SC-15)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._told: set[int] = set()
        """Rows that cannot be read and were named in the log."""

    async def add(self, job: Job, first: Due | None) -> Job | None:
        """Keeps one; None when this person has one of this name."""
        now_ms = self._database.now_ms()
        values = {**_values(replace(job, next=first)), "now_ms": now_ms}

        def work(connection: sqlite3.Connection) -> _Row | None:
            made = connection.execute(_ADD, values).fetchone()
            return None if made is None else _row_of(connection, made[0])

        row = await self._database.write(work)
        return None if row is None else _job(row)

    async def get(self, job_id: int) -> Job | None:
        """One, whoever it belongs to; None also for one that cannot be read."""
        row = await self._database.read(lambda c: _row_of(c, job_id))
        return None if row is None else self._readable(row)

    async def kept(self, person_id: PersonId | None = None) -> Sequence[Job]:
        """All (of a person), by their next due time, those that are over last."""
        sql, values = (_ALL, ()) if person_id is None else (_OF, (person_id,))
        rows = await self._database.read(lambda c: list(named(c.execute(sql, values))))
        return [job for row in rows if (job := self._readable(row)) is not None]

    async def broken(self) -> Sequence[BrokenJob]:
        """Rows that cannot be read."""
        rows = await self._database.read(lambda c: list(named(c.execute(_ALL))))
        broken = []
        for row in rows:
            try:
                _job(row)
            except _UNREADABLE as error:
                why = f"{type(error).__name__}: {error}"[:200]
                broken.append(record(BrokenJob, row, why=why))
        return broken

    async def put(self, job: Job, *, anew: bool = False) -> bool:
        """Replaces what a job is and when; False when it is gone. `anew`: its runs are counted
        from none."""
        values = {**_values(job), "anew": anew, "now_ms": self._database.now_ms()}
        return await self._database.execute(_PUT, values) > 0

    async def remove(self, job_id: int) -> bool:
        """Drops one with its ledger; False when it is gone."""

        def work(connection: sqlite3.Connection) -> bool:
            connection.execute(_DROP_MISSED, (_missed_key(job_id),))
            return connection.execute(_REMOVE, (job_id,)).rowcount > 0

        return await self._database.write(work)

    async def due(self, now_ms: int, *, limit: int, kind: JobKind | None = None) -> Sequence[Job]:
        """Enabled jobs (of one kind) whose next due time has come, the earliest first."""

        def work(connection: sqlite3.Connection) -> list[Job]:
            # Row by row: those that cannot be read take no place of the others.
            rows = named(connection.execute(_DUE, (now_ms, now_ms, kind)))
            readable = (job for row in rows if (job := self._readable(row)) is not None)
            return list(islice(readable, max(limit, 0)))

        return await self._database.read(work)

    async def next_ms(self, *, after_ms: int = 0) -> int | None:
        """When the next one is due, later than `after_ms`; None when none is."""
        found: int | None = await self._database.value(_NEXT, (after_ms,))
        return found

    async def newest_ms(self) -> int | None:
        """When a due time was taken or a job changed last, by the clock of then; None: never."""
        found: int | None = await self._database.value(_NEWEST)
        return found

    async def take(self, taking: Taking, *, of: Job) -> Taken | NotTaken:
        """Takes a due time of a job that stands as it was read (`of`). Where it was taken before,
        the job's next due time is set all the same, so that a slot whose taker died does not come
        again for ever; else what is not taken changes nothing."""
        now_ms = self._database.now_ms()
        # A failure is over once it is counted: a kill in between must not lose the count.
        is_over = taking.state in _OVER and taking.state is not SlotState.FAILED
        row = (
            *(taking.due.slot, taking.due.at_ms, taking.state),
            *("" if taking.run is None else taking.run.run_id, storable(taking.note)),
            *(taking.late_s, now_ms, now_ms if is_over else None, taking.job_id),
        )
        submitted = None if taking.run is None else submission(taking.run, now_ms=now_ms)

        def work(connection: sqlite3.Connection) -> Taken | NotTaken:
            if not _stands(connection, of):
                return NotTaken.CHANGED
            is_ours = connection.execute(_TAKE, row).fetchone() is not None
            if not is_ours:
                slot = (taking.job_id, taking.due.slot)
                (at_ms,) = connection.execute(_TAKEN_AT, slot).fetchone()
                if at_ms != taking.due.at_ms:
                    return NotTaken.OTHER
            ran = int(is_ours and taking.counts and taking.state is not SlotState.SKIPPED)
            advanced = (*_due_values(taking.next), ran, now_ms, taking.job_id)
            connection.execute(_ADVANCE, advanced)
            if not is_ours:
                return NotTaken.BEFORE
            if taking.missed is not None:
                _keep_missed(connection, taking.missed, now_ms=now_ms)
            outbox_id = None
            if taking.message is not None:
                outbox_id = add_message(connection, taking.message, now_ms=now_ms)
                connection.execute(_SENT, (outbox_id, taking.job_id, taking.due.slot))
                join_history(
                    connection,
                    taking.message.lane,
                    run_id=f"j{taking.job_id}:{taking.due.slot}",
                    note=taking.joins,
                    text=taking.message.text,
                    tainted=taking.tainted,
                    now_ms=now_ms,
                )
            run = None if submitted is None else submitted(connection)
            return Taken(outbox_id=outbox_id, run=run)

        return await self._database.write(work)

    async def reset(self, job: Job, due: Due | None, *, not_before_ms: int) -> bool:
        """Gives a job that stands as it was read another next due time."""
        values = (*_due_values(due), not_before_ms, self._database.now_ms(), job.id)

        def work(connection: sqlite3.Connection) -> bool:
            if not _stands(connection, job):
                return False
            return connection.execute(_RESET, values).rowcount > 0

        return await self._database.write(work)

    async def end(
        self, job_id: int, slot: str, state: SlotState, *, result: str | None = None, note: str = ""
    ) -> bool:
        """Writes what became of a slot that is not over; False when it is over, or unknown."""
        told = storable(note)
        ended_ms = self._database.now_ms() if state in _OVER else None
        text = None if result is None else storable(result)
        values = (state, text, told, told, ended_ms, job_id, slot)
        return await self._database.execute(_END, values) > 0

    async def failed(
        self,
        job_id: int,
        *,
        slot: str | None = None,
        failures: int,
        not_before_ms: int,
        paused: str,
        again: Due | None = None,
    ) -> bool:
        """End the slot and write that the job failed so many times in a row; `paused` stops it. A
        job that is over gets the due time `again`. One commit, so that no kill counts a failure
        twice or loses a retry. Return False, and change nothing, if the slot is over."""
        why, now_ms = storable(paused), self._database.now_ms()
        counted = (failures, not_before_ms, why, why, now_ms, job_id)

        def work(connection: sqlite3.Connection) -> bool:
            if slot is not None:
                ended = (SlotState.FAILED, None, "", "", now_ms, job_id, slot)
                if not connection.execute(_END, ended).rowcount:
                    return False
            connection.execute(_FAILED, counted)
            if again is not None:
                connection.execute(_AGAIN, (*_due_values(again), now_ms, job_id))
            return True

        return await self._database.write(work)

    async def put_off(self, job_id: int, slot: str, again: Due | None) -> bool:
        """End a slot whose run was not possible. If it comes `again`, do not count it as one of the
        job's runs, and run it then unless the job is due before. Return False if it is over."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> bool:
            if not connection.execute(_PUT_OFF, (now_ms, job_id, slot)).rowcount:
                return False
            if again is not None:
                connection.execute(_COMES_AGAIN, (again.at_ms, again.slot, now_ms, job_id))
            return True

        return await self._database.write(work)

    async def worked(self, job_id: int) -> None:
        """Its failures are over."""
        await self._database.execute(_WORKED, (job_id,))

    async def open_runs(self) -> Sequence[JobRun]:
        """Slots that were taken and are not over, the oldest first."""
        return await self._database.records(JobRun, _OPEN_RUNS)

    async def runs(self, job_id: int, *, limit: int) -> Sequence[JobRun]:
        """The newest slots of a job first."""
        return await self._database.records(JobRun, _RUNS_OF, (job_id, max(limit, 0)))

    async def missed(self) -> Sequence[Misfires]:
        """Return what was missed and is to be told, of each job together."""
        rows = await self._database.rows(_ALL_MISSED, (_MISSED, _MISSED_END))
        found = [_read_missed(int(key.removeprefix(_MISSED)), value) for key, value in rows]
        return sorted(found, key=lambda one: (one.first.at_ms, one.job_id))

    async def keep_missed(self, dues: Misfires) -> None:
        """Has it told, with what is to be told of its job already."""
        now_ms = self._database.now_ms()
        await self._database.write(lambda c: _keep_missed(c, dues, now_ms=now_ms))

    async def tell_missed(
        self, told: Sequence[Misfires], cards: Sequence[NewMessage], *, asked: str
    ) -> Sequence[OutboxId]:
        """Put the cards that tell of these into the outbox, and have none of them told again; what
        was asked about gets the note `asked`. Without cards nobody can be asked so far."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[OutboxId]:
            for one in told:
                # Unless more has come to it since it was read.
                connection.execute(_DROP_TOLD, (_missed_key(one.job_id), _written(one)))
                if cards and one.done is SlotState.ASKED:
                    connection.execute(_ASKED, (asked, one.job_id, one.last.slot))
            return [add_message(connection, card, now_ms=now_ms) for card in cards]

        return await self._database.write(work)

    async def prune(self, before_ms: int) -> int:
        """Deletes what is over since before then: rows of the ledger, what was told, and jobs that
        have no time left. Returns how many rows went. For a daily caller."""
        return sum([await self._database.prune(sql, before_ms) for sql in _PRUNE])

    def _readable(self, row: _Row) -> Job | None:
        try:
            return _job(row)
        except _UNREADABLE as error:
            if row["id"] not in self._told:
                log.error("job.unreadable", job=row["id"], why=str(error)[:200])
                self._told.add(row["id"])
            return None


# --- rows --------------------------------------------------------------------------------------

_Row = dict[str, Any]
_WHAT = {field.name for field in fields(What)}


def _row_of(connection: sqlite3.Connection, job_id: int) -> _Row | None:
    return next(named(connection.execute(_ONE, (job_id,))), None)


def _values(job: Job) -> dict[str, object]:
    what = {name: value for name, value in to_row(job.what).items() if name != "outside"}
    slot, at_ms = _due_values(job.next)
    return {
        **to_row(job),
        # Texts alone, as versions before `outside` read it.
        "what": dump(what | ({"outside": "yes"} if job.what.outside else {})),
        "runs_when": dump(recurrence.to_json(job.when)),
        "next_slot": slot,
        "next_ms": at_ms,
    }


def _due_values(due: Due | None) -> tuple[str | None, int | None]:
    return (None, None) if due is None else (due.slot, due.at_ms)


def _stands(connection: sqlite3.Connection, job: Job) -> bool:
    """Return whether a job is still what it was when it was read, and due at the same time."""
    row = _row_of(connection, job.id)
    try:
        now = None if row is None else _job(row)
    except _UNREADABLE:
        return False
    return now is not None and _settled(now) == _settled(job)


def _settled(job: Job) -> Job:
    """Without what running it changes."""
    return replace(job, paused="", not_before_ms=0, failures=0, runs=0, created_ms=0)


def _job(row: _Row) -> Job:
    """Raise ValueError, KeyError and TypeError for a row that no version of ours wrote."""
    for moment in (row["next.at_ms"], row["expires_ms"], row["not_before_ms"]):
        if isinstance(moment, int) and not 0 <= moment <= _LAST_MS:
            raise ValueError(f"{moment} is no moment")
    if unknown := json.loads(row["what"]).keys() - _WHAT:
        # By a later version: what it would do is not all that is known of it here.
        raise ValueError(f"{', '.join(sorted(unknown))} is not known of what a job does")
    return record(Job, row, when=recurrence.from_json(json.loads(row["runs_when"])))


# --- misfires -----------------------------------------------------------------------------------
#
# What is to be told of them is kept with their due times until the card is stored: a kill in
# between would else lose lines of it. Rows of the table `signals`, one a job; no turn waits for
# them.

_MISSED, _MISSED_END = "missed:", "missed;"
"""Between these lie the keys: `missed:` and the number of the job."""

_ONE_MISSED = "select value from signals where key = ?"
_ALL_MISSED = "select key, value from signals where key > ? and key < ?"
_KEEP_MISSED = """
insert into signals (key, value, created_ms) values (?, ?, ?)
on conflict (key) do update set value = excluded.value
"""
_DROP_MISSED = "delete from signals where key = ?"
_DROP_TOLD = "delete from signals where key = ? and value = ?"
_ASKED = "update job_runs set note = ? where job_id = ? and slot = ? and state = 'asked'"


def _keep_missed(connection: sqlite3.Connection, missed: Misfires, *, now_ms: int) -> None:
    """Add it to what is to be told of its job, as one line for both."""
    key = _missed_key(missed.job_id)
    known = connection.execute(_ONE_MISSED, (key,)).fetchone()
    if known is not None:
        before = _read_missed(missed.job_id, known[0])
        # What a kill left of the one to be made up for is counted in it already.
        is_new = missed.first.at_ms > before.last.at_ms
        count = before.count + missed.count if is_new else max(before.count, missed.count)
        last = max(before.last, missed.last, key=lambda due: due.at_ms)
        missed = replace(missed, count=min(count, COUNTED_MAX), first=before.first, last=last)
    connection.execute(_KEEP_MISSED, (key, _written(missed), now_ms))


def _missed_key(job_id: int) -> str:
    return f"{_MISSED}{job_id}"


def _written(missed: Misfires) -> str:
    dues = (missed.first, missed.last)
    return dump({"count": missed.count, "dues": dues, "done": missed.done})


def _read_missed(job_id: int, value: str) -> Misfires:
    row = json.loads(value)
    first, last = row["dues"]
    return from_json(Misfires, {**row, "job_id": job_id, "first": first, "last": last})
