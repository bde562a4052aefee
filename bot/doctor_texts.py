"""Checks of the texts that a model reads: prompts, and skills of every place."""

from __future__ import annotations

from collections.abc import Iterator

from agent.errors import SettingsWrong
from agent.skills.places import Look, look
from agent.skills.skill import Place, Severity
from bot.config import Settings
from bot.doctor import Finding, fail, ok, warn
from bot.home import Home
from bot.options import places_of, texts_of


def prompts(home: Home, settings: Settings) -> Iterator[Finding]:
    """Every template that is missing or lacks a placeholder: with one, the bot does not start."""
    library = texts_of(home, settings)
    try:
        library.check()
    except SettingsWrong as error:
        for problem in str(error).splitlines():
            yield fail(problem, "Correct that file, or remove it: the shipped one is then used.")
        return
    own = len(list(home.prompts.glob("*.md"))) if home.prompts.is_dir() else 0
    yield ok(f"whole; {own} of your own" if own else "as shipped")


def skills(home: Home, settings: Settings) -> Iterator[Finding]:
    """What is wrong with skills. A broken one is left out and harms no other."""
    places = places_of(home, settings)
    roots = {
        Place.WORKSPACE: places.workspace,
        Place.USER: places.user,
        Place.SHIPPED: places.shipped,
    }
    count = problems = 0
    for place, root in roots.items():
        if root is None:
            continue
        seen = look(place, root, Look())
        count += sum(found.reading.skill is not None for found in seen.found.values())
        every = [*seen.problems, *(p for one in seen.found.values() for p in one.reading.problems)]
        for problem in every:
            problems += 1
            report = fail if problem.severity is Severity.ERROR else warn
            shown = f" {problem.skill}" if problem.skill else ""
            yield report(str(problem), f"Correct it; then: hearthbot skills validate{shown}")
    if not problems:
        yield ok(f"{count} can be read")
