"""Forecasts: what jobs would do in a span of time, when their people would hear of it, and what
that costs. Keeps to what `scheduler.clock.timetable` and `scheduler.notify.delivery` do.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from memory.records.errors import AssistantError
from memory.records.jobs import Due, Held, Job, JobKind, MisfirePolicy, QuietPolicy, SetBy, When
from memory.records.messages import PersonId
from memory.records.schedule import (
    FREE_RUN,
    Fate,
    Forecast,
    ForecastRun,
    Pace,
    RunCost,
)
from scheduler.clock.misfire import (
    due_after,
    has_run_enough,
    is_over,
    look_at,
    moment,
)
from scheduler.clock.recurrence import slots, wall_moment
from scheduler.jobs.rules import to_ms
from scheduler.notify.delivery import DIGEST_HOUR, HoursOfDay, why_held

DAYS_MAX = 366
"""How far a forecast looks."""

RUNS_MAX = 5_000
"""Due times that are looked at in one span."""

PACE_DAYS, PACE_RUNS = 366, 3_000
"""So far, or so many runs, is counted to say how often something runs."""

_DIGEST = time(DIGEST_HOUR)

ASKS_NO_MODEL = frozenset({JobKind.MESSAGE, JobKind.TOOL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A person, as results reach it. `told_today` unasked messages have come already."""

    zone: ZoneInfo
    quiet: HoursOfDay | None = None
    told_today: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What is looked at: from `since` on, before `until`. What is due before `since` is taken to
    run as usual. `now` is when one looks."""

    now: datetime
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What bounds unasked words. Without `heartbeats` their list holds nothing to look at; `hours`
    are those in which they look, None: always."""

    daily_max: int = 12
    heartbeats: bool = True
    hours: HoursOfDay | None = None


def forecast(
    jobs: Sequence[Job],
    span: Span,
    listeners: Mapping[PersonId, Listener],
    *,
    rules: Rules,
    costs: Mapping[int, RunCost],
) -> Forecast:
    """Everything that would fire, in order. `costs` are those of one run by job; a job without
    has one that nobody knows.

    Each run that asks a model is taken to find something, and no run to fail: it is the most that
    would be told.
    """
    troubles: list[tuple[str, str]] = []

    def course(job: Job) -> Iterator[ForecastRun]:
        try:
            yield from _course(job, now_ms=to_ms(span.now), until_ms=to_ms(span.until))
        except AssistantError as error:  # its times cannot be found: it takes no other with it
            troubles.append((job.key, str(error)))

    courses = [course(job) for job in jobs if job.kind is not JobKind.HEARTBEAT or rules.heartbeats]
    # Courses are endless: they are drawn from only as far as the span and RUNS_MAX go.
    in_order = heapq.merge(*courses, key=lambda one: (one.runs_ms, one.due.at_ms, one.job.id))
    told, since_ms, found = _Telling(span, listeners, rules), to_ms(span.since), []
    for step in islice(in_order, RUNS_MAX):
        run = told.of(step)
        if run is not None and run.runs_ms >= since_ms:
            is_free = run.job.kind in ASKS_NO_MODEL or run.fate in {Fate.SKIPPED, Fate.ASKED}
            found.append(replace(run, cost=FREE_RUN if is_free else costs.get(run.job.id)))
    known = [run.cost for run in found if run.cost is not None]
    return Forecast(
        runs=tuple(found),
        calls=sum(cost.calls for cost in known),
        tokens=sum(cost.tokens for cost in known),
        dollars=sum(cost.dollars or 0.0 for cost in known),
        unpriced=sum(run.cost is None or run.cost.dollars is None for run in found),
        is_cut=next(in_order, None) is not None,
        troubles=tuple(troubles),
        since_ms=since_ms,
    )


def pace(when: When, cost: RunCost | None, *, now: datetime) -> Pace:
    """Return how often this runs a day on average, and what that takes. Raise ZoneUnknown,
    CronWrong."""
    end = now.astimezone(UTC) + timedelta(days=PACE_DAYS)
    times = takewhile(lambda at: at <= end, (one.at for one in slots(when, after=now)))
    within = list(islice(times, PACE_RUNS))
    is_dense = len(within) == PACE_RUNS
    days = (within[-1] - now.astimezone(UTC)) / timedelta(days=1) if is_dense else PACE_DAYS
    runs = len(within) / days
    cost = cost or RunCost(dollars=None)
    dollars = None if cost.dollars is None else cost.dollars * runs
    return Pace(runs=runs, tokens=cost.tokens * runs, dollars=dollars)


# --- one job ---------------------------------------------------------------------------------


def _run(job: Job, due: Due, at_ms: int, *, fate: Fate = Fate.TOLD, missed: int = 0) -> ForecastRun:
    """Return a due time that is seen to at `at_ms`; of one that runs, when it is heard is found
    later."""
    return ForecastRun(job=job, due=due, runs_ms=at_ms, fate=fate, missed=missed)


def _course(job: Job, *, now_ms: int, until_ms: int) -> Iterator[ForecastRun]:
    """Return what the timetable would do with a job, look by look."""
    if not job.enabled or job.next is None:
        return
    first, runs = job.next, job.runs
    at_ms = max(first.at_ms, now_ms, job.not_before_ms)
    if is_over(job, first) or at_ms >= until_ms:
        return
    look = look_at(job, at_ms)
    missed = 0 if look.missed is None else look.missed.count
    if look.rule is MisfirePolicy.ALL:
        left = len(look.dues) if job.max_runs is None else max(job.max_runs - job.runs, 0)
        steps = [_run(job, due, at_ms, missed=min(missed, 1)) for due in look.dues[:left]]
    else:
        fate = _FATES.get(look.rule, Fate.TOLD)
        steps = [_run(job, look.dues[0], at_ms, fate=fate, missed=missed)]
    yield from steps
    if job.nag_s is not None:  # again and again, as long as nobody says that it is done
        nag = due_after(job, first, now_ms=at_ms, ran=True)
        while nag is not None and nag.at_ms < until_ms and not is_over(job, nag):
            yield _run(job, nag, nag.at_ms)
            nag = due_after(job, nag, now_ms=nag.at_ms, ran=True)
        return
    runs += sum(step.fate is not Fate.SKIPPED for step in steps)
    if has_run_enough(job, runs):
        return
    last_ms = max(steps[-1].due.at_ms, at_ms)
    for slot in slots(job.when, after=moment(last_ms)):
        due = Due(slot=slot.local, at_ms=to_ms(slot.at))
        if due.at_ms >= until_ms or is_over(job, due):
            return
        yield _run(job, due, due.at_ms)
        runs += 1
        if has_run_enough(job, runs):
            return


_FATES = {MisfirePolicy.SKIP: Fate.SKIPPED, MisfirePolicy.ASK: Fate.ASKED}


# --- who hears of it, and when ------------------------------------------------------------------


class _Telling:
    """Goes along with the runs in their order, and counts what is told on a day."""

    def __init__(self, span: Span, listeners: Mapping[PersonId, Listener], rules: Rules) -> None:
        self._listeners = listeners
        self._rules = rules
        self._told: Counter[tuple[PersonId, date]] = Counter()
        for person_id, one in listeners.items():
            self._told[person_id, span.now.astimezone(one.zone).date()] = one.told_today

    def of(self, run: ForecastRun) -> ForecastRun | None:
        """Return what becomes of a run; None for a heartbeat outside of its hours."""
        job, at = run.job, moment(run.runs_ms)
        listener = self._listeners.get(job.person_id) or Listener(zone=ZoneInfo("UTC"))
        hours = self._rules.hours if job.kind is JobKind.HEARTBEAT else None
        if hours is not None and not hours.holds(at, listener.zone):
            return None
        if run.fate is not Fate.TOLD:
            return run
        fate, told = self._fate(job, at, listener)
        return replace(run, fate=fate, told_ms=None if told is None else to_ms(told))

    def _fate(self, job: Job, at: datetime, listener: Listener) -> tuple[Fate, datetime | None]:
        if job.kind is JobKind.MESSAGE:
            return Fate.TOLD, at  # what was set for this very time passes
        quiet, zone = listener.quiet, listener.zone
        day = job.person_id, at.astimezone(zone).date()
        is_too_much = self._told[day] >= self._rules.daily_max
        match why_held(job, at, zone, quiet=quiet, is_too_much=is_too_much):
            case Held.QUIET if job.quiet is QuietPolicy.DROP:
                return Fate.DROPPED, None
            case Held.QUIET:
                return Fate.HELD, at if quiet is None else quiet.end(at, zone)
            case Held.CAP:
                begins = wall_moment(datetime.combine(day[1] + timedelta(days=1), _DIGEST), zone)
                return Fate.DIGEST, begins if quiet is None else quiet.end(begins, zone)
        self._told[day] += job.set_by is not SetBy.PERSON
        return Fate.TOLD, at
