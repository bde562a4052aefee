"""Jobs and events as tools and doors reach them, whether a bot runs or not."""

from __future__ import annotations

from agent.scheduled import Job, Taken
from bot.access import Access
from bot.chats import Chats
from bot.options import bindings_of
from bot.place import Workplace
from bot.toolmaking import NoBotRuns
from memory.beats import SqliteBeats, SqliteSwitches
from memory.cards import SqliteCards
from memory.database import Database
from memory.events import SqliteEvents
from memory.jobs import SqliteJobs
from memory.tellings import SqliteTellings
from scheduler.agenda import EventAgenda
from scheduler.book import Book
from scheduler.clerk import Clerk
from scheduler.timetable import Timetable


class Calendar:
    """Jobs and events as tools and doors reach them, also where no bot runs: then nothing is run,
    and what is kept counts from the next start."""

    def __init__(self, place: Workplace, database: Database, access: Access) -> None:
        clock = place.clock
        self.chats = Chats(access, bindings_of(place.settings))
        self.jobs = SqliteJobs(database)
        self.tellings = SqliteTellings(database)
        self.beats = SqliteBeats(database)
        self.switches = SqliteSwitches(database)
        self.cards = SqliteCards(database)
        self.book = Book(self.jobs, self.chats, self.chats.zone, clock=clock, changed=self.changed)
        self.clerk = Clerk(
            self.book,
            self.jobs,
            self.tellings,
            self.chats.zone,
            clock=clock,
            run_now=self._run_now,
        )
        self.agenda = EventAgenda(SqliteEvents(database), self.clerk, clock=clock)
        self.timetable: Timetable | None = None

    async def changed(self) -> None:
        """A job was added or changed. Raises StorageError."""
        if self.timetable is not None:
            await self.timetable.changed()

    async def _run_now(self, job: Job) -> Taken | None:
        if self.timetable is None:
            raise NoBotRuns("No bot runs here, so no job can be run.")
        return await self.timetable.run_now(job)
