"""What `hearthbot memory` prints: lines for a terminal and for a pipe, and one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import typer

from memory.records.text import clean

Answer = Mapping[str, Any]
Line = tuple[str, str]
"""A text, and how it looks on a terminal: one of `_LOOKS`."""

_LOOKS: dict[str, dict[str, Any]] = {
    "": {},
    "head": {"bold": True},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "warn": {"fg": "yellow"},
    "dim": {"dim": True},
}

REFUSED_SHOWN = 10


def print_lines(lines: Iterable[Line]) -> None:
    """What people said must not be able to steer a terminal; colours are left out when piped."""
    for text, look in lines:
        safe = _safe(text)
        typer.echo(typer.style(safe, **_LOOKS[look]) if look and safe else safe)


def _safe(text: str) -> str:
    """On one line, without codes of a terminal."""
    return " ".join(clean(text).split())


# --- facts -------------------------------------------------------------------------------------


def facts_lines(answer: Answer) -> Iterator[str]:
    """For a pipe: a row each, its cells parted by tabs."""
    zone = _zone(answer)
    for fact in answer["facts"]:
        until = "" if fact["valid_to_ms"] is None else _day(fact["valid_to_ms"], zone)
        when = _day(fact["valid_from_ms"], zone)
        cells = [fact["key"], fact["category"], when, until, fact["scope"], fact["source"]]
        yield "\t".join([*cells, _safe(fact["text"])])


def print_facts(answer: Answer) -> None:
    """For a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    zone = _zone(answer)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("Fact", style="cyan", no_wrap=True)
    table.add_column("What", overflow="fold")
    table.add_column("Kind", style="dim")
    table.add_column("Since", no_wrap=True)
    table.add_column("From", style="dim", overflow="fold")
    for fact in answer["facts"]:
        since = _day(fact["valid_from_ms"], zone)
        if fact["valid_to_ms"] is not None:
            since += f"\nto {_day(fact['valid_to_ms'], zone)}"
        source = " ".join([fact["source"], fact["scope"]]).strip()
        table.add_row(
            fact["key"], Text(_safe(fact["text"])), fact["category"], since, Text(_safe(source))
        )
    Console(highlight=False).print(table)


def fact_lines(answer: Answer) -> Iterator[Line]:
    """One fact with its source, and what it replaced."""
    fact, zone = answer["fact"], _zone(answer)
    yield f"{fact['key']} {fact['text']}", "head"
    yield f"{fact['category']}, by {fact['source']}, {_day(fact['created_ms'], zone)}", ""
    if fact["scope"]:
        yield f"belongs to the group {fact['scope']}", ""
    if fact["speaker"]:
        yield f"said by {fact['speaker']}", ""
    if fact["quote"]:
        yield f"in these words: “{fact['quote']}”", ""
    if fact["message_id"] is not None:
        yield f"the line is message {fact['message_id']} of the history", "dim"
    if fact["valid_to_ms"] is not None:
        after = f", replaced by f{fact['superseded_by']}" if fact["superseded_by"] else ""
        yield f"held until {_day(fact['valid_to_ms'], zone)}{after}", "warn"
    yield f"confidence {fact['confidence']:.0%}, used {fact['uses']:,} times", "dim"
    for one in answer["past"]:
        span = f"{_day(one['valid_from_ms'], zone)} to {_day(one['valid_to_ms'], zone)}"
        yield f"in place of {one['key']} {one['text']} ({span})", "dim"


# --- forgetting --------------------------------------------------------------------------------


def found_lines(answer: Answer, *, files: bool) -> Iterator[Line]:
    """Every place that holds it."""
    yield f"What is kept of {answer['name']}, and would be erased:", "head"
    for fact in answer["facts"]:
        yield f"{fact['key']} {fact['text']}", ""
    for one in answer["words"]:
        yield f"- {one}", ""
    for text in answer["similar"]:
        yield f"says much the same, and stays unless you name its words: {text}", "warn"
    for path in answer["notes"]:
        yield f"- lines of {path}", ""
    for path in answer["files"]:
        yield f"- {path}{'' if files else ' (left as it is, unless --files is given)'}", "warn"
    if answer["backups"]:
        yield (
            f"- older copies of the database: {answer['backups']}, replaced by a new backup",
            "",
        )
    if answer["under_way"]:
        yield "- and what was begun before and not finished", "warn"


def proof_lines(answer: Answer) -> Iterator[Line]:
    """How it went."""
    if "erased" not in answer:
        return
    yield ("Forgotten.", "good") if answer["ok"] else ("Not forgotten everywhere.", "bad")
    for one in answer["failures"]:
        yield f"- {one}", "bad"
    for one in answer["words"]:
        yield f"- erased: {one}", ""
    if answer["blanked"]:
        yield f"- the words were blanked in: {', '.join(answer['blanked'])}", ""
    yield f"- the database is written anew; the new backup is {answer['backup']}", ""
    if answer["dropped"]:
        yield f"- removed: {', '.join(answer['dropped'])}", ""
    nowhere = ": nothing of this person in them has it any more" if answer["nowhere"] else ""
    yield f"- looked through {answer['files']:,} files, {answer['bytes']:,} bytes{nowhere}", ""
    if answer["left"]:
        yield f"- left as they are (--files blanks them): {', '.join(answer['left'])}", "warn"
    if answer["theirs"]:
        yield f"- others said the same, which is theirs: {', '.join(answer['theirs'])}", "warn"
    yield answer["cannot_reach"], "dim"


# --- bringing in -------------------------------------------------------------------------------


def imported_lines(answer: Answer) -> Iterator[Line]:
    """What became of a file."""
    counts = [f"{answer[kind]:,} {kind}" for kind in ("stored", "refreshed", "superseded")]
    yield f"Facts: {', '.join(counts)}, {len(answer['refused']):,} refused", "good"
    for one in answer["refused"][:REFUSED_SHOWN]:
        yield f"- not taken: {one['text']} ({one['why']})", "warn"
    if len(answer["refused"]) > REFUSED_SHOWN:
        yield f"- and {len(answer['refused']) - REFUSED_SHOWN:,} more", "warn"
    for part in ("profile", "documents", "notes"):
        if answer[part]:
            yield f"{part.capitalize()}: {', '.join(answer[part])}", ""
    if answer["left"]:
        yield f"Left as they stand here: {', '.join(answer['left'])}", "warn"


def _zone(answer: Answer) -> tzinfo:
    try:
        return ZoneInfo(answer["zone"])
    except (ValueError, OSError, KeyError):
        return UTC


def _day(at_ms: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(at_ms / 1000, zone).date().isoformat()
