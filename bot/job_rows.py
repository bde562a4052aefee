"""Jobs and what comes of them as JSON objects, for `hearthbot schedule`. Called by `bot.jobs`."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.foreseen import Foreseen, Pace, RunCost
from agent.jobs import to_json
from agent.rehearsing import Heard
from agent.scheduled import Due, Job, JobRun
from bot.job_ports import HasName
from bot.job_words import clock_note, state_words, what_words, when_words, zone_or_utc

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
