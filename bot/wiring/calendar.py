"""Jobs and events as tools and doors reach them, whether a bot runs or not."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from agent.turn.agents import Bindings
from bot.people.access import Access
from bot.people.approvals import is_shared
from bot.people.timezone import zone_of
from bot.settings.options import bindings_of, host_zone
from bot.wiring.memories import person_of
from bot.wiring.spending import Workplace
from bot.wiring.tools import NoBotRuns
from memory.database.connection import Database
from memory.records.jobs import Job, Taken
from memory.records.messages import Address, PersonId
from memory.stores.approvals import SqliteCards
from memory.stores.heartbeats import SqliteBeats, SqliteSwitches
from memory.stores.jobs import SqliteJobs
from memory.stores.missed import SqliteEvents
from memory.stores.notifications import SqliteTellings
from scheduler.clock.timetable import Timetable
from scheduler.jobs.clerk import Clerk
from scheduler.jobs.events import EventAgenda
from scheduler.jobs.service import Book
from scheduler.kinds.message import Hearer

# --- chats --------------------------------------------------------------------------------------
#
# Which chats are whose, and who may hear what there: asked by whatever speaks by the clock. Called
# by `bot.wiring.calendar` and `bot.wiring.schedules`.


class Chats:
    """Implements `scheduler.kinds.message.Hearing` and `scheduler.notify.delivery.People`: who is
    let in, and which chats are whose. Looked at each time: people go."""

    def __init__(self, access: Access, bindings: Bindings) -> None:
        self._access = access
        self._bindings = bindings
        self._private: dict[PersonId, frozenset[str]] = {}

    async def load(self) -> None:
        """Reads which chats are whose alone. Raises StorageError."""
        for person in self._access.directory.people:
            chats = await self._access.private_chats(person.id)
            self._private[person.id] = frozenset(chats)

    def person(self, person_id: PersonId) -> Hearer | None:
        """See Hearing."""
        found = person_of(self._access, person_id)
        if found is None:
            return None
        return Hearer(
            id=found.id,
            role=found.role,
            name=found.name,
            time_zone=found.time_zone,
            language=found.language,
            language_hint=found.language_hint,
        )

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        """Own private chats, the terminal of whoever is at it, and groups that are admitted."""
        found = person_of(self._access, person_id)
        try:
            address = Address.parse(lane)
        except ValueError:
            return False
        if found is None:
            return False
        if address.channel == "console":
            return self._access.is_at_terminal(person_id)
        if is_shared(lane):
            return self._access.is_admitted(address)
        return lane in found.addresses or lane in self._private.get(person_id, ())

    def heard(self, person_id: PersonId, lane: str) -> None:
        """This person wrote in this private chat."""
        if not is_shared(lane):
            self._private[person_id] = self._private.get(person_id, frozenset()) | {lane}

    def is_group(self, lane: str) -> bool:
        """Whether others read along there."""
        return is_shared(lane)

    def agent_at(self, lane: str) -> str:
        """The name of the agent that answers there."""
        return self._bindings.agent_of(lane)

    def zone(self, person_id: PersonId) -> ZoneInfo:
        """The person's, else this machine's."""
        found = person_of(self._access, person_id)
        named = zone_of(found.time_zone) if found is not None and found.time_zone else None
        return named or zone_of(host_zone()) or ZoneInfo("UTC")

    def owner(self) -> PersonId | None:
        """None before there is one."""
        return self._access.owner_id()

    async def home_of(self, person_id: PersonId) -> str:
        """The private chat that unasked words go to; empty where there is none. Raises
        StorageError."""
        chats = await self._access.private_chats(person_id)
        self._private[person_id] = frozenset(chats) | self._private.get(person_id, frozenset())
        return next(iter(chats), "")


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
