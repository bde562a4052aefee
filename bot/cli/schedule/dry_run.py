"""`hearthbot schedule test` and `simulate`: what jobs would do and cost, beforehand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import Bot, call, run
from bot.cli.context import FAILED
from bot.cli.schedule import jobs as shown
from memory.records.errors import Permanent
from memory.records.jobs import OPERATOR, JobRef

if TYPE_CHECKING:
    from agent.trace.dry_run import Heard
    from memory.records.schedule import Forecast, ForecastRun
    from scheduler.kinds.dry_run import DryRun

Name = Annotated[
    str, typer.Argument(metavar="JOB", help="Its key, such as j12, or how its name begins.")
]

SPAN_USUAL = "7d"
_SPAN = re.compile(r"(\d{1,5})\s*([hdw])", re.IGNORECASE)
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0}

TABLE_ROWS_MAX = 200
"""Of a simulation in a terminal; a pipe and --json have all."""


def try_out(
    job: Name,
    with_model: Annotated[
        bool,
        typer.Option("--with-model", help="Ask the model too; every call of a tool is blocked."),
    ] = False,
    as_json: out.AsJson = False,
) -> None:
    """Show what a run would be: prompt, tools, target, next runs and cost. It has no effect."""
    found = call(App.dry_runs.dry_run, JobRef(job), by=OPERATOR, with_model=with_model)
    out.render(_test_json(found), _test_lines(found), as_json=as_json)
    if found.trouble:
        raise typer.Exit(FAILED)


def _test_json(found: DryRun) -> out.Json:
    job, sent, shift, heard = found.status.job, found.sent, found.shift, found.heard
    return {
        **out.fields(sent, "asks", "model", "tokens", "tools"),
        "job": shown.job_json(found.status),
        "cost": None if found.estimate is None else shown.cost_json(found.estimate),
        "next_runs": [shown.ahead_json(one, job) for one in found.next_runs],
        "shift": shift
        and {
            "at": shift.at.isoformat(),
            "runs": [shown.ahead_json(one, job) for one in shift.runs],
        },
        "trouble": found.trouble,
        "heard": heard
        and {
            **out.fields(heard, "text", "dollars"),
            "wishes": [{"tool": one.name, "arguments": one.arguments} for one in heard.wishes],
            "tokens": heard.usage.prompt + heard.usage.completion,
        },
        "prompt": {"system": sent.system, "user": sent.user},
    }


def _test_lines(found: DryRun) -> out.Lines:
    job, sent = found.status.job, found.sent
    yield from shown.job_lines(found.status)
    if found.trouble:
        yield f"It would not run: {out.flat(found.trouble)}", "bad"
        return
    yield from shown.ahead_lines(found.next_runs, job)
    if found.shift:
        yield f"clocks\tare changed at {found.shift.at.isoformat()}", "warn"
        yield from shown.ahead_lines(found.shift.runs, job)
    if not sent.asks or found.estimate is None:
        yield "It asks no model: what stands above is sent, or called, as it is.", ""
        return
    yield f"model\t{out.flat(sent.model)}, about {sent.tokens:,} tokens to begin with", ""
    yield f"tools\t{out.flat(', '.join(sent.tools)) or 'none'}", ""
    yield f"cost\t{shown.pace_words(found.estimate)}", ""
    for part, text in (("system", sent.system), ("user", sent.user)):
        yield f"--- {part}", "head"
        yield text, ""
    yield from _heard_lines(found.heard)


def _heard_lines(heard: Heard | None) -> out.Lines:
    if heard is None:
        yield "--- nothing was sent and no tool ran; --with-model asks the model too", "dim"
        return
    yield "--- what the model says", "head"
    for wish in heard.wishes:
        yield f"wanted, and not run\t{out.flat(wish.name)}\t{out.flat(wish.arguments)}", "warn"
    yield heard.text or "(no words)", ""
    tokens = heard.usage.prompt + heard.usage.completion
    yield f"--- {shown.cost_words(heard.dollars, tokens)}; nothing else happened", "dim"


def simulate(
    span: Annotated[
        str, typer.Argument(help="How far to look: 7d, 12h, 2w.", metavar="[SPAN]")
    ] = SPAN_USUAL,
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="In ISO form; now, if left out.")
    ] = "",
    as_json: out.AsJson = False,
) -> None:
    """Show everything that would fire, in order, when it would be told, and what it costs."""
    wanted = _SPAN.fullmatch(span.strip())
    if wanted is None or not int(wanted[1]):
        raise out.wrong_usage(
            f"{span[:20]!r} is no span: it takes a number and h, d or w, as in 7d."
        )
    days = int(wanted[1]) * _DAYS[wanted[2].lower()]

    async def foreseen(bot: Bot) -> Forecast:
        begin = _moment(since, (await bot.call(App.access.named, "")).time_zone) if since else None
        return await bot.call(App.dry_runs.forecast, days=days, since=begin)

    found = run(foreseen)
    if as_json:
        out.print_json({"days": days, **_forecast_json(found)})
        return
    runs = found.runs[:TABLE_ROWS_MAX] if out.is_terminal() else found.runs
    if runs:
        columns: out.Columns[ForecastRun] = {
            "When": lambda one: shown.moment_of(one.runs_ms, one.job),
            "Job": lambda one: one.job.key,
            "Name": lambda one: one.job.name,
            "Fate": lambda one: one.fate.value,
            "Told": _told,
            "Tokens": lambda one: 0 if one.cost is None else one.cost.tokens,
            "Dollars": _dollars,
            "Note": _note,
        }
        out.print_rows(runs, columns)
    total = list(_total(found))
    if out.is_terminal():
        if more := len(found.runs) - len(runs):
            out.print_lines([(f"… and {more:,} more; --json has all", "dim")])
        out.print_lines([("In all: " + ", ".join(total), "head")])
    else:
        out.print_lines([("\t".join(["total", *total]), "")])
    out.print_lines((f"trouble\t{key}\t{out.flat(why)}", "bad") for key, why in found.troubles)


def _moment(text: str, zone: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Permanent(
            f"{text[:40]!r} is no time in ISO form, such as 2026-12-01T09:00."
        ) from None
    there = found if found.tzinfo else found.replace(tzinfo=shown.zone_by_name(zone))
    return there.astimezone(UTC)


def _forecast_json(found: Forecast) -> out.Json:
    return {
        "since": datetime.fromtimestamp(found.since_ms / 1000, UTC).isoformat(),
        "runs": [_foreseen_json(one) for one in found.runs],
        "total": {
            "runs": len(found.runs),
            **out.fields(found, "calls", "tokens", "dollars", "unpriced"),
        },
        "troubles": [{"job": key, "why": why} for key, why in found.troubles],
        "is_cut": found.is_cut,
    }


def _foreseen_json(one: ForecastRun) -> out.Json:
    job = one.job
    return {
        **out.fields(job, "name", "kind"),
        **out.fields(one, "fate", "missed"),
        "job": job.key,
        "person": job.person_id,
        "slot": one.due.slot,
        "at": shown.iso(one.runs_ms, job),
        "told": None if one.told_ms is None else shown.iso(one.told_ms, job),
        "note": shown.clock_note(one.due, job),
        "tokens": 0 if one.cost is None else one.cost.tokens,
        "dollars": None if one.cost is None else one.cost.dollars,
    }


def _note(one: ForecastRun) -> str:
    missed = f"for {one.missed} that were missed" if one.missed > 1 else ""
    return "; ".join(part for part in (missed, shown.clock_note(one.due, one.job)) if part)


def _told(one: ForecastRun) -> datetime | str:
    return "-" if one.told_ms is None else shown.moment_of(one.told_ms, one.job)


def _dollars(one: ForecastRun) -> str:
    dollars = None if one.cost is None else one.cost.dollars
    return "?" if dollars is None else f"{dollars:.6f}"


def _total(found: Forecast) -> Iterator[str]:
    from agent.budget.messages import money

    yield f"{len(found.runs):,} runs{' and more' if found.is_cut else ''}"
    yield f"{found.calls:,} model calls"
    yield f"{found.tokens:,} tokens"
    yield f"about {money(found.dollars)}"
    if found.unpriced:
        yield f"{found.unpriced:,} runs of unknown price"
