"""Skills that run by the clock, as jobs: kept, changed and stopped as the skill library says.

Called at the start and whenever the library may have changed; doing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from agent.skills.skill import Problem, Severity, Skill, SkillSchedule, SkillSet, SkillState
from memory.records.errors import Permanent
from memory.records.jobs import (
    COUNT_MAX,
    At,
    Cron,
    Every,
    Job,
    JobKind,
    MisfirePolicy,
    RecurrenceUnit,
    SetBy,
    SlotState,
    What,
    When,
)
from memory.records.ports import Clock
from memory.stores.jobs import SqliteJobs
from scheduler.clock.misfire import first_due
from scheduler.clock.recurrence import read_cron, wall_moment, zone_named
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


class SkillGone(Permanent):
    """A skill of a job cannot be used."""


class ScheduleWrong(Permanent):
    """A skill's schedule cannot be kept."""


def usable_skill(
    shelf: SkillSet, name: str, states: Sequence[SkillState] = (SkillState.USABLE,)
) -> Skill:
    """Return a skill that a job may follow. Raise SkillGone."""
    skill = shelf.get(name)
    if skill is None:
        raise SkillGone(f"there is no skill {name!r} any more")
    if skill.state not in states:
        raise SkillGone(f"the skill {name} is {skill.state.value}: hearthbot skills show {name}")
    return skill


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

    async def sync(self) -> Sequence[Problem]:
        """Bring the jobs to what the library says; return what is wrong with files of skills. What
        is unchanged keeps its next due time."""
        shelf = await self._shelf()
        if any(not one.skill and one.file == "database" for one in shelf.problems):
            return ()  # What was decided about skills is not known: nothing follows from it.
        mine = {one.name: one for one in await self._store.kept() if _is_ours(one)}
        wanted = {f"{OF_SKILLS}{one.name}": one for one in shelf.skills if one.schedule}
        owner, touched = self._people.owner(), list[str]()
        problems: list[Problem] = []
        for name in dict.fromkeys([*mine, *wanted]):
            job, skill = mine.get(name), wanted.get(name)
            why = "" if job is None or job.person_id == owner else NOT_OWNERS
            if skill is None or not skill.is_used:
                why = why or (GONE if skill is None else STOPPED[skill.state])
            if job is not None and why:
                touched += [name] if await self._stop(job, why) else []
                job = None  # Whoever owns the bot by now gets a job of their own.
            if skill is None or not skill.is_used:
                continue
            try:
                new = await self._wanted(skill, problems)
                if job is not None:
                    is_new = await self._change(job, new)
                elif (first := first_due(new.when, after=self._clock.now())) is not None:
                    is_new = await self._store.add(new, first) is not None
                else:
                    raise ScheduleWrong(OVER)
            except Permanent as error:
                problems.append(_problem(skill, str(error)))
                is_new = job is not None and await self._stop(job, UNPLANNED)
            touched += [name] if is_new else []
        for problem in problems:
            if problem not in self._told:
                log.warning("skill_jobs.problem", skill=problem.skill, problem=problem.text)
        self._told = frozenset(problems)
        if touched:
            log.info("skill_jobs.synced", jobs=touched)
            await self._changed()
        return problems

    async def preview(self, name: str) -> Job:
        """Return the job that a skill is, or would be once it is enabled. Raise ScheduleWrong,
        CronWrong, ZoneUnknown."""
        skill = (await self._shelf()).get(name)
        if skill is None or skill.schedule is None:
            raise ScheduleWrong(f"there is no skill {name[:64]!r} that runs by the clock")
        new = await self._wanted(skill, [])
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

    async def _wanted(self, skill: Skill, problems: list[Problem]) -> Job:
        """Return the job that a skill is to be. Raise Permanent where it cannot be kept; a target
        of others is a problem alone."""
        assert skill.schedule is not None
        owner = self._people.owner()
        if owner is None:
            raise ScheduleWrong("the bot has no owner yet, so nobody would hear")
        when = when_of(skill.schedule, zone=self._people.zone(owner), now=self._clock.now())
        target = skill.schedule.deliver_to
        if target and not self._people.may_hear(owner, target):
            text = f"deliver_to: {target[:80]} is no chat of the owner; it goes to the private one"
            problems.append(replace(_problem(skill, text), severity=Severity.WARNING))
            target = ""
        target = target or await self._people.home_of(owner)
        if not target:
            raise ScheduleWrong("the owner has no private chat yet that its results could go to")
        return Job(
            name=f"{OF_SKILLS}{skill.name}",
            person_id=owner,
            kind=JobKind.SKILL,
            what=What(skill=skill.name),
            when=when,
            deliver_to=target,
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
        minutes = schedule.interval_minutes
        if minutes < INTERVAL_MIN:
            raise ScheduleWrong(
                f"interval_minutes: {minutes} is too often; {INTERVAL_MIN} at least"
            )
        whole_hours = minutes % 60 == 0
        count = minutes // 60 if whole_hours else minutes
        if count > COUNT_MAX:
            raise ScheduleWrong(
                f"interval_minutes: {minutes:,} is too long; for more than a week use 'schedule' "
                "with cron text"
            )
        unit = RecurrenceUnit.HOUR if whole_hours else RecurrenceUnit.MINUTE
        start = (now + timedelta(minutes=minutes)).replace(microsecond=0)
        return Every(count=count, unit=unit, start=start, zone=zone.key)
    try:
        moment = datetime.fromisoformat(schedule.at)
    except ValueError as error:
        raise ScheduleWrong(
            f"at: {schedule.at[:40]!r} is no time in ISO form, such as 2026-12-01T09:00"
        ) from error
    if moment.utcoffset() is None:
        moment = wall_moment(moment, zone)
    return At(moment=moment, zone=zone.key)


def _is_ours(job: Job) -> bool:
    is_named = job.name == f"{OF_SKILLS}{job.what.skill}"
    return job.set_by is SetBy.SKILL and job.kind is JobKind.SKILL and is_named


def _problem(skill: Skill, text: str) -> Problem:
    return Problem(skill=skill.name, file=skill.location, text=text)
