"""`hearthbot skills`: which there are, whether they are used and why, and the owner's decisions."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.opening import FAILED, WRONG_USAGE, exit_for, opened
from bot.cli.skills_shown import (
    Lines,
    approved_lines,
    failed_tests,
    list_lines,
    list_table,
    print_lines,
    shown_lines,
    tested_line,
    validated_lines,
    warning_lines,
    why_lines,
)

if TYPE_CHECKING:
    from bot.cli.opening import Opened

app = typer.Typer(help="Skills and playbooks: what the bot knows how to do.", no_args_is_help=True)
playbook_app = typer.Typer(
    help="Playbooks of your own, stored in the database.", no_args_is_help=True
)
app.add_typer(playbook_app, name="playbook")

Answer = dict[str, Any]
"""What `bot.commands.skills` answers; its keys stand there."""

Ask = Callable[..., Awaitable[Answer]]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="As `hearthbot skills list` names it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

STDIN = "-"


# --- looking -----------------------------------------------------------------------------------


@app.command("list")
def list_skills(
    show_all: Annotated[
        bool,
        typer.Option("--all", help="Also warnings, and skills hidden by one of the same name."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show all skills: whether each is used, and if not, why."""
    answer = _asked("skills.list")
    if as_json:
        _print_json(answer)
    elif sys.stdout.isatty():
        list_table(answer, show_all=show_all)
    else:
        print_lines(list_lines(answer, show_all=show_all))


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show one skill: what it says, when it comes in, what it consists of."""
    _print(_asked("skills.show", name=name), shown_lines, as_json=as_json)


@app.command("why")
def why(
    text: Annotated[str, typer.Argument(help="A message, as somebody would write it.")],
    show_all: Annotated[
        bool, typer.Option("--all", help="Also those that were not picked and not close.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say which skills a message would bring in, and by what; sends nothing."""
    if not text.strip():
        raise typer.BadParameter("it is empty: write a message in quotes", param_hint="TEXT")
    answer = _asked("skills.why", text=text)
    _print(answer, lambda found: why_lines(found, show_all=show_all), as_json=as_json)


@app.command("validate")
def validate(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[PATH|NAME]",
            help="A SKILL.md, a folder, an archive, or the name of a skill; else all of this home.",
        ),
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the files of skills, with file and line. Changes nothing and needs no home.

    Exit code 1 if a skill could not be used as it is.
    """
    from agent.skills.checks import validate as look_at

    with exit_for():
        places = _places_of(what)
        found = [one for path, shown in places for one in look_at(path, shown=shown)]
    if as_json:
        skills = [
            {
                "name": one.name,
                "file": one.file,
                "tests": one.tests,
                "problems": [
                    {"file": p.file, "line": p.line, "severity": p.severity.value, "text": p.text}
                    for p in one.problems
                ],
            }
            for one in found
        ]
        _print_json({"skills": skills})
    else:
        print_lines(validated_lines(found))
    if any(not one.is_usable or (strict and one.problems) for one in found):
        raise typer.Exit(FAILED)


def _places_of(what: str) -> list[tuple[Path, str]]:
    """Paths to look at, with what each is called. Raises SettingsWrong."""
    import os

    from bot.settings.home import find_home, shipped

    path = Path(what).expanduser()
    if what and (path.exists() or "/" in what or what.startswith("~")):
        return [(path, what)]
    own = find_home(dict(os.environ)).workspace / "skills"
    roots = [(own, "workspace/skills"), (shipped("skills"), "shipped/skills")]
    if not what:
        return [(root, name) for root, name in roots if root.is_dir() and any(root.iterdir())]
    inside = [(root / what, f"{name}/{what}") for root, name in roots if (root / what).is_dir()]
    return inside[:1] or [(path, what)]


@app.command("test")
def run_tests(
    name: Annotated[str, typer.Argument(help="Of one skill; else of all.")] = "",
    as_json: AsJson = False,
) -> None:
    """Run the trigger tests beside SKILL.md: which messages bring a skill in. No model is asked."""
    with exit_for(), opened(log_to_terminal=False) as home:
        tested = asyncio.run(_test_all(home, name, shows=not as_json))
    failed = sum(not one["passed"] for skill in tested for one in skill["results"])
    passed = sum(len(skill["results"]) for skill in tested) - failed
    broken = [p for skill in tested for p in skill["problems"] if p["severity"] == "error"]
    if as_json:
        _print_json({"skills": tested, "passed": passed, "failed": failed})
    else:
        print_lines(failed_tests(tested, passed=passed, failed=failed))
    if failed or broken:
        raise typer.Exit(FAILED)


async def _test_all(home: Opened, name: str, *, shows: bool) -> list[Answer]:
    from rich.console import Console
    from rich.progress import Progress

    tested: list[Answer] = []
    async with _desk(home) as ask:
        names = (await ask("skills.tested", name=name))["names"]
        live = shows and sys.stdout.isatty()
        with Progress(transient=True, disable=not live, console=Console()) as progress:
            task = progress.add_task("", total=len(names))
            for number, one in enumerate(names):
                progress.update(task, description=one, completed=number)
                answer = await ask("skills.test", name=one)
                tested.append(answer)
                if live:
                    progress.print(tested_line(answer)[0], markup=False, highlight=False)
                elif shows:
                    print_lines([tested_line(answer)])
    return tested


# --- deciding ----------------------------------------------------------------------------------


@app.command("install")
def install(
    path: Annotated[str, typer.Argument(help="A folder with SKILL.md, or a zip or tar archive.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of one of the same name.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy a skill into the workspace. It waits there until you approve it; nothing of it runs."""
    try:
        source = Path(path).expanduser().resolve()  # The bot may run in another folder.
    except (OSError, RuntimeError):
        raise _wrong_usage(f"{path} leads nowhere: its links go round in a circle.") from None
    answer = _asked("skills.install", path=str(source), replace=replace)
    _print(answer, approved_lines, as_json=as_json)


@app.command("approve")
def approve(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Let a skill be used that waits in quarantine: exactly as it is shown here."""
    with exit_for(), opened(log_to_terminal=False) as home:
        answer = asyncio.run(_approve(home, name, asks=not yes, as_json=as_json))
    _print(answer, approved_lines, as_json=as_json)


async def _approve(home: Opened, name: str, *, asks: bool, as_json: bool) -> Answer:
    """What was shown is what is approved: if it changes meanwhile, the bot refuses."""
    async with _desk(home) as ask:
        shown = await ask("skills.show", name=name)
        if shown["state"] == "quarantined" and not as_json:
            print_lines(shown_lines(shown))
    if shown["state"] == "quarantined" and asks and not as_json:
        # Nothing is held open while somebody reads: another command may run meanwhile.
        _confirm("\nApprove it?")
    async with _desk(home) as ask:
        return await ask("skills.approve", name=name, digest=shown["digest"])


@app.command("enable")
def enable(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Let a skill that runs by the clock run; says before what that will cost."""
    from bot.cli.schedule_jobs import cost_of_skill

    cost = cost_of_skill(name)
    if not as_json:
        print_lines([(cost["text"], "")])
        if not yes:
            _confirm(f"\nEnable {name}?")
    answer = _asked("skills.enable", name=name, enabled=True)
    _print({**answer, "cost": cost}, approved_lines, as_json=as_json)


@app.command("disable")
def disable(name: Name, as_json: AsJson = False) -> None:
    """Stop a skill that runs by the clock."""
    answer = _asked("skills.enable", name=name, enabled=False)
    _print(answer, approved_lines, as_json=as_json)


@app.command("remove")
def remove(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a skill of the workspace with its files, or a stored playbook."""
    if not yes and not as_json:
        _confirm(f"Delete {name} with all its files?")
    _print(_asked("skills.remove", name=name), approved_lines, as_json=as_json)


@playbook_app.command("set")
def set_playbook(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and hyphens.")],
    keywords: Annotated[
        str | None, typer.Option(help='What brings it in: "expenses, tax return".')
    ] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher ones stand first.")] = None,
    file: Annotated[
        str, typer.Option(help="Where the instructions are; - reads what is piped in.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Store a playbook of your own, or change one: what is left out stays as it is.

    It is in use at once.
    """
    wanted = {
        "name": name,
        "keywords": None if keywords is None else keywords.split(","),
        "description": description,
        "priority": priority,
        "text": _instructions(file),
    }
    if all(value is None for key, value in wanted.items() if key != "name"):
        raise _wrong_usage("Say what to set, such as --keywords and --file.")
    _print(_asked("skills.playbook.set", **wanted), approved_lines, as_json=as_json)


@playbook_app.command("remove")
def remove_playbook(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a stored playbook."""
    if not yes and not as_json:
        _confirm(f"Delete the playbook {name}?")
    _print(_asked("skills.playbook.remove", name=name), approved_lines, as_json=as_json)


def _instructions(file: str) -> str | None:
    """The text of a file, or what is piped in; None when neither was named."""
    if not file:
        return None
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).expanduser().read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise _wrong_usage(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise _wrong_usage(f"{file} is not text in UTF-8.") from None


def _wrong_usage(sentence: str) -> typer.Exit:
    """One sentence, and the exit to raise."""
    typer.secho(sentence, err=True, fg="red")
    return typer.Exit(WRONG_USAGE)


def _confirm(question: str) -> None:
    """Asks where somebody can answer; a script has made up its mind."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        typer.confirm(question, abort=True)


# --- asking the bot ----------------------------------------------------------------------------


def _asked(operation: str, **arguments: Any) -> Answer:
    async def once(home: Opened) -> Answer:
        async with _desk(home) as ask:
            return await ask(operation, **arguments)

    with exit_for(), opened(log_to_terminal=False) as home:
        return asyncio.run(once(home))


def _desk(home: Opened) -> AbstractAsyncContextManager[Ask]:
    """Asks the running bot; where none runs, the files and the database alone."""
    from bot.cli.asking import asker
    from bot.commands.skills import skill_operations

    return asker(home, lambda app: skill_operations(app.skills))


# --- printing ----------------------------------------------------------------------------------


def _print(answer: Answer, lines: Callable[[Answer], Lines], *, as_json: bool) -> None:
    if as_json:
        _print_json(answer)
    else:
        print_lines(warning_lines(answer))
        print_lines(lines(answer))


def _print_json(answer: Answer) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False))
