"""`hearthbot memory`: what is remembered of a person, corrected, erased with proof, taken along."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime, time, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import Bot, run
from bot.cli.context import FAILED
from bot.markup.command_text import plain
from memory.records.errors import Permanent, StorageError
from memory.records.facts import EVERYWHERE, StoredFact, Whose
from memory.records.messages import PersonId, Role
from memory.records.rows import Person

if TYPE_CHECKING:
    from rich.status import Status

    from memory.records.erasure import FoundPlaces, Imported

app = typer.Typer(
    help="What is remembered of you: seen, corrected, erased, taken along.", no_args_is_help=True
)

Whom = Annotated[
    str,
    typer.Option("--person", metavar="P", help="Whose: an id, address or name; else the owner's."),
]
Key = Annotated[str, typer.Argument(help="The fact, as the list names it: f12.")]

FORMATS = ("json", "md")
FOUND_MAX = 50
REFUSED_SHOWN = 10


# --- whose -------------------------------------------------------------------------------------


async def _person(bot: Bot, wanted: str) -> Person:
    """Return who is meant; by their id also somebody who was removed, of whom something is kept."""
    try:
        return await bot.call(App.access.named, wanted)
    except Permanent:
        gone = PersonId(wanted)
        if not await bot.call(App.memory.keeps, gone):
            raise
        return Person(id=gone, role=Role.MEMBER)


def _all_of(person: Person) -> Whose:
    # Whoever can open the socket owns the machine, so all is shown wherever it was said.
    return Whose(person_id=person.id, scope=EVERYWHERE)


def _zone(person: Person) -> tzinfo:
    from bot.people.timezone import zone_of
    from bot.settings.options import host_zone

    return zone_of(person.time_zone or host_zone()) or UTC


def _head(person: Person) -> out.Json:
    return {"person": person.id, "zone": str(_zone(person))}


# --- looking -----------------------------------------------------------------------------------


@app.command("list")
def list_facts(
    as_of: Annotated[
        str, typer.Option("--as-of", metavar="DATE", help="What was known at the end of that day.")
    ] = "",
    past: Annotated[bool, typer.Option("--past", help="What no longer holds.")] = False,
    person: Whom = "",
    as_json: out.AsJson = False,
) -> None:
    """Show all facts, the newest first."""
    if as_of and past:
        raise out.wrong_usage("--as-of and --past do not go together: give one of them.")
    day = _moment(as_of) if as_of else None

    async def found(bot: Bot) -> tuple[Person, Sequence[StoredFact]]:
        who = await _person(bot, person)
        if past:
            return who, await bot.call(App.facts.closed, _all_of(who))
        at = day if day is None or day.tzinfo else day.replace(tzinfo=_zone(who))
        return who, await bot.call(App.facts.list, _all_of(who), at=at)

    _print_facts(*run(found), as_json=as_json, nothing="Nothing is remembered.", more=False)


@app.command("search")
def search(
    text: Annotated[str, typer.Argument(help="What it is about.")],
    person: Whom = "",
    as_json: out.AsJson = False,
) -> None:
    """Find facts by words and meaning, the best first."""
    if not text.strip():
        raise out.wrong_usage("Say what to look for.")

    async def found(bot: Bot) -> tuple[Person, Sequence[StoredFact]]:
        who = await _person(bot, person)
        return who, await bot.call(App.facts.search, _all_of(who), text, k=FOUND_MAX)

    _print_facts(*run(found), as_json=as_json, nothing="Nothing was found.")


@app.command("show")
def show(key: Key, person: Whom = "", as_json: out.AsJson = False) -> None:
    """Show one fact: where it is from, and what it replaced."""
    from bot.commands.memory.commands import fact_shown

    async def found(bot: Bot) -> tuple[Person, StoredFact, Sequence[StoredFact]]:
        who = await _person(bot, person)
        fact = await bot.call(App.memory.fact, _all_of(who), key)
        return who, fact, await bot.call(App.facts.past, _all_of(who), fact.id)

    who, fact, past = run(found)
    value = {**_head(who), "fact": _row(fact), "past": [_row(one) for one in past]}
    out.render(
        value,
        ((line, "") for line in plain(fact_shown(fact, past, _zone(who))).splitlines()),
        as_json=as_json,
    )


def _moment(text: str) -> datetime:
    """Read a date, which means the end of that day, or a moment."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        sentence = f"--as-of {text[:40]!r} is no date: it takes one such as 2026-08-01."
        raise out.wrong_usage(sentence) from None
    if len(text) <= len("2026-08-01"):
        return datetime.combine(at.date(), time(23, 59, 59, 999_000))
    return at


def _row(fact: StoredFact) -> out.Json:
    row = {**asdict(fact), "key": fact.key, "scope": fact.whose.scope}
    return {name: row[name] for name in row.keys() - {"whose", "run_id"}}


def _print_facts(
    who: Person, facts: Sequence[StoredFact], *, as_json: bool, nothing: str, **more: bool
) -> None:
    zone = _zone(who)
    if as_json:
        out.print_json({**_head(who), "facts": [_row(one) for one in facts], **more})
    elif not facts and out.is_terminal():
        out.print_lines([(nothing, "dim")])
    else:
        columns: out.Columns[StoredFact] = {
            "Fact": lambda one: one.key,
            "Kind": lambda one: one.category,
            "Since": lambda one: _day(one.valid_from_ms, zone),
            "Until": lambda one: "" if one.valid_to_ms is None else _day(one.valid_to_ms, zone),
            "Where": lambda one: one.whose.scope,
            "From": lambda one: one.source.value,
            "What": lambda one: one.text,
        }
        out.print_rows(facts, columns)


def _day(at_ms: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(at_ms / 1000, zone).date().isoformat()


# --- changing ----------------------------------------------------------------------------------


@app.command("edit")
def edit(
    key: Key,
    text: Annotated[str, typer.Argument(help="How it should read: one sentence.")],
    person: Whom = "",
    as_json: out.AsJson = False,
) -> None:
    """Correct a fact. The old one is kept as past."""
    from bot.commands.memory.commands import stored_text

    if not text.strip():
        raise out.wrong_usage("Say how it should read. To erase it: hearthbot memory forget")

    async def corrected(bot: Bot) -> out.Json:
        who = await bot.call(App.access.named, person)
        stored = await bot.call(App.memory.correct, _all_of(who), key, " ".join(text.split()))
        if stored.fact is None:
            raise Permanent(stored.why)
        return {
            "person": who.id,
            "outcome": stored.outcome,
            "text": stored_text(stored),
            "fact": _row(stored.fact),
            "replaced": None if stored.replaced is None else _row(stored.replaced),
        }

    done = run(corrected)
    out.render(done, [(out.flat(done["text"]), "good")], as_json=as_json)


@app.command("forget")
def forget(
    what: Annotated[
        list[str], typer.Argument(help="f12, or several; words as they stand; or everything.")
    ],
    yes: out.Yes = False,
    files: Annotated[
        bool, typer.Option("--files", help="Blank the words in other files of the workspace too.")
    ] = False,
    person: Whom = "",
    as_json: out.AsJson = False,
) -> None:
    """Erase something wherever it stands, and look through every file for it.

    Shows each place first. What is erased cannot be brought back. Exit code 1 if it still stands
    somewhere.
    """
    if not (yes or (out.is_interactive() and not as_json)):
        raise out.wrong_usage("Nobody is there to be asked: add --yes to erase it for good.")
    wish = " ".join(what)
    found = run(lambda bot: look(bot, person, wish, files=files, as_json=as_json))
    if found is not None:
        if as_json:
            out.print_json(found)
        return
    if not yes:
        out.confirm("\nErase all of it for good?")
    answer, text = run(lambda bot: _forget(bot, person, wish, files=files, as_json=as_json))
    lines = ((line, "") for line in plain(text).splitlines())
    out.render(answer, lines, as_json=as_json)
    if not answer["ok"]:
        raise typer.Exit(FAILED)


async def look(bot: Bot, person: str, what: str, *, files: bool, as_json: bool) -> out.Json | None:
    """Show every place that holds it; return what stands for a proof where there is nothing to do.
    Raise ForgettingRefused before anybody is asked."""
    from bot.commands.memory.erasure import counted
    from memory.records.erasure import ForgettingRefused

    who = await _person(bot, person)
    wish = await bot.call(App.memory.wish, who, what, _all_of(who))
    found = await bot.call(App.forgetting.find, wish)
    begun = await bot.call(App.forgetting.under_way)
    is_begun = begun is not None and begun.person_id == who.id
    name = await bot.call(App.access.called, who.id)
    places = [counted(kind, count) for kind, count in found.counts.items()]
    if found.is_empty and not is_begun:
        if not as_json:
            out.print_lines([("Nothing of this person that is kept has it.", "")])
        value = out.fields(found, "counts", "similar", "backups", "refusal", "is_empty")
        nothing: out.Json = {"notes": [], "files": [], "facts": [], "under_way": False}
        return {"ok": True, **_head(who), **value, "name": name, "words": places, **nothing}
    if found.refusal:
        raise ForgettingRefused(found.refusal)
    if not as_json:
        known = [await bot.call(App.facts.get, _all_of(who), one) for one in found.facts]
        facts = [one for one in known if one is not None]
        out.print_lines(_found_lines(bot, found, facts, name=name, files=files))
        if is_begun:
            out.print_lines([("- and what was begun before and not finished", "warn")])
    return None


async def _forget(
    bot: Bot, person: str, what: str, *, files: bool, as_json: bool
) -> tuple[out.Json, str]:
    from bot.commands.memory.erasure import (
        CANNOT_REACH,
        NOWHERE,
        STAGES,
        counted,
        failures,
        proof_text,
    )

    who = await _person(bot, person)
    wish = await bot.call(App.memory.wish, who, what, _all_of(who), with_files=files)
    status: AbstractContextManager[Status | None] = nullcontext()
    if out.is_terminal() and not as_json:
        from rich.console import Console

        status = Console().status("looking for every place …")
    with status as shown:
        proof = await bot.call(
            App.forgetting.forget,
            wish,
            tell=lambda stage: shown.update(f"{STAGES[stage]} …") if shown is not None else None,
        )
    paths = {
        name: _below(bot, getattr(proof, name))
        for name in ("dropped", "blanked", "hits", "unread", "left")
    }
    return {
        "person": who.id,
        **out.fields(proof, "ok", "erased", "files", "bytes", "tables"),
        **paths,
        "words": [counted(kind, count) for kind, count in proof.erased.items()],
        "backup": _below(bot, [proof.backup])[0],
        "failures": failures(proof, bot.home.home.path),
        "theirs": [*proof.theirs, *_below(bot, proof.their_files)],
        "nowhere": NOWHERE if proof.ok and not proof.left else "",
        "cannot_reach": CANNOT_REACH,
    }, proof_text(proof, bot.home.home.path, for_owner=True)


def _below(bot: Bot, paths: Sequence[Path]) -> list[str]:
    root = bot.home.home.path
    return [str(one.relative_to(root) if one.is_relative_to(root) else one) for one in paths]


def _found_lines(
    bot: Bot, found: FoundPlaces, facts: Sequence[StoredFact], *, name: str, files: bool
) -> out.Lines:
    from bot.commands.memory.erasure import found_text

    yield out.flat(f"What is kept of {name}, and would be erased:"), "head"
    for fact in facts:
        yield out.flat(f"{fact.key} {fact.text}"), ""
    _, _, *places = plain(found_text("it", found, bot.home.home.path)).splitlines()
    yield from ((line, "") for line in places)
    if found.files and files:
        yield "--files: the words are blanked in these other files too", "warn"


# --- out and in --------------------------------------------------------------------------------


@app.command("export")
def export(
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="json, or md for reading.")
    ] = "json",
    target: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Write a file; else print it.")
    ] = "",
    person: Whom = "",
    as_json: out.AsJson = False,
) -> None:
    """Take out all that is remembered of a person, to read it or bring it in elsewhere."""
    from bot.commands.memory.commands import as_markdown, exported_json

    if form not in FORMATS:
        raise out.wrong_usage(f"--format {form[:20]!r} is not known: it takes json or md.")

    async def taken_out(bot: Bot) -> out.Json:
        who = await bot.call(App.access.named, person)
        taken = await bot.call(App.transfer.export, who.id, is_owner=who.role is Role.OWNER)
        text = exported_json(taken) if form == "json" else as_markdown(taken, _zone(who))
        if path is None:
            typer.echo(text, nl=False)
        else:
            from bot.settings.home import write_private

            if path.exists():
                raise Permanent(
                    f"{path} is there already, so nothing was written. Name another file."
                )
            try:
                write_private(path, text.encode("utf-8", "replace"))
            except OSError as error:
                raise StorageError(f"{path} could not be written ({error.strerror}).") from error
        counts = {part: len(taken[part]) for part in ("facts", "documents", "notes")}
        return {"person": who.id, "path": str(path), "format": form, **counts}

    path = Path(target).expanduser().absolute() if target else None
    done = run(taken_out)
    if path is not None:
        counts = ", ".join(f"{done[part]:,} {part}" for part in ("facts", "documents", "notes"))
        out.render(done, [(f"Written to {path}: {counts}.", "good")], as_json=as_json)


@app.command("import")
def bring_in(
    file: Annotated[str, typer.Argument(help="What `hearthbot memory export` wrote as JSON.")],
    person: Whom = "",
    as_json: out.AsJson = False,
) -> None:
    """Bring in what was taken out before. What was forgotten stays so."""
    path = Path(file).expanduser().absolute()  # the bot may run in another folder
    if not path.is_file():
        raise out.wrong_usage(f"{file} is no file.")

    async def brought_in(bot: Bot) -> tuple[Person, Imported]:
        who = await bot.call(App.access.named, person)
        return who, await bot.call(App.transfer.load, who.id, path, is_owner=who.role is Role.OWNER)

    who, taken = run(brought_in)
    out.render({"person": who.id, **asdict(taken)}, _imported_lines(taken), as_json=as_json)


def _imported_lines(taken: Imported) -> out.Lines:
    counts = (
        f"{taken.stored:,} stored, {taken.refreshed:,} refreshed, {taken.superseded:,} superseded"
    )
    yield f"Facts: {counts}, {len(taken.refused):,} refused", "good"
    for one in taken.refused[:REFUSED_SHOWN]:
        yield out.flat(f"- not taken: {one.text} ({one.why})"), "warn"
    if len(taken.refused) > REFUSED_SHOWN:
        yield f"- and {len(taken.refused) - REFUSED_SHOWN:,} more", "warn"
    for part in ("profile", "documents", "notes"):
        if new := getattr(taken, part):
            yield out.flat(f"{part.capitalize()}: {', '.join(new)}"), ""
    if taken.left:
        yield out.flat(f"Left as they stand here: {', '.join(taken.left)}"), "warn"
