"""Two timetables on one database, taking what is due until they are killed. Run by
test_timetable_kills."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from memory.database.connection import Database
from memory.records.jobs import Due, Job, JobKind, Misfires, SlotState, Taken, Taking
from memory.records.messages import PersonId, RunId
from memory.records.ports import NewRun
from memory.records.rows import NewMessage
from memory.stores.jobs import SqliteJobs
from scheduler.clock.timetable import Timetable, TimetableHooks

STEP = timedelta(minutes=10)


class Quick:
    """A clock that goes on when told to."""

    def __init__(self, start: datetime) -> None:
        self._start = self._now = start

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def move(self) -> None:
        self._now += STEP


async def remind(job: Job, due: Due, *, late_s: int) -> Taking:
    """Implements Kind: a message."""
    message = NewMessage(lane=job.deliver_to, text=f"{job.id} {due.slot}")
    return Taking(job_id=job.id, due=due, next=None, state=SlotState.TOLD, message=message)


async def work(job: Job, due: Due, *, late_s: int) -> Taking:
    """Implements Kind: a turn."""
    run_id = RunId(f"job-{job.id}:{due.slot}")
    run = NewRun(run_id=run_id, lane=f"job:{job.id}", by=PersonId("p1"), payload={})
    return Taking(job_id=job.id, due=due, next=None, state=SlotState.TAKEN, run=run)


async def missed(person_id: PersonId, runs: Sequence[tuple[Job, Misfires]]) -> None:
    """Nobody is told here."""


async def failed(job: Job, due: Due, why: str) -> None:
    """Must not happen."""
    raise AssertionError(why)


async def stopped(job: Job, why: str) -> None:
    """Must not happen."""
    raise AssertionError(why)


def taken(job: Job, what: Taken) -> None:
    """Set going."""
    print("taken", job.id, flush=True)


async def main(path: Path, start: datetime, until: datetime) -> None:
    clock = Quick(start)
    async with (
        Database.open(path, clock=clock) as one,
        Database.open(path, clock=clock) as other,
    ):
        kinds = {JobKind.MESSAGE: remind, JobKind.AGENT: work}
        hears = TimetableHooks(taken=taken, missed=missed, failed=failed, stopped=stopped)
        tables = [
            Timetable(SqliteJobs(database), kinds, hears, clock=clock) for database in (one, other)
        ]
        print("begun", flush=True)
        while clock.now() <= until:
            await asyncio.gather(*(table.look() for table in tables))
            clock.move()
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *(datetime.fromisoformat(text) for text in sys.argv[2:4])))
