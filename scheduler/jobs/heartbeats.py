"""Heartbeats: the jobs that look at HEARTBEAT.md, one for each agent that has one.

They belong to the owner, and are as the settings and the owner's switch want them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta

import structlog

from memory.records.jobs import (
    OPERATOR,
    Asker,
    Every,
    Job,
    JobKind,
    RecurrenceUnit,
    SetBy,
    Taken,
    What,
)
from memory.records.messages import DEFAULT_AGENT, PersonId
from memory.records.ports import Clock
from memory.records.schedule import HeartbeatRun
from memory.stores.jobs import SqliteJobs
from memory.stores.schedule import SqliteHeartbeats, SqliteSwitches
from scheduler.clock.misfire import first_due
from scheduler.jobs.rules import BY_HAND, HEARTBEAT
from scheduler.jobs.service import JobService
from scheduler.notify.delivery import People

log = structlog.get_logger()

OFF_BY_HAND, OFF_BY_SETTINGS = "switched off by hand", "off in the settings"


class HeartbeatService:
    """Keeps the heartbeats and what came of them. Raises StorageError."""

    def __init__(
        self,
        jobs: JobService,
        store: SqliteJobs,
        beats: SqliteHeartbeats,
        switches: SqliteSwitches,
        people: People,
        *,
        clock: Clock,
        minutes: Mapping[str, int],
        deliver_to: str = "",
    ) -> None:
        """`minutes` are those between two looks, by agents that have any; what is found goes to
        `deliver_to`, else to the owner's private chat."""
        self.minutes = minutes
        self._jobs = jobs
        self._store = store
        self._beats = beats
        self._switches = switches
        self._people = people
        self._clock = clock
        self._deliver_to = deliver_to
        self._ensuring = asyncio.Lock()

    async def ensure(self) -> None:
        """Keep the jobs as the settings and the switch want them."""
        async with self._ensuring:
            beats = [job for job in await self._store.kept() if job.kind is JobKind.HEARTBEAT]
            by_agent = {job.agent: job for job in beats}
            owner, is_on = self._people.owner(), await self.is_on() is not False
            for agent in dict.fromkeys([*self.minutes, *by_agent]):
                found, minutes = by_agent.get(agent), self.minutes.get(agent, 0)
                if owner is None or not minutes or not is_on:
                    if found is not None and found.enabled:
                        why = OFF_BY_HAND if minutes else OFF_BY_SETTINGS
                        await self._jobs.pause(found.key, by=OPERATOR, why=why)
                elif target := self._deliver_to or await self._people.home_of(owner):
                    await self._keep(found, self._wanted(agent, owner, target))

    def _wanted(self, agent: str, owner: PersonId, target: str) -> Job:
        minutes = self.minutes[agent]
        start = self._clock.now() + timedelta(minutes=minutes)
        zone = self._people.zone(owner).key
        return Job(
            name=HEARTBEAT if agent == DEFAULT_AGENT else f"{HEARTBEAT} {agent}",
            agent=agent,
            person_id=owner,
            kind=JobKind.HEARTBEAT,
            what=What(),
            when=Every(count=minutes, unit=RecurrenceUnit.MINUTE, start=start, zone=zone),
            deliver_to=target,
            set_by=SetBy.BOT,
            missed_within_s=minutes * 60,
        )

    async def _keep(self, found: Job | None, new: Job) -> None:
        """Make the job what is wanted; when it began is no difference."""
        first = first_due(new.when, after=self._clock.now())
        if found is None:
            if await self._store.add(new, first) is None:
                log.error("heartbeat.name_taken", job=new.name, person=new.person_id)
            return
        wishes = [
            (job.missed_within_s, job.when.zone, job.deliver_to, job.person_id)
            for job in (found, new)
        ]
        if wishes[0] != wishes[1] or found.paused in {OFF_BY_HAND, OFF_BY_SETTINGS}:
            # A job of its own: what the ledger holds was run at other times, or told elsewhere.
            await self._store.remove(found.id)
            made = await self._store.add(new, first)
            if made is not None and found.paused == BY_HAND:
                await self._jobs.pause(made.key, by=OPERATOR)

    async def of(self, person_id: PersonId, agent: str) -> Job | None:
        """Return the job of an agent; made now where it is missing and can be: the chat to report
        to may be known since a moment."""
        found = await self._of(person_id, agent)
        if found is None and agent in self.minutes:
            await self.ensure()
            found = await self._of(person_id, agent)
        return found

    async def _of(self, person_id: PersonId, agent: str) -> Job | None:
        jobs = await self._jobs.of(person_id)
        beats = (job for job in jobs if job.kind is JobKind.HEARTBEAT)
        return next((job for job in beats if job.agent == agent), None)

    async def is_on(self) -> bool | None:
        """Return how it was set by hand; None: it was not, so the settings say."""
        return await self._switches.is_on(HEARTBEAT)

    async def set_on(self, person_id: PersonId, is_on: bool) -> None:
        """Switch all of them, beyond a restart; what had kept failing goes on."""
        await self._switches.set_on(HEARTBEAT, is_on)
        await self.ensure()
        for agent in self.minutes if is_on else ():
            job = await self._of(person_id, agent)
            if job is not None and not job.enabled:
                await self._jobs.resume(job.key, by=Asker(person_id=person_id))
        log.info("heartbeat.set", is_on=is_on, person=person_id)

    async def run_now(self, job: Job) -> Taken:
        """Look at once. Raise JobRefused, NeedsBot, and what keeps it from running."""
        return await self._jobs.run_now(job.key, by=Asker(person_id=job.person_id))

    async def beat(self, agent: str, outcome: str, why: str) -> None:
        """Keep what came of a heartbeat."""
        log.info("heartbeat", agent=agent, outcome=outcome)
        await self._beats.beat(agent, outcome, why)

    async def last(self, agent: str, n: int) -> Sequence[HeartbeatRun]:
        """Return the last heartbeats of an agent, the newest first."""
        return await self._beats.last(agent, n)
