"""What is said about jobs in plain words: by `hearthbot schedule`. Pure; loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent.trace.dry_run import Heard
from bot.commands.prompt_messages import PRICE_UNKNOWN, money
from memory.records.jobs import Due, Job, JobKind, JobRun, JobStatus, list_name
from memory.records.recurrence import At, Cron, Every, When, to_json
from memory.records.schedule import DueAhead, Estimate, Forecast, ForecastRun

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
    what = job.what
    match job.kind:
        case JobKind.MESSAGE | JobKind.AGENT:
            return what.text
        case JobKind.SKILL:
            return f"skill {what.skill}" + (f": {what.text}" if what.text else "")
        case JobKind.TOOL:
            return f"{what.tool} {what.arguments}"
        case JobKind.HEARTBEAT:
            return list_name(job.agent)
    assert_never(job.kind)


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


def cost_words(dollars: float | None, tokens: float) -> str:
    """`about $0.0012 (3,200 tokens)`."""
    if not tokens:
        return "nothing"
    known = f"about {money(dollars)}" if dollars is not None else PRICE_UNKNOWN
    return f"{known} ({tokens:,.0f} tokens)"


def takes_words(job: Job, estimate: Estimate) -> str:
    """The same before it is kept, in a line: `about 2,400 tokens a run, 3 runs a day: about $0.01 a
    day with fake/model`."""
    cost, a_day, model = estimate.cost, estimate.a_day, estimate.model
    run = f"about {cost.tokens:,.0f} tokens"
    if isinstance(job.when, At):
        price = PRICE_UNKNOWN if cost.dollars is None else f"about {money(cost.dollars)}"
        return f"{run}, once: {price} with {model}"
    if a_day.dollars is not None:
        whole = f"about {money(a_day.dollars)} a day with {model}"
    else:
        whole = f"about {a_day.tokens:,.0f} tokens a day with {model}; {PRICE_UNKNOWN}"
    return f"{run} a run, {_often(a_day.runs)}: {whole}"


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


# --- rows --------------------------------------------------------------------------------------

Json = dict[str, Any]


def job_row(now: JobStatus) -> Json:
    """One job: `key`, `name`, whose, what, when, `next`, `state` in words, and its rules. One that
    stands still has no `next`; `once_resumed` is what would be."""
    job, zone = now.job, zone_of(now.job)
    return {
        "key": job.key,
        "name": job.name,
        "person": job.person_id,
        "person_name": now.person_name,
        "kind": job.kind.value,
        "what": what_words(job),
        "when": to_json(job.when),
        "when_words": when_words(job.when),
        "deliver_to": job.deliver_to,
        "next": due_row(job.next, zone) if job.enabled and job.next else None,
        "once_resumed": due_row(now.once_resumed, zone) if now.once_resumed else None,
        "enabled": job.enabled,
        "state": state_words(job),
        "set_by": job.set_by.value,
        "urgent": job.urgent,
        "quiet": job.quiet.value,
        "missed": job.missed.value,
        "missed_within_s": job.missed_within_s,
        "nag_s": job.nag_s,
        "max_runs": job.max_runs,
        "runs": job.runs,
        "failures": job.failures,
    }


def cost_row(estimate: Estimate) -> Json:
    """One run: `calls` of a model, `tokens`, `dollars` (null: unknown price); `a_day` on average:
    `runs`, `tokens`, `dollars`."""
    cost, a_day = estimate.cost, estimate.a_day
    return {
        "calls": cost.calls,
        "tokens": cost.tokens,
        "dollars": cost.dollars,
        "a_day": {"runs": a_day.runs, "tokens": a_day.tokens, "dollars": a_day.dollars},
    }


def ahead_rows(job: Job, runs: Sequence[DueAhead]) -> list[Json]:
    """Due times with what quiet hours and clocks do to them."""
    zone = zone_of(job)
    return [
        {
            **due_row(run.due, zone),
            "note": clock_note(run.due.at_ms, zone),
            "fate": "" if run.fate is None else run.fate.value,
            "told": iso(run.told_ms, zone),
        }
        for run in runs
    ]


def forecast_row(found: Forecast) -> Json:
    """`runs` in order (`job`, `name`, `kind`, `slot`, `at`, `fate`, `told`, `missed`, `note`,
    `tokens`, `dollars`), the `total`, and `troubles`."""
    return {
        "runs": [foreseen_row(run) for run in found.runs],
        "total": {
            "runs": len(found.runs),
            "calls": found.calls,
            "tokens": found.tokens,
            "dollars": found.dollars,
            "unpriced": found.unpriced,
        },
        "troubles": [{"job": key, "why": why} for key, why in found.troubles],
        "is_cut": found.is_cut,
    }


def foreseen_row(run: ForecastRun) -> Json:
    zone = zone_of(run.job)
    return {
        "job": run.job.key,
        "name": run.job.name,
        "kind": run.job.kind.value,
        "person": run.job.person_id,
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
    return zone_or_utc(job.when.zone)


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
