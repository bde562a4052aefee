"""`hearthbot schedule when`: how a time is read, of one text or of many. It keeps nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from bot.cli import render as out
from bot.cli.context import DONE, FAILED

if TYPE_CHECKING:
    from memory.records.schedule import TimeAnswer, TimeRead

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
    if as_json:
        out.print_json(found)
    elif out.is_terminal():
        _print_answer(answer, asked.zone)
    else:
        out.print_lines((out.tabbed(*row), "") for row in _rows(found))
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
    from memory.records.recurrence import to_json

    return {
        "sentence": reading.sentence,
        "when": to_json(reading.when),
        "next": [at.astimezone(zone).isoformat() for at in reading.next],
        "until": reading.until.isoformat() if reading.until else None,
        "runs_max": reading.runs_max,
    }


def _rows(found: out.Json) -> Iterator[tuple[str, ...]]:
    match found["status"]:
        case "read":
            yield "read", found["sentence"], found["tz"]
            for moment in found["next"]:
                yield "next", moment
        case "ask":
            yield "ask", found["question"]
            for one in found["options"]:
                yield "option", one["sentence"], *one["next"][:1]
        case _:
            yield "refused", found["why"]


def _print_answer(answer: TimeAnswer, zone: ZoneInfo) -> None:
    from memory.records.schedule import NoTime, TimeAsked, TimeRead
    from scheduler.timetext.numbers import day_words

    def local(at: datetime) -> str:
        here = at.astimezone(zone)
        return f"{day_words(here)}, {here:%H:%M %Z}"

    match answer:
        case TimeRead():
            out.print_lines([(_capital(answer.sentence), "good")])
            columns: out.Columns[datetime] = {
                f"Next in {zone.key}": local,
                "UTC": lambda at: f"{at:%m-%d %H:%M}",
            }
            out.print_rows(answer.next, columns)
        case TimeAsked():
            out.print_lines([(answer.text, "warn")])
            out.print_lines((f"  {_capital(one.sentence)}", "") for one in answer.options)
        case NoTime():
            out.print_lines([(answer.why, "bad")])


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"
