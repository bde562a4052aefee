"""Looks at a database file without changing it, beside a running bot too: for `hearthbot doctor`.

Everything here blocks. The file is opened for reading only, so that whatever is wrong with it stays
as it was found.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from memory.database.backup import connect, is_ours, problems
from memory.database.errors import storage_error
from memory.database.migrate import MIGRATIONS, read_migrations, version_of
from memory.database.rows import named, record, records
from memory.records.usage import Paused

_INBOX = "select state, count(*) from inbox group by state"
_OUTBOX = "select state, count(*) from outbox group by state"
_FIGURES = """
select
    (select min(received_ms) from inbox where ended_ms is null) as waiting_since_ms,
    -- Every message ends in exactly one terminal state, and only then has an end (SPEC §2.8).
    (
        select count(*) from inbox
        where (state in ('received', 'queued')) <> (ended_ms is null)
            or state not in ('received', 'queued', 'replied', 'refused', 'command', 'joined',
                             'cancelled', 'failed', 'silent')
    ) as crooked,
    -- A message that waits for a turn which is over, or which there never was, would wait for ever.
    (
        select count(*) from inbox
        where inbox.state = 'queued' and inbox.ended_ms is null and not exists (
            select 1 from turns where turns.inbox_id = inbox.id and turns.ended_ms is null
        )
    ) as stranded,
    (select min(created_ms) from outbox where state = 'ready') as leaving_since_ms,
    (
        select count(*) from outbox where state = 'failed' and created_ms > :now_ms - 86400000
    ) as failed_today,
    (
        select json_group_array(time_zone) from (
            select distinct time_zone from people where time_zone <> '' order by time_zone
        )
    ) as zones,
    (
        select json_group_array(address) from (
            select address from addresses join people on people.id = addresses.person_id
            where role = 'owner' order by addresses.created_ms
        )
    ) as owners
"""
_JOBS = """
select case when enabled then 'on' when paused like 'it failed%' then 'stopped' else 'off' end,
    count(*)
from jobs where next_ms is not null group by 1
"""
_NEXT_JOB = """
select min(max(next_ms, not_before_ms)) from jobs where enabled and next_ms is not null
"""
_PAUSES = "select kind, since_ms, words, agent from pauses where is_on order by since_ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """What was found. Times are epoch milliseconds; counts are of rows.

    `trouble` is what quick_check found first, empty when all is well; `checked` says whether it
    came to its end in time. `version` and `newest` count the steps of the file and of this program.
    """

    ours: bool
    version: int
    newest: int
    checked: bool = True
    trouble: str = ""
    inbox: Mapping[str, int]
    waiting_since_ms: int | None = None
    crooked: int = 0
    stranded: int = 0
    outbox: Mapping[str, int]
    leaving_since_ms: int | None = None
    failed_today: int = 0
    zones: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    jobs: Mapping[str, int] = field(default_factory=dict)
    """How many are on, off, and stopped because they kept failing."""
    next_job_ms: int | None = None
    pauses: tuple[Paused, ...] = ()
    """Why the bot stands still, if it does."""


def look(path: Path, *, limit_s: float, now_ms: int) -> Checkup:
    """Examines the file. Raises StorageError when it cannot be read, or is no database."""
    # Where no commits wait beside it, nobody uses the file; SQLite would then leave empty
    # companions behind, unless it is told that the file will not change.
    alone = not path.with_name(f"{path.name}-wal").exists()
    mode = "ro&immutable=1" if alone else "ro"
    try:
        with closing(connect(path, mode=mode, timeout_s=1.0)) as connection:
            newest = len(read_migrations(MIGRATIONS))
            ours, version = is_ours(connection), version_of(connection)
            found = Checkup(ours=ours, version=version, newest=newest, inbox={}, outbox={})
            if not ours or version > newest or version < 1:
                return found
            trouble = _bounded_check(connection, limit_s)
            if trouble:
                return replace(found, trouble=trouble)
            row = next(named(connection.execute(_FIGURES, {"now_ms": now_ms})))
            found = record(
                Checkup,
                row,
                ours=ours,
                version=version,
                newest=newest,
                checked=trouble is not None,
                inbox=dict(connection.execute(_INBOX).fetchall()),
                outbox=dict(connection.execute(_OUTBOX).fetchall()),
            )
            if version < newest:  # the next start brings it up to date, and jobs with it
                return found
            return replace(
                found,
                jobs=dict(connection.execute(_JOBS).fetchall()),
                next_job_ms=connection.execute(_NEXT_JOB).fetchone()[0],
                pauses=tuple(records(Paused, connection.execute(_PAUSES))),
            )
    except (sqlite3.Error, OSError) as error:
        raise storage_error(error, path) from error


def _bounded_check(connection: sqlite3.Connection, limit_s: float) -> str | None:
    """Return what quick_check finds first; None when the time did not suffice."""
    ends = time.monotonic() + limit_s
    connection.set_progress_handler(lambda: int(time.monotonic() > ends), 10_000)
    try:
        return problems(connection, "quick_check")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return None
    finally:
        connection.set_progress_handler(None, 0)
