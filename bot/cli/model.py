"""`hearthbot model`: which models there are, whether they answer, and fetching one."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import ask_running
from bot.cli.context import FAILED, Opened, exit_for, opened

if TYPE_CHECKING:
    from agent.models.download import Progress
    from agent.models.health import RestingModel
    from agent.models.service import (
        ListedModel,
        ListedProvider,
        ModelList,
        ModelService,
        TriedModel,
    )

app = typer.Typer(
    help="Which models there are, whether they answer, and fetching one.", no_args_is_help=True
)

TRY_S = 60.0
"""One question takes no longer, whatever `llm.timeout_s` allows."""

USES = {
    "answers": "usual",
    "stands in": "stands in for it",
    "cheap": "work behind the scenes",
    "local": "on this machine",
    "key": "its key is set",
}


# --- list ----------------------------------------------------------------------------------------


@app.command("list")
def list_models(
    whole: Annotated[
        bool, typer.Option("--all", help="Every provider there is, and every local model.")
    ] = False,
    as_json: out.AsJson = False,
) -> None:
    """Show the models of the settings and those that could be had, with window and price."""
    with exit_for(), opened(log_to_terminal=False) as home:
        found, resting = asyncio.run(_listed(home, whole=whole))
    if as_json:
        left_alone = [
            {"model": one.name, "seconds": round(one.seconds), "why": one.why} for one in resting
        ]
        out.print_json({**asdict(found), "resting": left_alone})
        return
    is_terminal = out.is_terminal()
    if is_terminal:
        out.print_lines([(found.why, "")])
    out.print_rows(found.models, _MODEL_COLUMNS)
    if is_terminal:
        lines = [f"{found.more} more on this machine: --all shows them."] if found.more else []
        for state in resting:
            left = max(1, round(state.seconds / 60))
            lines.append(f"Left alone for another {left} min: {state.name}. {state.why}")
        out.print_lines((line, "") for line in lines)
    if whole:
        out.print_rows(found.providers, _PROVIDER_COLUMNS)


async def _listed(home: Opened, *, whole: bool) -> tuple[ModelList, Sequence[RestingModel]]:
    """Return the list, and the models that a running bot leaves alone."""
    from bot.rpc import NotRunning

    found = await (await _service(home)).listing(whole=whole)
    try:
        return found, await ask_running(home, App.models.resting)
    except NotRunning:
        return found, []


async def _service(home: Opened) -> ModelService:
    from agent.models.service import ModelService
    from bot.settings.options import configured_models, finder_of

    models = await configured_models(home.settings, home.env)
    return ModelService(finder_of(home.settings, home.env), models)


def _price(row: ListedModel) -> str:
    into, out = row.dollars_in, row.dollars_out
    if into is None or out is None:
        return "price unknown"
    return "free" if into == out == 0 else f"${into:g} in, ${out:g} out"


def _wants(provider: ListedProvider) -> str:
    if not provider.variables:
        return "the sign-in of its own library"
    state = "is set" if provider.set else "is not set"
    return f"{' or '.join(provider.variables)} {state}"


_MODEL_COLUMNS: out.Columns[ListedModel] = {
    "Use": lambda one: USES[one.use],
    "Model": lambda one: one.name,
    "Window": lambda one: f"{one.window:,}",
    "A million tokens": _price,
    "About": lambda one: one.about,
}
_PROVIDER_COLUMNS: out.Columns[ListedProvider] = {
    "Kind": lambda one: "provider",
    "Provider": lambda one: one.name,
    "Wants": _wants,
}


# --- test ----------------------------------------------------------------------------------------


@app.command("test")
def try_models(
    name: Annotated[
        str, typer.Argument(help="A model, such as openai/gpt-4.1-mini; else all configured ones.")
    ] = "",
    as_json: out.AsJson = False,
) -> None:
    """Ask each configured model one short question. It costs a fraction of a cent."""
    with exit_for(), opened(log_to_terminal=False) as home:
        tried = asyncio.run(_tried(home, name, quiet=as_json))
    if as_json:
        rows = [{**asdict(one), "ok": not one.error} for one in tried]
        out.print_json({"models": rows})
    if any(one.error for one in tried):
        raise typer.Exit(FAILED)


async def _tried(home: Opened, name: str, *, quiet: bool) -> list[TriedModel]:
    from agent.budget.messages import money

    service = await _service(home)
    tried = []
    for model in await service.named(name):  # in turn: each has the machine for itself
        one = await service.try_one(model, limit_s=min(TRY_S, home.settings.llm.timeout_s))
        tried.append(one)
        if quiet:
            continue
        if one.error:
            typer.secho(f"✗ {one.name}: {one.error}", fg="red")
            continue
        figures = [] if one.first_s is None else [f"first word after {one.first_s:.2f} s"]
        figures.append(f"done after {one.seconds:.2f} s")
        if one.usage.prompt or one.usage.completion:
            figures.append(f"{one.usage.prompt} tokens in, {one.usage.completion} out")
        figures.append("price unknown" if one.dollars is None else money(one.dollars))
        typer.secho(f"✓ {one.name}: {one.text}", fg="green")
        typer.echo(f"  {', '.join(figures)}")
    return tried


# --- pull ----------------------------------------------------------------------------------------


@app.command("pull")
def pull(
    name: Annotated[
        str,
        typer.Argument(
            help="owner/model, owner/model:Q4_K_M, owner/model/file.gguf, or an https address."
        ),
    ],
    sha256: Annotated[
        str, typer.Option(metavar="HEX", help="The checksum that the file must have.")
    ] = "",
    as_json: out.AsJson = False,
) -> None:
    """Fetch a model that runs inside the bot: a GGUF file. Goes on where it broke off."""
    from agent.models import download
    from agent.models.download import memory_bytes, memory_warning, size_words

    with exit_for(), opened(log_to_terminal=False) as home:
        source = asyncio.run(download.find(name, env=home.env, sha256=sha256))
        warning = memory_warning(source.size, memory=memory_bytes())
        if warning:
            typer.secho(warning, err=True, fg="yellow")
        # A stop in the middle of gigabytes is no failure: what came is good for the next try.
        try:
            folder = home.home.path / "models"
            with _progress(source.file, quiet=as_json) as progress:
                done = asyncio.run(download.pull(source, folder, progress=progress))
        except KeyboardInterrupt:
            typer.secho(
                "\nStopped. What came is kept: the same command goes on from there.", err=True
            )
            raise typer.Exit(FAILED) from None
        if not source.size:
            warning = memory_warning(done.size, memory=memory_bytes())
            if warning:
                typer.secho(warning, err=True, fg="yellow")
    model = f"embedded:{done.path}"
    if as_json:
        facts = {"path": str(done.path), "size": done.size, "sha256": done.sha256}
        out.print_json({**facts, "fetched": done.fetched, "model": model})
        return
    how = f"is there: {size_words(done.size)}" if done.fetched else "was there already"
    typer.secho(f"{done.path} {how}, sha256 {done.sha256}", fg="green")
    typer.echo(f"To have it answer everywhere, set this in {home.home.config} and restart:")
    typer.echo(f'\n  [llm]\n  model = "{model}"\n')
    typer.echo(f"To have it in one chat, write there: /model {model}")
    typer.echo(f"To try it: hearthbot model test {model}")


@contextmanager
def _progress(file: str, *, quiet: bool) -> Iterator[Progress]:
    """Show a bar on a terminal, a line for each tenth in a pipe; on standard error."""
    if quiet:
        yield lambda done, size: None
        return
    if not sys.stderr.isatty():
        yield _TenthLines(file)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import (
        Progress as Bar,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(file, total=None)
        yield lambda done, size: bar.update(task, completed=done, total=size or None)


class _TenthLines:
    """Progress for a log."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._tenth = -1

    def __call__(self, done: int, size: int) -> None:
        tenth = done * 10 // size if size else 0
        if tenth > self._tenth:
            self._tenth = tenth
            typer.echo(f"{self._file}: {tenth * 10} %{os.linesep}", err=True, nl=False)
