"""`hearthbot usage`: tokens and money by day, person, chat, job and model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.app import App
from bot.cli.client import call
from bot.cli.context import WRONG_USAGE
from memory.records.text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from agent.budget.service import BudgetRow, UsageFigures, UsageReport

BY = ("day", "person", "chat", "job", "model", "agent", "purpose")
USUALLY = ("day", "person", "chat", "job", "model")
HEADINGS = {
    "day": "Day",
    "person": "Person",
    "chat": "Chat",
    "job": "Job",
    "model": "Model",
    "agent": "Agent",
    "purpose": "For",
}
COLUMNS = ("Calls", "In", "Cached", "Out", "Cost")
ROWS_MAX = 31


def usage(
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT", help=f"One of {', '.join(BY)}; may be given again."),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3_660, help="So many days back, today among them.")
    ] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what was asked of models, and what it cost: by day, person, chat, job, model."""
    wanted = tuple(dict.fromkeys(by or USUALLY))
    if unknown := [one for one in wanted if one not in BY]:
        allowed = ", ".join(BY)
        typer.secho(f"--by {unknown[0][:40]!r} is not known: it takes {allowed}.", err=True)
        raise typer.Exit(WRONG_USAGE)
    report = call(App.usage.report, days=days, by=wanted)
    if as_json:
        typer.echo(json.dumps(asdict(report), ensure_ascii=False))
    elif sys.stdout.isatty():
        print_tables(report)
    else:
        for line in lines(report):
            typer.echo(line)


# --- for a pipe ----------------------------------------------------------------------------------


def lines(report: UsageReport) -> Iterator[str]:
    """One row a line, its cells parted by tabs: what it is by, its name, and the figures."""
    yield "\t".join(["total", f"{report.since}..{report.until}", *_cells(report.total)])
    for by, rows in report.by.items():
        for row in rows:
            yield "\t".join([by, _safe(row.name), *_cells(row)])
    for one in report.budgets:
        yield "\t".join(["budget", *_budget(one)])


def _cells(row: UsageFigures) -> list[str]:
    from bot.commands.usage import cost_words

    figures = (row.calls, row.prompt, row.cached, row.completion)
    return [*map(str, figures), cost_words(row)]


def _budget(one: BudgetRow) -> list[str]:
    """Whose, how much of it, and the share."""
    from agent.budget.messages import amount_words
    from bot.commands.prompt_messages import percent
    from memory.records.usage import BudgetUnit

    unit = BudgetUnit(one.unit)
    whose = f"{one.scope} {one.name}".strip()
    return [
        _safe(f"{whose}, {one.period}"),
        f"{amount_words(unit, one.used)} of {amount_words(unit, one.amount)}",
        percent(one.share),
    ]


def _safe(text: str) -> str:
    """What others named must not be able to steer a terminal, nor break a row."""
    return " ".join(clean(text).split())


# --- for a terminal ------------------------------------------------------------------------------


def print_tables(report: UsageReport) -> None:
    """In colour, the newest or largest rows of each."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.print(_summary(report), style="bold", markup=False)
    for by, rows in report.by.items():
        if not rows or (by in {"job", "agent"} and [row.key for row in rows] == [""]):
            continue
        shown = rows[-ROWS_MAX:] if by == "day" else rows[:ROWS_MAX]
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column(HEADINGS[by], overflow="fold", style="cyan")
        for heading in COLUMNS:
            table.add_column(heading, justify="right", style="green" if heading == "Cost" else "")
        for row in shown:
            numbers = [f"{int(cell):,}" for cell in _cells(row)[:-1]]
            table.add_row(Text(_safe(row.name)), *numbers, _short_cost(row))
        console.print(table)
        if len(rows) > len(shown):
            console.print(f"{len(rows) - len(shown)} more: --json has all.\n", style="dim")
    _print_budgets(report, console)
    for text, style in _remarks(report):
        console.print(text, style=style, markup=False)


def _short_cost(row: UsageFigures) -> str:
    """For a narrow column: what is not known is a question mark, explained below."""
    from bot.commands.prompt_messages import money
    from memory.records.usage import MICROS

    if row.unpriced == row.calls:
        return "?"
    return f"{money(row.micros / MICROS)}{' + ?' if row.unpriced else ''}"


def _print_budgets(report: UsageReport, console: Console) -> None:
    from rich.text import Text

    for one in report.budgets:
        whose, used, share = _budget(one)
        style = "red" if one.share >= 1 else "yellow" if one.share >= 0.8 else ""
        console.print(Text(f"Budget of {whose}: {used} ({share})", style=style))


def _summary(report: UsageReport) -> str:
    from bot.commands.usage import cost_words

    total = report.total
    if not total.calls:
        return f"No model was asked from {report.since} to {report.until}."
    tokens = total.prompt + total.completion
    return (
        f"{report.since} to {report.until} ({report.zone}): {total.calls:,} calls, "
        f"{tokens:,} tokens, {cost_words(total)}"
    )


def _remarks(report: UsageReport) -> Iterator[tuple[str, str]]:
    from bot.commands.prompt_messages import percent

    total = report.total
    if total.unpriced:
        yield (
            f"Calls to models that are in no price table: {total.unpriced:,}. Their tokens are "
            "counted, their money (?) is not known.",
            "yellow",
        )
    if total.estimated:
        yield (
            f"Calls that are estimated, for the provider did not say: {total.estimated:,}.",
            "yellow",
        )
    if report.off:
        yield f"Estimates before a call were off by {percent(report.off)} of the tokens.", "dim"
    for one in report.paused:
        who = one.words or "by its owner"
        yield f'The bot is paused: {who}. hearthbot chat -m "/resume" lets it go on.', "red"
