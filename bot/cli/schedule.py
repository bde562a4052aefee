"""`hearthbot schedule`: what runs by the clock. `when` shows how a time is read; saves nothing. The
other commands are those of `bot.cli.schedule_jobs`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from bot.cli.context import DONE, FAILED, WRONG_USAGE
from bot.cli.schedule_jobs import add_to

if TYPE_CHECKING:
    from rich.console import Console

    from memory.records.schedule import TimeAnswer, TimeRead

app = typer.Typer(help="What runs by the clock.", no_args_is_help=True)

COUNT_MAX = 1_000
COUNT_USUAL = 3
LINE_CHARS_MAX = 10_000
YEARS = (1970, 2999)
"""Between these a text may be said."""

Line = dict[str, Any]
"""One answer for JSON; its keys stand in docs/schedule.md."""


class _Unusable(Exception):
    """What was given beside the text; the sentence says what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A text, when and where it is said, and how many due times are wanted."""

    text: str
    now: datetime
    zone: ZoneInfo
    count: int


@app.callback()
def schedule() -> None:
    """What runs by the clock."""


@app.command()
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how a time is read, in plain words or as cron text, and its next runs."""
    try:
        asked = _asked({"text": text, "tz": tz, "now": now, "count": count})
    except _Unusable as error:
        typer.secho(str(error), err=True, fg="red")
        raise typer.Exit(WRONG_USAGE) from None
    if text == "-":
        raise typer.Exit(_answer_lines({"tz": tz, "now": now, "count": count}))
    answer = _read(asked)
    if as_json:
        typer.echo(json.dumps(line(answer, asked), ensure_ascii=False))
    elif sys.stdout.isatty():
        from rich.console import Console

        print_answer(answer, asked, Console(highlight=False))
    else:
        for row in rows(answer, asked):
            typer.echo("\t".join(row))
    raise typer.Exit(DONE if line(answer, asked)["status"] == "read" else FAILED)


add_to(app)


# --- what is asked --------------------------------------------------------------------------------


def _asked(given: Mapping[str, Any]) -> Asked:
    """Raises _Unusable for what is of the wrong kind, or out of bounds."""
    text, count = given.get("text"), given.get("count", COUNT_USUAL)
    if not isinstance(text, str):
        raise _Unusable("'text' is missing: the time to read, as a string.")
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= COUNT_MAX:
        raise _Unusable(f"'count' takes a whole number from 1 to {COUNT_MAX:,}.")
    zone = _zone(given.get("tz") or "")
    return Asked(text=text, now=_now(given.get("now") or "", zone), zone=zone, count=count)


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


def _read(asked: Asked) -> TimeAnswer:
    from scheduler.timetext.parse import read

    return read(asked.text, now=asked.now, zone=asked.zone, count=asked.count)


# --- many at once ---------------------------------------------------------------------------------


def _answer_lines(usual: Mapping[str, Any]) -> int:
    """One JSON object a line for each one that comes; the exit code."""
    code = DONE
    for given in sys.stdin:
        if not given.strip():
            continue
        answer = _answered(given, usual)
        if answer["status"] == "error":
            code = FAILED
        typer.echo(json.dumps(answer, ensure_ascii=False))
        sys.stdout.flush()
    return code


def _answered(given: str, usual: Mapping[str, Any]) -> Line:
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
    try:
        asked = _asked({**usual, **{key: data[key] for key in _KEYS if key in data}})
    except _Unusable as error:
        return {**named, "status": "error", "why": str(error)}
    return {**named, **line(_read(asked), asked)}


_KEYS = ("text", "tz", "now", "count")


# --- answers --------------------------------------------------------------------------------------


def line(answer: TimeAnswer, asked: Asked) -> Line:
    """For JSON."""
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


def _reading(reading: TimeRead, zone: ZoneInfo) -> Line:
    from memory.records.recurrence import to_json

    return {
        "sentence": reading.sentence,
        "when": to_json(reading.when),
        "next": [at.astimezone(zone).isoformat() for at in reading.next],
        "until": reading.until.isoformat() if reading.until else None,
        "runs_max": reading.runs_max,
    }


def rows(answer: TimeAnswer, asked: Asked) -> Iterator[tuple[str, ...]]:
    """For a pipe: what the row is, and what it says."""
    shown = line(answer, asked)
    match shown["status"]:
        case "read":
            yield "read", shown["sentence"], shown["tz"]
            for moment in shown["next"]:
                yield "next", moment
        case "ask":
            yield "ask", shown["question"]
            for one in shown["options"]:
                yield "option", one["sentence"], *one["next"][:1]
        case _:
            yield "refused", shown["why"]


def print_answer(answer: TimeAnswer, asked: Asked, console: Console) -> None:
    """For a terminal: in colour, the next runs in a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from memory.records.schedule import NoTime, TimeAsked, TimeRead
    from scheduler.timetext.numbers import day_words

    match answer:
        case TimeRead():
            console.print(Text(_capital(answer.sentence), style="bold green"))
            table = Table(box=SIMPLE_HEAD, pad_edge=False)
            table.add_column(f"Next in {asked.zone.key}", style="cyan")
            table.add_column("UTC", justify="right", style="dim")
            for at in answer.next:
                local = at.astimezone(asked.zone)
                table.add_row(f"{day_words(local)}, {local:%H:%M %Z}", f"{at:%m-%d %H:%M}")
            console.print(table)
        case TimeAsked():
            console.print(Text(answer.text, style="bold yellow"))
            for one in answer.options:
                console.print(Text(f"  {_capital(one.sentence)}"))
        case NoTime():
            console.print(Text(answer.why, style="red"))


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"
