"""What follows from the end of a job's run: its result is told, its failures are counted and waited
out, and a job that keeps failing is stopped with one notice and a way to go on. A run for which no
model may be asked is put off; that is no failure.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from memory.records.jobs import At, Due, Job, JobKind, JobRun, Misfires, Notification, SlotState
from memory.records.ports import Clock, JobEnd
from memory.stores.jobs import SqliteJobs
from scheduler.clock.misfire import PAUSES_S
from scheduler.clock.timetable import RUN_NOW, UNASKED
from scheduler.notify.delivery import Notifier

log = structlog.get_logger()

FAILURES_MAX = 5
"""In a row, before a job is stopped."""


PUT_OFF_S = (60, 5 * 60, 15 * 60)
"""How long a run waits after it was put off once, twice, …; the last one repeats. Nobody knows when
a key is mended or a pause is over; trying costs one request a minute for all jobs together."""

ASKED = "asked about"
"""The note of a due time whose person was asked about it."""


class Outcomes:
    """Called by the engine's hook, and at the start for what a former process left."""

    def __init__(
        self,
        jobs: SqliteJobs,
        notifier: Notifier,
        *,
        clock: Clock,
        stopped: Callable[[Job, str], Awaitable[None]],
        beat: Callable[[Job, str, str], Awaitable[None]],
    ) -> None:
        """`stopped` tells the person of a job that was stopped, and why, with a button to go on;
        `beat` keeps what came of a heartbeat."""
        self._jobs = jobs
        self._notifier = notifier
        self._clock = clock
        self._stopped = stopped
        self._beat = beat
        self._one_at_a_time = asyncio.Lock()

    async def ended(self, end: JobEnd) -> None:
        """After the end of a run is stored. Raises StorageError: `catch_up` makes up for it."""
        async with self._one_at_a_time:
            runs = await self._jobs.runs(end.job_id, limit=50)
            run = next((run for run in runs if run.due.slot == end.slot), None)
            job = await self._jobs.get(end.job_id)
            if run is None or job is None:
                return  # the job was removed meanwhile
            await self._see_to(job, run)

    async def catch_up(self) -> None:
        """Tell what was found and not told, because the process ended in between, and have the
        timetable ask what nobody could be asked so far."""
        async with self._one_at_a_time:
            for run in await self._jobs.open_runs():
                job = await self._jobs.get(run.job_id)
                if job is None:
                    continue
                if run.state is SlotState.ASKED and run.note == UNASKED:
                    dues = Misfires(
                        job_id=job.id,
                        count=1,
                        first=run.due,
                        last=run.due,
                        done=SlotState.ASKED,
                    )
                    await self._jobs.keep_missed(dues)
                else:
                    await self._see_to(job, run)

    async def not_run(self, job: Job, due: Due, why: str) -> None:
        """A run that could not even be begun: a failure like any other."""
        async with self._one_at_a_time:
            fresh = await self._jobs.get(job.id)
            if fresh is not None:
                await self._count(fresh, due, why)

    async def _see_to(self, job: Job, run: JobRun) -> None:
        match run.state:
            case SlotState.FOUND:
                await self._jobs.worked(job.id)
                found = _found(job, run)
                state = await self._notifier.tell(found)
                await self._keep(job, state.value, found.text[:80])
            case SlotState.SILENT:
                await self._jobs.worked(job.id)
                await self._keep(job, "silent", run.note)
            case SlotState.FAILED if run.ended_ms is None:
                await self._keep(job, "failed", run.note)
                await self._count(job, run.due, run.note)
            case SlotState.SKIPPED if run.ended_ms is None:
                await self._keep(job, "put off", run.note)
                await self._jobs.put_off(job.id, run.due.slot, self._anew(job, run))
                log.info("job.put_off", job=job.id, slot=run.due.slot, why=run.note)
            case _:
                pass

    def _anew(self, job: Job, run: JobRun) -> Due | None:
        """Return when a run that was put off comes again. None if the next run serves as well, if a
        person asked for it beside the job's times, or if it had changed something."""
        if job.kind is JobKind.HEARTBEAT or run.due.slot.startswith(RUN_NOW):
            return None
        kept = json.loads(run.result or "{}")
        if not kept.get("anew"):
            return None
        number, slot = _once_more(run.due.slot)
        wait_s = PUT_OFF_S[min(number, len(PUT_OFF_S)) - 1]
        until_ms = int((self._clock.now() + timedelta(seconds=wait_s)).timestamp() * 1000)
        return Due(slot=slot, at_ms=max(until_ms, kept.get("free_at_ms") or 0))

    async def _keep(self, job: Job, outcome: str, why: str) -> None:
        if job.kind is JobKind.HEARTBEAT:
            await self._beat(job, outcome, why)

    async def _count(self, job: Job, due: Due, why: str) -> None:
        """One more failure in a row: wait, and in the end stop."""
        failures = job.failures + 1
        pause_s = PAUSES_S[min(failures, len(PAUSES_S)) - 1]
        until = self._clock.now() + timedelta(seconds=pause_s)
        paused = f"it failed {failures} times in a row: {why}" if failures >= FAILURES_MAX else ""
        until_ms = int(until.timestamp() * 1000)
        again = None
        if not paused and isinstance(job.when, At) and job.next is None:
            # What runs once has no next time that would make up for it.
            again = Due(slot=_once_more(due.slot)[1], at_ms=until_ms)
        if paused:
            # Told before it is written: a kill in between tells it again rather than never.
            await self._stopped(job, paused)
        await self._jobs.failed(
            job.id,
            slot=due.slot,
            failures=failures,
            not_before_ms=until_ms,
            paused=paused,
            again=again,
        )
        log.warning("job.failed", job=job.id, slot=due.slot, failures=failures, why=why)


def _once_more(slot: str) -> tuple[int, str]:
    """Return the number of the slot's next retry, and the slot's name then."""
    first, _, tried = slot.partition("+")
    number = int(tried) + 1 if tried.isdecimal() else 1
    return number, f"{first}+{number}"


def _found(job: Job, run: JobRun) -> Notification:
    """Return what the journal kept of the result."""
    try:
        kept = json.loads(run.result or "")
        text, tainted = str(kept["text"]), bool(kept["tainted"])
    except (ValueError, KeyError, TypeError):
        text, tainted = run.result or "", True
    return Notification(job=job, due=run.due, text=text, tainted=tainted)
