"""The book of jobs: what people, and models in their name, may do with them.

One place that checks a job before it is kept, whoever asks: a command, a tool, the command line.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from memory.records.errors import Permanent
from memory.records.job_specs import At, When
from memory.records.jobs import (
    Due,
    Job,
    JobKind,
    JobRun,
    JobStore,
    Missed,
    NewJob,
    SetBy,
    What,
    WhenQuiet,
)
from memory.records.messages import PersonId, Role, RunId
from memory.records.ports import Clock
from memory.records.schedule import JobWish, TimeRead, due_words
from scheduler.clock.cron import slot_of
from scheduler.clock.misfire import first_due, is_over, just_after
from scheduler.clock.timetable import upcoming
from scheduler.kinds.message import Hearing
from scheduler.timetext.numbers import Answer, Question, Reading, Refusal

NAME_CHARS_MAX = 80
TEXT_CHARS_MAX = 4_000
JOBS_MAX = 500
"""Of one person, those that are over aside."""

EVERY_S_MIN = 5 * 60
"""The shortest step between two runs of a job that asks a model or calls a tool."""

PACE_LOOKED_AT = 60
"""So many of the next due times are compared for that."""

NAG_S_MIN = 60
"""The shortest pause between two tellings of a reminder."""

NAGS_ONCE = "Only what is due once can be repeated until it is done."

BY_HAND = "by hand"
"""Why a job stands still that somebody paused."""

HEARTBEAT = "heartbeat"
"""The name of the job that looks at HEARTBEAT.md: no other has it."""

OF_SKILLS = "skill:"
"""How the names of the jobs of skills begin, and of no other."""

CRON_LATE_S = 12 * 3_600
"""How late what runs again and again is made up for (SPEC §11)."""


class JobRefused(Permanent):
    """A job cannot be kept, or not be changed so; with what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A job that somebody wants. `reading` is when, as it was read and shown. `name` empty: one is
    made of the text."""

    person_id: PersonId
    kind: JobKind
    what: What
    reading: Reading
    deliver_to: str
    name: str = ""
    set_by: SetBy = SetBy.PERSON
    urgent: bool = False
    nag_s: int | None = None
    missed: Missed | None = None
    quiet: WhenQuiet = WhenQuiet.DEFER
    run_id: RunId | None = None


def wanted(wish: JobWish) -> Wanted:
    """What a chat or the command line wishes, as the book keeps it."""
    return Wanted(
        person_id=wish.person_id,
        kind=wish.kind,
        what=wish.what,
        reading=reading_of(wish.time),
        deliver_to=wish.deliver_to,
        name=wish.name,
        set_by=wish.set_by,
        urgent=wish.urgent,
        nag_s=wish.nag_s,
        missed=wish.missed,
        quiet=wish.quiet,
        run_id=wish.run_id,
    )


def time_read(reading: Reading) -> TimeRead:
    """A reading, as it is shown; its next due times included."""
    return TimeRead(
        when=reading.when,
        sentence=reading.sentence,
        next=tuple(slot.at for slot in reading.next),
        until=reading.until,
        runs_max=reading.runs_max,
    )


def reading_of(time: TimeRead) -> Reading:
    """The reading of a time that was shown."""
    return Reading(when=time.when, sentence=time.sentence, until=time.until, runs_max=time.runs_max)


class Book:
    """Reads times, keeps jobs, changes them. Raises StorageError."""

    def __init__(
        self,
        store: JobStore,
        hearing: Hearing,
        zone: Callable[[PersonId], ZoneInfo],
        *,
        clock: Clock,
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """`changed` is told after each change: the alarm is set anew."""
        self._store = store
        self._hearing = hearing
        self._zone = zone
        self._clock = clock
        self._changed = changed

    # --- reading --------------------------------------------------------------------------------

    def read(self, person_id: PersonId, text: str) -> Answer:
        """How a time is read now, on the wall of this person."""
        # Its rules take 50 ms to compile: not before the first time is read.
        from scheduler.timetext.parse import read

        return read(text, now=self._clock.now(), zone=self._zone(person_id))

    def read_or_refuse(self, person_id: PersonId, text: str) -> Reading:
        """The reading. Raises JobRefused with what is to be asked, or why it is no time."""
        match self.read(person_id, text):
            case Reading() as reading:
                return reading
            case Question() as question:
                raise JobRefused(_asked(question, self._zone(person_id)))
            case Refusal(why=why):
                raise JobRefused(why)

    def next_runs(self, job: Job, *, n: int = 3) -> Sequence[Due]:
        """The next due times of a job, the one that is set first."""
        if job.next is None or not job.enabled:
            return ()
        after = just_after(job.next.at_ms)
        return (job.next, *upcoming(job.new.when, after=after, n=n - 1))

    # --- keeping --------------------------------------------------------------------------------

    async def require_free(self, person_id: PersonId, name: str, *, but: int | None = None) -> None:
        """For who counts on exactly this name, apart from the job with the id `but`. Raises
        JobRefused with the job that has it."""
        named = _named(name)
        mine = [job for job in await self._store.kept(person_id) if job.id != but]
        has_it = next((j for j in mine if j.new.name.casefold() == named.casefold()), None)
        if has_it is not None:
            state = _standing(has_it, self._zone(person_id))
            raise JobRefused(
                f"There is a job called {named!r} already: {has_it.key}, {state}. Nothing was "
                f"changed. `/job {has_it.key}` shows it, `/job {has_it.key} remove` drops it."
            )
        if _free_name(named, {HEARTBEAT}) != named:
            raise JobRefused(f"No job of yours can be called {named!r}: I use that name myself.")

    async def add(self, wanted: Wanted) -> Job:
        """Keeps a job; one whose name is taken gets a number behind it. Raises JobRefused."""
        new = self._checked(wanted)
        mine = await self._store.kept(new.person_id)
        if sum(one.next is not None for one in mine) >= JOBS_MAX:
            raise JobRefused(f"This person has {JOBS_MAX} jobs already: remove some first.")
        first = first_due(new.when, after=self._clock.now())
        if first is None:
            raise JobRefused("That time is over.")
        taken = {one.new.name.casefold() for one in mine}
        if new.kind is not JobKind.HEARTBEAT:
            taken.add(HEARTBEAT)
        job = await self._store.add(replace(new, name=_free_name(new.name, taken)), first)
        if job is None:
            raise JobRefused(f"There is a job called {new.name!r} already.")
        await self._changed()
        return job

    def preview(self, wanted: Wanted) -> Job:
        """The job as it would be kept. Raises JobRefused."""
        new = self._checked(wanted)
        return Job(id=0, new=new, next=first_due(new.when, after=self._clock.now()), enabled=True)

    def _checked(self, wanted: Wanted) -> NewJob:
        person = self._hearing.person(wanted.person_id)
        if person is None:
            raise JobRefused("Nobody is known by this id.")
        if person.role is Role.GUEST:
            raise JobRefused("Guests have no jobs of their own: the owner can make you a member.")
        if not self._hearing.may_hear(wanted.person_id, wanted.deliver_to):
            raise JobRefused(f"{wanted.deliver_to} is no chat of this person.")
        text = wanted.what.text.strip()
        if wanted.kind in {JobKind.MESSAGE, JobKind.AGENT} and not text:
            raise JobRefused("A job needs words: what is to be said, or done.")
        if len(text) > TEXT_CHARS_MAX:
            raise JobRefused(f"The words of a job have at most {TEXT_CHARS_MAX:,} characters.")
        when, reading = wanted.reading.when, wanted.reading
        if wanted.nag_s is not None and not isinstance(when, At):
            raise JobRefused(NAGS_ONCE)
        if wanted.nag_s is not None and wanted.nag_s < NAG_S_MIN:
            raise JobRefused("A reminder is repeated after a minute at the earliest.")
        self._require_pace(wanted.kind, when)
        return NewJob(
            name=_named(wanted.name or text or wanted.what.skill or wanted.what.tool),
            person_id=wanted.person_id,
            kind=wanted.kind,
            what=wanted.what,
            when=when,
            deliver_to=wanted.deliver_to,
            missed=wanted.missed or Missed.ONCE,
            missed_within_s=made_up_within_s(when, wanted.missed or Missed.ONCE),
            urgent=wanted.urgent,
            quiet=wanted.quiet,
            set_by=wanted.set_by,
            nag_s=wanted.nag_s,
            max_runs=reading.runs_max,
            expires_ms=None if reading.until is None else _ms(reading.until) + 1,
            run_id=wanted.run_id,
        )

    def _require_pace(self, kind: JobKind, when: When) -> None:
        """However its times are written. Raises JobRefused, ZoneUnknown, CronWrong."""
        if kind is JobKind.MESSAGE:
            return
        dues = upcoming(when, after=self._clock.now(), n=PACE_LOOKED_AT)
        if any(late.at_ms - early.at_ms < EVERY_S_MIN * 1000 for early, late in pairwise(dues)):
            raise JobRefused("What asks a model or calls a tool runs every 5 minutes at most.")

    # --- looking and changing -----------------------------------------------------------------

    async def of(self, person_id: PersonId | None) -> Sequence[Job]:
        """The jobs of a person (or all), those that are over left out."""
        jobs = await self._store.kept(person_id)
        return [job for job in jobs if job.next is not None or job.paused]

    async def find(self, person_id: PersonId | None, name: str) -> Job:
        """The job `j12`, or the one whose name begins so. Raises JobRefused."""
        jobs = await self._store.kept(person_id)
        wanted = name.strip().casefold()
        exact = [job for job in jobs if wanted in {job.key, str(job.id), job.new.name.casefold()}]
        found = exact or [job for job in jobs if job.new.name.casefold().startswith(wanted)]
        if len(found) == 1 and wanted:
            return found[0]
        if not found or not wanted:
            raise JobRefused(f"There is no job {name.strip()[:60]!r}; `/jobs` lists them.")
        several = ", ".join(f"{job.key} ({job.new.name})" for job in found[:5])
        raise JobRefused(f"Several jobs begin so: {several}. Name one by its key.")

    async def runs(self, job: Job, *, limit: int = 10) -> Sequence[JobRun]:
        """Its newest runs."""
        return await self._store.runs(job.id, limit=limit)

    async def pause(self, job: Job, *, why: str = BY_HAND) -> Job:
        """Stops it until it is resumed."""
        return await self._put(replace(job, enabled=False, paused=why))

    async def resume(self, job: Job) -> Job:
        """Lets it go on from now. Raises JobRefused for one that is over."""
        if job.new.max_runs is not None and job.runs >= job.new.max_runs:
            raise JobRefused(f"{job.key} is over: it ran {job.runs} times, as often as wanted.")
        next_due = self._next_of(job)
        if next_due is None:
            raise JobRefused(f"{job.key} is over: its time was once.")
        if is_over(job, next_due):
            raise JobRefused(f"{job.key} is over: the day until which it was to run has passed.")
        fresh = replace(job, enabled=True, paused="", failures=0, not_before_ms=0, next=next_due)
        return await self._put(fresh)

    def once_resumed(self, job: Job) -> Due | None:
        """When a job that stands still would run next if it were resumed now; None: it is over, it
        does not stand still, or its times cannot be told, which resuming it says."""
        if job.enabled:
            return None
        try:
            due = self._next_of(job)
        except Permanent:
            return None
        ran_out = job.new.max_runs is not None and job.runs >= job.new.max_runs
        return None if due is None or ran_out or is_over(job, due) else due

    def _next_of(self, job: Job) -> Due | None:
        """When it is due next, from now. What is due once and stood still over its time, or failed
        and was stopped, is due at once."""
        now = self._clock.now()
        if not isinstance(job.new.when, At):
            return first_due(job.new.when, after=now)
        if job.next is not None and job.next.at_ms > _ms(now):
            return job.next
        if job.next is None and not job.paused:
            return None
        slot = slot_of(job.new.when.moment, ZoneInfo(job.new.when.zone)).local
        return Due(slot=f"{slot} resumed {now.astimezone(UTC):%Y-%m-%dT%H:%M:%S}", at_ms=_ms(now))

    async def move(self, job: Job, reading: Reading) -> Job:
        """Gives it other times; its runs and failures are counted anew. Raises JobRefused."""
        self._require_pace(job.new.kind, reading.when)
        if job.new.nag_s is not None and not isinstance(reading.when, At):
            raise JobRefused(NAGS_ONCE)
        next_due = first_due(reading.when, after=self._clock.now())
        if next_due is None:
            raise JobRefused("That time is over.")
        expires = None if reading.until is None else _ms(reading.until) + 1
        new = replace(
            job.new,
            when=reading.when,
            missed_within_s=made_up_within_s(reading.when, job.new.missed),
            max_runs=reading.runs_max,
            expires_ms=expires,
            enabled=True,
        )
        moved = replace(
            job, new=new, next=next_due, enabled=True, paused="", failures=0, not_before_ms=0
        )
        return await self._put(moved, anew=True)

    async def reword(self, job: Job, text: str, *, outside: bool = False) -> Job:
        """Gives it other words; `outside` as in `What`. Raises JobRefused."""
        words = text.strip()
        if not words or len(words) > TEXT_CHARS_MAX:
            raise JobRefused(f"The words of a job have 1 to {TEXT_CHARS_MAX:,} characters.")
        new = replace(job.new, what=replace(job.new.what, text=words, outside=outside))
        return await self._put(replace(job, new=new))

    async def rule(
        self, job: Job, *, name: str = "", missed: Missed | None = None, quiet: WhenQuiet | None
    ) -> Job:
        """Gives it another name or other rules; what is left out stays. Raises JobRefused."""
        named = _named(name) if name else job.new.name
        mine = await self._store.kept(job.new.person_id)
        taken = {one.new.name.casefold() for one in mine if one.id != job.id} | {HEARTBEAT}
        new = replace(
            job.new,
            name=job.new.name if named == job.new.name else _free_name(named, taken),
            missed=missed or job.new.missed,
            quiet=quiet or job.new.quiet,
        )
        if missed is not None:
            new = replace(new, missed_within_s=made_up_within_s(new.when, missed))
        return await self._put(replace(job, new=new))

    async def remove(self, job: Job) -> None:
        """Drops it with its history."""
        await self._store.remove(job.id)
        await self._changed()

    async def snooze(self, job: Job, until: datetime) -> Job:
        """A reminder once more, later; what runs again and again keeps its own times."""
        due = Due(slot=f"later {until.astimezone(UTC):%Y-%m-%dT%H:%M:%S}", at_ms=_ms(until))
        if isinstance(job.new.when, At):
            again = replace(job, enabled=True, paused="", failures=0, not_before_ms=0)
            return await self._put(replace(again, next=due))
        zone = self._zone(job.new.person_id)
        once = replace(
            job.new,
            name=f"{job.new.name} ({due.slot})",
            when=At(moment=until, zone=zone.key),
            missed_within_s=None,
            max_runs=None,
            expires_ms=None,
        )
        added = await self._store.add(once, due)
        await self._changed()
        return added or job

    async def done(self, job: Job) -> Job:
        """A reminder is seen to: it nags no more."""
        if not isinstance(job.new.when, At) or job.next is None:
            return job
        return await self._put(replace(job, next=None, paused="", failures=0, not_before_ms=0))

    async def _put(self, job: Job, *, anew: bool = False) -> Job:
        if not await self._store.put(job, anew=anew):
            raise JobRefused(f"{job.key} is gone.")
        await self._changed()
        return job


def _asked(question: Question, zone: ZoneInfo) -> str:
    options = "; ".join(
        f"{one.sentence} ({one.next[0].at.astimezone(zone):%a %d %b %Y, %H:%M})"
        if one.next
        else one.sentence
        for one in question.options[:4]
    )
    return f"{question.text} {'Choices: ' + options if options else ''}".strip()


def made_up_within_s(when: When, missed: Missed) -> int | None:
    """How late it is made up for: what comes again and again for half a day, unless somebody wants
    all that it missed, or to be asked; what is due once for ever."""
    if isinstance(when, At) or missed in {Missed.ALL, Missed.ASK}:
        return None
    return CRON_LATE_S


def _named(text: str) -> str:
    """A name made of words: one line, not too long."""
    flat = re.sub(r"[^\w\s.,:;!?'’()&/-]", " ", " ".join(text.split()))
    flat = " ".join(flat.split()).strip(" .,:;-")
    if len(flat) > NAME_CHARS_MAX - 20:
        flat = f"{flat[: NAME_CHARS_MAX - 20].rstrip()}…"
    return flat or "job"


def _standing(job: Job, zone: ZoneInfo) -> str:
    if not job.enabled:
        return f"paused: {job.paused or BY_HAND}"
    return "over" if job.next is None else f"next {due_words(job.next, zone)}"


def _free_name(name: str, taken: set[str]) -> str:
    if name.casefold().startswith(OF_SKILLS):
        name = f"{name[: len(OF_SKILLS) - 1]} {name[len(OF_SKILLS) :]}"
    if name.casefold() not in taken:
        return name
    numbers = (f"{name} {n}" for n in range(2, JOBS_MAX + 3))
    return next(one for one in numbers if one.casefold() not in taken)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
