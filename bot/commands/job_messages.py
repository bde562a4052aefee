"""What is said about jobs in plain words: by `hearthbot schedule`. Pure; loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent.trace.dry_run import Heard, Rehearsal
from bot.commands.prompt_messages import PRICE_UNKNOWN, money
from memory.records.job_specs import At, Cron, Every, When, to_json
from memory.records.jobs import (
    BrokenJob,
    Due,
    Job,
    JobKind,
    JobRun,
    Missed,
    Taken,
    WhenQuiet,
    list_name,
)
from memory.records.messages import PersonId, TurnInput
from memory.records.schedule import Ahead, Foreseen, JobWish, Pace, RunCost, TimeRead

DAYS_A_MONTH = 30

FATES = {
    "told": "told at once",
    "held": "waits for the end of quiet hours",
    "digest": "too much for one day: waits for the next",
    "dropped": "dropped: quiet hours",
    "skipped": "missed, and not made up for",
    "asked": "missed: its person is asked",
}


def zone_or_utc(name: str) -> ZoneInfo:
    """The zone of a job, for showing it; UTC where this machine does not know it any more."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def when_words(when: When) -> str:
    """`at 2026-12-01 17:00 (Europe/Berlin)`, `every 30 minutes`, `by 0 9 * * 1-5 (UTC)`."""
    match when:
        case At():
            local = when.moment.astimezone(zone_or_utc(when.zone))
            return f"at {local:%Y-%m-%d %H:%M} ({when.zone})"
        case Every():
            step = f"every {when.count} {when.unit}s" if when.count > 1 else f"every {when.unit}"
            return f"{step}, by {when.pattern} ({when.zone})" if when.pattern else step
        case Cron():
            return f"by {when.expression} ({when.zone})"
    assert_never(when)


def state_words(job: Job) -> str:
    """on, over, or why it stands still."""
    if job.paused:
        return f"paused: {job.paused}"
    if not job.enabled:
        return "paused"
    if job.next is None:
        return "over"
    return f"on, {job.failures} failures in a row" if job.failures > 1 else "on"


def what_words(job: Job) -> str:
    """What it does, in one line."""
    what = job.new.what
    match job.new.kind:
        case JobKind.MESSAGE | JobKind.AGENT:
            return what.text
        case JobKind.SKILL:
            return f"skill {what.skill}" + (f": {what.text}" if what.text else "")
        case JobKind.TOOL:
            return f"{what.tool} {what.arguments}"
        case JobKind.HEARTBEAT:
            return list_name(job.new.agent)
    assert_never(job.new.kind)


def clock_note(at_ms: int, zone: ZoneInfo) -> str:
    """What a change of clocks does to a due time; empty: nothing."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    local, before = at.astimezone(zone), (at - timedelta(minutes=1)).astimezone(zone)
    gone = local.replace(tzinfo=None) - before.replace(tzinfo=None)
    if gone > timedelta(minutes=1):
        return "clocks are set forward: right after the times that are left out"
    other = local.replace(fold=1 - local.fold)
    # Within a gap the two differ as well, but no clock shows such a time.
    if other.utcoffset() != local.utcoffset():
        return "clocks are set back: this time comes twice" + (", the second" * local.fold)
    day_before = (at - timedelta(days=1)).astimezone(zone)
    if day_before.utcoffset() != local.utcoffset():
        return f"clocks were changed: {local:%Z} instead of {day_before:%Z}"
    return ""


def next_shift(now: datetime, zone: ZoneInfo) -> datetime | None:
    """The minute at which clocks are changed next, within a year; None: they are not."""
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


def cost_words(dollars: float | None, tokens: float) -> str:
    """`about $0.0012 (3,200 tokens)`."""
    if not tokens:
        return "nothing"
    known = f"about {money(dollars)}" if dollars is not None else PRICE_UNKNOWN
    return f"{known} ({tokens:,.0f} tokens)"


def takes_words(cost: dict[str, Any], *, model: str, is_once: bool) -> str:
    """The same before it is kept, in a line: `about 2,400 tokens a run, 3 runs a day: about $0.01 a
    day with fake/model`."""
    a_day, known = cost["a_day"], cost["dollars"] is not None
    run = f"about {cost['tokens']:,.0f} tokens"
    if is_once:
        price = f"about {money(cost['dollars'])}" if known else PRICE_UNKNOWN
        return f"{run}, once: {price} with {model}"
    if known:
        whole = f"about {money(a_day['dollars'])} a day with {model}"
    else:
        whole = f"about {a_day['tokens']:,.0f} tokens a day with {model}; {PRICE_UNKNOWN}"
    return f"{run} a run, {_often(a_day['runs'])}: {whole}"


def _often(runs_a_day: float) -> str:
    for runs, span in ((runs_a_day, "day"), (runs_a_day * 7, "week")):
        if runs >= 0.99:
            return f"1 run a {span}" if runs < 1.05 else f"{runs:.2g} runs a {span}"
    return f"{max(runs_a_day * 365, 1):.0f} runs a year"


def pace_words(cost: dict[str, Any]) -> str:
    """What it takes a day and a month, in a sentence. `cost` is as `bot.commands.job_service`
    answers it."""
    if not cost["tokens"]:
        return "It asks no model and costs nothing."
    a_day = cost["a_day"]
    calls = "1 call" if cost["calls"] == 1 else f"{cost['calls']} calls"
    each = cost_words(cost["dollars"], cost["tokens"])
    if a_day["dollars"] is None:
        of = f"{a_day['tokens']:,.0f} tokens a day, {a_day['tokens'] * DAYS_A_MONTH:,.0f} a month"
        return f"It will take {of}; {PRICE_UNKNOWN}. One run ({calls} of a model): {each}."
    day, month = money(a_day["dollars"]), money(a_day["dollars"] * DAYS_A_MONTH)
    return (
        f"It will cost about {day} a day, {month} a month, at {a_day['runs']:.3g} runs a day. One "
        f"run ({calls} of a model): {each}."
    )


# --- job ports ----------------------------------------------------------------------------------
#
# What the desk of jobs needs of others: `scheduler` and `agent` implement it. See
# `bot.commands.job_service`.


class JobOrders(Protocol):
    """Looks at all jobs and changes them; `scheduler.jobs.orders.Orders` is one. Raises Permanent
    with a sentence for what cannot be, StorageError."""

    async def of(self, person_id: PersonId | None = None) -> Sequence[Job]: ...
    async def broken(self) -> Sequence[BrokenJob]: ...
    async def find(self, name: str) -> Job: ...
    async def runs(self, job: Job, *, limit: int) -> Sequence[JobRun]: ...
    def read(self, person_id: PersonId, text: str) -> TimeRead: ...
    async def require_free(
        self, person_id: PersonId, name: str, *, but: int | None = None
    ) -> None: ...
    async def add(self, wish: JobWish) -> Job: ...
    def preview(self, wish: JobWish) -> Job: ...
    async def move(self, job: Job, time: TimeRead) -> Job: ...
    async def reword(self, job: Job, text: str) -> Job: ...

    async def rule(
        self, job: Job, *, name: str, missed: Missed | None, quiet: WhenQuiet | None
    ) -> Job: ...
    async def pause(self, job: Job) -> Job: ...
    async def resume(self, job: Job) -> Job: ...
    async def remove(self, job: Job) -> None: ...
    async def run(self, job: Job) -> Taken | None: ...
    def once_resumed(self, job: Job) -> Due | None: ...
    def next_runs(self, job: Job, *, n: int, after: datetime | None = None) -> Sequence[Due]: ...


class JobOutlook(Protocol):
    """Looks ahead; `scheduler.jobs.orders.Outlook` is one. Raises Permanent, StorageError."""

    async def jobs(self) -> Sequence[Job]: ...
    async def ahead(
        self, *, since: datetime | None, days: float, costs: Mapping[int, RunCost]
    ) -> Ahead: ...
    async def told_at(self, job: Job, dues: Sequence[Due]) -> Ahead: ...
    def pace(self, job: Job, cost: RunCost | None) -> Pace: ...


class PastRuns(Protocol):
    """What runs of a job have taken; `bot.app.jobs.RunsCounted` is one. Raises StorageError."""

    async def cost(self, job: Job) -> RunCost | None:
        """Of one run, by its last ones; None where there are too few."""


class JobTurns(Protocol):
    """The turn that a job would run, without effect; `scheduler.jobs.orders.JobTurns` is one."""

    async def turn(self, job: Job) -> TurnInput | None:
        """None where a fixed text is sent. Raises Permanent where it could not run."""


class Rehearses(Protocol):
    """What would be sent, and said; `agent.trace.dry_run.Rehearsing` is one."""

    async def rehearse(self, turn: TurnInput | None) -> Rehearsal: ...
    async def ask(self, turn: TurnInput) -> Heard: ...


class SkillPreviews(Protocol):
    """The job of a skill, also before it is one; `scheduler.jobs.skill_jobs.SkillJobs` is one."""

    async def preview(self, name: str) -> Job: ...


class HasName(Protocol):
    """A person."""

    @property
    def name(self) -> str: ...


class JobPeople(Protocol):
    """Whose jobs are, and where their results go."""

    def owner(self) -> PersonId | None: ...
    def person(self, person_id: PersonId) -> HasName | None: ...
    async def home_of(self, person_id: PersonId) -> str: ...
    def zone(self, person_id: PersonId) -> ZoneInfo: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsals:
    """What a job would do, without doing it."""

    turns: JobTurns
    stage: Rehearses
    skills: SkillPreviews


# --- job rows -----------------------------------------------------------------------------------
#
# Jobs and what comes of them as JSON objects, for `hearthbot schedule`. Called by
# `bot.commands.job_service`.

Json = dict[str, Any]


def job_row(job: Job, person: HasName | None, *, once_resumed: Due | None = None) -> Json:
    """One job: `key`, `name`, whose, what, when, `next`, `state` in words, and its rules. One that
    stands still has no `next`; `once_resumed` is what would be."""
    new = job.new
    return {
        "key": job.key,
        "name": new.name,
        "person": new.person_id,
        "person_name": person.name if person is not None else "",
        "kind": new.kind.value,
        "what": what_words(job),
        "when": to_json(new.when),
        "when_words": when_words(new.when),
        "deliver_to": new.deliver_to,
        "next": due_row(job.next, zone_of(job)) if job.enabled and job.next else None,
        "once_resumed": due_row(once_resumed, zone_of(job)) if once_resumed else None,
        "enabled": job.enabled,
        "state": state_words(job),
        "set_by": new.set_by.value,
        "urgent": new.urgent,
        "quiet": new.quiet.value,
        "missed": new.missed.value,
        "missed_within_s": new.missed_within_s,
        "nag_s": new.nag_s,
        "max_runs": new.max_runs,
        "runs": job.runs,
        "failures": job.failures,
    }


def cost_row(cost: RunCost, a_day: Pace) -> Json:
    """One run: `calls` of a model, `tokens`, `dollars` (null: unknown price); `a_day` on average:
    `runs`, `tokens`, `dollars`."""
    return {
        "calls": cost.calls,
        "tokens": cost.tokens,
        "dollars": cost.dollars,
        "a_day": {"runs": a_day.runs, "tokens": a_day.tokens, "dollars": a_day.dollars},
    }


def foreseen_row(run: Foreseen) -> Json:
    zone = zone_of(run.job)
    return {
        "job": run.job.key,
        "name": run.job.new.name,
        "kind": run.job.new.kind.value,
        "person": run.job.new.person_id,
        "slot": run.due.slot,
        "at": iso(run.runs_ms, zone),
        "fate": run.fate.value,
        "told": iso(run.told_ms, zone),
        "missed": run.missed,
        "note": clock_note(run.due.at_ms, zone),
        "tokens": 0 if run.cost is None else run.cost.tokens,
        "dollars": None if run.cost is None else run.cost.dollars,
    }


def zone_of(job: Job) -> ZoneInfo:
    """In which its times are shown."""
    return zone_or_utc(job.new.when.zone)


def iso(ms: int | None, zone: ZoneInfo) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, zone).isoformat()


def due_row(due: Due, zone: ZoneInfo) -> Json:
    return {"slot": due.slot, "at": iso(due.at_ms, zone)}


def run_row(run: JobRun, zone: ZoneInfo) -> Json:
    return {
        "slot": run.due.slot,
        "at": iso(run.taken_ms, zone),
        "state": run.state.value,
        "late_s": run.late_s,
        "note": run.note,
        "result": run.result,
        "run": run.run_id,
    }


def heard_row(heard: Heard) -> Json:
    return {
        "text": heard.text,
        "wishes": [{"tool": call.name, "arguments": call.arguments} for call in heard.wishes],
        "tokens": heard.usage.prompt + heard.usage.completion,
        "dollars": heard.dollars,
    }
