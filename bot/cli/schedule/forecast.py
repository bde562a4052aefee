"""`hearthbot schedule test`, `simulate` and `when`: what jobs would do and cost, and how a time is
read. Nothing is kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import Bot, call, run
from bot.cli.context import DONE, FAILED
from bot.cli.schedule import render as shown
from memory.records.errors import Permanent
from memory.records.jobs import OPERATOR, JobRef

if TYPE_CHECKING:
    from memory.records.schedule import Forecast, ForecastRun, TimeAnswer, TimeRead
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
    if found.heard is None:
        yield "--- nothing was sent and no tool ran; --with-model asks the model too", "dim"
        return
    yield "--- what the model says", "head"
    for wish in found.heard.wishes:
        yield f"wanted, and not run\t{out.flat(wish.name)}\t{out.flat(wish.arguments)}", "warn"
    yield found.heard.text or "(no words)", ""
    tokens = found.heard.usage.prompt + found.heard.usage.completion
    yield f"--- {shown.cost_words(found.heard.dollars, tokens)}; nothing else happened", "dim"


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
    # Loaded here: `--help` needs no prices.
    from agent.budget.messages import money

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
            "Fate": lambda one: one.fate or "",
            "Told": lambda one: (
                "-" if one.told_ms is None else shown.moment_of(one.told_ms, one.job)
            ),
            "Tokens": lambda one: 0 if one.cost is None else one.cost.tokens,
            "Dollars": lambda one: (
                "?" if one.cost is None or one.cost.dollars is None else f"{one.cost.dollars:.6f}"
            ),
            "Note": _note,
        }
        out.print_rows(runs, columns)
    total = [
        f"{len(found.runs):,} runs{' and more' if found.is_cut else ''}",
        f"{found.calls:,} model calls",
        f"{found.tokens:,} tokens",
        f"about {money(found.dollars)}",
        *([f"{found.unpriced:,} runs of unknown price"] if found.unpriced else []),
    ]
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
        "runs": [
            {
                **out.fields(one.job, "name", "kind"),
                **out.fields(one, "fate", "missed"),
                "job": one.job.key,
                "person": one.job.person_id,
                "slot": one.due.slot,
                "at": shown.iso(one.runs_ms, one.job),
                "told": None if one.told_ms is None else shown.iso(one.told_ms, one.job),
                "note": shown.clock_note(one.due, one.job),
                "tokens": 0 if one.cost is None else one.cost.tokens,
                "dollars": None if one.cost is None else one.cost.dollars,
            }
            for one in found.runs
        ],
        "total": {
            "runs": len(found.runs),
            **out.fields(found, "calls", "tokens", "dollars", "unpriced"),
        },
        "troubles": [{"job": key, "why": why} for key, why in found.troubles],
        "is_cut": found.is_cut,
    }


def _note(one: ForecastRun) -> str:
    missed = f"for {one.missed} that were missed" if one.missed > 1 else ""
    return "; ".join(part for part in (missed, shown.clock_note(one.due, one.job)) if part)


# --- when ---------------------------------------------------------------------------------------

COUNT_MAX, COUNT_USUAL = 1_000, 3
LINE_CHARS_MAX = 10_000
YEARS = (1970, 2999)
"""Between these a text may be said."""


class _Unusable(Exception):
    """What was given beside the text; the sentence says what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A text, when and where it is said, and how many due times are wanted."""

    text: str
    now: datetime
    zone: ZoneInfo
    count: int

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Asked:
        """Read one from JSON or options. Raise _Unusable for what is of the wrong kind, or out of
        bounds."""
        text, count = given.get("text"), given.get("count", COUNT_USUAL)
        if not isinstance(text, str):
            raise _Unusable("'text' is missing: the time to read, as a string.")
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= COUNT_MAX:
            raise _Unusable(f"'count' takes a whole number from 1 to {COUNT_MAX:,}.")
        zone = _zone(given.get("tz") or "")
        return cls(text=text, now=_now(given.get("now") or "", zone), zone=zone, count=count)

    def read(self) -> TimeAnswer:
        """Read the text as a time."""
        from scheduler.timetext.parse import read

        return read(self.text, now=self.now, zone=self.zone, count=self.count)


def when(
    text: Annotated[str, typer.Argument(help="A time; - reads one JSON object a line instead.")],
    tz: Annotated[
        str, typer.Option("--tz", metavar="ZONE", help="The time zone; that of this machine.")
    ] = "",
    now: Annotated[
        str, typer.Option("--now", metavar="TIME", help="When it is said, in ISO form; now.")
    ] = "",
    count: Annotated[
        int, typer.Option("--count", min=1, max=COUNT_MAX, help="So many next runs.")
    ] = COUNT_USUAL,
    as_json: out.AsJson = False,
) -> None:
    """Show how a time is read, in plain words or as cron text, and its next runs."""
    usual = {"tz": tz, "now": now, "count": count}
    try:
        asked = Asked.of({"text": text, **usual})
    except _Unusable as error:
        raise out.wrong_usage(str(error)) from None
    if text == "-":
        raise typer.Exit(_answer_lines(usual))
    answer = asked.read()
    found = answer_json(answer, asked)
    out.render(found, shown.answer_lines(answer, asked.zone), as_json=as_json)
    raise typer.Exit(DONE if found["status"] == "read" else FAILED)


def _zone(name: object) -> ZoneInfo:
    from bot.people.timezone import read_zone
    from bot.settings.options import host_zone

    if not isinstance(name, str):
        raise _Unusable("'tz' takes the name of a time zone, such as Europe/Berlin.")
    if not name:
        return ZoneInfo(host_zone())
    found = read_zone(name, now=datetime.now(UTC))
    if not found.zone:
        meant = ", ".join(found.suggestions) or "Europe/Berlin or America/New_York"
        raise _Unusable(f"{name[:64]!r} is no time zone that is known here. Write {meant}.")
    return ZoneInfo(found.zone)


def _now(text: object, zone: ZoneInfo) -> datetime:
    """Without an offset it is what the clock of the zone shows."""
    if not text:
        return datetime.now(zone)
    example = "2026-12-01T09:30 or 2026-12-01T09:30+01:00"
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        raise _Unusable(f"{str(text)[:64]!r} is no time in ISO form, such as {example}.") from None
    if not YEARS[0] < found.year < YEARS[1]:
        raise _Unusable(f"It cannot be said in the year {found.year}: give one like {example}.")
    return found.astimezone(zone) if found.tzinfo else found.replace(tzinfo=zone)


# --- many at once ---------------------------------------------------------------------------------


def _answer_lines(usual: Mapping[str, Any]) -> int:
    """Answer one JSON object a line for each one that comes; return the exit code."""
    code = DONE
    for given in sys.stdin:
        if not given.strip():
            continue
        answer = _answered(given, usual)
        if answer["status"] == "error":
            code = FAILED
        out.print_json(answer)
        sys.stdout.flush()
    return code


def _answered(given: str, usual: Mapping[str, Any]) -> out.Json:
    """A line that cannot be used is answered too, so that answers keep step with lines."""
    if len(given) > LINE_CHARS_MAX:
        return {"status": "error", "why": f"A line has at most {LINE_CHARS_MAX:,} characters."}
    try:
        data = json.loads(given)
    except (ValueError, RecursionError) as error:
        return {"status": "error", "why": f"This line is no JSON: {error}."}
    if not isinstance(data, dict):
        return {"status": "error", "why": "A line is a JSON object with a 'text'."}
    named = {"id": data["id"]} if "id" in data else {}
    keys = ("text", "tz", "now", "count")
    try:
        asked = Asked.of({**usual, **{key: data[key] for key in keys if key in data}})
    except _Unusable as error:
        return {**named, "status": "error", "why": str(error)}
    return {**named, **answer_json(asked.read(), asked)}


# --- answers --------------------------------------------------------------------------------------


def answer_json(answer: TimeAnswer, asked: Asked) -> out.Json:
    """Return an answer for JSON; its keys stand in docs/schedule.md."""
    from memory.records.schedule import NoTime, TimeAsked, TimeRead

    said = {"text": asked.text, "tz": asked.zone.key}
    match answer:
        case TimeRead():
            return {**said, "status": "read", **_reading(answer, asked.zone)}
        case TimeAsked():
            options = [_reading(one, asked.zone) for one in answer.options]
            past = {"past": answer.past.isoformat()} if answer.past else {}
            return {**said, "status": "ask", "question": answer.text, "options": options, **past}
        case NoTime():
            return {**said, "status": "refused", "why": answer.why}


def _reading(reading: TimeRead, zone: ZoneInfo) -> out.Json:
    from memory.records.jobs import to_json

    return {
        "sentence": reading.sentence,
        "when": to_json(reading.when),
        "next": [at.astimezone(zone).isoformat() for at in reading.next],
        "until": reading.until.isoformat() if reading.until else None,
        "runs_max": reading.runs_max,
    }
