"""`hearthbot skills`: which there are, whether they are used and why, and the owner's decisions."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.skills.skill import Skill, SkillRefused, SkillState
from bot.app.app import App
from bot.cli.client import ask, call, caller
from bot.cli.context import FAILED, WRONG_USAGE, Opened, exit_for, opened
from bot.cli.skills_json import details_as_json, list_as_json, report_as_json, why_as_json
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
from bot.commands.skill_messages import counted, state_words, when_words

app = typer.Typer(help="Skills and playbooks: what the bot knows how to do.", no_args_is_help=True)
playbook_app = typer.Typer(
    help="Playbooks of your own, stored in the database.", no_args_is_help=True
)
app.add_typer(playbook_app, name="playbook")

Answer = dict[str, Any]
"""What `bot.cli.skills_json` makes; its keys stand there."""

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
    answer = list_as_json(call(App.skills.list))
    if as_json:
        _print_json(answer)
    elif sys.stdout.isatty():
        list_table(answer, show_all=show_all)
    else:
        print_lines(list_lines(answer, show_all=show_all))


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show one skill: what it says, when it comes in, what it consists of."""
    answer = details_as_json(call(App.skills.show, name))
    _print(answer, shown_lines, as_json=as_json)


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
    answer = why_as_json(text, call(App.skills.why, text))
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
    async with caller(home) as bot:
        names = await bot.call(App.skills.tested, name)
        live = shows and sys.stdout.isatty()
        with Progress(transient=True, disable=not live, console=Console()) as progress:
            task = progress.add_task("", total=len(names))
            for number, one in enumerate(names):
                progress.update(task, description=one, completed=number)
                answer = report_as_json(await bot.call(App.skills.test, one))
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
    made = call(App.skills.install, source, replace_it=replace)
    answer = {
        "name": made.name,
        "files": made.files,
        "warnings": made.warnings,
        "text": f"{made.name} is installed ({counted(len(made.files), 'file')}), and in "
        "quarantine: it is not used until you approve it.\n"
        f"Look at it: hearthbot skills show {made.name}\n"
        f"Approve it: hearthbot skills approve {made.name}",
    }
    _print(answer, approved_lines, as_json=as_json)


@app.command("approve")
def approve(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Let a skill be used that waits in quarantine: exactly as it is shown here."""
    with exit_for(), opened(log_to_terminal=False) as home:
        details = asyncio.run(ask(home, App.skills.show, name))
        is_waiting = details.skill.state is SkillState.QUARANTINED
        if is_waiting and not as_json:
            print_lines(shown_lines(details_as_json(details)))
            if not yes:
                # Nothing is held open while somebody reads: another command may run meanwhile.
                _confirm("\nApprove it?")
        # What was shown is what is approved: if it changes meanwhile, the bot refuses.
        skill = asyncio.run(ask(home, App.skills.approve, name, digest=details.skill.digest))
    text = f"{name} is approved." if is_waiting else f"{name} needs no approval."
    if skill.state is SkillState.OFF:
        text += f" It runs by the clock once it is enabled: hearthbot skills enable {name}"
    else:
        text += f" It is {_state(skill)}."
    answer = {"name": name, "state": skill.state.value, "text": text}
    _print(answer, approved_lines, as_json=as_json)


@app.command("enable")
def enable(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Let a skill that runs by the clock run; says before what that will cost."""
    cost = call(App.jobs.cost, name)
    if not as_json:
        print_lines([(cost["text"], "")])
        if not yes:
            _confirm(f"\nEnable {name}?")
    skill = call(App.skills.enable, name, enabled=True)
    assert skill.schedule is not None, "what has no schedule is refused"
    when = when_words(skill.schedule)
    if skill.is_used:
        text = (
            f"{name} is on: {when}. It is among the jobs within a minute: hearthbot schedule list"
        )
    else:
        text = f"{name} is switched on ({when}), but it is {_state(skill)}."
    answer = {"name": name, "state": skill.state.value, "text": text, "cost": cost}
    _print(answer, approved_lines, as_json=as_json)


@app.command("disable")
def disable(name: Name, as_json: AsJson = False) -> None:
    """Stop a skill that runs by the clock."""
    skill = call(App.skills.enable, name, enabled=False)
    answer = {"name": name, "state": skill.state.value, "text": f"{name} is off."}
    _print(answer, approved_lines, as_json=as_json)


@app.command("remove")
def remove(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a skill of the workspace with its files, or a stored playbook."""
    if not yes and not as_json:
        _confirm(f"Delete {name} with all its files?")
    nothing = f"there is no skill {name[:64]!r}, so nothing was removed"
    _print_removed(App.skills.remove, name, nothing, as_json=as_json)


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
    text = _instructions(file)
    if all(one is None for one in (keywords, description, priority, text)):
        raise _wrong_usage("Say what to set, such as --keywords and --file.")
    skill, is_new, warnings = call(
        App.skills.set_playbook,
        name,
        description=description,
        keywords=None if keywords is None else keywords.split(","),
        text=text,
        priority=priority,
    )
    done = "stored" if is_new else "changed"
    answer = {
        "name": name,
        "is_new": is_new,
        "keywords": skill.keywords,
        "warnings": warnings,
        "text": f"The playbook {name} is {done} and in use. It comes in when a message has one "
        f"of: {', '.join(skill.keywords)}",
    }
    _print(answer, approved_lines, as_json=as_json)


@playbook_app.command("remove")
def remove_playbook(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a stored playbook."""
    if not yes and not as_json:
        _confirm(f"Delete the playbook {name}?")
    nothing = f"there is no stored playbook {name[:64]!r}: nothing was removed"
    _print_removed(App.skills.remove_playbook, name, nothing, as_json=as_json)


def _print_removed(
    remove: Callable[[str], Awaitable[bool]], name: str, nothing: str, *, as_json: bool
) -> None:
    """Remove it, and say which skill of this name comes to light."""

    async def removed(home: Opened) -> Skill | None:
        async with caller(home) as bot:
            if not await bot.call(remove, name):
                raise SkillRefused(nothing)
            return (await bot.call(App.skills.now)).get(name)

    with exit_for(), opened(log_to_terminal=False) as home:
        rest = asyncio.run(removed(home))
    text = f"{name} is removed."
    if rest is not None:
        text += f" Another one of this name is there now: {rest.location}, {_state(rest)}."
    _print({"name": name, "text": text}, approved_lines, as_json=as_json)


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


# --- printing ----------------------------------------------------------------------------------


def _state(skill: Skill) -> str:
    is_waiting = skill.state is SkillState.QUARANTINED
    return "in quarantine" if is_waiting else state_words(skill, None)


def _print(answer: Answer, lines: Callable[[Answer], Lines], *, as_json: bool) -> None:
    if as_json:
        _print_json(answer)
    else:
        print_lines(warning_lines(answer))
        print_lines(lines(answer))


def _print_json(answer: Answer) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False))
