"""The services of jobs, events and heartbeats over a real store and timetable: Monday, 08:00 in
Berlin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memory.database.connection import Database
from memory.records.jobs import Asker, Job, JobKind, What
from memory.records.messages import PersonId, Role
from memory.records.rows import Person
from memory.records.schedule import TimeRead
from memory.stores.jobs import SqliteJobs
from memory.stores.schedule import SqliteEvents, SqliteHeartbeats, SqliteSwitches, SqliteTellings
from scheduler.clock.timetable import Timetable
from scheduler.jobs.events import EventService
from scheduler.jobs.heartbeats import HeartbeatService
from scheduler.jobs.service import JobService
from scheduler.jobs.times import TimeReader
from scheduler.kinds.kinds import MessageKind
from tests.laid import lay
from tests.scheduler.jobs_kit import Office

MORNING = datetime(2026, 6, 1, 6, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
ANN, BEN, GUS = PersonId("p1"), PersonId("p2"), PersonId("p3")
BY_ANN, BY_BEN = Asker(person_id=ANN), Asker(person_id=BEN)
LANE, BENS, GROUP = "telegram:5", "telegram:6", "telegram:-100"


class People:
    """Implements `scheduler.notify.delivery.People`; all of it may be changed."""

    def __init__(self) -> None:
        self.roles = {ANN: Role.OWNER, BEN: Role.MEMBER, GUS: Role.GUEST}
        self.names: dict[PersonId, str] = {}
        self.lanes = {ANN: {LANE, GROUP}, BEN: {BENS, GROUP}, GUS: {"telegram:7"}}
        self.zones = dict.fromkeys(self.roles, BERLIN)
        self.has_owner = True
        self.home = LANE

    def owner(self) -> PersonId | None:
        return ANN if self.has_owner else None

    def person(self, person_id: PersonId) -> Person | None:
        role = self.roles.get(person_id)
        name = self.names.get(person_id, person_id)
        return None if role is None else Person(id=person_id, role=role, name=name)

    def zone(self, person_id: PersonId) -> ZoneInfo:
        return self.zones[person_id]

    async def home_of(self, person_id: PersonId) -> str:
        return self.home

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        return lane in self.lanes.get(person_id, ())

    def agent_at(self, lane: str) -> str:
        return "default"

    def is_group(self, lane: str) -> bool:
        return lane == GROUP


class Services(Office):
    """Where people come with their wishes. Reminders are the real ones; other kinds are kept.
    `is_running` False: no bot runs."""

    jobs: JobService
    events: EventService
    heartbeats: HeartbeatService
    database: Database

    def __init__(self, path: Path, *, minutes: int = 30) -> None:
        super().__init__(path, start=MORNING)
        self.people = People()
        self.is_running = True
        self.minutes = minutes
        self.estimate: str | Exception = ""

    @property
    def zones(self) -> dict[PersonId, ZoneInfo]:
        return self.people.zones

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Services]:
        lay(self.path)
        async with Database.open(self.path, clock=self.clock) as database:
            self.build(database)
            yield self

    def build(self, database: Database) -> None:
        """All of it, over an open database."""
        self.database = database
        self.store = SqliteJobs(database)
        kinds = dict.fromkeys(JobKind, self.kind) | {JobKind.MESSAGE: MessageKind(self.people)}
        self.timetable = Timetable(self.store, kinds, self.hears(), clock=self.clock)
        self.jobs = JobService(
            self.store,
            SqliteTellings(database),
            self.people,
            TimeReader(self.people.zone, clock=self.clock),
            clock=self.clock,
            timetable=lambda: self.timetable if self.is_running else None,
            estimate=self._estimate,
        )
        self.events = EventService(SqliteEvents(database), self.jobs, clock=self.clock)
        self.heartbeats = HeartbeatService(
            self.jobs,
            self.store,
            SqliteHeartbeats(database),
            SqliteSwitches(database),
            self.people,
            clock=self.clock,
            minutes={"default": self.minutes} if self.minutes else {},
        )

    async def _estimate(self, job: Job) -> str:
        if isinstance(self.estimate, Exception):
            raise self.estimate
        return self.estimate

    def time(self, when: str) -> TimeRead:
        """How Ann's words are read."""
        return self.jobs.times.require(ANN, when)

    def draft(
        self, when: str, *, text: str = "call Bob", kind: JobKind = JobKind.MESSAGE, **more: Any
    ) -> Job:
        """A job of Ann's that is not kept yet."""
        time = self.time(when)
        job = Job(
            person_id=ANN,
            kind=kind,
            what=What(text=text),
            when=time.when,
            max_runs=time.runs_max,
            expires_ms=time.expires_ms,
            deliver_to=LANE,
        )
        return replace(job, **more)

    async def want(self, when: str, **more: Any) -> Job:
        """A job of Ann's."""
        draft = self.draft(when, **more)
        return await self.jobs.add(draft, by=Asker(person_id=draft.person_id))

    async def now(self, job: Job) -> Job:
        """A job as it stands."""
        found = await self.store.get(job.id)
        assert found is not None
        return found
