"""What commands print: JSON, lines, and rows: a table on a terminal, in a pipe cells with tabs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

import typer

from bot.cli.context import WRONG_USAGE
from memory.records.text import clean

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

Json = dict[str, Any]
Line = tuple[str, str]
"""A text, and how it looks on a terminal: a key of `LOOKS`. A tab parts cells."""
Lines = Iterable[Line]
RowT = TypeVar("RowT")

LOOKS = {"": "", "head": "bold", "good": "green", "bad": "red", "warn": "yellow", "dim": "dim"}
HEAD_CHARS = 8
"""Of the first cell of a line on a terminal."""


def render(value: object, lines: Lines, *, as_json: bool) -> None:
    """Print a value as JSON, or else these lines."""
    if as_json:
        print_json(value)
    else:
        print_lines(lines)


def say(text: str, *, as_json: bool, **more: object) -> None:
    """Print what was done in words, or the words and more as JSON."""
    render({"text": text, **more}, ((line, "") for line in text.splitlines()), as_json=as_json)


def print_json(value: object) -> None:
    """Print records by their fields, in one line."""
    from pydantic_core import to_jsonable_python

    typer.echo(json.dumps(to_jsonable_python(value), ensure_ascii=False))


def fields(record: object, *names: str) -> Json:
    """Return these fields of a record, for JSON."""
    return {name: getattr(record, name) for name in names}


def print_lines(lines: Lines) -> None:
    """Print each; on a terminal in colours, with cells in columns."""
    for text, look in lines:
        shown = safe(text)
        if is_terminal():
            head, tab, rest = shown.partition("\t")
            shown = f"{head:<{HEAD_CHARS}}{rest.replace(chr(9), '  ')}" if tab else shown
            if look and shown:
                style: Json = {look: True} if look == "dim" else {"fg": LOOKS[look]}
                shown = typer.style(shown, **({"bold": True} if look == "head" else style))
        typer.echo(shown)


def safe(text: str) -> str:
    """Return a text that cannot steer a terminal, whoever wrote it, nor hide anything."""
    from agent.skills.parser import cleaned

    return cleaned(clean(text))


def flat(text: object) -> str:
    """Return it on one line: it does not break a row."""
    return " ".join(safe(str(text)).split())


def shortened(text: str, chars_max: int) -> str:
    """Return it on one line, cut to so many characters."""
    line = flat(text)
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def tabbed(*cells: object) -> str:
    """Return a row for a pipe."""
    texts = (one.isoformat() if isinstance(one, datetime) else one for one in cells)
    return "\t".join(map(flat, texts))


# --- tables --------------------------------------------------------------------------------------

Columns = Mapping[str, Callable[[RowT], object]]
"""By their headings what stands in the cells of a row: texts, whole numbers, moments."""


def print_rows(
    rows: Sequence[RowT],
    columns: Columns[RowT],
    *,
    title: str = "",
    piped_only: Collection[str] = (),
) -> None:
    """Print a table on a terminal, else a line each, its cells parted by tabs."""
    if not is_terminal():
        print_lines((tabbed(*(cell(row) for cell in columns.values())), "") for row in rows)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    shown = {heading: cell for heading, cell in columns.items() if heading not in piped_only}
    for number, (heading, cell) in enumerate(shown.items()):
        is_number = bool(rows) and isinstance(cell(rows[0]), int)
        table.add_column(
            heading,
            style="" if number else "cyan",
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=not number,  # what it is called, to be typed
        )
    for row in rows:
        # Text, so that what people wrote in brackets is no markup.
        table.add_row(*(Text(_shown(cell(row))) for cell in shown.values()))
    Console(highlight=False).print(table)


def _shown(value: object) -> str:
    """Return a cell on a terminal."""
    match value:
        case datetime():
            return f"{value:%a} {value.day} {value:%b %H:%M %z}"
        case int():
            return f"{value:,}"
        case _:
            return safe(str(value))


# --- asking --------------------------------------------------------------------------------------


def is_terminal() -> bool:
    """Return whether somebody reads what is printed on a terminal."""
    return sys.stdout.isatty()


def is_interactive() -> bool:
    """Return whether somebody can answer; a script has made up its mind."""
    return sys.stdin.isatty() and is_terminal()


def confirm(question: str) -> None:
    """Ask where somebody can answer, and end the command on a no.

    Nothing is held open meanwhile: another command may run while somebody reads.
    """
    if is_interactive():
        typer.confirm(question, abort=True)


def wrong_usage(sentence: str) -> typer.Exit:
    """Say one sentence, and return the exit to raise."""
    typer.secho(sentence, err=True, fg="red")
    return typer.Exit(WRONG_USAGE)
