"""How `hearthbot schedule` shows jobs, their times and what they cost: as JSON, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.cli import render as out
from memory.records.jobs import (
    At,
    Cron,
    Due,
    Every,
    Job,
    JobKind,
    JobStatus,
    When,
    list_name,
    to_json,
)

if TYPE_CHECKING:
    from memory.records.schedule import Estimate, ForecastRun, TimeAnswer

DAYS_A_MONTH = 30

FATES = {
    "told": "told at once",
    "held": "waits for the end of quiet hours",
    "digest": "too much for one day: waits for the next",
    "dropped": "dropped: quiet hours",
    "skipped": "missed, and not made up for",
    "asked": "missed: its person is asked",
}


# --- jobs ----------------------------------------------------------------------------------------


def job_json(now: JobStatus) -> out.Json:
    """Return one job with its rules. One that stands still has no `next`; `once_resumed` is what
    would be."""
    job, then = now.job, now.once_resumed
    names = ("key", "name", "kind", "deliver_to", "enabled", "set_by", "urgent", "quiet", "missed")
    rules = ("missed_within_s", "nag_s", "max_runs", "runs", "failures")
    return {
        **out.fields(job, *names, *rules),
        "person": job.person_id,
        "person_name": now.person_name,
        "what": what_words(job),
        "when": to_json(job.when),
        "when_words": when_words(job.when),
        "next": due_json(job.next, job) if job.enabled and job.next else None,
        "once_resumed": due_json(then, job) if then else None,
        "state": state_words(job),
    }


def job_lines(now: JobStatus) -> out.Lines:
    job = now.job
    yield f"{job.key}\t{out.flat(job.name)}\t{job.kind.value}", "head"
    state = state_words(job)
    yield f"state\t{out.flat(state)}", "good" if state == "on" else "warn"
    yield f"what\t{out.flat(what_words(job))}", ""
    yield f"when\t{when_words(job.when)}", ""
    name = f", for {out.flat(now.person_name)}" if now.person_name else ""
    yield f"to\t{job.deliver_to}{name}", ""
    within = f" within {job.missed_within_s // 3600} h" if job.missed_within_s else ""
    rules = [
        f"missed: {job.missed.value}{within}",
        "urgent" if job.urgent else f"quiet hours: {job.quiet.value}",
        f"set by: {job.set_by.value}",
        *([f"again every {job.nag_s // 60} min until done"] if job.nag_s else []),
        *([f"{job.max_runs} runs at most"] if job.max_runs else []),
        f"{job.runs} runs so far",
    ]
    yield f"rules\t{', '.join(rules)}", ""


def cost_json(estimate: Estimate) -> out.Json:
    """Return what one run takes, and all of a day on average; `dollars` null: unknown price."""
    return {
        **out.fields(estimate.cost, "calls", "tokens", "dollars"),
        "a_day": out.fields(estimate.a_day, "runs", "tokens", "dollars"),
    }


# --- words ---------------------------------------------------------------------------------------


def when_words(when: When) -> str:
    """`at 2026-12-01 17:00 (Europe/Berlin)`, `every 30 minutes`, `by 0 9 * * 1-5 (UTC)`."""
    match when:
        case At():
            return (
                f"at {when.moment.astimezone(zone_by_name(when.zone)):%Y-%m-%d %H:%M} ({when.zone})"
            )
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


def zone_by_name(name: str) -> ZoneInfo:
    """Return a zone by its name; this machine's for none, UTC for one that is not known here."""
    from bot.settings.options import host_zone

    try:
        return ZoneInfo(name or host_zone())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def moment_of(ms: int, job: Job) -> datetime:
    """A moment in the zone of a job."""
    return datetime.fromtimestamp(ms / 1000, zone_by_name(job.when.zone))


def iso(ms: int, job: Job) -> str:
    return moment_of(ms, job).isoformat()


def wall(at: datetime) -> str:
    """Mon 1 Jun 09:00 +0200."""
    return f"{at:%a} {at.day} {at:%b %H:%M %z}"


def due_json(due: Due, job: Job) -> out.Json:
    return {"slot": due.slot, "at": iso(due.at_ms, job)}


def ahead_json(one: ForecastRun, job: Job) -> out.Json:
    return {
        **due_json(one.due, job),
        "note": clock_note(one.due, job),
        "fate": one.fate or "",
        "told": None if one.told_ms is None else iso(one.told_ms, job),
    }


def ahead_lines(runs: Sequence[ForecastRun], job: Job) -> out.Lines:
    """Due times, with what quiet hours and clocks do to them."""
    for one in runs:
        cells = ["next", iso(one.due.at_ms, job)]
        if one.fate is not None and one.fate != "told":
            told = "" if one.told_ms is None else f" ({wall(moment_of(one.told_ms, job))})"
            cells.append(f"{FATES[one.fate]}{told}")
        if note := clock_note(one.due, job):
            cells.append(note)
        yield "\t".join(cells), ""


def clock_note(due: Due, job: Job) -> str:
    """Return what a change of clocks does to a due time; empty: nothing."""
    local = moment_of(due.at_ms, job)
    utc = local.astimezone(UTC)
    before = (utc - timedelta(minutes=1)).astimezone(local.tzinfo)
    gone = local.replace(tzinfo=None) - before.replace(tzinfo=None)
    if gone > timedelta(minutes=1):
        return "clocks are set forward: right after the times that are left out"
    other = local.replace(fold=1 - local.fold)
    # Within a gap the two differ as well, but no clock shows such a time.
    if other.utcoffset() != local.utcoffset():
        return "clocks are set back: this time comes twice" + (", the second" * local.fold)
    day_before = (utc - timedelta(days=1)).astimezone(local.tzinfo)
    if day_before.utcoffset() != local.utcoffset():
        return f"clocks were changed: {local:%Z} instead of {day_before:%Z}"
    return ""


def answer_lines(answer: TimeAnswer, zone: ZoneInfo) -> out.Lines:
    """Return how a time is read, with its next runs; what is asked first, or why it is none."""
    from memory.records.schedule import NoTime, TimeAsked, TimeRead

    match answer:
        case TimeRead():
            yield f"read\t{out.flat(answer.sentence)}\t{zone.key}", "head"
            for at in answer.next:
                yield f"next\t{at.astimezone(zone).isoformat()}", ""
        case TimeAsked():
            yield f"ask\t{out.flat(answer.text)}", "warn"
            for one in answer.options:
                moments = [at.astimezone(zone).isoformat() for at in one.next[:1]]
                yield "\t".join(["option", out.flat(one.sentence), *moments]), ""
        case NoTime():
            yield f"refused\t{out.flat(answer.why)}", "bad"


def cost_words(dollars: float | None, tokens: float) -> str:
    """`about $0.0012 (3,200 tokens)`."""
    from agent.budget.messages import PRICE_UNKNOWN, money

    if not tokens:
        return "nothing"
    known = f"about {money(dollars)}" if dollars is not None else PRICE_UNKNOWN
    return f"{known} ({tokens:,.0f} tokens)"


def pace_words(estimate: Estimate) -> str:
    """Return what it takes a day and a month, in a sentence."""
    from agent.budget.messages import PRICE_UNKNOWN, money

    cost, a_day = estimate.cost, estimate.a_day
    if not cost.tokens:
        return "It asks no model and costs nothing."
    calls = "1 call" if cost.calls == 1 else f"{cost.calls} calls"
    each = f"One run ({calls} of a model): {cost_words(cost.dollars, cost.tokens)}."
    if a_day.dollars is None:
        of = f"{a_day.tokens:,.0f} tokens a day, {a_day.tokens * DAYS_A_MONTH:,.0f} a month"
        return f"It will take {of}; {PRICE_UNKNOWN}. {each}"
    day, month = money(a_day.dollars), money(a_day.dollars * DAYS_A_MONTH)
    return (
        f"It will cost about {day} a day, {month} a month, at {a_day.runs:.3g} runs a day. {each}"
    )
