"""The job service: what people, models in their name, and the operator may do with jobs.

The one place that says so; slash commands, tools and the command line are faces of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from memory.records.errors import AssistantError, Permanent
from memory.records.jobs import (
    OPERATOR,
    Asker,
    At,
    Due,
    Job,
    JobKind,
    JobList,
    JobRef,
    JobRun,
    JobStatus,
    SlotState,
    Taken,
)
from memory.records.messages import PersonId, Role, RunId
from memory.records.ports import Clock
from memory.records.schedule import NEXT_SHOWN, JobChanges
from memory.stores.jobs import SqliteJobs
from memory.stores.schedule import SqliteTellings
from scheduler.clock.timetable import RUN_NOW, Timetable
from scheduler.jobs.rules import (
    BY_HAND,
    JOBS_MAX,
    NAG_S_MIN,
    TEXT_CHARS_MAX,
    JobRefused,
    NotYours,
    UnknownJob,
    changed,
    free_name,
    going_on,
    is_for,
    later,
    made_up_within_s,
    named,
    next_dues,
    require_change,
    require_due,
    resumed_at,
    state_words,
    to_ms,
    was_moved,
)
from scheduler.jobs.times import TimeReader
from scheduler.notify.delivery import HoursOfDay, People, quiet_hours_of, read_hours

MADE_UP, LEFT_OUT = "made up for by hand", "left out by hand"

RUNS_SEEN = 200
"""Of a job, the newest: what somebody is asked about lies among them."""

ESTIMATE_S_MAX = 0.3
"""A person waits for the question: an estimate that takes longer is left out."""


class NeedsBot(Permanent):
    """Only a running bot can do this."""


async def no_estimate(job: Job) -> str:
    """Where nobody can tell what a job takes."""
    return ""


class JobService:
    """Keeps jobs and changes them. Raises JobRefused with a sentence for a person, StorageError."""

    def __init__(
        self,
        store: SqliteJobs,
        notifications: SqliteTellings,
        people: People,
        times: TimeReader,
        *,
        clock: Clock,
        timetable: Callable[[], Timetable | None],
        estimate: Callable[[Job], Awaitable[str]] = no_estimate,
    ) -> None:
        """Without a `timetable` no bot runs here, and what is kept counts from its next start.
        `estimate` says in a line what a job takes."""
        self.times = times
        self._store = store
        self._notifications = notifications
        self._people = people
        self._clock = clock
        self._timetable = timetable
        self._estimate = estimate
        self._one_at_a_time = asyncio.Lock()

    # --- looking ------------------------------------------------------------------------------

    async def of(self, person_id: PersonId | None) -> Sequence[Job]:
        """Return the jobs of a person (None: all), those that are over left out."""
        jobs = await self._store.kept(person_id)
        return [job for job in jobs if job.next is not None or job.paused]

    async def list(self, *, by: Asker) -> JobList:
        """Return the jobs that may be seen; in a group those that are for it."""
        jobs = [job for job in await self.of(by.person_id) if is_for(job, by)]
        broken = () if by.group else await self._store.broken()
        return JobList(
            jobs=tuple(self.status(job, n=1) for job in jobs),
            broken=tuple(one for one in broken if by.person_id in {None, one.person_id}),
        )

    async def find(self, ref: JobRef, *, by: Asker) -> Job:
        """Return the job `j12`, or the one whose name begins so. Raise UnknownJob."""
        wanted = ref.strip().casefold()
        if (key := re.fullmatch(r"j([0-9]{1,15})", wanted)) is not None:
            one = await self._store.get(int(key[1]))
            found = [one] if one is not None and by.person_id in {None, one.person_id} else []
        else:
            jobs = await self._store.kept(by.person_id) if wanted else ()
            exact = [job for job in jobs if wanted in {str(job.id), job.name.casefold()}]
            found = exact or [job for job in jobs if job.name.casefold().startswith(wanted)]
        if not found:
            raise UnknownJob(f"There is no job {ref.strip()[:60]!r}; `/jobs` lists them.")
        if len(found) > 1:
            several = ", ".join(f"{job.key} ({job.name})" for job in found[:5])
            raise UnknownJob(f"Several jobs begin so: {several}. Name one by its key.")
        if not is_for(found[0], by):
            raise NotYours("That job is not for this group: ask for it in a private chat.")
        return found[0]

    async def get(self, job_id: int, *, by: Asker) -> Job:
        """Return the job of a button. Raise UnknownJob, NotYours."""
        job = await self._store.get(job_id)
        if job is None:
            raise UnknownJob("That job is gone.")
        if by.person_id not in {None, job.person_id}:
            raise NotYours("Only the person whose job this is can answer it.")
        return job

    async def show(self, ref: JobRef, *, by: Asker) -> JobStatus:
        """Return a job with what follows from it now. Raise UnknownJob, NotYours."""
        return self.status(await self.find(ref, by=by))

    async def runs(self, job: Job, *, limit: int = 10) -> Sequence[JobRun]:
        """Return its newest runs first."""
        return await self._store.runs(job.id, limit=limit)

    def status(self, job: Job, *, n: int = NEXT_SHOWN) -> JobStatus:
        """Return what follows from a job now, with `n` due times at most."""
        person, once_resumed = self._people.person(job.person_id), None
        due: Sequence[Due] = ()
        try:
            if job.enabled:
                due = next_dues(job, n=n)
            else:
                once_resumed = resumed_at(job, self._clock.now())
        # Nobody is told an error for a job that they merely look at.
        except JobRefused:  # it is over: resuming says so
            pass
        except Permanent:  # its zone is gone from this machine: the one that is set is known
            due = (job.next,) if job.enabled and job.next else ()
        return JobStatus(
            job=job,
            zone=self.times.zone(job.person_id).key,
            person_name="" if person is None else person.name,
            due=tuple(due),
            once_resumed=once_resumed,
        )

    async def estimate(self, job: Job) -> str:
        """Return what a job (or a draft) will take, in a line; empty where it asks no model, or
        where that cannot be told within a moment."""
        try:
            kept = job if job.id else self.prepare(job)
            async with asyncio.timeout(ESTIMATE_S_MAX):
                return await self._estimate(kept)
        except (AssistantError, TimeoutError):
            return ""

    # --- making -------------------------------------------------------------------------------

    def prepare(self, draft: Job) -> Job:
        """Return a draft as it would be kept: checked, named, with its first due time. Raise
        JobRefused."""
        self.require_member(Asker(person_id=draft.person_id))
        if not self._people.may_hear(draft.person_id, draft.deliver_to):
            raise JobRefused(f"{draft.deliver_to} is no chat of this person.")
        text = draft.what.text.strip()
        if draft.kind in {JobKind.MESSAGE, JobKind.AGENT} and not text:
            raise JobRefused("A job needs words: what is to be said, or done.")
        if len(text) > TEXT_CHARS_MAX:
            raise JobRefused(f"The words of a job have at most {TEXT_CHARS_MAX:,} characters.")
        if draft.nag_s is not None and draft.nag_s < NAG_S_MIN:
            raise JobRefused("A reminder is repeated after a minute at the earliest.")
        return replace(
            draft,
            name=named(draft.name or text or draft.what.skill or draft.what.tool),
            missed_within_s=made_up_within_s(draft.when, draft.missed),
            next=require_due(draft, self._clock.now()),
        )

    async def add(self, draft: Job, *, by: Asker) -> Job:
        """Keep a job, once for each call; one whose name is taken gets a number behind it. Raise
        JobRefused, of the operator's also where the name is taken."""
        if by.person_id not in {None, draft.person_id}:
            raise NotYours("A job is set up by the person whose it is.")
        if by == OPERATOR and draft.name:
            await self.require_free(draft.person_id, draft.name)
        async with self._one_at_a_time:
            job = await self._made_by(draft.person_id, draft.run_id)
            if job is None:
                new = self.prepare(draft)
                mine = await self._store.kept(new.person_id)
                if sum(one.next is not None for one in mine) >= JOBS_MAX:
                    raise JobRefused(f"This person has {JOBS_MAX} jobs already: remove some first.")
                name = free_name(new.name, mine)
                job = await self._store.add(replace(new, name=name), new.next)
                if job is None:
                    raise JobRefused(f"There is a job called {name!r} already.")
                await self._changed()
        return job

    async def owner_chat(self) -> tuple[PersonId, str]:
        """Return the owner and their private chat, for jobs that the operator sets up. Raise
        JobRefused where there is none yet."""
        owner = self._people.owner()
        if owner is None:
            raise JobRefused(
                "The bot has no owner yet: write to it, then hearthbot access approve."
            )
        return owner, await self._people.home_of(owner)

    async def require_free(self, person_id: PersonId, name: str, *, but: int | None = None) -> None:
        """Raise JobRefused where another job than the one with the id `but` has this name, for who
        counts on exactly it."""
        name = named(name)
        mine = [job for job in await self._store.kept(person_id) if job.id != but]
        has_it = next((job for job in mine if job.name.casefold() == name.casefold()), None)
        if has_it is not None:
            state = state_words(has_it, self.times.zone(person_id))
            raise JobRefused(
                f"There is a job called {name!r} already: {has_it.key}, {state}. Nothing was "
                f"changed. `/job {has_it.key}` shows it, `/job {has_it.key} remove` drops it."
            )
        if free_name(name, ()) != name:
            raise JobRefused(f"No job of yours can be called {name!r}: I use that name myself.")

    def require_member(self, by: Asker) -> None:
        """Raise JobRefused for a guest, and for nobody that is known."""
        if by.person_id is None:
            return
        person = self._people.person(by.person_id)
        if person is None:
            raise JobRefused("Nobody is known by this id.")
        if person.role is Role.GUEST:
            raise JobRefused("Guests have no jobs of their own: the owner can make you a member.")

    async def _made_by(self, person_id: PersonId, call: RunId | None) -> Job | None:
        """Return the job that this call made before."""
        if call is None:
            return None
        kept = await self._store.kept(person_id)
        return next((job for job in kept if job.run_id == call), None)

    # --- changing -----------------------------------------------------------------------------

    async def update(self, ref: JobRef, changes: JobChanges, *, by: Asker) -> Job:
        """Change what is named, all of it or nothing. With other times its runs and failures are
        counted anew. Raise UnknownJob, NotYours, JobRefused."""
        self.require_member(by)
        job, others = await self.find(ref, by=by), list[Job]()
        if changes.name:
            if by == OPERATOR:
                await self.require_free(job.person_id, changes.name, but=job.id)
            mine = await self._store.kept(job.person_id)
            others = [one for one in mine if one.id != job.id]
        new = changed(job, changes, by=by, now=self._clock.now(), others=others)
        is_moved = changes.time is not None
        if new != job or is_moved:
            new = await self._put(new, anew=is_moved)
        return new

    async def pause(self, ref: JobRef, *, by: Asker, why: str = BY_HAND) -> Job:
        """Stop the job from running until it is resumed. Raise UnknownJob, NotYours."""
        job = await self.find(ref, by=by)
        require_change(job, "stopped", by)
        return await self._put(replace(job, enabled=False, paused=why))

    async def resume(self, ref: JobRef, *, by: Asker) -> Job:
        """Let the job go on from now, if it stands still. Raise JobRefused for one that is over."""
        job = await self.find(ref, by=by)
        if job.enabled and job.next is not None:
            return job
        return await self._put(going_on(job, resumed_at(job, self._clock.now())))

    async def remove(self, ref: JobRef, *, by: Asker) -> Job:
        """Drop the job with its history; return what it was. Raise UnknownJob, NotYours."""
        self.require_member(by)
        job = await self.find(ref, by=by)
        require_change(job, "removed", by)
        await self._store.remove(job.id)
        await self._changed()
        return job

    async def run_now(self, ref: JobRef, *, by: Asker) -> Taken:
        """Run the job beside its times. Raise NeedsBot, UnknownJob, NotYours."""
        self.require_member(by)
        job = await self.find(ref, by=by)
        taken = await self._run(job)
        if taken is None:
            raise JobRefused(f"{job.key} was not run: it is being run this very moment.")
        return taken

    async def _run(self, job: Job) -> Taken | None:
        if (timetable := self._timetable()) is None:
            raise NeedsBot("No bot is running on this home, and only a running one runs jobs.")
        return await timetable.run_now(job)

    async def _put(self, job: Job, *, anew: bool = False) -> Job:
        if not await self._store.put(job, anew=anew):
            raise UnknownJob(f"{job.key} is gone.")
        await self._changed()
        return job

    async def _changed(self) -> None:
        """Have the alarm set anew."""
        if (timetable := self._timetable()) is not None:
            await timetable.changed()

    # --- reminders and misfires ---------------------------------------------------------------

    async def done(self, job: Job, *, told_s: int | None = None) -> bool:
        """See to a reminder: it nags no more. Return False where it was told for another date
        (`told_s`, epoch seconds) than it has by now: that one stays."""
        if was_moved(job, told_s):
            return False
        if isinstance(job.when, At) and job.next is not None:
            await self._put(replace(job, next=None, paused="", failures=0, not_before_ms=0))
        return True

    async def snooze(
        self, job: Job, delay: str, *, key: str, told_s: int | None = None
    ) -> datetime:
        """Bring a reminder once more, in 10m, 1h or 1d; return when. What runs again and again, or
        was moved since it was told, keeps its times: a job of its own says it once, one for each
        `key`."""
        zone = self.times.zone(job.person_id)
        until = later(self._clock.now(), delay, zone)
        due = Due(slot=f"later {until.astimezone(UTC):%Y-%m-%dT%H:%M:%S}", at_ms=to_ms(until))
        if isinstance(job.when, At) and not was_moved(job, told_s):
            await self._put(going_on(job, due))
            return until
        once = replace(
            job,
            id=0,
            when=At(moment=until, zone=zone.key),
            missed_within_s=None,
            max_runs=None,
            expires_ms=None,
            run_id=RunId(key),
            enabled=True,
        )
        if isinstance(job.when, At):
            await self.add(once, by=Asker(person_id=job.person_id))
            return until
        async with self._one_at_a_time:
            if await self._made_by(job.person_id, once.run_id) is None:
                await self._store.add(replace(once, name=f"{job.name} ({due.slot})"), due)
                await self._changed()
        return until

    async def settle(self, job: Job, slot: str, *, make_up: bool) -> bool:
        """Answer for a misfire that its person was asked about: run it now, or leave it out. Return
        False where that was answered before.

        The answer is written first: of a run that a kill kept from beginning, the press that comes
        again begins it.
        """
        async with self._one_at_a_time:
            runs = await self._store.runs(job.id, limit=RUNS_SEEN)
            asked = next((run for run in runs if run.due.slot == slot), None)
            if asked is None:
                return False
            note = MADE_UP if make_up else LEFT_OUT
            if asked.state is SlotState.ASKED:
                await self._store.end(job.id, slot, SlotState.SKIPPED, note=note)
            else:
                # Whether something was run by hand since somebody answered.
                answered_ms = asked.ended_ms or 0
                has_run = any(
                    run.due.slot.startswith(RUN_NOW) and run.taken_ms >= answered_ms for run in runs
                )
                if has_run or not make_up or asked.note != MADE_UP:
                    return False
            if make_up:
                await self._run(job)
            return True

    # --- quiet hours --------------------------------------------------------------------------

    async def quiet_hours(self, person_id: PersonId) -> HoursOfDay | None:
        """Return those of a person; None: there are none."""
        return await quiet_hours_of(self._notifications, person_id)

    async def set_quiet_hours(self, person_id: PersonId, text: str) -> HoursOfDay | None:
        """Set them as they were written; an empty text drops them. Raise JobRefused for what is no
        span of a day, and where nobody knows the person's zone."""
        if not text:
            await self._notifications.set_quiet_hours(person_id, None)
            return None
        hours = read_hours(text)
        if hours is None:
            raise JobRefused(
                "Quiet hours are two times of the day, such as 22:00-07:00, that are not the same."
            )
        if question := self.times.zone_question(person_id):
            raise JobRefused(f"{question} No quiet hours were set.")
        await self._notifications.set_quiet_hours(person_id, (hours.from_minute, hours.to_minute))
        return hours
