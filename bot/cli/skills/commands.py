"""`hearthbot skills`: which there are, whether they are used and why, and the owner's decisions."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.skills.skill import Skill, SkillRefused, SkillState
from bot.app.app import App
from bot.cli import render as out
from bot.cli.client import Bot, call, run
from bot.cli.context import FAILED, exit_for
from bot.cli.skills import lines as shown
from bot.commands.skills import counted, state_words, when_words
from memory.records.errors import AssistantError

if TYPE_CHECKING:
    from agent.skills.checks import TriggerReport

app = typer.Typer(help="Skills and playbooks: what the bot knows how to do.", no_args_is_help=True)
playbook_app = typer.Typer(
    help="Playbooks of your own, stored in the database.", no_args_is_help=True
)
app.add_typer(playbook_app, name="playbook")

Name = Annotated[str, typer.Argument(help="As `hearthbot skills list` names it.")]

STDIN = "-"


# --- looking -----------------------------------------------------------------------------------


@app.command("list")
def list_skills(
    show_all: Annotated[
        bool,
        typer.Option("--all", help="Also warnings, and skills hidden by one of the same name."),
    ] = False,
    as_json: out.AsJson = False,
) -> None:
    """Show all skills: whether each is used, and if not, why."""
    found = call(App.skills.list)
    if as_json:
        out.print_json(shown.list_json(found))
        return
    out.print_rows(shown.by_kind(found), shown.columns(found), piped_only=("State",))
    below = shown.below_table if out.is_terminal() else shown.below_rows
    out.print_lines(below(found, show_all=show_all))


@app.command("show")
def show(name: Name, as_json: out.AsJson = False) -> None:
    """Show one skill: what it says, when it comes in, what it consists of."""
    found = call(App.skills.show, name)
    out.render(shown.details_json(found), shown.details_lines(found), as_json=as_json)


@app.command("why")
def why(
    text: Annotated[str, typer.Argument(help="A message, as somebody would write it.")],
    show_all: Annotated[
        bool, typer.Option("--all", help="Also those that were not picked and not close.")
    ] = False,
    as_json: out.AsJson = False,
) -> None:
    """Say which skills a message would bring in, and by what; sends nothing."""
    if not text.strip():
        raise typer.BadParameter("it is empty: write a message in quotes", param_hint="TEXT")
    found = call(App.skills.why, text)
    out.render(
        shown.why_json(text, found),
        shown.why_lines(text, found, show_all=show_all),
        as_json=as_json,
    )


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
    as_json: out.AsJson = False,
) -> None:
    """Check the files of skills, with file and line. Changes nothing and needs no home.

    Exit code 1 if a skill could not be used as it is.
    """
    from agent.skills.checks import validate as look_at

    with exit_for():
        places = _places_of(what)
        found = [one for path, name in places for one in look_at(path, shown=name)]
    names = ("file", "line", "severity", "text")
    skills = [
        {
            **out.fields(one, "name", "file", "tests"),
            "problems": [out.fields(problem, *names) for problem in one.problems],
        }
        for one in found
    ]
    out.render({"skills": skills}, shown.validated_lines(found), as_json=as_json)
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
    as_json: out.AsJson = False,
) -> None:
    """Run the trigger tests beside SKILL.md: which messages bring a skill in. No model is asked."""
    tested = run(lambda bot: _test_all(bot, name, shows=not as_json))
    results = [one for report in tested for one in report.results]
    failed = sum(not one.passed for one in results)
    passed = len(results) - failed
    answer = {
        "skills": [shown.report_json(one) for one in tested],
        "passed": passed,
        "failed": failed,
    }
    out.render(answer, shown.failed_tests(tested, passed=passed, failed=failed), as_json=as_json)
    if failed or any(p.severity.value == "error" for one in tested for p in one.problems):
        raise typer.Exit(FAILED)


async def _test_all(bot: Bot, name: str, *, shows: bool) -> list[TriggerReport]:
    from rich.console import Console
    from rich.progress import Progress

    names = await bot.call(App.skills.tested, name)
    live = shows and out.is_terminal()
    tested = []
    with Progress(transient=True, disable=not live, console=Console()) as progress:
        task = progress.add_task("", total=len(names))
        for number, one in enumerate(names):
            progress.update(task, description=one, completed=number)
            tested.append(report := await bot.call(App.skills.test, one))
            if live:
                progress.print(shown.tested_line(report)[0], markup=False, highlight=False)
            elif shows:
                out.print_lines([shown.tested_line(report)])
    return tested


# --- deciding ----------------------------------------------------------------------------------


@app.command("install")
def install(
    path: Annotated[str, typer.Argument(help="A folder with SKILL.md, or a zip or tar archive.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of one of the same name.")
    ] = False,
    as_json: out.AsJson = False,
) -> None:
    """Copy a skill into the workspace. It waits there until you approve it; nothing of it runs."""
    try:
        source = Path(path).expanduser().resolve()  # The bot may run in another folder.
    except (OSError, RuntimeError):
        raise out.wrong_usage(f"{path} leads nowhere: its links go round in a circle.") from None
    made = call(App.skills.install, source, replace_it=replace)
    text = (
        f"{made.name} is installed ({counted(len(made.files), 'file')}), and in quarantine: it is "
        f"not used until you approve it.\nLook at it: hearthbot skills show {made.name}\n"
        f"Approve it: hearthbot skills approve {made.name}"
    )
    _print(text, made.warnings, as_json=as_json, name=made.name, files=made.files)


@app.command("approve")
def approve(name: Name, yes: out.Yes = False, as_json: out.AsJson = False) -> None:
    """Let a skill be used that waits in quarantine: exactly as it is shown here."""
    details = call(App.skills.show, name)
    is_waiting = details.skill.state is SkillState.QUARANTINED
    if is_waiting and not as_json:
        out.print_lines(shown.details_lines(details))
        if not yes:
            out.confirm("\nApprove it?")
    # What was shown is what is approved: if it changes meanwhile, the bot refuses.
    skill = call(App.skills.approve, name, digest=details.skill.digest)
    text = f"{name} is approved." if is_waiting else f"{name} needs no approval."
    if skill.state is SkillState.OFF:
        text += f" It runs by the clock once it is enabled: hearthbot skills enable {name}"
    else:
        text += f" It is {_state(skill)}."
    out.say(text, as_json=as_json, name=name, state=skill.state.value)


@app.command("enable")
def enable(name: Name, yes: out.Yes = False, as_json: out.AsJson = False) -> None:
    """Let a skill that runs by the clock run; says before what that will cost."""
    from bot.cli.schedule.render import cost_json, pace_words

    async def cost_of(bot: Bot) -> out.Json:
        try:
            found = await bot.call(App.dry_runs.skill_estimate, name)
        except AssistantError as error:  # no reason to refuse: that is said in its place
            return {"text": f"What it will cost cannot be told: {str(error).rstrip('.')}."}
        return {**cost_json(found), "text": pace_words(found)}

    cost = run(cost_of)
    if not as_json:
        out.print_lines([(cost["text"], "")])
        if not yes:
            out.confirm(f"\nEnable {name}?")
    skill = call(App.skills.enable, name, enabled=True)
    assert skill.schedule is not None, "what has no schedule is refused"
    when = when_words(skill.schedule)
    if skill.is_used:
        text = (
            f"{name} is on: {when}. It is among the jobs within a minute: hearthbot schedule list"
        )
    else:
        text = f"{name} is switched on ({when}), but it is {_state(skill)}."
    out.say(text, as_json=as_json, name=name, state=skill.state.value, cost=cost)


@app.command("disable")
def disable(name: Name, as_json: out.AsJson = False) -> None:
    """Stop a skill that runs by the clock."""
    skill = call(App.skills.enable, name, enabled=False)
    out.say(f"{name} is off.", as_json=as_json, name=name, state=skill.state.value)


@app.command("remove")
def remove(name: Name, yes: out.Yes = False, as_json: out.AsJson = False) -> None:
    """Delete a skill of the workspace with its files, or a stored playbook."""
    if not yes and not as_json:
        out.confirm(f"Delete {name} with all its files?")
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
    as_json: out.AsJson = False,
) -> None:
    """Store a playbook of your own, or change one: what is left out stays as it is.

    It is in use at once.
    """
    text = None
    try:
        if file:
            is_piped = file == STDIN
            data = sys.stdin.buffer.read() if is_piped else Path(file).expanduser().read_bytes()
            text = data.decode("utf-8-sig")
    except OSError as error:
        raise out.wrong_usage(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise out.wrong_usage(f"{file} is not text in UTF-8.") from None
    if all(one is None for one in (keywords, description, priority, text)):
        raise out.wrong_usage("Say what to set, such as --keywords and --file.")
    skill, is_new, warnings = call(
        App.skills.set_playbook,
        name,
        description=description,
        keywords=None if keywords is None else keywords.split(","),
        text=text,
        priority=priority,
    )
    done = "stored" if is_new else "changed"
    text = (
        f"The playbook {name} is {done} and in use. It comes in when a message has one of: "
        f"{', '.join(skill.keywords)}"
    )
    more = {"name": name, "is_new": is_new, "keywords": skill.keywords}
    _print(text, warnings, as_json=as_json, **more)


@playbook_app.command("remove")
def remove_playbook(name: Name, yes: out.Yes = False, as_json: out.AsJson = False) -> None:
    """Delete a stored playbook."""
    if not yes and not as_json:
        out.confirm(f"Delete the playbook {name}?")
    nothing = f"there is no stored playbook {name[:64]!r}: nothing was removed"
    _print_removed(App.skills.remove_playbook, name, nothing, as_json=as_json)


def _print_removed(
    remove: Callable[[str], Awaitable[bool]], name: str, nothing: str, *, as_json: bool
) -> None:
    """Remove it, and say which skill of this name comes to light."""

    async def removed(bot: Bot) -> Skill | None:
        if not await bot.call(remove, name):
            raise SkillRefused(nothing)
        return (await bot.call(App.skills.now)).get(name)

    rest = run(removed)
    text = f"{name} is removed."
    if rest is not None:
        text += f" Another one of this name is there now: {rest.location}, {_state(rest)}."
    out.say(text, as_json=as_json, name=name)


# --- printing ----------------------------------------------------------------------------------


def _state(skill: Skill) -> str:
    is_waiting = skill.state is SkillState.QUARANTINED
    return "in quarantine" if is_waiting else state_words(skill, None)


def _print(text: str, warnings: Sequence[str], *, as_json: bool, **more: object) -> None:
    """Print what was done, after what to look at twice."""
    if warnings and not as_json:
        out.print_lines([("Look twice at:", "warn"), *((f"  {one}", "warn") for one in warnings)])
    out.say(text, as_json=as_json, warnings=warnings, **more)
