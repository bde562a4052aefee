"""Takes due times as they come: each slot once, whatever restarts, clocks and copies do.

The truth is in the database; APScheduler is an alarm clock and nothing else. The only module that
knows it. Built by `bot.app`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import TracebackType
from typing import Protocol, Self

import structlog

from memory.records.errors import AssistantError, StorageError
from memory.records.jobs import (
    Due,
    Job,
    JobKind,
    MisfirePolicy,
    Misfires,
    NotTaken,
    SlotState,
    Taken,
    Taking,
    When,
)
from memory.records.messages import PersonId
from memory.records.ports import Clock
from memory.stores.jobs import SqliteJobs
from scheduler.clock.misfire import (
    LATE_S,
    PAUSES_S,
    Look,
    due_after,
    due_again,
    due_of,
    failing,
    has_run_enough,
    is_over,
    look_at,
    moved,
    nothing,
)
from scheduler.clock.recurrence import slots

log = structlog.get_logger()

LOOK_EVERY_S = 25
"""Pause between two looks, whatever the alarm says: somebody may have set the clock."""

ALARM_AFTER_S = 1.5
"""So long after the start the alarm is set; what is due by then is a second late."""

AT_ONCE = 100
"""Due jobs that are read together."""

SEEN_MAX = 2
"""So often one look sees to one job: whatever is wrong with it, the others get their turn."""

UNASKED = "to be asked about"
"""The note of a due time that somebody is to be asked about, before that was done."""

RUN_NOW = "now "
"""Prefix of the slot of a run that somebody asked for beside the job's times."""

UNFORESEEN = "an unforeseen error; it is in the log"


class Kind(Protocol):
    """What a kind of job does when it is due: it prepares, and does nothing yet."""

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Return how the due time is to be taken; `Taking.next` is set by the timetable. Raises
        AssistantError, with a sentence for the job's owner, where it cannot be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimetableHooks:
    """Who hears of what the timetable does. `taken`: something was set going. `missed`: what one
    person missed, until it is told (`SqliteJobs.tell_missed`). `failed`: a job could not be
    prepared. `stopped`: one was stopped, as its times cannot be found."""

    taken: Callable[[Job, Taken], None]
    missed: Callable[[PersonId, Sequence[tuple[Job, Misfires]]], Awaitable[None]]
    failed: Callable[[Job, Due, str], Awaitable[None]]
    stopped: Callable[[Job, str], Awaitable[None]]


class Timetable:
    """An async context manager: inside of it, what is due is taken."""

    def __init__(
        self,
        store: SqliteJobs,
        kinds: Mapping[JobKind, Kind],
        hears: TimetableHooks,
        *,
        clock: Clock,
        held: Callable[[], bool] = lambda: False,
        doubted: Callable[[], bool] = lambda: False,
    ) -> None:
        """While it is `held` (the owner's pause) nothing that needs a model is taken; it is made
        up for later. Fixed texts still come, nagging ones too. While the clock is `doubted`,
        nothing is taken at all."""
        self._store = store
        self._kinds = dict(kinds)
        self._hears = hears
        self._clock = clock
        self._held = held
        self._doubted = doubted
        self._alarm: _Alarm | None = None
        self._setting_up: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()
        self._rung = asyncio.Event()
        self._is_troubled = False
        self._looked_ms: int | None = None
        self._has_untold = True
        """At the start it may be so."""

    async def __aenter__(self) -> Self:
        """Make up for what was missed, then look by itself. Raise StorageError."""
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
        """A job was added or changed, or the owner's pause is over: the alarm is set anew, and goes
        off at once where something is due. Raises StorageError."""
        await self._set_alarm(after_ms=0)

    async def _set_alarm(self, *, after_ms: int) -> None:
        next_ms = await self._store.next_ms(after_ms=after_ms)
        if next_ms is None or self._alarm is None:
            return
        # By our clock, which may not be the machine's.
        self._alarm.ring_in(max(0.0, next_ms / 1000 - self._clock.now().timestamp()))

    async def look(self) -> int:
        """Take all that is due now; return how many due times were taken. Raise StorageError."""
        if self._doubted():
            return 0
        taken = 0
        seen: Counter[int] = Counter()
        async with self._looking:
            await self._steady(self._now_ms())
            while True:
                # Those aside that are still due though they were seen to.
                odd = sum(count >= SEEN_MAX for count in seen.values())
                kind = JobKind.MESSAGE if self._held() else None
                found = await self._store.due(self._now_ms(), limit=AT_ONCE + odd, kind=kind)
                due = [job for job in found if seen[job.id] < SEEN_MAX]
                if not due:
                    break
                for job in due:
                    self._has_untold |= await self._seen_to(job)
                    seen[job.id] += 1
                    taken += 1
            if self._has_untold:
                # Also what a kill kept a former process from telling.
                runs: dict[PersonId, list[tuple[Job, Misfires]]] = {}
                for dues in await self._store.missed():
                    if (one := await self._store.get(dues.job_id)) is None:
                        await self._store.tell_missed([dues], (), asked="")
                    else:
                        runs.setdefault(one.person_id, []).append((one, dues))
                for person_id, those in runs.items():
                    await self._hears.missed(person_id, those)
                self._has_untold = False
        return taken

    async def run_now(self, job: Job) -> Taken | None:
        """Run a job beside its times; its next due time stays. None when that was begun this very
        moment, or the job is gone. Raise AssistantError."""
        now = self._clock.now().astimezone(UTC)
        due = Due(slot=f"{RUN_NOW}{now:%Y-%m-%dT%H:%M:%S.%f}", at_ms=self._now_ms())
        async with self._looking:
            fresh = await self._store.get(job.id)
            if fresh is None:
                return None
            taking = await self._kinds[fresh.kind](fresh, due, late_s=0)
            taken = await self._store.take(replace(taking, next=fresh.next, counts=False), of=fresh)
        if isinstance(taken, NotTaken):
            return None
        self._hears.taken(fresh, taken)
        return taken

    # --- one job that is due ----------------------------------------------------------------

    async def _seen_to(self, job: Job) -> bool:
        """Return whether something of it was missed, and made up for or left out. A job whose times
        cannot be found any more is stopped, and takes no other with it."""
        try:
            assert job.next is not None, "it is due"
            now_ms = self._now_ms()
            if is_over(job, job.next):
                await self._store.take(
                    nothing(job, job.next, next=None, note="the job had expired"), of=job
                )
                return False
            look = look_at(job, now_ms)
            untold = None if job.kind is JobKind.HEARTBEAT else look.missed
            if look.rule is MisfirePolicy.ALL:
                is_done = await self._take_all(job, look.dues, now_ms, missed=untold)
            elif look.rule is MisfirePolicy.ONCE:
                is_done = await self._take(job, look.dues[0], now_ms, missed=untold)
            else:
                is_done = await self._leave_out(job, look, missed=untold)
            return is_done and look.missed is not None
        except StorageError:
            raise
        except AssistantError as trouble:
            await self._stop(job, str(trouble))
        except Exception:  # a job's run, one of the three places (STYLE §6)
            log.exception("job.failed", job=job.id)
            await self._stop(job, UNFORESEEN)
        return False

    async def _stop(self, job: Job, why: str) -> None:
        log.error("job.stopped", job=job.id, why=why)
        await self._store.failed(job.id, failures=job.failures + 1, not_before_ms=0, paused=why)
        await self._hears.stopped(job, why)

    async def _take_all(
        self, job: Job, dues: Sequence[Due], now_ms: int, *, missed: Misfires | None = None
    ) -> bool:
        """One after the other. What a kill leaves of them is next, so that it is made up for at the
        next start; what was taken before is passed over. False when none was ours to take."""
        is_any_done = False
        for due, following in zip(dues, [*dues[1:], None], strict=True):
            is_any_done |= await self._take(job, due, now_ms, following=following, missed=missed)
            if following is None:
                break
            fresh = await self._store.get(job.id)
            if fresh is None or not fresh.enabled or fresh.next != following:
                break  # it has run often enough, or somebody has changed it
            if fresh.not_before_ms > now_ms:
                break  # it failed: the others wait with it
            job = fresh
        return is_any_done

    async def _leave_out(self, job: Job, look: Look, *, missed: Misfires | None) -> bool:
        now_ms, (due,) = self._now_ms(), look.dues
        late_s = (now_ms - due.at_ms) // 1000
        is_asked = look.rule is MisfirePolicy.ASK
        state = SlotState.ASKED if is_asked else SlotState.SKIPPED
        note = UNASKED if is_asked else f"missed by {late_s} s"
        after = due_after(job, due, now_ms=now_ms, ran=is_asked)
        left_out = nothing(job, due, next=after, note=note)
        taking = replace(left_out, state=state, late_s=late_s, missed=missed)
        taken = await self._store.take(taking, of=job)
        if taken is NotTaken.OTHER:
            taken = await self._store.take(replace(taking, due=moved(job, due)), of=job)
        if taken is NotTaken.OTHER:
            await self._pass_over(job, due, after)
        return isinstance(taken, Taken)

    async def _pass_over(self, job: Job, due: Due, after: Due | None) -> None:
        """Both slots that a due time may have are taken by others: the job goes on all the same."""
        log.error("job.slot_taken", job=job.id, slot=due.slot)
        await self._store.reset(job, after, not_before_ms=job.not_before_ms)

    async def _take(
        self,
        job: Job,
        due: Due,
        now_ms: int,
        *,
        following: Due | None = None,
        missed: Misfires | None = None,
    ) -> bool:
        """Take one due time; `following` comes next, if the job goes on. False when it was not
        ours to take, or could not be run."""
        next_due = due_after(job, due, now_ms=now_ms, ran=True)
        if following is not None and not has_run_enough(job, job.runs + 1):
            next_due = following
        late_s = (now_ms - due.at_ms) // 1000
        try:
            taking = await self._kinds[job.kind](job, due, late_s=late_s)
        except StorageError:
            raise
        except AssistantError as trouble:
            return await self._not_run(failing(job, due, next_due, missed, str(trouble)), job)
        except Exception:  # a job's run, one of the three places (STYLE §6)
            log.exception("job.failed", job=job.id)
            return await self._not_run(failing(job, due, next_due, missed, UNFORESEEN), job)
        taking = replace(taking, next=next_due, late_s=late_s, missed=missed)
        taken = await self._store.take(taking, of=job)
        if taken is NotTaken.OTHER and due != (elsewhere := moved(job, due)):
            return await self._take(job, elsewhere, now_ms, following=following, missed=missed)
        if taken is NotTaken.OTHER:
            await self._pass_over(job, due, next_due)
        if isinstance(taken, NotTaken):
            log.info("job.not_taken", job=job.id, slot=due.slot, why=taken.value)
            return False
        log.info("job.taken", job=job.id, kind=job.kind, slot=due.slot, late_s=late_s)
        self._hears.taken(job, taken)
        return True

    async def _not_run(self, taking: Taking, job: Job) -> bool:
        taken = await self._store.take(taking, of=job)
        if isinstance(taken, Taken):
            log.warning("job.not_run", job=job.id, slot=taking.due.slot, why=taking.note)
            await self._hears.failed(job, taking.due, taking.note)
        return isinstance(taken, Taken)

    # --- when somebody sets the clock -----------------------------------------------------------

    async def _steady(self, now_ms: int) -> None:
        """After the clock was set back, what was put off into a future that is not to come so soon
        is due again in its time. What was run meanwhile stays run."""
        looked_ms = self._looked_ms
        if looked_ms is None:
            looked_ms = await self._store.newest_ms() or now_ms
        self._looked_ms = now_ms
        if now_ms >= looked_ms - LATE_S * 1000:
            return
        log.warning("clock.set_back", by_s=(looked_ms - now_ms) // 1000)
        for job in await self._store.kept():
            if not job.enabled:
                continue
            try:
                due = due_again(job, now_ms)
            except AssistantError as trouble:
                log.error("job.times", job=job.id, why=str(trouble))
                continue
            not_before_ms = min(job.not_before_ms, now_ms + PAUSES_S[-1] * 1000)
            if due is not None or not_before_ms != job.not_before_ms:
                await self._store.reset(job, due or job.next, not_before_ms=not_before_ms)

    # --- looking by itself --------------------------------------------------------------------

    async def _set_up(self) -> None:
        """The library is loaded once the bot has begun to answer: it takes its time."""
        await self._clock.sleep(ALARM_AFTER_S)
        self._alarm = await asyncio.to_thread(_Alarm, self._ring)
        self._alarm.start()
        while True:
            self._rung.clear()
            await self._look_safely()
            # By our own sleep: an alarm that is set by the clock on the wall goes off too late, or
            # not for days, once somebody sets that clock back.
            either = [
                asyncio.ensure_future(self._clock.sleep(LOOK_EVERY_S)),
                asyncio.ensure_future(self._rung.wait()),
            ]
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in either:
                    one.cancel()

    async def _ring(self) -> None:
        # Nothing is looked at here: APScheduler drops what comes due while the same job still runs,
        # and with it an alarm that was set for a job of this very moment.
        self._rung.set()

    async def _look_safely(self) -> None:
        """Trouble with the storage is told once, and the next look tries again."""
        began_ms = self._now_ms()
        try:
            await self.look()
            # What is due and was not taken now (the owner's pause) is not looked at all the time.
            await self._set_alarm(after_ms=began_ms)
        except StorageError as trouble:
            if not self._is_troubled:
                log.error("timetable.storage", why=str(trouble))
            self._is_troubled = True
        else:
            self._is_troubled = False

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


class _Alarm:
    """APScheduler as an alarm clock. Not made before it is needed: to load it takes 70 ms."""

    def __init__(self, ring: Callable[[], Awaitable[None]]) -> None:
        from apscheduler.schedulers.asyncio import (  # type: ignore[import-untyped]
            AsyncIOScheduler,
        )
        from apscheduler.triggers.date import DateTrigger  # type: ignore[import-untyped]

        self._ring = ring
        self._at = DateTrigger
        self._scheduler = AsyncIOScheduler(
            timezone=UTC,
            # Late is better than never, and one look is enough for all that is due.
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def start(self) -> None:
        """Inside of the event loop."""
        self._scheduler.start()

    def ring_in(self, seconds: float) -> None:
        """Once, in place of the time that was set before."""
        at = datetime.now(UTC) + timedelta(seconds=min(seconds, LOOK_EVERY_S))
        self._scheduler.add_job(self._ring, self._at(at), id="next", replace_existing=True)

    def stop(self) -> None:
        """What rings is not waited for."""
        self._scheduler.shutdown(wait=False)


def upcoming(when: When, *, after: datetime, n: int) -> tuple[Due, ...]:
    """Return the next `n` due times. Raise ZoneUnknown, CronWrong."""
    return tuple(due_of(one.local, one.at) for one in islice(slots(when, after=after), n))
