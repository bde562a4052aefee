"""Jobs and events as tools and doors reach them, whether a bot runs or not."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from agent.turn.agents import Bindings
from bot.commands.job_messages import takes_words
from bot.people.access import Access
from bot.people.approvals import is_shared
from bot.people.timezone import zone_of
from bot.people.zone_question import AssumedZones
from bot.settings.schema.settings import Settings
from bot.wiring.memories import person_of
from bot.wiring.options import bindings_of, host_zone
from bot.wiring.spending import Workplace
from memory.database.connection import Database
from memory.records.jobs import Job
from memory.records.messages import DEFAULT_AGENT, Address, PersonId
from memory.records.rows import Person
from memory.stores.approvals import SqliteCards
from memory.stores.events import SqliteEvents
from memory.stores.heartbeats import SqliteBeats, SqliteSwitches
from memory.stores.jobs import SqliteJobs
from memory.stores.notifications import SqliteTellings
from memory.stores.people import SqliteAssumedZones
from scheduler.clock.timetable import Timetable
from scheduler.jobs.events import EventService
from scheduler.jobs.heartbeats import HeartbeatService
from scheduler.jobs.service import JobService
from scheduler.jobs.times import TimeReader
from scheduler.kinds.dry_run import JobDryRuns

# --- chats --------------------------------------------------------------------------------------
#
# Which chats are whose, and who may hear what there: asked by whatever speaks by the clock. Called
# by `bot.wiring.calendar` and `bot.wiring.schedules`.


class Chats:
    """Implements `scheduler.notify.delivery.People`: who is let in, and which chats are whose.
    Looked at each time: people go."""

    def __init__(self, access: Access, bindings: Bindings) -> None:
        self._access = access
        self._bindings = bindings
        self._private: dict[PersonId, frozenset[str]] = {}

    async def load(self) -> None:
        """Reads which chats are whose alone. Raises StorageError."""
        for person in self._access.directory.people:
            chats = await self._access.private_chats(person.id)
            self._private[person.id] = frozenset(chats)

    def person(self, person_id: PersonId) -> Person | None:
        """See People."""
        return person_of(self._access, person_id)

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
        clock, settings = place.clock, place.settings
        self.timetable: Timetable | None = None
        self.dry_runs: JobDryRuns | None = None
        self.chats = Chats(access, bindings_of(settings))
        self.store = SqliteJobs(database)
        self.notifications = SqliteTellings(database)
        self.cards = SqliteCards(database)
        times = TimeReader(self.chats.zone, clock=clock, is_assumed=self._is_assumed)
        self.zones = AssumedZones(
            SqliteAssumedZones(database),
            access,
            zone=host_zone(),
            is_anywhere=lambda time: times.is_anywhere(time.when),
        )
        self.jobs = JobService(
            self.store,
            self.notifications,
            self.chats,
            times,
            clock=clock,
            timetable=lambda: self.timetable,
            estimate=self._estimate,
            assumed=self.zones,
        )
        self.events = EventService(SqliteEvents(database), self.jobs, clock=clock)
        minutes = {name: beat_minutes(settings, name) for name in settings.agents.by_name}
        self.heartbeats = HeartbeatService(
            self.jobs,
            self.store,
            SqliteBeats(database),
            SqliteSwitches(database),
            self.chats,
            clock=clock,
            minutes={name: every for name, every in minutes.items() if every},
            deliver_to=settings.heartbeat.deliver_to,
        )

    def _is_assumed(self, person_id: PersonId) -> bool:
        return self.zones.is_assumed(person_id)

    async def changed(self) -> None:
        """A job was added or changed. Raises StorageError."""
        if self.timetable is not None:
            await self.timetable.changed()

    async def _estimate(self, job: Job) -> str:
        if self.dry_runs is None:
            return ""
        found = await self.dry_runs.estimate(job)
        return "" if found is None else takes_words(job, found)


def beat_minutes(settings: Settings, agent: str) -> int:
    """Minutes between two looks of an agent at its list; 0: none."""
    own = settings.agents.by_name.get(agent)
    minutes = own.heartbeat if own is not None else 0
    if agent != DEFAULT_AGENT:
        return minutes
    return (minutes or settings.heartbeat.every_minutes) if settings.heartbeat.enabled else 0
