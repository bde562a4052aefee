"""`hearthbot usage`: tokens and money by day, person, chat, job and model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import call

if TYPE_CHECKING:
    from agent.budget.service import BudgetRow, UsageFigures, UsageReport, UsageRow

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
ROWS_MAX = 31


def usage(
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT", help=f"One of {', '.join(BY)}; may be given again."),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3_660, help="So many days back, today among them.")
    ] = 30,
    as_json: out.AsJson = False,
) -> None:
    """Show what was asked of models, and what it cost: by day, person, chat, job, model."""
    wanted = tuple(dict.fromkeys(by or USUALLY))
    if unknown := [one for one in wanted if one not in BY]:
        allowed = ", ".join(BY)
        raise out.wrong_usage(f"--by {unknown[0][:40]!r} is not known: it takes {allowed}.")
    report = call(App.usage.report, days=days, by=wanted)
    if as_json:
        out.print_json(report)
    elif out.is_terminal():
        print_tables(report)
    else:
        out.print_lines((line, "") for line in lines(report))


# --- for a pipe ----------------------------------------------------------------------------------


def lines(report: UsageReport) -> Iterator[str]:
    """Return one row a line, its cells parted by tabs: what it is by, its name, and the figures."""
    yield out.tabbed("total", f"{report.since}..{report.until}", *_cells(report.total))
    for by, rows in report.by.items():
        for row in rows:
            yield out.tabbed(by, row.name, *_cells(row))
    for one in report.budgets:
        yield out.tabbed("budget", *_budget(one))


def _cells(row: UsageFigures) -> list[str]:
    from bot.commands.usage import cost_words

    figures = (row.calls, row.prompt, row.cached, row.completion)
    return [*map(str, figures), cost_words(row)]


def _budget(one: BudgetRow) -> list[str]:
    """Return whose, how much of it, and the share."""
    from agent.budget.messages import amount_words, percent
    from memory.records.usage import BudgetUnit

    unit = BudgetUnit(one.unit)
    whose = f"{one.scope} {one.name}".strip()
    return [
        out.flat(f"{whose}, {one.period}"),
        f"{amount_words(unit, one.used)} of {amount_words(unit, one.amount)}",
        percent(one.share),
    ]


# --- for a terminal ------------------------------------------------------------------------------


def print_tables(report: UsageReport) -> None:
    """In colour, the newest or largest rows of each."""
    from bot.commands.usage import cost_words

    total, span = report.total, f"{report.since} to {report.until}"
    tokens = total.prompt + total.completion
    head = f"{span} ({report.zone}): {total.calls:,} calls, {tokens:,} tokens, {cost_words(total)}"
    if not total.calls:
        head = f"No model was asked from {span}."
    out.print_lines([(head, "head")])
    for by, rows in report.by.items():
        # A home without jobs, or with one agent, would get a table of one row without a name.
        if not rows or (by in {"job", "agent"} and [row.key for row in rows] == [""]):
            continue
        shown = rows[-ROWS_MAX:] if by == "day" else rows[:ROWS_MAX]
        columns: out.Columns[UsageRow] = {
            HEADINGS[by]: lambda row: out.flat(row.name),
            "Calls": lambda row: row.calls,
            "In": lambda row: row.prompt,
            "Cached": lambda row: row.cached,
            "Out": lambda row: row.completion,
            "Cost": _short_cost,
        }
        out.print_rows(shown, columns)
        if len(rows) > len(shown):
            out.print_lines([(f"{len(rows) - len(shown)} more: --json has all.\n", "dim")])
    for one in report.budgets:
        whose, used, share = _budget(one)
        look = "bad" if one.share >= 1 else "warn" if one.share >= 0.8 else ""
        out.print_lines([(f"Budget of {whose}: {used} ({share})", look)])
    out.print_lines(_remarks(report))


def _short_cost(row: UsageFigures) -> str:
    """For a narrow column: what is not known is a question mark, explained below."""
    from agent.budget.messages import money
    from memory.records.usage import MICROS

    if row.unpriced == row.calls:
        return "?"
    return f"{money(row.micros / MICROS)}{' + ?' if row.unpriced else ''}"


def _remarks(report: UsageReport) -> out.Lines:
    from agent.budget.messages import percent

    total = report.total
    if total.unpriced:
        yield (
            f"Calls to models that are in no price table: {total.unpriced:,}. Their tokens are "
            "counted, their money (?) is not known.",
            "warn",
        )
    if total.estimated:
        yield (
            f"Calls that are estimated, for the provider did not say: {total.estimated:,}.",
            "warn",
        )
    if report.off:
        yield f"Estimates before a call were off by {percent(report.off)} of the tokens.", "dim"
    for one in report.paused:
        who = one.words or "by its owner"
        yield f'The bot is paused: {who}. hearthbot chat -m "/resume" lets it go on.', "bad"
