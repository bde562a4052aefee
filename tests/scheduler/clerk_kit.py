"""A clerk and an agenda over a real store, book and timetable: Monday, 08:00 in Berlin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memory.database.connection import Database
from memory.records.jobs import Job, JobKind, What
from memory.records.messages import PersonId, Role
from memory.records.schedule import JobWish, TimeRead
from memory.stores.heartbeats import SqliteBeats, SqliteSwitches
from memory.stores.jobs import SqliteJobs
from memory.stores.missed import SqliteEvents
from memory.stores.notifications import SqliteTellings
from scheduler.clock.timetable import Timetable
from scheduler.jobs.clerk import Clerk
from scheduler.jobs.events import EventAgenda
from scheduler.jobs.service import Book
from scheduler.kinds.message import Hearer, MessageKind
from tests.laid import lay
from tests.scheduler.jobs_kit import Office

MORNING = datetime(2026, 6, 1, 6, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
ANN, BEN, GUS = PersonId("p1"), PersonId("p2"), PersonId("p3")
LANE, BENS, GROUP = "telegram:5", "telegram:6", "telegram:-100"
ROLES = {ANN: Role.OWNER, BEN: Role.MEMBER, GUS: Role.GUEST}
LANES = {ANN: {LANE, GROUP}, BEN: {BENS, GROUP}, GUS: {"telegram:7"}}


class Chats:
    """Implements Hearing."""

    def person(self, person_id: PersonId) -> Hearer | None:
        role = ROLES.get(person_id)
        return None if role is None else Hearer(id=person_id, role=role, name=person_id)

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        return lane in LANES.get(person_id, ())

    def agent_at(self, lane: str) -> str:
        return "default"

    def is_group(self, lane: str) -> bool:
        return lane == GROUP


class Counter(Office):
    """Where people come with their wishes. Reminders are the real ones; other kinds are kept."""

    book: Book
    clerk: Clerk
    agenda: EventAgenda
    beats: SqliteBeats
    switches: SqliteSwitches
    database: Database

    def __init__(self, path: Path) -> None:
        super().__init__(path, start=MORNING)
        self.zones = dict.fromkeys(ROLES, BERLIN)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Counter]:
        lay(self.path)
        async with Database.open(self.path, clock=self.clock) as database:
            self.build(database)
            yield self

    def build(self, database: Database) -> None:
        """All of it, over an open database."""
        self.database = database
        store = self.store = SqliteJobs(database)
        chats = Chats()
        kinds = dict.fromkeys(JobKind, self.kind) | {
            JobKind.MESSAGE: MessageKind(chats, self._zone)
        }
        self.timetable = Timetable(
            store,
            kinds,
            self.hears(),
            clock=self.clock,
        )
        self.book = Book(store, chats, self._zone, clock=self.clock, changed=self.timetable.changed)
        self.clerk = Clerk(
            self.book,
            store,
            SqliteTellings(database),
            self._zone,
            clock=self.clock,
            run_now=self.timetable.run_now,
        )
        self.agenda = EventAgenda(SqliteEvents(database), self.clerk, clock=self.clock)
        self.beats, self.switches = SqliteBeats(database), SqliteSwitches(database)

    def _zone(self, person_id: PersonId) -> ZoneInfo:
        return self.zones[person_id]

    async def want(
        self, when: str, *, text: str = "call Bob", kind: JobKind = JobKind.MESSAGE, **more: Any
    ) -> Job:
        """A job of Ann's."""
        time = self.clerk.read(ANN, when)
        assert isinstance(time, TimeRead), time
        wish = JobWish(person_id=ANN, kind=kind, what=What(text=text), time=time, deliver_to=LANE)
        return await self.clerk.add(replace(wish, **more))
