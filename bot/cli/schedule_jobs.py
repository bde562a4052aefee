"""`hearthbot schedule list, show, add, edit, pause, resume, remove, run, test, simulate`.

`bot.cli.schedule` adds these to its commands.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.app.app import App
from bot.cli.client import call
from bot.cli.context import FAILED, WRONG_USAGE
from bot.cli.schedule_shown import (
    aligned,
    list_lines,
    list_table,
    read_lines,
    show_lines,
    simulate_lines,
    simulate_table,
    test_lines,
)
from bot.cli.skills_shown import Lines, print_lines
from memory.records.jobs import JobRef, MisfirePolicy, QuietPolicy

if TYPE_CHECKING:
    from bot.commands.job_service import WantedJob

Answer = dict[str, Any]
"""What `bot.commands.job_service` answers; its keys stand there."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[
    str, typer.Argument(metavar="JOB", help="Its key, such as j12, or how its name begins.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

SPAN_USUAL = "7d"
_SPAN = re.compile(r"(\d{1,5})\s*([hdw])", re.IGNORECASE)
_DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0}


def add_to(app: typer.Typer) -> None:
    """Puts these commands beside `when`."""
    app.command("list")(list_jobs)
    app.command("show")(show)
    app.command("add")(add)
    app.command("edit")(edit)
    app.command("pause")(pause)
    app.command("resume")(resume)
    app.command("remove")(remove)
    app.command("run")(run)
    app.command("test")(try_out)
    app.command("simulate")(simulate)


# --- looking -----------------------------------------------------------------------------------


def list_jobs(as_json: AsJson = False) -> None:
    """Show all jobs: what each does, when it is due next, and where it stands."""
    answer = call(App.jobs.list)
    if as_json:
        _print_json(answer)
    elif sys.stdout.isatty():
        list_table(answer)
    else:
        print_lines(list_lines(answer))


def show(job: Name, as_json: AsJson = False) -> None:
    """Show one job: its rules, its next runs, and what became of the last ones."""
    _print(call(App.jobs.show, JobRef(job)), show_lines, as_json=as_json)


# --- changing ----------------------------------------------------------------------------------


def add(  # noqa: PLR0913, PLR0917 - each is an option of the command
    when: Annotated[str, typer.Argument(help="A time, as `hearthbot schedule when` reads it.")],
    text: Annotated[str, typer.Argument(help="What to be reminded of; with --do, what to do.")],
    do: Annotated[
        bool, typer.Option("--do", help="The assistant works on it, and tells what it found.")
    ] = False,
    to: Annotated[
        str, typer.Option("--to", metavar="CHAT", help="A chat of yours; else the private one.")
    ] = "",
    urgent: Annotated[
        bool, typer.Option("--urgent", help="Its results pass quiet hours and the daily limit.")
    ] = False,
    nag: Annotated[
        int | None,
        typer.Option("--nag", min=1, max=1_440, metavar="MINUTES", help="Again, until done."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="How it is called; else by its words.")] = "",
    missed: Annotated[
        MisfirePolicy | None,
        typer.Option("--missed", help="What becomes of times that pass while no bot runs."),
    ] = None,
    quiet: Annotated[
        QuietPolicy, typer.Option("--quiet", help="What becomes of results in your quiet hours.")
    ] = QuietPolicy.DEFER,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Keep a job of yours: shows how its time is read and the next runs, then asks."""
    from bot.commands.job_service import WantedJob

    wanted = WantedJob(
        when=when,
        text=text,
        do=do,
        to=to,
        urgent=urgent,
        nag_minutes=nag,
        name=name,
        missed=missed,
        quiet=quiet,
    )
    _read_and_agree(when, wanted, asks=not yes, as_json=as_json, question="Keep it?")
    _print(call(App.jobs.add, wanted), _done_lines, as_json=as_json)


def edit(
    job: Name,
    when: Annotated[str, typer.Option("--when", help="Another time.")] = "",
    text: Annotated[str, typer.Option("--text", help="Other words.")] = "",
    name: Annotated[str, typer.Option("--name", help="Another name.")] = "",
    missed: Annotated[
        MisfirePolicy | None,
        typer.Option("--missed", help="What becomes of times that pass while no bot runs."),
    ] = None,
    quiet: Annotated[
        QuietPolicy | None,
        typer.Option("--quiet", help="What becomes of results in your quiet hours."),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Give a job another time, other words or other rules; what is left out stays."""
    if not any((when, text, name, missed, quiet)):
        raise _wrong_usage("Say what to change: --when, --text, --name, --missed or --quiet.")
    if when:
        _read_and_agree(when, None, asks=not yes, as_json=as_json, question="Change it?")
    answer = call(
        App.jobs.edit, JobRef(job), when=when, text=text, name=name, missed=missed, quiet=quiet
    )
    _print(answer, _done_lines, as_json=as_json)


def pause(job: Name, as_json: AsJson = False) -> None:
    """Stop a job until it is resumed."""
    _print(call(App.jobs.pause, JobRef(job)), _done_lines, as_json=as_json)


def resume(job: Name, as_json: AsJson = False) -> None:
    """Let a job go on from now; what it missed is not made up for."""
    _print(call(App.jobs.resume, JobRef(job)), _done_lines, as_json=as_json)


def remove(job: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a job with its history."""
    if not yes and not as_json and _is_interactive():
        shown = call(App.jobs.show, JobRef(job))
        typer.confirm(f"Delete {shown['key']} ({shown['name']})?", abort=True)
        job = shown["key"]
    _print(call(App.jobs.remove, JobRef(job)), _done_lines, as_json=as_json)


def run(job: Name, as_json: AsJson = False) -> None:
    """Run a job now, beside its times. Needs a running bot."""
    _print(call(App.jobs.run, JobRef(job)), _done_lines, as_json=as_json)


# --- beforehand ----------------------------------------------------------------------------------


def try_out(
    job: Name,
    with_model: Annotated[
        bool,
        typer.Option("--with-model", help="Ask the model too; every call of a tool is blocked."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a run would be: prompt, tools, target, next runs and cost. It has no effect."""
    answer = call(App.jobs.test, JobRef(job), with_model=with_model)
    _print(answer, test_lines, as_json=as_json)
    if answer["trouble"]:
        raise typer.Exit(FAILED)


def simulate(
    span: Annotated[
        str, typer.Argument(help="How far to look: 7d, 12h, 2w.", metavar="[SPAN]")
    ] = SPAN_USUAL,
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="In ISO form; now, if left out.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show everything that would fire, in order, when it would be told, and what it costs."""
    found = _SPAN.fullmatch(span.strip())
    if found is None or not int(found[1]):
        raise _wrong_usage(f"{span[:20]!r} is no span: it takes a number and h, d or w, as in 7d.")
    days = int(found[1]) * _DAYS[found[2].lower()]
    answer = call(App.jobs.simulate, days=days, since=since)
    if as_json:
        _print_json(answer)
    elif sys.stdout.isatty():
        simulate_table(answer)
    else:
        print_lines(simulate_lines(answer))


# --- asking first ------------------------------------------------------------------------------


def _read_and_agree(
    when: str, wanted: WantedJob | None, *, asks: bool, as_json: bool, question: str
) -> None:
    """Shows how a time is read, the next runs, and what a new job (`wanted`) will cost, before
    anything is kept; a name that is taken is refused here."""
    if as_json:
        return
    _print_rows(read_lines(call(App.jobs.read, when, wanted)))
    if asks and _is_interactive():
        # Nothing is held open while somebody reads: another command may run meanwhile.
        typer.confirm(f"\n{question}", abort=True)


def _is_interactive() -> bool:
    """Whether somebody can answer; a script has made up its mind."""
    return sys.stdin.isatty() and sys.stdout.isatty()


# --- printing ----------------------------------------------------------------------------------


def _done_lines(answer: Answer) -> Lines:
    yield answer["text"], "good"
    if answer.get("next"):
        yield f"next\t{answer['next']['at']}", ""


def _print(answer: Answer, lines: Callable[[Answer], Lines], *, as_json: bool) -> None:
    if as_json:
        _print_json(answer)
    else:
        _print_rows(lines(answer))


def _print_rows(lines: Lines) -> None:
    """In columns on a terminal, else with tabs."""
    print_lines(aligned(lines) if sys.stdout.isatty() else lines)


def _print_json(answer: Answer) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False))


def _wrong_usage(sentence: str) -> typer.Exit:
    """One sentence, and the exit to raise."""
    typer.secho(sentence, err=True, fg="red")
    return typer.Exit(WRONG_USAGE)
