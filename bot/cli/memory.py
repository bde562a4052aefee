"""`hearthbot memory`: what is remembered of a person, corrected, erased with proof, taken along."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.context import FAILED, WRONG_USAGE, Opened, exit_for, opened
from bot.cli.memory_shown import (
    fact_lines,
    facts_lines,
    found_lines,
    imported_lines,
    print_facts,
    print_lines,
    proof_lines,
)

app = typer.Typer(
    help="What is remembered of you: seen, corrected, erased, taken along.", no_args_is_help=True
)

Answer = dict[str, Any]
"""What `bot.commands.memory_operations` answers; its keys stand there."""

Told = Callable[[Answer], None]
Ask = Callable[..., Awaitable[Answer]]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Whose = Annotated[
    str,
    typer.Option("--person", metavar="P", help="Whose: an id, address or name; else the owner's."),
]
Key = Annotated[str, typer.Argument(help="The fact, as the list names it: f12.")]

FORMATS = ("json", "md")


# --- looking -----------------------------------------------------------------------------------


@app.command("list")
def list_facts(
    as_of: Annotated[
        str, typer.Option("--as-of", metavar="DATE", help="What was known at the end of that day.")
    ] = "",
    past: Annotated[bool, typer.Option("--past", help="What no longer holds.")] = False,
    person: Whose = "",
    as_json: AsJson = False,
) -> None:
    """Show all facts, the newest first."""
    if as_of and past:
        raise _wrong_usage("--as-of and --past do not go together: give one of them.")
    if as_of:
        _check_date(as_of)
    answer = _run(lambda ask: _all_facts(ask, person=person, as_of=as_of, past=past))
    _print_facts(answer, as_json=as_json, nothing="Nothing is remembered.")


async def _all_facts(ask: Ask, **wanted: Any) -> Answer:
    """Page by page: an answer has a bound."""
    answer = await ask("memory.list", offset=0, **wanted)
    while answer["more"]:
        more = await ask("memory.list", offset=len(answer["facts"]), **wanted)
        answer["facts"] += more["facts"]
        answer["more"] = more["more"] and bool(more["facts"])
    return answer


@app.command("search")
def search(
    text: Annotated[str, typer.Argument(help="What it is about.")],
    person: Whose = "",
    as_json: AsJson = False,
) -> None:
    """Find facts by words and meaning, the best first."""
    if not text.strip():
        raise _wrong_usage("Say what to look for.")
    answer = _run(lambda ask: ask("memory.search", person=person, text=text))
    _print_facts(answer, as_json=as_json, nothing="Nothing was found.")


@app.command("show")
def show(key: Key, person: Whose = "", as_json: AsJson = False) -> None:
    """Show one fact: where it is from, and what it replaced."""
    answer = _run(lambda ask: ask("memory.show", person=person, key=key))
    _print(answer, lambda found: print_lines(fact_lines(found)), as_json=as_json)


# --- changing ----------------------------------------------------------------------------------


@app.command("edit")
def edit(
    key: Key,
    text: Annotated[str, typer.Argument(help="How it should read: one sentence.")],
    person: Whose = "",
    as_json: AsJson = False,
) -> None:
    """Correct a fact. The old one is kept as past."""
    if not text.strip():
        raise _wrong_usage("Say how it should read. To erase it: hearthbot memory forget")
    answer = _run(lambda ask: ask("memory.edit", person=person, key=key, text=text))
    _print(answer, lambda found: print_lines([(found["text"], "good")]), as_json=as_json)


@app.command("forget")
def forget(
    what: Annotated[
        list[str], typer.Argument(help="f12, or several; words as they stand; or everything.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    files: Annotated[
        bool, typer.Option("--files", help="Blank the words in other files of the workspace too.")
    ] = False,
    person: Whose = "",
    as_json: AsJson = False,
) -> None:
    """Erase something wherever it stands, and look through every file for it.

    Shows each place first. What is erased cannot be brought back. Exit code 1 if it still stands
    somewhere.
    """
    wanted = " ".join(what)
    sure = yes or (sys.stdin.isatty() and sys.stdout.isatty() and not as_json)
    if not sure:
        raise _wrong_usage("Nobody is there to be asked: add --yes to erase it for good.")
    with exit_for(), opened(log_to_terminal=False) as home:
        answer = asyncio.run(
            _forget(home, wanted, person=person, files=files, asks=not yes, as_json=as_json)
        )
    if answer is None:
        return
    _print(answer, lambda proof: print_lines(proof_lines(proof)), as_json=as_json)
    if not answer.get("ok", True):
        raise typer.Exit(FAILED)


async def _forget(
    home: Opened, what: str, *, person: str, files: bool, asks: bool, as_json: bool
) -> Answer | None:
    """The proof; None where there was nothing to do. Raises ForgettingRefused before it asks."""
    from memory.records.erasure import ForgettingRefused

    async with _client(home) as client:
        found = await client.ask("memory.find", person=person, what=what)
    if found["is_empty"] and not found["under_way"]:
        if as_json:
            return {"ok": True, **found}
        print_lines([("Nothing of this person that is kept has it.", "")])
        return None
    if found["refusal"]:
        raise ForgettingRefused(found["refusal"])
    if not as_json:
        print_lines(found_lines(found, files=files))
    if asks:
        # Nothing is held open while somebody reads: another command may run meanwhile.
        typer.confirm("\nErase all of it for good?", abort=True)
    async with _client(home) as client:
        with _progress(as_json=as_json) as tell:
            arguments = {"person": person, "what": what, "files": files}
            return await client.follow("memory.forget", tell, **arguments)


# --- out and in --------------------------------------------------------------------------------


@app.command("export")
def export(
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="json, or md for reading.")
    ] = "json",
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Write a file; else print it.")
    ] = "",
    person: Whose = "",
    as_json: AsJson = False,
) -> None:
    """Take out all that is remembered of a person, to read it or bring it in elsewhere."""
    if form not in FORMATS:
        raise _wrong_usage(f"--format {form[:20]!r} is not known: it takes json or md.")
    if not out:
        _print_export(form, person)
        return
    path = str(Path(out).expanduser().absolute())  # the bot may run in another folder
    answer = _run(lambda ask: ask("memory.export", person=person, format=form, out=path))
    counts = ", ".join(f"{answer[part]:,} {part}" for part in ("facts", "documents", "notes"))
    told = [(f"Written to {answer['path']}: {counts}.", "good")]
    _print(answer, lambda found: print_lines(told), as_json=as_json)


def _print_export(form: str, person: str) -> None:
    """By way of a file of its own: an answer on the socket has a bound."""
    with tempfile.TemporaryDirectory(prefix="hearthbot-") as folder:
        path = Path(folder) / "export"
        _run(lambda ask: ask("memory.export", person=person, format=form, out=str(path)))
        typer.echo(path.read_text("utf-8"), nl=False)


@app.command("import")
def bring_in(
    file: Annotated[str, typer.Argument(help="What `hearthbot memory export` wrote as JSON.")],
    person: Whose = "",
    as_json: AsJson = False,
) -> None:
    """Bring in what was taken out before. What was forgotten stays so."""
    path = Path(file).expanduser().absolute()
    if not path.is_file():
        raise _wrong_usage(f"{file} is no file.")
    answer = _run(lambda ask: ask("memory.import", person=person, path=str(path)))
    _print(answer, lambda found: print_lines(imported_lines(found)), as_json=as_json)


# --- printing ----------------------------------------------------------------------------------


def _print(answer: Answer, show_it: Told, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        show_it(answer)


def _print_facts(answer: Answer, *, as_json: bool, nothing: str) -> None:
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    elif not sys.stdout.isatty():
        for line in facts_lines(answer):
            typer.echo(line)
    elif answer["facts"]:
        print_facts(answer)
    else:
        print_lines([(nothing, "dim")])


@contextmanager
def _progress(*, as_json: bool) -> Iterator[Told]:
    """On a terminal a line that says what is being done; elsewhere nothing."""
    if as_json or not sys.stdout.isatty():
        yield lambda event: None
        return
    from rich.console import Console

    with Console().status("looking for every place …") as status:
        yield lambda event: status.update(f"{event['words']} …")


def _check_date(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        sentence = f"--as-of {text[:40]!r} is no date: it takes one such as 2026-08-01."
        raise _wrong_usage(sentence) from None


def _wrong_usage(sentence: str) -> typer.Exit:
    """One sentence, and the exit to raise."""
    typer.secho(sentence, err=True, fg="red")
    return typer.Exit(WRONG_USAGE)


# --- asking the bot ----------------------------------------------------------------------------


class _MemoryClient:
    """The running bot, or what is opened here in its place."""

    def __init__(self, found: Any) -> None:
        self._found = found

    async def ask(self, operation: str, **arguments: Any) -> Answer:
        """The answer. Raises Permanent and StorageError."""
        return await self.follow(operation, lambda event: None, **arguments)

    async def follow(self, operation: str, tell: Told, **arguments: Any) -> Answer:
        """The same; `tell` hears of each step."""
        from bot.rpc import WENT_AWAY, ControlClient
        from memory.records.errors import Permanent

        if not isinstance(self._found, ControlClient):
            answer: Answer = await self._found[operation](arguments, tell)
            return answer
        async for kind, value in self._found.follow(operation, **arguments):
            if kind == "answer":
                return value
            tell(value)
        raise Permanent(WENT_AWAY)


def _run(do: Callable[[Ask], Awaitable[Answer]]) -> Answer:
    async def once(home: Opened) -> Answer:
        async with _client(home) as client:
            return await do(client.ask)

    with exit_for(), opened(log_to_terminal=False) as home:
        return asyncio.run(once(home))


@asynccontextmanager
async def _client(home: Opened) -> AsyncIterator[_MemoryClient]:
    """Asks the running bot; where none runs, an App that is opened for the moment."""
    from bot.cli.client import opened_here, running_or

    async with AsyncExitStack() as stack:
        yield _MemoryClient(
            await running_or(
                stack,
                home,
                lambda: opened_here(home, lambda app: app.memories.operations.served()),
            )
        )
