"""Jobs and the ledger of their runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import structlog

from memory.database.connection import BITE_ROWS, Database
from memory.database.stored_text import dump, storable
from memory.records import recurrence
from memory.records.jobs import (
    BrokenJob,
    Due,
    Job,
    JobKind,
    JobRun,
    MisfirePolicy,
    Misfires,
    NotTaken,
    QuietPolicy,
    SetBy,
    SlotState,
    Taken,
    Taking,
    What,
)
from memory.records.messages import OutboxId, PersonId, RunId
from memory.records.rows import NewMessage
from memory.stores import misfires
from memory.stores.inbox import join_history
from memory.stores.outbox import add_message
from memory.stores.turns import submission

log = structlog.get_logger()

_JOBS = """
select id, name, person_id, agent, kind, what, runs_when, deliver_to, missed, missed_within_s,
quiet, urgent, set_by, nag_s, max_runs, expires_ms, enabled, paused, next_slot, next_ms,
not_before_ms, failures, runs, run_id, created_ms
from jobs
"""
_ADD = """
insert into jobs (name, person_id, agent, kind, what, runs_when, deliver_to, missed,
    missed_within_s, quiet, urgent, set_by, nag_s, max_runs, expires_ms, enabled, next_slot,
    next_ms, run_id, created_ms, updated_ms)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (person_id, name) do nothing
returning id
"""
_PUT = """
update jobs set name = ?, person_id = ?, agent = ?, kind = ?, what = ?, runs_when = ?,
    deliver_to = ?, missed = ?, missed_within_s = ?, quiet = ?, urgent = ?, set_by = ?, nag_s = ?,
    max_runs = ?, expires_ms = ?, enabled = ?, next_slot = ?, next_ms = ?, run_id = ?, paused = ?,
    not_before_ms = ?, failures = ?, runs = case when ? then 0 else runs end, updated_ms = ?
where id = ?
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
select job_id, slot, due_ms, state, taken_ms, run_id, result, note, late_s, ended_ms from job_runs
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
        values = (*_values(job), *_due_values(first), job.run_id or "", now_ms, now_ms)

        def work(connection: sqlite3.Connection) -> tuple[Any, ...] | None:
            made = connection.execute(_ADD, values).fetchone()
            row: tuple[Any, ...] | None = made and connection.execute(_ONE, made).fetchone()
            return row

        row = await self._database.write(work)
        return None if row is None else _job(row)

    async def get(self, job_id: int) -> Job | None:
        """One, whoever it belongs to; None also for one that cannot be read."""
        row = await self._database.read(lambda c: c.execute(_ONE, (job_id,)).fetchone())
        return None if row is None else self._readable(row)

    async def kept(self, person_id: PersonId | None = None) -> Sequence[Job]:
        """All (of a person), by their next due time, those that are over last."""
        rows = await self._rows(person_id)
        return [job for row in rows if (job := self._readable(row)) is not None]

    async def broken(self) -> Sequence[BrokenJob]:
        """Rows that cannot be read."""
        return [one for row in await self._rows(None) if (one := _broken(row)) is not None]

    async def put(self, job: Job, *, anew: bool = False) -> bool:
        """Replaces what a job is and when; False when it is gone. `anew`: its runs are counted
        from none."""
        values = (
            *_values(job),
            *_due_values(job.next),
            *(job.run_id or "", job.paused, job.not_before_ms, job.failures, anew),
            *(self._database.now_ms(), job.id),
        )
        return await self._database.write(lambda c: c.execute(_PUT, values).rowcount > 0)

    async def remove(self, job_id: int) -> bool:
        """Drops one with its ledger; False when it is gone."""

        def work(connection: sqlite3.Connection) -> bool:
            misfires.drop(connection, job_id)
            return connection.execute(_REMOVE, (job_id,)).rowcount > 0

        return await self._database.write(work)

    async def due(self, now_ms: int, *, limit: int, kind: JobKind | None = None) -> Sequence[Job]:
        """Enabled jobs (of one kind) whose next due time has come, the earliest first."""

        def work(connection: sqlite3.Connection) -> list[Job]:
            # Row by row: those that cannot be read take no place of the others.
            rows = connection.execute(_DUE, (now_ms, now_ms, kind))
            readable = (job for row in rows if (job := self._readable(row)) is not None)
            return list(islice(readable, max(limit, 0)))

        return await self._database.read(work)

    async def next_ms(self, *, after_ms: int = 0) -> int | None:
        """When the next one is due, later than `after_ms`; None when none is."""
        (found,) = await self._database.read(lambda c: c.execute(_NEXT, (after_ms,)).fetchone())
        return None if found is None else int(found)

    async def newest_ms(self) -> int | None:
        """When a due time was taken or a job changed last, by the clock of then; None: never."""
        (found,) = await self._database.read(lambda c: c.execute(_NEWEST).fetchone())
        return None if found is None else int(found)

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
            next_one = _due_values(taking.next)
            connection.execute(_ADVANCE, (*next_one, ran, now_ms, taking.job_id))
            if not is_ours:
                return NotTaken.BEFORE
            if taking.missed is not None:
                misfires.keep(connection, taking.missed, now_ms=now_ms)
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
            run = submitted.store(connection) if submitted is not None else None
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
        return await self._database.write(lambda c: c.execute(_END, values).rowcount > 0)

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
                values = (again.at_ms, again.slot, now_ms, job_id)
                connection.execute(_COMES_AGAIN, values)
            return True

        return await self._database.write(work)

    async def worked(self, job_id: int) -> None:
        """Its failures are over."""
        await self._database.write(lambda c: c.execute(_WORKED, (job_id,)).rowcount)

    async def open_runs(self) -> Sequence[JobRun]:
        """Slots that were taken and are not over, the oldest first."""
        rows = await self._database.read(lambda c: c.execute(_OPEN_RUNS).fetchall())
        return [_job_run(row) for row in rows]

    async def runs(self, job_id: int, *, limit: int) -> Sequence[JobRun]:
        """The newest slots of a job first."""
        values = (job_id, max(limit, 0))
        rows = await self._database.read(lambda c: c.execute(_RUNS_OF, values).fetchall())
        return [_job_run(row) for row in rows]

    async def missed(self) -> Sequence[Misfires]:
        """What was missed and is to be told, of each job together."""
        return await self._database.read(misfires.kept)

    async def keep_missed(self, dues: Misfires) -> None:
        """Has it told, with what is to be told of its job already."""
        now_ms = self._database.now_ms()
        await self._database.write(lambda c: misfires.keep(c, dues, now_ms=now_ms))

    async def tell_missed(
        self, told: Sequence[Misfires], cards: Sequence[NewMessage], *, asked: str
    ) -> Sequence[OutboxId]:
        """Put the cards that tell of these into the outbox, and have none of them told again; what
        was asked about gets the note `asked`. Without cards nobody can be asked so far."""
        now_ms = self._database.now_ms()
        return await self._database.write(
            lambda c: misfires.tell(c, told, cards, asked=asked, now_ms=now_ms)
        )

    async def prune(self, before_ms: int) -> int:
        """Deletes what is over since before then: rows of the ledger, what was told, and jobs that
        have no time left. Returns how many rows went. For a daily caller."""

        values = (before_ms, BITE_ROWS)
        total = 0
        for sql in _PRUNE:
            total += await self._database.in_bites(
                lambda c, sql=sql: c.execute(sql, values).rowcount  # type: ignore[misc]
            )
        return total

    def _readable(self, row: tuple[Any, ...]) -> Job | None:
        try:
            return _job(row)
        except _UNREADABLE as error:
            if row[0] not in self._told:
                log.error("job.unreadable", job=row[0], why=str(error)[:200])
                self._told.add(row[0])
            return None

    async def _rows(self, person_id: PersonId | None) -> list[tuple[Any, ...]]:
        if person_id is None:
            return await self._database.read(lambda c: c.execute(_ALL).fetchall())
        return await self._database.read(lambda c: c.execute(_OF, (person_id,)).fetchall())


# --- rows --------------------------------------------------------------------------------------


def _values(job: Job) -> tuple[object, ...]:
    """From the name to `enabled`, in the order of the table."""
    what = {
        "text": job.what.text,
        "skill": job.what.skill,
        "tool": job.what.tool,
        "arguments": job.what.arguments,
        **({"outside": "yes"} if job.what.outside else {}),
    }
    return (
        *(storable(job.name), job.person_id, job.agent, job.kind, dump(what)),
        *(dump(recurrence.to_json(job.when)), job.deliver_to, job.missed, job.missed_within_s),
        *(job.quiet, job.urgent, job.set_by, job.nag_s, job.max_runs, job.expires_ms),
        job.enabled,
    )


def _due_values(due: Due | None) -> tuple[str | None, int | None]:
    return (None, None) if due is None else (due.slot, due.at_ms)


def _stands(connection: sqlite3.Connection, job: Job) -> bool:
    """Whether a job is still what it was when it was read, and due at the same time."""
    row = connection.execute(_ONE, (job.id,)).fetchone()
    try:
        now = None if row is None else _job(row)
    except _UNREADABLE:
        return False
    return now is not None and _settled(now) == _settled(job)


def _settled(job: Job) -> Job:
    """Without what running it changes."""
    return replace(job, paused="", not_before_ms=0, failures=0, runs=0, created_ms=0)


def _broken(row: tuple[Any, ...]) -> BrokenJob | None:
    try:
        _job(row)
    except _UNREADABLE as error:
        why = f"{type(error).__name__}: {error}"[:200]
        return BrokenJob(id=row[0], name=row[1], person_id=PersonId(row[2]), why=why)
    return None


def _job(row: tuple[Any, ...]) -> Job:
    """Raises ValueError, KeyError and TypeError for a row that no version of ours wrote."""
    job_id, name, person_id, agent, kind, what, when, deliver_to, missed, within = row[:10]
    quiet, urgent, set_by, nag_s, max_runs, expires_ms, enabled, paused, slot, next_ms = row[10:20]
    not_before_ms, failures, runs, run_id, created_ms = row[20:]
    _require_whole(within, nag_s, max_runs, expires_ms, next_ms, not_before_ms, failures, runs)
    _require_moment(next_ms, expires_ms, not_before_ms)
    return Job(
        id=job_id,
        name=name,
        person_id=PersonId(person_id),
        kind=JobKind(kind),
        what=_what(json.loads(what)),
        when=recurrence.from_json(json.loads(when)),
        deliver_to=deliver_to,
        agent=agent,
        missed=MisfirePolicy(missed),
        missed_within_s=within,
        quiet=QuietPolicy(quiet),
        urgent=bool(urgent),
        set_by=SetBy(set_by),
        nag_s=nag_s,
        max_runs=max_runs,
        expires_ms=expires_ms,
        enabled=bool(enabled),
        run_id=RunId(run_id) if run_id else None,
        next=None if slot is None else Due(slot=slot, at_ms=next_ms),
        paused=paused,
        not_before_ms=not_before_ms,
        failures=failures,
        runs=runs,
        created_ms=created_ms,
    )


def _require_whole(*values: object) -> None:
    """Raises TypeError: SQLite keeps any text in a column of numbers."""
    for value in values:
        if value is not None and not isinstance(value, int):
            raise TypeError(f"{value!r:.40} stands where a whole number should")


def _require_moment(*values: int | None) -> None:
    """Raises ValueError for one that no calendar holds."""
    for value in values:
        if value is not None and not 0 <= value <= _LAST_MS:
            raise ValueError(f"{value} is no moment")


def _what(kept: object) -> What:
    """Raises TypeError for what is not texts by name."""
    if not isinstance(kept, dict) or not all(isinstance(text, str) for text in kept.values()):
        raise TypeError("what it does is not kept as texts by name")
    texts = {name: text for name, text in kept.items() if name != "outside"}
    return What(**texts, outside="outside" in kept)


def _job_run(row: tuple[Any, ...]) -> JobRun:
    job_id, slot, due_ms, state, taken_ms, run_id, result, note, late_s, ended_ms = row
    return JobRun(
        job_id=job_id,
        due=Due(slot=slot, at_ms=due_ms),
        state=SlotState(state),
        taken_ms=taken_ms,
        run_id=RunId(run_id) if run_id else None,
        result=result,
        note=note,
        late_s=late_s,
        ended_ms=ended_ms,
    )
