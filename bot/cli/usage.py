"""`hearthbot usage`: tokens and money by day, person, chat, job and model."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.opening import WRONG_USAGE, Opened, exit_for, opened
from memory.records.text import clean

if TYPE_CHECKING:
    from bot.rpc import Operation

Answer = dict[str, Any]
"""An `agent.budget.service.UsageReport`, as it came over the socket."""

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
    with exit_for(), opened(log_to_terminal=False) as home:
        answer = asyncio.run(_asked(home, days=days, by=wanted))
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    elif sys.stdout.isatty():
        print_tables(answer)
    else:
        for line in lines(answer):
            typer.echo(line)


async def _asked(home: Opened, **arguments: Any) -> Answer:
    """The running bot, else the database alone."""
    from bot.cli.asking import running_or
    from bot.rpc import ControlClient

    async with AsyncExitStack() as stack:
        found = await running_or(stack, home, lambda: _open_usage(home))
        if isinstance(found, ControlClient):
            return await found.ask("usage.report", **arguments)
        return await found["usage.report"](arguments, lambda event: None)


@asynccontextmanager
async def _open_usage(home: Opened) -> AsyncIterator[Mapping[str, Operation]]:
    """What can be asked where no bot runs: opens the database and nothing else.

    Raises HomeBusy, StorageError.
    """
    from agent.budget.service import UsageService
    from bot.commands.usage import names_of, usage_operations
    from bot.settings.home import HomeLock
    from bot.settings.options import host_zone
    from memory.database.connection import Database
    from memory.stores.people import SqlitePeople
    from memory.stores.usage import SqliteUsage
    from scheduler.clock.machine import SystemClock

    clock, place = SystemClock(), home.home
    with HomeLock(place, started_at=clock.now()):
        async with Database.open(place.database, clock=clock, backups=place.backups) as database:
            people = (await SqlitePeople(database).directory()).people
            usage = UsageService(
                SqliteUsage(database),
                None,
                lambda: people,
                name_of=names_of(lambda: people),
                clock=clock,
                host_zone=host_zone(),
            )
            yield usage_operations(usage)


# --- for a pipe ----------------------------------------------------------------------------------


def lines(answer: Answer) -> Iterator[str]:
    """One row a line, its cells parted by tabs: what it is by, its name, and the figures."""
    yield "\t".join(["total", f"{answer['since']}..{answer['until']}", *_cells(answer["total"])])
    for by, rows in answer["by"].items():
        for row in rows:
            yield "\t".join([by, _safe(row["name"]), *_cells(row)])
    for one in answer["budgets"]:
        yield "\t".join(["budget", *_budget(one)])


def _cells(row: Mapping[str, Any]) -> list[str]:
    figures = [f"{row[key]}" for key in ("calls", "prompt", "cached", "completion")]
    return [*figures, _cost(row)]


def _cost(row: Mapping[str, Any]) -> str:
    from bot.commands.usage import cost_words
    from memory.records.spending import UsageSum

    figures = {key: row[key] for key in ("calls", "micros", "unpriced")}
    return cost_words(UsageSum(**figures))


def _budget(one: Mapping[str, Any]) -> list[str]:
    """Whose, how much of it, and the share."""
    from agent.budget.messages import amount_words
    from bot.commands.prompt_messages import percent
    from memory.records.spending import BudgetUnit

    unit = BudgetUnit(one["unit"])
    whose = f"{one['scope']} {one['name']}".strip()
    return [
        _safe(f"{whose}, {one['period']}"),
        f"{amount_words(unit, one['used'])} of {amount_words(unit, one['amount'])}",
        percent(one["share"]),
    ]


def _safe(text: str) -> str:
    """What others named must not be able to steer a terminal, nor break a row."""
    return " ".join(clean(text).split())


# --- for a terminal ------------------------------------------------------------------------------


def print_tables(answer: Answer) -> None:
    """In colour, the newest or largest rows of each."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.print(_summary(answer), style="bold", markup=False)
    for by, rows in answer["by"].items():
        if not rows or (by in {"job", "agent"} and [row["key"] for row in rows] == [""]):
            continue
        shown = rows[-ROWS_MAX:] if by == "day" else rows[:ROWS_MAX]
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column(HEADINGS[by], overflow="fold", style="cyan")
        for heading in COLUMNS:
            table.add_column(heading, justify="right", style="green" if heading == "Cost" else "")
        for row in shown:
            numbers = [f"{int(cell):,}" for cell in _cells(row)[:-1]]
            table.add_row(Text(_safe(row["name"])), *numbers, _short_cost(row))
        console.print(table)
        if len(rows) > len(shown):
            console.print(f"{len(rows) - len(shown)} more: --json has all.\n", style="dim")
    _print_budgets(answer, console)
    for text, style in _remarks(answer):
        console.print(text, style=style, markup=False)


def _short_cost(row: Mapping[str, Any]) -> str:
    """For a narrow column: what is not known is a question mark, explained below."""
    from bot.commands.prompt_messages import money
    from memory.records.spending import MICROS

    if row["unpriced"] == row["calls"]:
        return "?"
    return f"{money(row['micros'] / MICROS)}{' + ?' if row['unpriced'] else ''}"


def _print_budgets(answer: Answer, console: Any) -> None:
    from rich.text import Text

    for one in answer["budgets"]:
        whose, used, share = _budget(one)
        style = "red" if one["share"] >= 1 else "yellow" if one["share"] >= 0.8 else ""
        console.print(Text(f"Budget of {whose}: {used} ({share})", style=style))


def _summary(answer: Answer) -> str:
    total = answer["total"]
    if not total["calls"]:
        return f"No model was asked from {answer['since']} to {answer['until']}."
    tokens = total["prompt"] + total["completion"]
    cost = _cost(total)
    return (
        f"{answer['since']} to {answer['until']} ({answer['zone']}): {total['calls']:,} calls, "
        f"{tokens:,} tokens, {cost}"
    )


def _remarks(answer: Answer) -> Iterator[tuple[str, str]]:
    from bot.commands.prompt_messages import percent

    total = answer["total"]
    if total["unpriced"]:
        yield (
            f"Calls to models that are in no price table: {total['unpriced']:,}. Their tokens are "
            "counted, their money (?) is not known.",
            "yellow",
        )
    if total["estimated"]:
        yield (
            f"Calls that are estimated, for the provider did not say: {total['estimated']:,}.",
            "yellow",
        )
    if answer["off"]:
        yield f"Estimates before a call were off by {percent(answer['off'])} of the tokens.", "dim"
    for one in answer["paused"]:
        who = one["words"] or "by its owner"
        yield f'The bot is paused: {who}. hearthbot chat -m "/resume" lets it go on.', "red"
