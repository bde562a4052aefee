"""Dry runs: what a job would do and cost, with no effect. For `hearthbot schedule`, and for cards
that ask whether something shall run by the clock.

Only a question to the model costs something, and that is asked for by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agent.budget.payment import NO_PAYMENT, Payment
from agent.skills.skill import SkillState
from agent.trace.dry_run import DryRunner, DryRunReport, Heard, Priced
from memory.records.errors import Permanent
from memory.records.jobs import Asker, Due, Job, JobKind, JobRef, JobStatus, SlotState, What
from memory.records.messages import PersonId, TurnInput
from memory.records.ports import Clock
from memory.records.schedule import DueAhead, Estimate, Forecast, JobDetails, RunCost
from memory.records.transcript import Usage
from memory.records.usage import UsageQuery
from memory.stores.jobs import SqliteJobs
from memory.stores.schedule import SqliteTellings
from memory.stores.usage import SqliteUsage
from scheduler.clock.misfire import moment
from scheduler.jobs.forecast import DAYS_MAX, Listener, Rules, Span, forecast, pace
from scheduler.jobs.rules import JobRefused, next_dues, to_ms
from scheduler.jobs.service import JobService
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.kinds.kinds import TurnKind

NEXT_SHOWN, SHIFT_SHOWN = 5, 3
"""Due times that are shown, and those around a change of clocks."""

RUNS_MIN, RUNS_COUNTED = 3, 20
"""Of a job: with fewer runs nothing is known yet, and so many of the newest are counted."""

RUNS_LOOKED_AT = 200
"""A heartbeat passes over many of its times without asking a model."""

FAR_MS = 2**62
"""Later than any call."""


class PastCosts:
    """What runs of a job have taken, by the calls that were recorded."""

    def __init__(
        self,
        store: SqliteJobs,
        usage: SqliteUsage,
        priced: Priced,
        *,
        payment: Payment = NO_PAYMENT,
    ) -> None:
        self._store = store
        self._usage = usage
        self._priced = priced
        self._payment = payment

    async def cost(self, job: Job) -> RunCost | None:
        """Return the mean of its last runs, at the price of the model that answers now; None for
        fewer than RUNS_MIN. Raise StorageError."""
        runs = [run for run in await self._store.runs(job.id, limit=RUNS_LOOKED_AT) if run.run_id]
        until_ms = FAR_MS
        while runs and runs[0].state is SlotState.TAKEN:  # still at work
            until_ms = runs.pop(0).taken_ms
        counted = runs[:RUNS_COUNTED]
        # A run that failed may have asked nobody; with what it took the others cost more, not less.
        worked = sum(run.state is not SlotState.FAILED for run in counted)
        if worked < RUNS_MIN:
            return None
        if self._payment.budget is not None:
            await self._payment.budget.flush()
        wanted = UsageQuery(
            since_ms=min(run.taken_ms for run in counted),
            until_ms=until_ms,
            by=("job",),
            person_id=job.person_id,
        )
        groups = await self._usage.groups(wanted)
        found = next((group for group in groups if group.job == job.name), None)
        if found is None:
            return None
        # Of a mean call: a price may depend on how long a prompt is.
        each = Usage(
            prompt=found.prompt // found.calls,
            completion=found.completion // found.calls,
            cached=found.cached // found.calls,
        )
        dollars = await self._priced(job.deliver_to, each)
        return RunCost(
            calls=max(round(found.calls / worked), 1),
            tokens=round(found.tokens / worked),
            dollars=None if dollars is None else dollars * found.calls / worked,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockChange:
    """The next change of a zone's clocks, and the runs of a job around it."""

    at: datetime
    runs: tuple[DueAhead, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a run of a job would be: what would be sent, what that costs, its next runs, and those
    around the next `shift` of clocks. `trouble` is what would keep it from running; `heard` what
    the model says, where it was asked."""

    status: JobStatus
    sent: DryRunReport
    estimate: Estimate | None = None
    next_runs: tuple[DueAhead, ...] = ()
    shift: ClockChange | None = None
    trouble: str = ""
    heard: Heard | None = None


class JobDryRuns:
    """Says beforehand what jobs will do. Raises JobRefused, StorageError."""

    def __init__(
        self,
        jobs: JobService,
        notifications: SqliteTellings,
        turns: TurnKind,
        rehearsing: DryRunner,
        skills: SkillJobs,
        *,
        clock: Clock,
        rules: Callable[[], Awaitable[Rules]],
        past: PastCosts | None = None,
    ) -> None:
        """`rules` as they are now: the list of the heartbeat is looked at each time. Without `past`
        all costs are estimates, also of what has run before."""
        self._jobs = jobs
        self._notifications = notifications
        self._turns = turns
        self._rehearsing = rehearsing
        self._skills = skills
        self._clock = clock
        self._rules = rules
        self._past = past

    async def details(self, ref: JobRef, *, by: Asker) -> JobDetails:
        """Return everything about a job. Raise UnknownJob, NotYours."""
        job = await self._jobs.find(ref, by=by)
        next_runs, trouble = await self._next_runs(job)
        return JobDetails(
            status=self._jobs.status(job),
            next_runs=next_runs,
            trouble=trouble,
            runs=tuple(await self._jobs.runs(job)),
        )

    async def estimate(self, job: Job) -> Estimate | None:
        """Return what a job (or a draft) will take; None where it asks no model. Raise
        AssistantError where that cannot be told."""
        job = job if job.id else self._jobs.prepare(job)
        sent = await self._rehearsing.rehearse(await self._turn(job))
        return await self._estimate(job, sent) if sent.asks else None

    async def skill_estimate(self, name: str) -> Estimate:
        """Return what a skill that runs by the clock would take. Raise Permanent."""
        job = await self._skills.preview(name)
        sent = await self._rehearsing.rehearse(await self._turn(job))
        a_day = pace(job.when, sent.cost, now=self._clock.now())
        return Estimate(cost=sent.cost, a_day=a_day, model=sent.model)

    async def dry_run(self, ref: JobRef, *, by: Asker, with_model: bool = False) -> DryRun:
        """Return what a run would be. Raise UnknownJob, NotYours, and the errors of models."""
        job = await self._jobs.find(ref, by=by)
        turn, sent, trouble = await self._rehearsed(job)
        heard = None
        if with_model and turn is not None and sent.asks:
            heard = await self._rehearsing.ask(turn)
        next_runs, lost = await self._next_runs(job)
        return DryRun(
            status=self._jobs.status(job),
            sent=sent,
            estimate=None if lost else await self._estimate(job, sent),
            next_runs=next_runs,
            shift=None if lost else await self._around_shift(job),
            trouble=trouble or lost,
            heard=heard,
        )

    async def forecast(self, *, days: float, since: datetime | None = None) -> Forecast:
        """Return everything that would fire from `since` (now) on, and what it costs. Raise
        JobRefused for a time that is over, and for more than DAYS_MAX days."""
        if not 0 < days <= DAYS_MAX:
            raise JobRefused(f"It looks ahead up to {DAYS_MAX} days, such as 7d or 12h.")
        now = self._clock.now()
        if since is not None and since < now - timedelta(minutes=1):
            raise JobRefused("What is over cannot be looked at ahead: --from takes a time to come.")
        begin = max(since or now, now)
        try:
            span = Span(now=now, since=begin, until=begin + timedelta(days=days))
        except OverflowError:
            raise JobRefused(
                "The calendar ends before that: --from takes an earlier day."
            ) from None
        jobs = [job for job in await self._jobs.of(None) if job.enabled and job.next is not None]
        costs: dict[int, RunCost] = {}
        known: dict[tuple[str, What, str, str], RunCost | None] = {}
        for job in jobs:
            # Instructions are a part of the prompt, so their length counts; what a reminder says
            # is not. Jobs alike are looked at once.
            what = What() if job.kind is JobKind.MESSAGE else job.what
            alike = job.kind, what, job.person_id, job.deliver_to
            if alike not in known:
                _, sent, trouble = await self._rehearsed(job)
                known[alike] = None if trouble else sent.cost
            cost = known[alike]
            if cost is not None:
                costs[job.id] = await self._cost(job, cost)
        listeners = {one: await self._listener(one) for one in {job.person_id for job in jobs}}
        return forecast(jobs, span, listeners, rules=await self._rules(), costs=costs)

    # --- parts --------------------------------------------------------------------------------

    async def _next_runs(self, job: Job) -> tuple[tuple[DueAhead, ...], str]:
        """Return the next due times, as if the job were on; else why there is no telling, such as a
        zone that is gone."""
        now = self._clock.now()
        goes_on = job.enabled and job.next is not None and job.next.at_ms >= to_ms(now)
        try:
            dues = next_dues(job, n=NEXT_SHOWN, after=None if goes_on else now)
        except Permanent as error:
            return (), str(error)
        return await self._told_at(job, dues), ""

    async def _told_at(self, job: Job, dues: Sequence[Due]) -> tuple[DueAhead, ...]:
        """Return what would become of these due times of one job alone."""
        if not dues:
            return ()
        now = self._clock.now()
        alone = replace(job, enabled=True, next=dues[0], not_before_ms=0)
        span = Span(now=now, since=now, until=moment(dues[-1].at_ms) + timedelta(seconds=1))
        listeners = {job.person_id: await self._listener(job.person_id)}
        rules = replace(await self._rules(), heartbeats=True)
        found = forecast([alone], span, listeners, rules=rules, costs={})
        runs = {run.due.slot: run for run in found.runs}
        return tuple(
            DueAhead(
                due=due,
                fate=None if (run := runs.get(due.slot)) is None else run.fate,
                told_ms=None if run is None else run.told_ms,
            )
            for due in dues
        )

    async def _listener(self, person_id: PersonId) -> Listener:
        zone = self._jobs.times.zone(person_id)
        midnight = self._clock.now().astimezone(zone).replace(hour=0, minute=0, second=0)
        told = await self._notifications.count(person_id, since_ms=to_ms(midnight))
        quiet = await self._jobs.quiet_hours(person_id)
        return Listener(zone=zone, quiet=quiet, told_today=told)

    async def _turn(self, job: Job) -> TurnInput | None:
        """Return the turn that a job would run, None for one that sends a fixed text. Raise
        TargetGone, SkillGone."""
        if job.kind is JobKind.MESSAGE:
            return None
        # Also of a skill that is not enabled yet, so that its cost can be told before it is.
        states = (SkillState.USABLE, SkillState.OFF)
        return await self._turns.turn(job, job.next or Due(slot="now", at_ms=0), states=states)

    async def _rehearsed(self, job: Job) -> tuple[TurnInput | None, DryRunReport, str]:
        """Return the turn, what would be sent, and what would keep it from running."""
        try:
            turn = await self._turn(job)
        except Permanent as error:
            return None, DryRunReport(asks=False), str(error)
        return turn, await self._rehearsing.rehearse(turn), ""

    async def _estimate(self, job: Job, sent: DryRunReport) -> Estimate:
        cost = await self._cost(job, sent.cost)
        a_day = pace(job.when, cost, now=self._clock.now())
        return Estimate(cost=cost, a_day=a_day, model=sent.model)

    async def _cost(self, job: Job, estimate: RunCost) -> RunCost:
        """Return the cost of one run: what its last ones took, else the estimate."""
        if self._past is None or not estimate.calls:
            return estimate
        return await self._past.cost(job) or estimate

    async def _around_shift(self, job: Job) -> ClockChange | None:
        """Return the runs from the day before the next change of clocks on; None: there is
        none."""
        try:
            zone = ZoneInfo(job.when.zone)
        except (LookupError, ValueError, OSError):
            return None
        shift = next_shift(self._clock.now(), zone)
        if shift is None:
            return None
        after, until = shift - timedelta(minutes=61), shift + timedelta(days=2)
        dues = next_dues(job, n=SHIFT_SHOWN, after=after)
        near = [due for due in dues if due.at_ms < to_ms(until)]
        runs = await self._told_at(job, near)
        return ClockChange(at=shift.astimezone(zone), runs=runs)


def next_shift(now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the minute at which clocks are changed next, within a year; None: they are not."""
    day = now.astimezone(UTC).replace(second=0, microsecond=0)
    for _ in range(366):
        later = day + timedelta(days=1)
        offset = day.astimezone(zone).utcoffset()
        if later.astimezone(zone).utcoffset() != offset:
            while later - day > timedelta(minutes=1):
                middle = day + (later - day) // 2
                middle = middle.replace(second=0, microsecond=0)
                if middle.astimezone(zone).utcoffset() == offset:
                    day = middle
                else:
                    later = middle
            return later
        day = later
    return None
