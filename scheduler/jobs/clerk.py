"""The clerk of the book: does there what the doors and tools ask for, in values of the core."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from memory.records.errors import AssistantError, Permanent
from memory.records.job_specs import At
from memory.records.jobs import (
    BrokenJob,
    Due,
    Job,
    JobKind,
    JobRun,
    JobStore,
    Missed,
    SetBy,
    SlotState,
    Taken,
    Tellings,
    WhenQuiet,
)
from memory.records.messages import PersonId, RunId
from memory.records.ports import Clock
from memory.records.schedule import (
    NEXT_SHOWN,
    JobWish,
    NoTime,
    TimeAnswer,
    TimeAsked,
    TimeFound,
    TimeRead,
)
from memory.records.zones import HearsOfTimes
from scheduler.jobs.events import CALL
from scheduler.jobs.service import Book, JobRefused, reading_of, time_read, wanted
from scheduler.jobs.zone_moves import Anywhere
from scheduler.notify.quiet_hours import QuietHours, quiet_hours
from scheduler.timetext.numbers import Answer, Question, Reading, Refusal

MADE_UP = "made up for by hand"
LEFT_OUT = "left out by hand"

RUNS_SEEN = 200
"""Of a job, the newest: what somebody is asked about lies among them."""


FORETOLD_S = 0.3
"""An estimate that takes longer is left out."""


class Clerk:
    """Implements `memory.records.schedule.JobBook` over the book."""

    hears: HearsOfTimes | None = None
    """Set once, before the first time is read."""
    foretold: Callable[[Job], Awaitable[str]] | None = None
    """Says what a job takes, in a line; set once."""
    foretold_s = FORETOLD_S

    def __init__(
        self,
        book: Book,
        store: JobStore,
        tellings: Tellings,
        zone: Callable[[PersonId], ZoneInfo],
        *,
        clock: Clock,
        run_now: Callable[[Job], Awaitable[Taken | None]],
    ) -> None:
        """`run_now` is that of the timetable."""
        self._book = book
        self._store = store
        self._tellings = tellings
        self._zone = zone
        self._clock = clock
        self._run_now = run_now
        self._one_at_a_time = asyncio.Lock()
        self._anywhere = Anywhere()

    # --- times --------------------------------------------------------------------------------

    def zone(self, person_id: PersonId) -> ZoneInfo:
        """The clock on this person's wall."""
        return self._zone(person_id)

    def read(self, person_id: PersonId, text: str) -> TimeAnswer:
        """How a time is read now."""
        answer = _answer(self._book.read(person_id, text))
        if self._is_assumed(person_id):
            from scheduler.timetext.parse import read

            now = self._clock.now()
            self._anywhere.note(
                answer, self._zone(person_id), lambda zone: _answer(read(text, now=now, zone=zone))
            )
        return answer

    def find_time(self, person_id: PersonId, sentence: str) -> TimeFound | None:
        """The time in a sentence; None where it names none."""
        # Its rules take 50 ms to compile: not before a sentence is read.
        from scheduler.timetext.find import find

        now = self._clock.now()
        phrase = find(sentence, now=now, zone=self._zone(person_id))
        if phrase is None:
            return None
        answer = _answer(phrase.answer)
        if self._is_assumed(person_id):

            def again(zone: ZoneInfo) -> TimeAnswer:
                other = find(sentence, now=now, zone=zone)
                return NoTime(why="") if other is None else _answer(other.answer)

            self._anywhere.note(answer, self._zone(person_id), again)
        return TimeFound(answer=answer, rest=phrase.rest)

    def is_anywhere(self, time: TimeRead) -> bool:
        """Whether a time that was read for somebody without a zone is the same in every one."""
        return time in self._anywhere

    def _is_assumed(self, person_id: PersonId) -> bool:
        return self.hears is not None and self.hears.is_assumed(person_id)

    def due(self, job: Job, *, n: int = NEXT_SHOWN) -> Sequence[Due]:
        """The next due times of a kept job, as often as it still runs."""
        new = job.new
        left = n if new.max_runs is None else min(n, max(new.max_runs - job.runs, 1))
        found = self._book.next_runs(job, n=n)[:left]
        return [one for one in found if new.expires_ms is None or one.at_ms < new.expires_ms]

    def once_resumed(self, job: Job) -> Due | None:
        """When a job that stands still would run next if it were resumed now."""
        return self._book.once_resumed(job)

    # --- beforehand ---------------------------------------------------------------------------

    async def foretell(self, job: JobWish | Job) -> str:
        """What it will take: a person is waiting for the question, so only what is told soon."""
        if self.foretold is None:
            return ""
        try:
            kept = job if isinstance(job, Job) else self._book.preview(wanted(job))
            async with asyncio.timeout(self.foretold_s):
                return await self.foretold(kept)
        except (AssistantError, TimeoutError):
            return ""

    # --- keeping ------------------------------------------------------------------------------

    async def add(self, wish: JobWish) -> Job:
        """Keeps a job, once for each call. Raises JobRefused."""
        async with self._one_at_a_time:
            job = await self._made_by(wish.person_id, wish.run_id)
            if job is None:
                job = await self._book.add(wanted(wish))
        return await self._told(job, wish.time)

    async def _told(self, job: Job, time: TimeRead) -> Job:
        is_of_event = (job.new.run_id or "").startswith(CALL)  # and goes with it
        if self.hears is not None and not is_of_event:
            await self.hears.kept(job, anywhere=time in self._anywhere)
        return job

    async def _made_by(self, person_id: PersonId, call: RunId | None) -> Job | None:
        if call is None:
            return None
        kept = await self._store.kept(person_id)
        return next((job for job in kept if job.new.run_id == call), None)

    # --- looking ------------------------------------------------------------------------------

    async def of(self, person_id: PersonId) -> Sequence[Job]:
        """The jobs of a person, those that are over left out."""
        return await self._book.of(person_id)

    async def broken(self, person_id: PersonId) -> Sequence[BrokenJob]:
        """Those of a person that cannot be read."""
        return [one for one in await self._store.broken() if one.person_id == person_id]

    async def find(self, person_id: PersonId, name: str) -> Job:
        """The job `j12` of a person. Raises JobRefused."""
        return await self._book.find(person_id, name)

    async def get(self, job_id: int) -> Job | None:
        """One, whoever it belongs to."""
        return await self._store.get(job_id)

    async def runs(self, job: Job, *, limit: int) -> Sequence[JobRun]:
        """Its newest runs first."""
        return await self._book.runs(job, limit=limit)

    # --- changing -----------------------------------------------------------------------------

    async def pause(self, job: Job) -> Job:
        """Stops it until it is resumed. Raises JobRefused."""
        _require_by_hand(job, "stopped")
        return await self._book.pause(job)

    async def resume(self, job: Job) -> Job:
        """Lets it go on from now. Raises JobRefused for one that is over."""
        return await self._book.resume(job)

    async def move(self, job: Job, time: TimeRead) -> Job:
        """Gives it other times. Raises JobRefused."""
        _require_by_hand(job, "moved")
        if job.new.nag_s is not None and not isinstance(time.when, At):
            raise JobRefused("Only what is due once can be repeated until it is done.")
        return await self._told(await self._book.move(job, reading_of(time)), time)

    async def reword(self, job: Job, text: str, *, outside: bool = False) -> Job:
        """Gives it other words. Raises JobRefused."""
        _require_by_hand(job, "changed")
        if job.new.kind is JobKind.TOOL:
            raise JobRefused(f"{job.key} calls a tool and has no words of its own.")
        return await self._book.reword(job, text, outside=outside)

    async def rule(self, job: Job, *, missed: Missed | None, quiet: WhenQuiet | None) -> Job:
        """Gives it other rules; what is None stays. Raises JobRefused."""
        _require_by_hand(job, "changed")
        return await self._book.rule(job, missed=missed, quiet=quiet)

    async def remove(self, job: Job) -> None:
        """Drops it with its history. Raises JobRefused."""
        _require_by_hand(job, "removed")
        await self._book.remove(job)

    async def run(self, job: Job) -> None:
        """Runs it now, beside its times. Raises AssistantError."""
        if await self._run_now(job) is None:
            raise JobRefused(f"{job.key} was begun this very moment already.")

    async def snooze(self, job: Job, until: datetime, *, key: str) -> Job:
        """A reminder once more, later. What runs again and again gets a job of its own for that:
        one for each key."""
        if isinstance(job.new.when, At):
            return await self._book.snooze(job, until)
        async with self._one_at_a_time:
            call = RunId(key)
            if (made := await self._made_by(job.new.person_id, call)) is not None:
                return made
            named = replace(job, new=replace(job.new, run_id=call))
            return await self._book.snooze(named, until)

    async def done(self, job: Job) -> Job:
        """A reminder is seen to."""
        return await self._book.done(job)

    async def settle(self, job: Job, slot: str, *, make_up: bool) -> bool:
        """Answers for a due time that was asked about. The answer is written first: of a run that a
        kill kept from beginning, the press that comes again begins it."""
        async with self._one_at_a_time:
            runs = await self._store.runs(job.id, limit=RUNS_SEEN)
            asked = next((run for run in runs if run.due.slot == slot), None)
            if asked is None:
                return False
            note = MADE_UP if make_up else LEFT_OUT
            if asked.state is SlotState.ASKED:
                await self._store.end(job.id, slot, SlotState.SKIPPED, note=note)
            elif not (make_up and asked.note == MADE_UP and not _ran_after(asked, runs)):
                return False
            if make_up:
                await self._run_now(job)
            return True

    # --- quiet hours --------------------------------------------------------------------------

    async def quiet_hours(self, person_id: PersonId) -> str:
        """Such as `22:00-07:00`; empty: there are none."""
        found = await self._tellings.quiet_hours(person_id)
        return "" if found is None else str(QuietHours(from_minute=found[0], to_minute=found[1]))

    async def set_quiet_hours(self, person_id: PersonId, text: str) -> str:
        """Sets them; an empty text drops them. Raises Permanent for what is no span of a day."""
        if not text:
            await self._tellings.set_quiet_hours(person_id, None)
            return ""
        hours = quiet_hours(text)
        if hours is None:
            raise Permanent(
                "Quiet hours are two times of the day, such as 22:00-07:00, that are not the same."
            )
        await self._tellings.set_quiet_hours(person_id, (hours.from_minute, hours.to_minute))
        return str(hours)


def _require_by_hand(job: Job, done: str) -> None:
    """What the settings or a skill want would come again. Raises JobRefused."""
    if job.new.kind is JobKind.HEARTBEAT:
        raise JobRefused(f"The heartbeat cannot be {done} so: `/heartbeat` on, off, now or why.")
    if job.new.set_by is SetBy.SKILL and done != "stopped":
        skill = job.new.what.skill
        raise JobRefused(
            f"{job.key} runs by the schedule of the skill {skill}, so it cannot be {done} here: "
            f"`hearthbot skills disable {skill}` ends it."
        )


def _ran_after(asked: JobRun, runs: Sequence[JobRun]) -> bool:
    """Whether something was run by hand since somebody answered."""
    ended_ms = asked.ended_ms or 0
    return any(run.due.slot.startswith("now ") and run.taken_ms >= ended_ms for run in runs)


def _answer(answer: Answer) -> TimeAnswer:
    match answer:
        case Reading():
            return time_read(answer)
        case Question(text=text, options=options):
            return TimeAsked(text=text, options=tuple(map(time_read, options)))
        case Refusal(why=why):
            return NoTime(why=why)
