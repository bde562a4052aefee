"""Takes due times as they come: each slot once, whatever restarts, clocks and copies do.

The truth is in the database; APScheduler is an alarm clock and nothing else. The only module that
knows it. Built by `bot.app`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import TracebackType
from typing import Protocol, Self

import structlog

from agent.errors import AssistantError, StorageError
from agent.jobs import At, When
from agent.messages import PersonId
from agent.ports import Clock
from agent.scheduled import Due, Job, JobKind, JobStore, Missed, SlotState, Taken, Taking
from scheduler.firing import slots

log = structlog.get_logger()

LATE_S = 60
"""So late a run may be and still count as on time (case SC-07)."""

LOOK_EVERY_S = 30
"""Pause between two looks, whatever the alarm says: somebody may have set the clock."""

ALARM_AFTER_S = 1.5
"""So long after the start the alarm is set; what is due by then is a second late."""

AT_ONCE = 100
"""Due jobs that are read together."""

MADE_UP_MAX = 24
"""Of a job that makes up for all it missed: so many of the newest."""


class Kind(Protocol):
    """What a kind of job does when it is due: it prepares, and does nothing yet."""

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """How the due time is to be taken; `Taking.next` is set by the timetable. Raises
        AssistantError, with a sentence for the job's owner, where it cannot be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedRun:
    """Due times that passed while nothing ran, and what was done about them. `count` is how many,
    `first` and `last` the first and the last of them."""

    job: Job
    count: int
    first: Due
    last: Due
    done: SlotState


@dataclass(frozen=True, slots=True, kw_only=True)
class Hears:
    """Who hears of what the timetable does. `taken`: something was set going. `missed`: what one
    person missed, once a start. `failed`: a job could not be prepared."""

    taken: Callable[[Job, Taken], None]
    missed: Callable[[PersonId, tuple[MissedRun, ...]], Awaitable[None]]
    failed: Callable[[Job, Due, str], Awaitable[None]]


def first_due(when: When, *, after: datetime) -> Due | None:
    """The first due time later than an aware moment; None when there is none.

    Raises ZoneUnknown, CronWrong.
    """
    return next((_due(one.local, one.at) for one in slots(when, after=after)), None)


class Timetable:
    """An async context manager: inside of it, what is due is taken."""

    def __init__(
        self,
        store: JobStore,
        kinds: Mapping[JobKind, Kind],
        hears: Hears,
        *,
        clock: Clock,
        held: Callable[[], bool] = lambda: False,
    ) -> None:
        """While it is `held` (the owner's pause) nothing is taken; it is made up for later."""
        self._store = store
        self._kinds = dict(kinds)
        self._hears = hears
        self._clock = clock
        self._held = held
        self._alarm: _Alarm | None = None
        self._setting_up: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()
        self._is_troubled = False

    async def __aenter__(self) -> Self:
        """Makes up for what was missed, then looks by itself. Raises StorageError."""
        await self.look()
        self._setting_up = asyncio.create_task(self._set_up(), name="timetable")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._setting_up is not None:
            self._setting_up.cancel()
            await asyncio.wait([self._setting_up])
        if self._alarm is not None:
            self._alarm.stop()
        async with self._looking:
            pass  # what is being taken is taken whole

    async def changed(self) -> None:
        """A job was added or changed: the alarm is set anew. Raises StorageError."""
        next_ms = await self._store.next_ms()
        if next_ms is None or self._alarm is None:
            return
        # By our clock, which may not be the machine's.
        self._alarm.ring_in(max(0.0, next_ms / 1000 - self._clock.now().timestamp()))

    async def look(self) -> int:
        """Takes all that is due now; returns how many due times were taken. Raises StorageError."""
        if self._held():
            return 0
        taken = 0
        missed: dict[PersonId, list[MissedRun]] = {}
        async with self._looking:
            while due := await self._store.due(self._now_ms(), limit=AT_ONCE):
                for job in due:
                    one = await self._seen_to(job)
                    taken += 1
                    if one is not None:
                        missed.setdefault(job.new.person_id, []).append(one)
        for person_id, runs in missed.items():
            await self._hears.missed(person_id, tuple(runs))
        return taken

    async def run_now(self, job: Job) -> Taken | None:
        """Runs a job beside its times; its next due time stays. Raises AssistantError."""
        now = self._clock.now().astimezone(UTC)
        due = Due(slot=f"now {now:%Y-%m-%dT%H:%M:%S.%f}", at_ms=self._now_ms())
        async with self._looking:
            taking = await self._kinds[job.new.kind](job, due, late_s=0)
            taken = await self._store.take(replace(taking, next=job.next))
        if taken is not None:
            self._hears.taken(job, taken)
        return taken

    # --- one job that is due ----------------------------------------------------------------

    async def _seen_to(self, job: Job) -> MissedRun | None:
        """A job whose times cannot be found any more is stopped, and takes no other with it."""
        try:
            return await self._see_to(job)
        except StorageError:
            raise
        except AssistantError as trouble:
            assert job.next is not None, "it is due"
            log.error("job.stopped", job=job.id, why=str(trouble))
            await self._store.failed(
                job.id, failures=job.failures + 1, not_before_ms=0, paused=str(trouble)
            )
            await self._hears.failed(job, job.next, str(trouble))
            return None

    async def _see_to(self, job: Job) -> MissedRun | None:
        assert job.next is not None, "it is due"
        now_ms = self._now_ms()
        if job.new.expires_ms is not None and job.next.at_ms >= job.new.expires_ms:
            await self._store.take(_nothing(job, job.next, next=None, note="the job had expired"))
            return None
        late_s = (now_ms - job.next.at_ms) // 1000
        if late_s <= LATE_S:
            await self._take(job, job.next, late_s=late_s)
            return None
        return await self._make_up(job, now_ms)

    async def _make_up(self, job: Job, now_ms: int) -> MissedRun:
        """What is done about due times that passed, by the job's own rule (SPEC §11)."""
        assert job.next is not None
        passed = self._passed(job, now_ms)
        last = passed[-1]
        late_s = (now_ms - last.at_ms) // 1000
        within = job.new.missed_within_s
        rule = job.new.missed
        if rule is not Missed.SKIP and within is not None and late_s > within:
            rule = Missed.SKIP
        match rule:
            case Missed.SKIP:
                note = f"missed by {late_s} s"
                await self._store.take(
                    _nothing(job, last, next=self._after(job, last, now_ms), note=note)
                )
                done = SlotState.SKIPPED
            case Missed.ASK:
                taking = _nothing(job, last, next=self._after(job, last, now_ms), note="missed")
                await self._store.take(replace(taking, state=SlotState.ASKED, late_s=late_s))
                done = SlotState.ASKED
            case Missed.ALL:
                for due in passed[-MADE_UP_MAX:]:
                    await self._take(job, due, late_s=(now_ms - due.at_ms) // 1000)
                done = SlotState.TAKEN
            case Missed.ONCE:
                await self._take(job, last, late_s=late_s)
                done = SlotState.TAKEN
        return MissedRun(job=job, count=len(passed), first=passed[0], last=last, done=done)

    async def _take(self, job: Job, due: Due, *, late_s: int) -> None:
        next_due = self._after(job, due, self._now_ms())
        try:
            taking = await self._kinds[job.new.kind](job, due, late_s=late_s)
        except StorageError:
            raise
        except AssistantError as trouble:
            await self._not_run(job, due, next_due, str(trouble))
            return
        except Exception:  # a job's run, one of the three places (STYLE §6)
            log.exception("job.failed", job=job.id)
            await self._not_run(job, due, next_due, "an unforeseen error; it is in the log")
            return
        taken = await self._store.take(replace(taking, next=next_due, late_s=late_s))
        if taken is None:
            log.info("job.taken_before", job=job.id, slot=due.slot)
            return
        log.info("job.taken", job=job.id, kind=job.new.kind, slot=due.slot, late_s=late_s)
        self._hears.taken(job, taken)

    async def _not_run(self, job: Job, due: Due, next_due: Due | None, why: str) -> None:
        taking = _nothing(job, due, next=next_due, note=why)
        taken = await self._store.take(replace(taking, state=SlotState.FAILED))
        if taken is not None:
            log.warning("job.not_run", job=job.id, slot=due.slot, why=why)
            await self._hears.failed(job, due, why)

    def _passed(self, job: Job, now_ms: int) -> tuple[Due, ...]:
        """The due times from the next one up to now; one at least. Of thousands the first, and the
        newest ones."""
        assert job.next is not None
        if isinstance(job.new.when, At):
            return (job.next,)
        found = [job.next]
        for one in slots(job.new.when, after=_moment(job.next.at_ms)):
            due = _due(one.local, one.at)
            if due.at_ms > now_ms:
                break
            found.append(due)
            if len(found) > PASSED_MAX:
                del found[1]
        return tuple(found)

    def _after(self, job: Job, due: Due, now_ms: int) -> Due | None:
        """The next due time after this one that is not over yet; never one before it, wherever the
        clock was set to."""
        if job.new.nag_s is not None:
            return _nag(job, due, now_ms)
        if job.new.max_runs is not None and job.runs + 1 >= job.new.max_runs:
            return None
        after = _moment(max(due.at_ms, now_ms))
        found = first_due(job.new.when, after=after)
        if found is None:
            return None
        expires_ms = job.new.expires_ms
        return None if expires_ms is not None and found.at_ms >= expires_ms else found

    # --- looking by itself --------------------------------------------------------------------

    async def _set_up(self) -> None:
        """The library is loaded once the bot has begun to answer: it takes its time."""
        await self._clock.sleep(ALARM_AFTER_S)
        self._alarm = await asyncio.to_thread(_Alarm, self._look_safely)
        self._alarm.start()
        await self._look_safely()

    async def _look_safely(self) -> None:
        """What the alarm calls: trouble with the storage is told once, and the next look tries
        again."""
        try:
            await self.look()
            await self.changed()
        except StorageError as trouble:
            if not self._is_troubled:
                log.error("timetable.storage", why=str(trouble))
            self._is_troubled = True
        else:
            self._is_troubled = False

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


PASSED_MAX = 200

NAGS_MAX = 30
"""So often a reminder is repeated; then nobody seems to be there."""


def _nag(job: Job, due: Due, now_ms: int) -> Due | None:
    """Once more, until somebody says that it is done."""
    assert job.new.nag_s is not None
    if job.runs >= NAGS_MAX:
        return None
    first = due.slot.partition(" again ")[0]
    return Due(slot=f"{first} again {job.runs + 1}", at_ms=now_ms + job.new.nag_s * 1000)


class _Alarm:
    """APScheduler as an alarm clock. Not made before it is needed: to load it takes 70 ms."""

    def __init__(self, ring: Callable[[], Awaitable[None]]) -> None:
        from apscheduler.schedulers.asyncio import (  # type: ignore[import-untyped]
            AsyncIOScheduler,
        )
        from apscheduler.triggers.date import DateTrigger  # type: ignore[import-untyped]
        from apscheduler.triggers.interval import IntervalTrigger  # type: ignore[import-untyped]

        self._ring = ring
        self._at = DateTrigger
        self._every = IntervalTrigger(seconds=LOOK_EVERY_S)
        self._scheduler = AsyncIOScheduler(
            timezone=UTC,
            # Late is better than never, and one look is enough for all that is due.
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def start(self) -> None:
        """Inside of the event loop."""
        self._scheduler.start()
        self._scheduler.add_job(self._ring, self._every)

    def ring_in(self, seconds: float) -> None:
        """Once, in place of the time that was set before."""
        at = datetime.now(UTC) + timedelta(seconds=min(seconds, LOOK_EVERY_S))
        self._scheduler.add_job(self._ring, self._at(at), id="next", replace_existing=True)

    def stop(self) -> None:
        """What rings is not waited for."""
        self._scheduler.shutdown(wait=False)


def _nothing(job: Job, due: Due, *, next: Due | None, note: str) -> Taking:
    return Taking(job_id=job.id, due=due, next=next, state=SlotState.SKIPPED, note=note)


def _due(slot: str, at: datetime) -> Due:
    return Due(slot=slot, at_ms=int(at.timestamp() * 1000))


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def upcoming(when: When, *, after: datetime, n: int) -> tuple[Due, ...]:
    """The next `n` due times. Raises ZoneUnknown, CronWrong."""
    return tuple(_due(one.local, one.at) for one in islice(slots(when, after=after), n))
