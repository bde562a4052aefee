"""What `hearthbot skills` prints: lines for a terminal and for a pipe alike, and one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from agent.skills.skill import SkillMode
from bot.commands.skill_messages import counted
from memory.records.text import clean

if TYPE_CHECKING:
    from agent.skills.checks import Validated

Answer = dict[str, Any]
Line = tuple[str, str]
"""A text, and how it looks on a terminal: one of `_LOOKS`."""
Lines = Iterable[Line]

_LOOKS: dict[str, dict[str, Any]] = {
    "": {},
    "head": {"bold": True},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "warn": {"fg": "yellow"},
    "dim": {"dim": True},
}
_STATE_LOOKS = {"usable": "good", "quarantined": "warn", "missing": "bad", "off": "dim"}

KEYWORDS_SHOWN = 12
TESTS_SHOWN = 3
MESSAGE_CHARS = 70


def print_lines(lines: Lines) -> None:
    """What others wrote must not be able to steer a terminal; colours are left out when piped."""
    for text, look in lines:
        safe = _safe(text)
        typer.echo(typer.style(safe, **_LOOKS[look]) if look and safe else safe)


def _safe(text: str) -> str:
    """Without codes of a terminal, and without characters that cannot be seen."""
    from agent.skills.parser import cleaned

    return cleaned(clean(text))


# --- list --------------------------------------------------------------------------------------


def list_table(answer: Answer, *, show_all: bool) -> None:
    """For a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=0)
    for heading in ("Name", "Kind", "Place"):
        table.add_column(heading, no_wrap=True)
    table.add_column("Prio", justify="right")
    table.add_column("State", overflow="fold")
    table.add_column("Tests", justify="right")
    colours = {look: str(_LOOKS[look].get("fg", "")) or look for look in ("good", "warn", "bad")}
    for skill in answer["skills"]:
        look = _STATE_LOOKS[skill["state"]]
        cells = [skill["name"], skill["kind"], skill["place"], str(skill["priority"])]
        state = Text(_safe(_state(skill)), style=colours.get(look, look))
        tests = Text(str(skill["tests"] or ""))
        table.add_row(*(Text(_safe(cell)) for cell in cells), state, tests)
    Console().print(table)
    print_lines(_below_the_list(answer, show_all=show_all))


def list_lines(answer: Answer, *, show_all: bool) -> Iterator[Line]:
    """For a pipe: one skill a line, its cells parted by tabs."""
    for skill in answer["skills"]:
        cells = [skill[key] for key in ("name", "kind", "place", "priority", "state")]
        yield _tabbed(*cells, _state(skill), skill["tests"]), ""
    if show_all:
        for one in answer["shadowed"]:
            yield _tabbed(one["name"], "hidden", one["location"], f"by {one['by']}"), ""
    for problem in _told(answer["problems"], show_all=show_all):
        yield _tabbed("problem", problem["severity"], _at(problem), problem["text"]), ""


def _below_the_list(answer: Answer, *, show_all: bool) -> Iterator[Line]:
    skills = answer["skills"]
    used = [skill for skill in skills if skill["state"] == "usable"]
    yield f"{counted(len(skills), 'skill')}, {len(used)} in use.", ""
    waiting = [skill["name"] for skill in skills if skill["state"] == "quarantined"]
    if waiting:
        name = waiting[0]
        yield f"Look at what waits: hearthbot skills show {name}", ""
        yield f"Let it be used:       hearthbot skills approve {name}", ""
    off = [skill["name"] for skill in skills if skill["state"] == "off"]
    if off:
        yield f"Let one run that is off: hearthbot skills enable {off[0]}", "dim"
    if answer["shadowed"] and show_all:
        yield "", ""
        yield "Hidden by another skill of the same name:", "head"
        for one in answer["shadowed"]:
            yield f"  {one['location']}, by {one['by']}", ""
    elif answer["shadowed"]:
        hidden = counted(len(answer["shadowed"]), "skill")
        yield f"{hidden} hidden by another of the same name (--all)", "dim"
    problems = _told(answer["problems"], show_all=show_all)
    if problems:
        yield "", ""
        yield "Problems:", "head"
        yield from map(_problem, problems)
    others = len(answer["problems"]) - len(problems)
    if others:
        yield f"{counted(others, 'warning')} more (--all)", "dim"


def _told(problems: Sequence[Answer], *, show_all: bool) -> list[Answer]:
    return [one for one in problems if show_all or one["severity"] == "error"]


def _state(skill: Answer) -> str:
    return f"{skill['reason']}; {skill['when']}" if skill["when"] else str(skill["reason"])


# --- show --------------------------------------------------------------------------------------


def shown_lines(answer: Answer) -> Iterator[Line]:
    """One skill, to be read before it is approved."""
    yield answer["name"], "head"
    if answer["description"]:
        yield answer["front_matter"]["description"], ""
    yield "", ""
    yield f"state       {_state(answer)}", _STATE_LOOKS[answer["state"]]
    yield f"kind        {answer['kind_words']}", ""
    yield f"comes in    {_comes_in(answer)}", ""
    yield f"place       {answer['place']}: {answer['location']}", ""
    if answer["origin"]:
        yield f"origin      {answer['origin']}", ""
    for name, value in _settings(answer):
        yield f"{name:<11} {value}", ""
    for location in answer["hides"]:
        yield f"instead of  {location}", ""
    yield f"content     {answer['digest'][:16] or 'not pinned'}", "dim"
    yield from _example_lines(answer["tests"])
    yield from _file_lines(answer)
    yield "", ""
    yield f"Its instructions ({counted(len(answer['text'].splitlines()), 'line')}):", "head"
    for line in answer["text"].splitlines():
        yield f"  {line}", ""
    yield from _warning_parts(answer)


def _comes_in(answer: Answer) -> str:
    """Which messages bring it in."""
    front = answer["front_matter"]
    ways = []
    if answer["kind"] == SkillMode.CLOCK:
        ways.append("by the clock alone" if not front.get("patterns") else "by the clock")
    elif answer["kind"] == SkillMode.PLAYBOOK:
        ways.append(f"when a message says {_some(front['keywords'], 'or')}")
    else:
        ways.append("when a message shares enough words with its name and description")
    if front.get("patterns"):
        ways.append(f"when a message fits the pattern {_some(front['patterns'], 'or')}")
    return "; ".join(ways)


def _some(words: Sequence[str], last: str) -> str:
    more = len(words) - KEYWORDS_SHOWN
    shown = [repr(word) for word in words[:KEYWORDS_SHOWN]]
    if more > 0:
        shown.append(f"{more} more")
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} {last} {shown[-1]}"


_SETTINGS = (
    ("instruction", "tells"),
    ("required_tools", "needs tools"),
    ("max_steps", "max. steps"),
    ("notify", "notifies"),
    ("deliver_to", "delivers to"),
    ("compatibility", "works with"),
    ("version", "version"),
    ("license", "licence"),
)


def _settings(answer: Answer) -> Iterator[tuple[str, str]]:
    front = answer["front_matter"]
    if "allowed_tools" in front:
        yield "may use", ", ".join(front["allowed_tools"]) or "what the bot's own rules allow"
    if front.get("no_tools"):
        yield "may use", "no tools at all"
    for key, name in _SETTINGS:
        value = front.get(key)
        if value:
            yield name, ", ".join(value) if isinstance(value, list) else str(value)
    for one in front.get("auto_invoke", ()):
        yield "calls", f"{one['tool']} {one['args']}, when a reply was of no help"
    if answer["priority"]:
        yield "priority", str(answer["priority"])


def _example_lines(tests: Sequence[Answer]) -> Iterator[Line]:
    for heading, wanted in (("Brought in by, for example:", True), ("But not by:", False)):
        messages = [one["message"] for one in tests if one["match"] is wanted]
        if messages:
            yield "", ""
            yield heading, "head"
        for message in messages[:TESTS_SHOWN]:
            yield f"  {_short(message)}", ""


def _file_lines(answer: Answer) -> Iterator[Line]:
    others = [one for one in answer["files"] if one["name"] != "SKILL.md"]
    if not others:
        return
    yield "", ""
    yield "Other files, which are not shown here:", "head"
    for one in others:
        yield f"  {one['name']} ({one['bytes']:,} bytes)", ""


def _warning_parts(answer: Answer) -> Iterator[Line]:
    if answer["problems"]:
        yield "", ""
        yield "Problems:", "head"
        yield from map(_problem, answer["problems"])
    if answer["findings"]:
        yield "", ""
        yield "Look twice at:", "warn"
        for finding in answer["findings"]:
            yield f"  {finding}", "warn"
    if answer["approving"]:
        yield "", ""
        yield answer["approving"], ""
        if not answer["findings"]:
            yield "A search for well-known tricks found none. That says little: read it.", ""


# --- why ---------------------------------------------------------------------------------------


def why_lines(answer: Answer, *, show_all: bool) -> Iterator[Line]:
    """For somebody who has not read how skills are picked."""
    skills = answer["skills"]
    picked = [one for one in skills if one["verdict"] == "picked"]
    near = [one for one in skills if one["near"]]
    fitting = [one for one in answer["rules"] if one["fits"]]
    rest = [one for one in skills if one not in picked and one not in near]
    yield f"For the message {_short(answer['text'])!r}:", "head"
    yield "", ""
    if picked:
        yield "Picked:", "good"
        for one in picked:
            yield from _verdict(one, one["reasons"])
            yield f"      {_EFFECTS[one['kind']]}", "dim"
    else:
        yield "Nothing was picked: no skill adds instructions to the prompt for this message.", ""
    if fitting:
        yield "", ""
        yield "Rules of your settings that fit:", "good"
        yield from (_rule(one) for one in fitting)
    if near:
        yield "", ""
        yield "Came close, and was not picked:", "warn"
        for one in near:
            yield from _verdict(one, one["reasons"] if one["state"] != "usable" else one["near"])
    if show_all:
        yield from _others(rest, [one for one in answer["rules"] if not one["fits"]])
    elif rest:
        yield "", ""
        yield f"{counted(len(rest), 'other')} did not fit (--all shows each, with the reason).", ""
    for problem in answer["problems"]:
        yield problem, "bad"
    yield from _how(answer, is_nothing=not picked)


_EFFECTS = {
    SkillMode.PLAYBOOK: "Its instructions join the prompt for this message.",
    SkillMode.SKILL: "It is named first among the skills for this message; the assistant reads it "
    "then.",
    SkillMode.CLOCK: "It joins the prompt for this message, besides running by the clock.",
}


def _verdict(one: Answer, reasons: Sequence[str]) -> Iterator[Line]:
    yield f"  {one['name']} ({one['kind']}, {one['place']})", "head"
    for reason in reasons:
        yield f"      {reason}", ""


def _rule(one: Answer) -> Line:
    brings = [*one["skills"], *one["plugins"], *(["an instruction"] if one["instruction"] else [])]
    what = f", which brings {', '.join(brings)}" if brings else ""
    return f"  {one['source']}: {one['reason']}{what}", ""


def _others(rest: Sequence[Answer], rules: Sequence[Answer]) -> Iterator[Line]:
    if rest or rules:
        yield "", ""
        yield "Not picked:", "head"
    for one in rest:
        yield from _verdict(one, one["reasons"])
    yield from (_rule(one) for one in rules)


def _how(answer: Answer, *, is_nothing: bool) -> Iterator[Line]:
    yield "", ""
    yield "How it is decided:", "head"
    yield "  A playbook is picked when one of its keywords is in the message, as a whole word;", ""
    yield '  "emails" and "emailing" count for the keyword "email", "profile" not for "file".', ""
    yield "  A skill without keywords is picked when its name and description share enough rare", ""
    yield f"  words with the message (a score of {answer['score_needed']:.2f}, of 1).", ""
    yield "  A rule of the settings, or a skill's own pattern, picks where its pattern fits.", ""
    yield (
        "  A skill without keywords that is not picked is not lost: the prompt names it, and the",
        "",
    )
    yield (
        "  assistant can read it when it sees that it fits. A playbook joins by its keywords only.",
        "",
    )
    if is_nothing:
        yield "", ""
        yield "If there should have been one:", "head"
        yield "  hearthbot skills list                       which there are, and what waits or", ""
        yield "                                              is off", ""
        yield "  hearthbot skills show NAME                  what brings one in", ""
        yield '  hearthbot skills playbook set NAME --keywords "a, b" --file steps.md', ""
        yield "                                              instructions of your own", ""


# --- test and validate -------------------------------------------------------------------------


def tested_line(answer: Answer) -> Line:
    """How the tests of one skill came out."""
    results = answer["results"]
    failed = sum(not one["passed"] for one in results)
    if failed:
        return f"FAIL {answer['name']}: {failed} of {counted(len(results), 'test')} failed", "bad"
    if any(one["severity"] == "error" for one in answer["problems"]):
        return f"FAIL {answer['name']}: its tests cannot all be read", "bad"
    return f"ok   {answer['name']}: {counted(len(results), 'test')} passed", ""


def failed_tests(tested: Sequence[Answer], *, passed: int, failed: int) -> Iterator[Line]:
    """What failed, and why; the sum at the end."""
    for skill in tested:
        yield from map(_problem, skill["problems"])
        for one in skill["results"]:
            if one["passed"]:
                continue
            must = "must match" if one["must_match"] else "must not match"
            yield f"{skill['file']}:{one['line']}: {_short(one['message'])!r} {must}", "bad"
            for reason in one["reasons"]:
                yield f"    {reason}", ""
    if not tested:
        yield "There are no trigger tests: they stand in a tests.yaml beside a SKILL.md.", ""
        return
    total = f"{counted(passed, 'test')} passed, {failed} failed."
    yield total, "bad" if failed else "good"


def validated_lines(found: Sequence[Validated]) -> Iterator[Line]:
    """`file:line: what is wrong`, warnings marked as such; the sum at the end."""
    errors = warnings = 0
    for one in found:
        for problem in one.problems:
            is_error = problem.severity.value == "error"
            errors, warnings = errors + is_error, warnings + (not is_error)
            at = f"{problem.file}:{problem.line}" if problem.line else problem.file
            text = problem.text if is_error else f"warning: {problem.text}"
            yield f"{at}: {text}", "bad" if is_error else "warn"
    tests = sum(one.tests for one in found)
    what = f"{counted(len(found), 'skill')} with {counted(tests, 'trigger test')}"
    result = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    yield f"{what}: {result}.", "bad" if errors else "good"


# --- the rest ----------------------------------------------------------------------------------


def approved_lines(answer: Answer) -> Iterator[Line]:
    """What was done."""
    for line in answer["text"].splitlines():
        yield line, ""


def warning_lines(answer: Answer) -> Iterator[Line]:
    """What to look at, of something that was installed or stored."""
    if answer.get("warnings"):
        yield "Look twice at:", "warn"
        for warning in answer["warnings"]:
            yield f"  {warning}", "warn"


def _problem(problem: Answer) -> Line:
    is_error = problem["severity"] == "error"
    text = problem["text"] if is_error else f"warning: {problem['text']}"
    return f"  {_at(problem)}: {text}", "bad" if is_error else "warn"


def _at(problem: Answer) -> str:
    return f"{problem['file']}:{problem['line']}" if problem["line"] else str(problem["file"])


def _short(message: str) -> str:
    flat = " ".join(message.split())
    return flat if len(flat) <= MESSAGE_CHARS else f"{flat[: MESSAGE_CHARS - 1]}…"


def _tabbed(*cells: object) -> str:
    """A cell holds neither tab nor line end."""
    return "\t".join(" ".join(str(cell).split()) for cell in cells)
