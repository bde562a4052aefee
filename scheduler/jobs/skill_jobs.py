"""Skills that run by the clock, as jobs: kept, changed and stopped as the skill library says.

Called at the start and whenever the library may have changed; doing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from agent.skills.skill import Problem, Severity, Skill, SkillSchedule, SkillSet, SkillState
from memory.records.errors import Permanent
from memory.records.jobs import (
    Job,
    JobKind,
    MisfirePolicy,
    SetBy,
    SlotState,
    What,
)
from memory.records.messages import PersonId
from memory.records.ports import Clock
from memory.records.recurrence import COUNT_MAX, At, Cron, Every, RecurrenceUnit, When
from memory.stores.jobs import SqliteJobs
from scheduler.clock.cron import read_cron, wall_moment
from scheduler.clock.misfire import first_due
from scheduler.clock.recurrence import zone_named
from scheduler.jobs.rules import BY_HAND, OF_SKILLS, made_up_within_s
from scheduler.notify.delivery import People

log = structlog.get_logger()

INTERVAL_MIN = 5
"""Minutes between two runs of what asks a model."""

UNTOLD = frozenset({"false", "no", "off", "0", "never", "none"})
"""Values of `notify` by which a result is kept and not told."""

STOPPED = {
    SkillState.QUARANTINED: "its skill waits for approval",
    SkillState.MISSING: "its skill cannot be used on this machine",
    SkillState.OFF: "its skill is off",
}
GONE = "its skill is not there any more"
NOT_OWNERS = "its person is not the owner any more"
UNPLANNED = "the schedule of its skill cannot be used"
OVER = "its time is over; give it another 'at'"
BY_US = frozenset({*STOPPED.values(), GONE, NOT_OWNERS, UNPLANNED})
"""Reasons for which a job stands still until its skill can run again."""


class ScheduleWrong(Permanent):
    """A skill's schedule cannot be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """Names of skills by what was done about their jobs, and what is wrong with their files."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether any job was touched."""
        return bool(self.added or self.changed or self.stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobOwner:
    """The owner, as all jobs need them."""

    person_id: PersonId
    home: str
    zone: ZoneInfo


class SkillJobs:
    """Keeps one job, `skill:NAME`, for each skill with a schedule. Raises StorageError."""

    def __init__(
        self,
        store: SqliteJobs,
        shelf: Callable[[], Awaitable[SkillSet]],
        people: People,
        *,
        clock: Clock,
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """`shelf` gives the skills of this moment; `changed` is told when a job was touched: the
        alarm is set anew."""
        self._store = store
        self._shelf = shelf
        self._people = people
        self._clock = clock
        self._changed = changed
        self._told: frozenset[Problem] = frozenset()

    async def sync(self) -> Synced:
        """Bring the jobs to what the library says. What is unchanged keeps its next due time."""
        shelf = await self._shelf()
        mine = {one.name: one for one in await self._store.kept() if _is_ours(one)}
        if not mine and not any(_runs(skill) for skill in shelf.skills):
            return Synced()
        if any(not one.skill and one.file == "database" for one in shelf.problems):
            return Synced()  # What was decided about skills is not known: nothing follows from it.
        found = await self._synced(shelf, mine)
        for problem in found.problems:
            if problem not in self._told:
                log.warning("skill_jobs.problem", skill=problem.skill, problem=problem.text)
        self._told = frozenset(found.problems)
        if found.is_new:
            log.info("skill_jobs.synced", added=found.added, changed=found.changed)
            await self._changed()
        return found

    async def preview(self, name: str) -> Job:
        """Return the job that a skill is, or would be once it is enabled. Raise ScheduleWrong,
        CronWrong, ZoneUnknown."""
        skill, whose = (await self._shelf()).get(name), await self._whose()
        if skill is None or skill.schedule is None:
            raise ScheduleWrong(f"there is no skill {name[:64]!r} that runs by the clock")
        if whose is None:
            raise ScheduleWrong("the bot has no owner yet, so nobody would hear")
        new = self._wanted(skill, whose, [])
        return replace(new, next=first_due(new.when, after=self._clock.now()))

    async def keep_untold(self) -> int:
        """End what was found by skills whose `notify` is off: the result is kept and not told.

        For right before anything is told; return how many ended so.
        """
        shelf, ended = await self._shelf(), 0
        for run in await self._store.open_runs():
            if run.state is not SlotState.FOUND:
                continue
            job = await self._store.get(run.job_id)
            if job is None or not _is_ours(job):
                continue
            skill = shelf.get(job.what.skill)
            notify = "" if skill is None or skill.schedule is None else skill.schedule.notify
            if notify.strip().casefold() not in UNTOLD:
                continue
            note = "kept, not told: notify is off in its skill"
            ended += await self._store.end(run.job_id, run.due.slot, SlotState.SILENT, note=note)
        return ended

    # --- one after the other ------------------------------------------------------------------

    async def _synced(self, shelf: SkillSet, mine: Mapping[str, Job]) -> Synced:
        added, changed, stopped = [], [], []
        problems: list[Problem] = []
        whose = await self._whose()
        wanted = {f"{OF_SKILLS}{skill.name}": skill for skill in shelf.skills if _runs(skill)}
        for name, job in mine.items():
            why = self._why_not(shelf, job, wanted.get(name), whose)
            if why and await self._stop(job, why):
                stopped.append(job.what.skill)
        for name, skill in wanted.items():
            if whose is None:
                problems.append(_problem(skill, "the bot has no owner yet, so nobody would hear"))
                continue
            try:
                new = self._wanted(skill, whose, problems)
                former = mine.get(name)
                if former is not None and former.person_id == whose.person_id:
                    if await self._change(former, new):
                        changed.append(skill.name)
                else:
                    first = first_due(new.when, after=self._clock.now())
                    if first is None:
                        raise ScheduleWrong(OVER)
                    if await self._store.add(new, first) is not None:
                        added.append(skill.name)
            except Permanent as error:
                problems.append(_problem(skill, str(error)))
                former = mine.get(name)
                if former is not None and await self._stop(former, UNPLANNED):
                    stopped.append(skill.name)
        return Synced(
            added=tuple(added),
            changed=tuple(changed),
            stopped=tuple(stopped),
            problems=tuple(problems),
        )

    async def _whose(self) -> _JobOwner | None:
        person_id = self._people.owner()
        if person_id is None:
            return None
        home = await self._people.home_of(person_id)
        return _JobOwner(person_id=person_id, home=home, zone=self._people.zone(person_id))

    def _why_not(
        self, shelf: SkillSet, job: Job, skill: Skill | None, whose: _JobOwner | None
    ) -> str:
        """Return why a job has to stand still; empty: it has not."""
        if whose is None or job.person_id != whose.person_id:
            return NOT_OWNERS
        if skill is not None:
            return ""
        known = shelf.get(job.what.skill)
        return GONE if known is None or known.schedule is None else STOPPED[known.state]

    async def _stop(self, job: Job, why: str) -> bool:
        if job.next is None or job.paused == why or (not job.enabled and job.paused == BY_HAND):
            return False
        return await self._store.put(replace(job, enabled=False, paused=why))

    async def _change(self, job: Job, new: Job) -> bool:
        """Make a job what its skill says; one that we stopped goes on from now."""
        goes_on = job.paused in BY_US
        when = new.when
        if isinstance(when, Every) and isinstance(job.when, Every):
            when = replace(when, start=job.when.start)  # when an interval began is no difference
        is_moved = when != job.when
        put = replace(
            job,
            when=new.when if is_moved else job.when,
            deliver_to=new.deliver_to,
            missed_within_s=new.missed_within_s,
        )
        if put == job and not goes_on:
            return False
        if is_moved or goes_on:
            first = first_due(put.when, after=self._clock.now())
            if first is None and is_moved:
                raise ScheduleWrong(OVER)
            put = replace(put, next=first)
        if goes_on:
            put = replace(put, enabled=True, paused="", failures=0, not_before_ms=0)
        return await self._store.put(put)

    # --- what a skill wants ---------------------------------------------------------------------

    def _wanted(self, skill: Skill, whose: _JobOwner, problems: list[Problem]) -> Job:
        """Raise Permanent where it cannot be kept; a target of others is a problem alone."""
        assert skill.schedule is not None
        when = when_of(skill.schedule, zone=whose.zone, now=self._clock.now())
        target = skill.schedule.deliver_to
        if target and not self._people.may_hear(whose.person_id, target):
            text = f"deliver_to: {target[:80]} is no chat of the owner; it goes to the private one"
            problems.append(replace(_problem(skill, text), severity=Severity.WARNING))
            target = ""
        if not (target or whose.home):
            raise ScheduleWrong("the owner has no private chat yet that its results could go to")
        return Job(
            name=f"{OF_SKILLS}{skill.name}",
            person_id=whose.person_id,
            kind=JobKind.SKILL,
            what=What(skill=skill.name),
            when=when,
            deliver_to=target or whose.home,
            missed_within_s=made_up_within_s(when, MisfirePolicy.ONCE),
            set_by=SetBy.SKILL,
        )


def when_of(schedule: SkillSchedule, *, zone: ZoneInfo, now: datetime) -> When:
    """Return when a skill runs; `zone` is for one that names none.

    Raise CronWrong, ZoneUnknown, ScheduleWrong.
    """
    zone = zone_named(schedule.timezone) if schedule.timezone else zone
    if schedule.cron:
        return Cron(expression=read_cron(schedule.cron), zone=zone.key)
    if schedule.interval_minutes:
        return _interval(schedule.interval_minutes, zone=zone, now=now)
    try:
        moment = datetime.fromisoformat(schedule.at)
    except ValueError as error:
        raise ScheduleWrong(
            f"at: {schedule.at[:40]!r} is no time in ISO form, such as 2026-12-01T09:00"
        ) from error
    if moment.utcoffset() is None:
        moment = wall_moment(moment, zone)
    return At(moment=moment, zone=zone.key)


def _interval(minutes: int, *, zone: ZoneInfo, now: datetime) -> When:
    if minutes < INTERVAL_MIN:
        raise ScheduleWrong(f"interval_minutes: {minutes} is too often; {INTERVAL_MIN} at least")
    count, unit = (
        (minutes // 60, RecurrenceUnit.HOUR)
        if minutes % 60 == 0
        else (minutes, RecurrenceUnit.MINUTE)
    )
    if count > COUNT_MAX:
        raise ScheduleWrong(
            f"interval_minutes: {minutes:,} is too long; for more than a week use 'schedule' "
            "with cron text"
        )
    start = (now + timedelta(minutes=minutes)).replace(microsecond=0)
    return Every(count=count, unit=unit, start=start, zone=zone.key)


def _runs(skill: Skill) -> bool:
    return skill.schedule is not None and skill.is_used


def _is_ours(job: Job) -> bool:
    is_named = job.name == f"{OF_SKILLS}{job.what.skill}"
    return job.set_by is SetBy.SKILL and job.kind is JobKind.SKILL and is_named


def _problem(skill: Skill, text: str) -> Problem:
    return Problem(skill=skill.name, file=skill.location, text=text)
