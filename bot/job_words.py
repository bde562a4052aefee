"""What is said about jobs in plain words: by `hearthbot schedule`. Pure; loads nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent.jobs import At, Cron, Every, When
from agent.scheduled import Job, JobKind, list_name
from bot.prompt_words import PRICE_UNKNOWN, money

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
    """What it takes a day and a month, in a sentence. `cost` is as `bot.jobs` answers it."""
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
