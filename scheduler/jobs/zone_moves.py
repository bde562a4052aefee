"""Jobs and events that go by a zone that was assumed for their person, moved to the clock on the
person's own wall. For `bot.people.zone_question`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import assert_never
from zoneinfo import ZoneInfo

from memory.records.errors import Permanent
from memory.records.jobs import Asker, Job
from memory.records.messages import PersonId
from memory.records.ports import Clock
from memory.records.recurrence import At, Cron, Every, When
from memory.records.schedule import Event, JobChanges, Remind, TimeRead
from memory.records.zones import AssumedTime, AssumedZoneStore, Move, Timed
from scheduler.clock.cron import wall_moment
from scheduler.clock.misfire import first_due
from scheduler.jobs.events import EventService, call_of
from scheduler.jobs.service import JobService
from scheduler.jobs.times import passes


def on_wall(when: When, zone: ZoneInfo) -> When:
    """The same times of the day on the wall of `zone`. Raises LookupError, ValueError or OSError
    where the zone that it has is not known (any more)."""
    here = ZoneInfo(when.zone)
    match when:
        case At():
            return At(moment=rehung(when.moment, here, zone), zone=zone.key)
        case Every():
            if passes(when):
                return when
            return replace(when, start=rehung(when.start, here, zone), zone=zone.key)
        case Cron():
            start = None if when.start is None else rehung(when.start, here, zone)
            return replace(when, start=start, zone=zone.key)
    assert_never(when)


def rehung(moment: datetime, here: ZoneInfo, there: ZoneInfo) -> datetime:
    """When the clock `there` shows what the one `here` shows at an aware moment."""
    return wall_moment(moment.astimezone(here).replace(tzinfo=None, fold=0), there)


def go_alike(one: ZoneInfo, other: ZoneInfo, *, now: datetime) -> bool:
    """Whether two clocks show the same from now on, for a year."""
    days = (now.astimezone(UTC) + timedelta(days=7 * week) for week in range(54))
    return all(day.astimezone(one).utcoffset() == day.astimezone(other).utcoffset() for day in days)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walls:
    """From which clock to which, at an aware moment."""

    here: ZoneInfo
    there: ZoneInfo
    now: datetime


class ZoneMoves:
    """Implements `memory.records.zones.Moves`."""

    def __init__(
        self, store: AssumedZoneStore, jobs: JobService, events: EventService, *, clock: Clock
    ) -> None:
        self._store = store
        self._kept = jobs
        self._noted = events
        self._clock = clock

    async def of(self, person_id: PersonId, zone: tzinfo) -> Sequence[Move]:
        """Shows it for this zone; nothing is changed."""
        jobs = [_of_job(job, walls) for job, walls in await self._jobs(person_id, zone)]
        events = [_of_event(event, walls) for event, walls in await self._events(person_id, zone)]
        return [*jobs, *events]

    async def make(self, person_id: PersonId, zone: tzinfo) -> Sequence[Move]:
        """Moves it. What was moved before, or is gone, is left out: it may be called again."""
        jobs = await self._jobs(person_id, zone)
        events = await self._events(person_id, zone)
        made = [await self._job(job, walls) for job, walls in jobs]
        return [*made, *[await self._event(event, walls) for event, walls in events]]

    # --- which --------------------------------------------------------------------------------

    async def _jobs(self, person_id: PersonId, zone: tzinfo) -> list[tuple[Job, _Walls]]:
        wanted = await self._assumed(person_id, Timed.JOB)
        found = []
        for job in await self._kept.of(person_id) if wanted else ():
            walls = self._walls(wanted.get(job.id), job.when.zone, zone)
            if walls is not None and _would_move(job, walls):
                found.append((job, walls))
        return found

    async def _events(self, person_id: PersonId, zone: tzinfo) -> list[tuple[Event, _Walls]]:
        wanted = await self._assumed(person_id, Timed.EVENT)
        found = []
        for event in await self._noted.ahead(person_id, "") if wanted else ():
            walls = self._walls(wanted.get(event.id), event.zone, zone)
            at = event.at
            if walls is None or at is None or rehung(at, walls.here, walls.there) == at:
                continue
            found.append((event, walls))
        return found

    async def _assumed(self, person_id: PersonId, kind: Timed) -> Mapping[int, AssumedTime]:
        return {one.id: one for one in await self._store.assumed(person_id) if one.kind is kind}

    def _walls(self, time: AssumedTime | None, has: str, zone: tzinfo) -> _Walls | None:
        """None for what is not assumed, or was given another zone since."""
        if time is None or time.zone != has or not isinstance(zone, ZoneInfo):
            return None
        try:
            here = ZoneInfo(has)
        except (LookupError, ValueError, OSError):  # not known on this machine any more
            return None
        return _Walls(here=here, there=zone, now=self._clock.now())

    # --- moving -------------------------------------------------------------------------------

    async def _job(self, job: Job, walls: _Walls) -> Move:
        move = _of_job(job, walls)
        if move.then is None:
            await self._store.settle_one(Timed.JOB, job.id)
            return move
        try:
            await self._hang(job, walls)
        except Permanent as refused:
            return replace(move, refused=str(refused))
        return move

    async def _hang(self, job: Job, walls: _Walls) -> None:
        """What stands still goes on standing still. Raises Permanent."""
        runs_left = None if job.max_runs is None else max(job.max_runs - job.runs, 1)
        until = None
        if job.expires_ms is not None:
            last = datetime.fromtimestamp((job.expires_ms - 1) / 1000, UTC)
            until = rehung(last, walls.here, walls.there)
        when, by = on_wall(job.when, walls.there), Asker(person_id=job.person_id)
        time = TimeRead(when=when, sentence="", until=until, runs_max=runs_left)
        await self._kept.update(job.key, JobChanges(time=time), by=by)
        if not job.enabled:
            await self._kept.pause(job.key, by=by)

    async def _event(self, event: Event, walls: _Walls) -> Move:
        """Its reminders first: a kill in between leaves the event to be moved with the rest."""
        move = _of_event(event, walls)
        if move.then is None:
            await self._store.settle_one(Timed.EVENT, event.id)
            return move
        calls = {call_of(event, remind) for remind in Remind}
        for job in await self._kept.of(event.person_id):
            is_its = job.run_id in calls and job.when.zone == walls.here.key
            if is_its and _would_move(job, walls) and _of_job(job, walls).then is not None:
                await self._hang(job, walls)
        at = move.then
        await self._store.move_event(event.person_id, event.id, at, walls.there.key)
        return move


def _would_move(job: Job, walls: _Walls) -> bool:
    """What was put off comes once more at the moment that was agreed on, whatever the clock."""
    when = job.when
    if not isinstance(when, At):
        return not go_alike(walls.here, walls.there, now=walls.now)
    if job.next is not None and job.next.at_ms != int(when.moment.timestamp() * 1000):
        return False
    return rehung(when.moment, walls.here, walls.there) != when.moment


def _of_job(job: Job, walls: _Walls) -> Move:
    due = first_due(on_wall(job.when, walls.there), after=walls.now)
    then = None if due is None else datetime.fromtimestamp(due.at_ms / 1000, UTC)
    return Move(thing=job, from_zone=walls.here.key, then=then)


def _of_event(event: Event, walls: _Walls) -> Move:
    """The day of one that lasts all day is over at its end."""
    assert event.at is not None, "it has a date"
    moved = rehung(event.at, walls.here, walls.there)
    then = moved if event.all_day or moved > walls.now else None
    return Move(thing=event, from_zone=walls.here.key, then=then)
