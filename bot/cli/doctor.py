"""`hearthbot doctor`: everything that can be wrong, with what to do about it."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import render as out
from bot.cli.context import FAILED
from bot.lean import load_without
from memory.records.errors import SettingsWrong

if TYPE_CHECKING:
    from bot.doctor.base import Result
    from bot.settings.home import Home
    from bot.settings.schema.settings import Settings

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
MARKS = {"ok": "✓", "warn": "!", "fail": "✗"}


def doctor(
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Mend what can be mended safely: modes, folders, leftovers."),
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask neither the model nor a platform.")
    ] = False,
    as_json: out.AsJson = False,
) -> None:
    """Check everything: settings, files, database, model, tokens, clock; each with its fix."""
    load_without("click", "httpx")
    from bot.cli.init import silent_logs
    from bot.doctor.base import is_well, mend_all
    from bot.settings.home import find_home
    from bot.settings.load import load

    env = dict(os.environ)
    home = find_home(env)
    try:
        settings = load(home.path, env)
    except SettingsWrong:
        settings = None  # the check of that name says what is wrong
    with silent_logs():
        found = _examined(home, settings, env, offline=offline, quiet=as_json)
    results = _cleaned(found, settings, env)
    if fix:
        results = mend_all(results)
    if as_json:
        checks = [
            {
                "name": one.check,
                "level": one.finding.level,
                "text": one.finding.text,
                "fix": "" if one.mended else one.finding.fix,
                "fixed": one.mended,
            }
            for one in results
        ]
        out.print_json({"ok": is_well(results), "checks": checks})
    elif out.is_terminal():
        _print_table(results)
    else:
        columns: out.Columns[Result] = {
            "Level": lambda one: one.finding.level.value,
            "Check": lambda one: one.check,
            "Found": lambda one: one.finding.text,
            "Fix": lambda one: f"fixed: {one.mended}" if one.mended else one.finding.fix,
        }
        out.print_rows(results, columns)
    if not is_well(results):
        raise typer.Exit(FAILED)


def _examined(
    home: Home, settings: Settings | None, env: Mapping[str, str], *, offline: bool, quiet: bool
) -> Sequence[Result]:
    from bot.doctor.base import run_checks
    from bot.doctor.checks import all_checks

    checks = list(all_checks(home, settings, env, offline=offline))
    if quiet or not out.is_terminal():
        return asyncio.run(run_checks(checks))
    from rich.console import Console

    left = {check.name for check in checks}
    with Console().status("") as status:

        def done(name: str) -> None:
            left.discard(name)
            waited = ", ".join(sorted(left)[:3])
            status.update(f"{len(checks) - len(left)} of {len(checks)} checks done; {waited} …")

        return asyncio.run(run_checks(checks, done=done))


def _cleaned(
    results: Sequence[Result], settings: Settings | None, env: Mapping[str, str]
) -> list[Result]:
    """No check means to show a secret; this makes sure of it."""
    from bot.settings.logging import Redactor, secrets_of

    ends = ("TOKEN", "_KEY", "SECRET")
    named = [value for name, value in env.items() if name.endswith(ends) and value]
    clean = Redactor(secrets_of(settings, env) if settings else named).clean
    return [
        replace(
            one,
            finding=replace(one.finding, text=clean(one.finding.text), fix=clean(one.finding.fix)),
        )
        for one in results
    ]


def _print_table(results: Sequence[Result]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    for one in results:
        level, finding = one.finding.level.value, one.finding
        said = Text(out.safe(finding.text))
        if one.mended:
            said.append(f"\n→ fixed: {out.safe(one.mended)}", style="green")
        elif finding.fix:
            said.append(f"\n→ {out.safe(finding.fix)}", style=COLOURS[level])
        table.add_row(Text(f"{MARKS[level]} {level}", style=COLOURS[level]), one.check, said)
    Console().print(table)
    counts = Counter(one.finding.level.value for one in results)
    words = {"fail": "failed", "warn": "to look at", "ok": "well"}
    sums = [f"{counts[level]} {word}" for level, word in words.items() if counts[level]]
    out.print_lines([("", ""), (", ".join(sums), "")])
    if any(one.finding.mend is not None and not one.mended for one in results):
        out.print_lines([("hearthbot doctor --fix mends some of it.", "")])
