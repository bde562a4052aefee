"""Dry runs: what a job would do and cost, with no effect. For `hearthbot schedule`, and for cards
that ask whether something shall run by the clock.

Only a question to the model costs something, and that is asked for by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.budget.payment import NO_PAYMENT, Payment
from agent.skills.skill import Skill, SkillSet, SkillState
from agent.trace.dry_run import DryRunner, DryRunReport, Heard, Priced
from memory.records.errors import Permanent
from memory.records.jobs import (
    Asker,
    Due,
    Job,
    JobKind,
    JobRef,
    JobStatus,
    SlotState,
    What,
    list_name,
)
from memory.records.messages import ConversationId, JobOrder, TurnInput
from memory.records.ports import Clock
from memory.records.schedule import DueAhead, Estimate, Forecast, JobDetails, RunCost
from memory.records.transcript import Usage
from memory.records.usage import UsageQuery
from memory.stores.jobs import SqliteJobs
from memory.stores.usage import SqliteUsage
from scheduler.jobs.forecast import Forecaster
from scheduler.jobs.service import JobService
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.kinds.agent_turn import (
    LIST_CHARS_MAX,
    SkillGone,
    TurnKind,
)
from scheduler.notify.delivery import People
from scheduler.notify.trivial import has_tasks

NEXT_SHOWN, SHIFT_SHOWN = 5, 3
"""Due times that are shown, and those around a change of clocks."""

RUNS_MIN, RUNS_COUNTED = 3, 20
"""Of a job: with fewer runs nothing is known yet, and so many of the newest are counted."""

RUNS_LOOKED_AT = 200
"""A heartbeat passes over many of its times without asking a model."""

FAR_MS = 2**62
"""Later than any call."""


class JobTurns:
    """Makes the turn that a job would run. It reads HEARTBEAT.md and never writes it."""

    def __init__(
        self, people: People, shelf: Callable[[], Awaitable[SkillSet]], workspace: Path
    ) -> None:
        self._turns = TurnKind(people, _no_conversation, self._skill)
        self._shelf = shelf
        self._workspace = workspace

    async def turn(self, job: Job) -> TurnInput | None:
        """Return None for one that sends a fixed text. Raise TargetGone, SkillGone."""
        due = job.next or Due(slot="now", at_ms=0)
        if job.kind is JobKind.MESSAGE:
            return None
        if job.kind is JobKind.HEARTBEAT:
            order = JobOrder(job_id=job.id, slot=due.slot, name=job.name, is_heartbeat=True)
            taking = await self._turns.taking(job, due, await self._beat_list(job.agent), order)
        else:
            taking = await self._turns(job, due, late_s=0)
        assert taking.run is not None, "what is no message is a turn"
        return TurnInput.from_json(taking.run.payload)

    async def have_tasks(self, agents: Iterable[str]) -> bool:
        """Return whether a heartbeat has anything to look at for one of these agents."""
        return any([has_tasks(await self._beat_list(agent)) for agent in agents])

    async def _skill(self, name: str) -> Skill:
        """Also one that is not enabled yet, so that its cost can be told before it is."""
        skill = (await self._shelf()).get(name)
        if skill is None or skill.state not in {SkillState.USABLE, SkillState.OFF}:
            raise SkillGone(f"the skill {name} is not there, or not to be used")
        return skill

    async def _beat_list(self, agent: str) -> str:
        path = self._workspace / list_name(agent)
        try:
            text = await asyncio.to_thread(path.read_text, "utf-8-sig", "replace")
        except OSError:
            return ""
        return text[:LIST_CHARS_MAX]


async def _no_conversation(lane: str) -> ConversationId:
    return ConversationId("")


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
        forecaster: Forecaster,
        turns: JobTurns,
        rehearsing: DryRunner,
        skills: SkillJobs,
        *,
        clock: Clock,
        past: PastCosts | None = None,
    ) -> None:
        """Without `past` all costs are estimates, also of what has run before."""
        self._jobs = jobs
        self._forecaster = forecaster
        self._turns = turns
        self._rehearsing = rehearsing
        self._skills = skills
        self._clock = clock
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
        sent = await self._rehearsing.rehearse(await self._turns.turn(job))
        return await self._estimate(job, sent) if sent.asks else None

    async def skill_estimate(self, name: str) -> Estimate:
        """Return what a skill that runs by the clock would take. Raise Permanent."""
        job = await self._skills.preview(name)
        sent = await self._rehearsing.rehearse(await self._turns.turn(job))
        return self._of(job, sent.cost, sent.model)

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
        """Return everything that would fire from `since` (now) on, and what it costs."""
        costs: dict[int, RunCost] = {}
        known: dict[tuple[str, What, str, str], RunCost | None] = {}
        for job in await self._forecaster.jobs():
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
        return await self._forecaster.forecast(since=since, days=days, costs=costs)

    # --- parts --------------------------------------------------------------------------------

    async def _next_runs(self, job: Job) -> tuple[tuple[DueAhead, ...], str]:
        """Return the next due times; else why there is no telling, such as a zone that is gone."""
        try:
            dues = self._forecaster.next_runs(job, n=NEXT_SHOWN)
        except Permanent as error:
            return (), str(error)
        return await self._forecaster.told_at(job, dues), ""

    async def _rehearsed(self, job: Job) -> tuple[TurnInput | None, DryRunReport, str]:
        """Return the turn, what would be sent, and what would keep it from running."""
        try:
            turn = await self._turns.turn(job)
        except Permanent as error:
            return None, DryRunReport(asks=False), str(error)
        return turn, await self._rehearsing.rehearse(turn), ""

    async def _estimate(self, job: Job, sent: DryRunReport) -> Estimate:
        return self._of(job, await self._cost(job, sent.cost), sent.model)

    def _of(self, job: Job, cost: RunCost, model: str) -> Estimate:
        return Estimate(cost=cost, a_day=self._forecaster.pace(job, cost), model=model)

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
        dues = self._forecaster.next_runs(job, n=SHIFT_SHOWN, after=after)
        near = [due for due in dues if due.at_ms < until.timestamp() * 1000]
        runs = await self._forecaster.told_at(job, near)
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
