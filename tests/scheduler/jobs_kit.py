"""What the tests of jobs share: a real store, kinds that keep what they are asked."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.database.connection import Database
from memory.records.errors import AssistantError
from memory.records.jobs import (
    At,
    Cron,
    Due,
    Job,
    JobKind,
    Misfires,
    SlotState,
    Taken,
    Taking,
    What,
    When,
)
from memory.records.messages import PersonId, RunId
from memory.records.ports import NewRun
from memory.records.rows import NewMessage
from memory.stores.jobs import SqliteJobs
from scheduler.clock.misfire import first_due
from scheduler.clock.timetable import Timetable, TimetableHooks
from tests.fakes import FixedClock
from tests.laid import lay

LANE = "telegram:5"


def job(
    name: str = "tea",
    *,
    when: When | None = None,
    kind: JobKind = JobKind.MESSAGE,
    person: str = "p1",
    **more: Any,
) -> Job:
    made = Job(
        name=name,
        person_id=PersonId(person),
        kind=kind,
        what=What(text=name),
        when=when or Cron(expression="0 9 * * *", zone="UTC"),
        deliver_to=LANE,
    )
    return replace(made, **more)


def at(moment: datetime) -> At:
    return At(moment=moment, zone="UTC")


@dataclass(slots=True)
class KeptKind:
    """Implements Kind: makes a message (or a turn), and fails for jobs in `broken`."""

    makes_turn: bool = False
    broken: dict[str, Exception] = field(default_factory=dict)
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        self.asked.append((job.name, due.slot, late_s))
        if (error := self.broken.get(job.name)) is not None:
            raise error
        if self.makes_turn:
            run_id = RunId(f"{job.key}:{due.slot}")
            run = NewRun(run_id=run_id, lane=f"job:{job.id}", by=job.person_id, payload={})
            return Taking(job_id=job.id, due=due, next=None, state=SlotState.TAKEN, run=run)
        late = f" (late by {late_s} s)" if late_s > 60 else ""
        message = NewMessage(lane=job.deliver_to, text=f"{job.what.text}{late}")
        return Taking(job_id=job.id, due=due, next=None, state=SlotState.TOLD, message=message)


class Office:
    """A timetable over a real store. May be opened again, as after a restart."""

    store: SqliteJobs
    timetable: Timetable

    def __init__(self, path: Path, *, start: datetime | None = None) -> None:
        self.path = path / "hearthbot.db"
        self.clock = FixedClock(start) if start is not None else FixedClock()
        self.kind = KeptKind()
        self.taken: list[str] = []
        self.missed: list[tuple[str, Sequence[tuple[Job, Misfires]]]] = []
        self.has_cards = False
        self.failed: list[tuple[str, str]] = []
        self.stopped: list[tuple[str, str]] = []

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Office]:
        lay(self.path)
        async with Database.open(self.path, clock=self.clock) as database:
            self.store = SqliteJobs(database)
            kinds = dict.fromkeys(JobKind, self.kind)
            self.timetable = Timetable(self.store, kinds, self.hears(), clock=self.clock)
            yield self

    def hears(self) -> TimetableHooks:
        """What keeps all that a timetable tells."""
        return TimetableHooks(
            taken=self._taken, missed=self._missed, failed=self._failed, stopped=self._stopped
        )

    async def add(self, new: Job) -> Job:
        made = await self.store.add(new, first_due(new.when, after=self.clock.now()))
        assert made is not None
        return made

    async def to(self, moment: datetime) -> int:
        """Moves the clock there, and looks."""
        self.clock.move((moment - self.clock.now()).total_seconds())
        return await self.timetable.look()

    def texts(self) -> list[str]:
        """What was sent, in order."""
        with closing(sqlite3.connect(self.path)) as connection:
            return [row[0] for row in connection.execute("select text from outbox order by id")]

    def slots(self) -> list[tuple[str, str]]:
        """The ledger, in order of its rows: slot and state."""
        with closing(sqlite3.connect(self.path)) as connection:
            sql = "select slot, state from job_runs order by rowid"
            return [tuple(row) for row in connection.execute(sql)]

    def _taken(self, job: Job, taken: Taken) -> None:
        self.taken.append(job.name)

    async def _missed(self, person_id: PersonId, runs: Sequence[tuple[Job, Misfires]]) -> None:
        self.missed.append((person_id, runs))
        card = NewMessage(lane="telegram:99", text=f"missed {len(runs)}")
        cards = [card] if self.has_cards else []
        await self.store.tell_missed([dues for _, dues in runs], cards, asked="asked")

    async def _failed(self, job: Job, due: Due, why: str) -> None:
        self.failed.append((job.name, why))

    async def _stopped(self, job: Job, why: str) -> None:
        self.stopped.append((job.name, why))


class Broken(AssistantError):
    """A job that cannot be prepared."""
