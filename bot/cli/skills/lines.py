"""How `hearthbot skills` shows skills: as JSON, and in lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agent.skills.skill import Problem, Skill, SkillMode, SkillState
from bot.cli import render as out
from bot.commands.skills import (
    KINDS,
    PLACES,
    approving_words,
    counted,
    state_words,
    when_words,
)

if TYPE_CHECKING:
    from agent.skills.checks import TriggerReport, Validated
    from agent.skills.service import SkillDetails, SkillList
    from agent.skills.why import Explanation, RuleWhy, SkillWhy
    from memory.records.rows import SkillRecord

KEYWORDS_SHOWN = 12
TESTS_SHOWN = 3
MESSAGE_CHARS = 70
LISTED_CHARS = 250
NEAR_SHARE = 0.5
"""Of the score that is needed: what reaches so much is worth a word."""

_STATE_LOOKS = {
    SkillState.USABLE: "good",
    SkillState.QUARANTINED: "warn",
    SkillState.MISSING: "bad",
    SkillState.OFF: "dim",
}


# --- list --------------------------------------------------------------------------------------


def list_json(found: SkillList) -> out.Json:
    """Return `skills` by kind and name, `shadowed` (hidden by a stronger one) and `problems`."""
    return {
        "skills": [
            {**_row(one, found.records.get(one.name)), "tests": len(found.tests[one.name].tests)}
            for one in by_kind(found)
        ],
        "shadowed": [{"name": name, **more} for name, more in _shadowed(found)],
        "problems": problems_json(problems_of(found)),
    }


def by_kind(found: SkillList) -> list[Skill]:
    """Return the skills by kind and name."""
    kinds = list(SkillMode)
    return sorted(found.skills.skills, key=lambda one: (kinds.index(one.kind), one.name))


def problems_of(found: SkillList) -> list[Problem]:
    """Return each problem of skills and of their tests once."""
    broken = [problem for one in found.tests.values() for problem in one.problems]
    return list(dict.fromkeys([*found.skills.problems, *broken]))


def _shadowed(found: SkillList) -> Iterator[tuple[str, out.Json]]:
    stronger = {one.name: one.location for one in found.skills.skills}
    for one in found.skills.shadowed:
        yield one.name, {"location": one.location, "by": stronger[one.name]}


def columns(found: SkillList) -> out.Columns[Skill]:
    """Return what the list says of each skill."""
    return {
        "Name": lambda one: one.name,
        "Kind": lambda one: one.kind.value,
        "Place": lambda one: PLACES[one.place],
        "Prio": lambda one: one.priority,
        "State": lambda one: one.state.value,
        "Why": lambda one: _state(one, found.records.get(one.name)),
        "Tests": lambda one: len(found.tests[one.name].tests),
    }


def below_rows(found: SkillList, *, show_all: bool) -> out.Lines:
    """Return what stands below the rows in a pipe."""
    if show_all:
        for name, more in _shadowed(found):
            yield "\t".join([name, "hidden", more["location"], f"by {more['by']}"]), ""
    for one in problems_of(found):
        if show_all or one.severity.value == "error":
            row = ["problem", one.severity.value, _place(one), one.text]
            yield "\t".join(map(out.flat, row)), ""


def below_table(found: SkillList, *, show_all: bool) -> out.Lines:
    """Return what stands below the table on a terminal."""
    skills, hidden = by_kind(found), list(_shadowed(found))
    used = sum(skill.state is SkillState.USABLE for skill in skills)
    yield f"{counted(len(skills), 'skill')}, {used} in use.", ""
    if waiting := [one.name for one in skills if one.state is SkillState.QUARANTINED]:
        yield f"Look at what waits: hearthbot skills show {waiting[0]}", ""
        yield f"Let it be used:       hearthbot skills approve {waiting[0]}", ""
    if off := [one.name for one in skills if one.state is SkillState.OFF]:
        yield f"Let one run that is off: hearthbot skills enable {off[0]}", "dim"
    if hidden and show_all:
        yield "", ""
        yield "Hidden by another skill of the same name:", "head"
        yield from ((f"  {more['location']}, by {more['by']}", "") for _, more in hidden)
    elif hidden:
        yield f"{counted(len(hidden), 'skill')} hidden by another of the same name (--all)", "dim"
    every = problems_of(found)
    problems = [one for one in every if show_all or one.severity.value == "error"]
    if problems:
        yield "", ""
        yield "Problems:", "head"
        yield from map(_problem, problems)
    if others := len(every) - len(problems):
        yield f"{counted(others, 'warning')} more (--all)", "dim"


# --- show --------------------------------------------------------------------------------------


def details_json(found: SkillDetails) -> out.Json:
    """Return everything about one skill."""
    skill, record, schedule = found.skill, found.record, found.skill.schedule
    said: out.Json = {
        **out.fields(skill, "description", "keywords", "patterns", "instruction", "max_steps"),
        **out.fields(skill, "required_tools", "no_tools", "full_context", "missing", "version"),
        **out.fields(skill, "license", "compatibility"),
        "auto_invoke": [{"tool": one.tool, "args": dict(one.args)} for one in skill.auto_invoke],
        "schedule": when_words(schedule) if schedule is not None else "",
        "notify": schedule.notify if schedule is not None else "",
        "deliver_to": schedule.deliver_to if schedule is not None else "",
    }
    # What the file sets, without what it leaves out.
    front_matter = {key: value for key, value in said.items() if value}
    if skill.allowed_tools is not None:  # an empty list allows none
        front_matter["allowed_tools"] = skill.allowed_tools
    return {
        **_row(skill, record),
        **out.fields(skill, "text", "digest"),
        "kind_words": KINDS[skill.kind],
        "front_matter": front_matter,
        "files": [{"name": name, "bytes": size} for name, size in found.files],
        "origin": record.origin if record is not None else "",
        "findings": found.findings,
        "approving": approving_words(skill) if skill.state is SkillState.QUARANTINED else "",
        "tests": [{"message": one.message, "match": one.must_match} for one in found.tests.tests],
        "hides": [one.location for one in found.hides],
        "problems": problems_json(found.problems),
    }


def _row(skill: Skill, record: SkillRecord | None) -> out.Json:
    short = len(skill.description) <= LISTED_CHARS
    return {
        **out.fields(skill, "name", "kind", "location", "priority", "state"),
        "description": skill.description if short else skill.description[:LISTED_CHARS] + "…",
        "place": PLACES[skill.place],
        "reason": state_words(skill, record),
        "when": when_words(skill.schedule) if skill.schedule is not None else "",
    }


def problems_json(problems: Iterable[Problem]) -> list[out.Json]:
    """Return each problem once."""
    keys = ("skill", "file", "line", "severity", "text")
    return [out.fields(one, *keys) for one in dict.fromkeys(problems)]


def details_lines(found: SkillDetails) -> out.Lines:
    """Yield one skill, to be read before it is approved."""
    skill, record = found.skill, found.record
    yield skill.name, "head"
    if skill.description:
        yield skill.description, ""
    yield "", ""
    yield f"state       {_state(skill, record)}", _STATE_LOOKS[skill.state]
    yield f"kind        {KINDS[skill.kind]}", ""
    yield f"comes in    {_comes_in(skill)}", ""
    yield f"place       {PLACES[skill.place]}: {skill.location}", ""
    if record is not None and record.origin:
        yield f"origin      {record.origin}", ""
    for name, value in _settings(skill):
        yield f"{name:<11} {value}", ""
    for one in found.hides:
        yield f"instead of  {one.location}", ""
    yield f"content     {skill.digest[:16] or 'not pinned'}", "dim"
    for heading, wanted in (("Brought in by, for example:", True), ("But not by:", False)):
        messages = [one.message for one in found.tests.tests if one.must_match is wanted]
        if messages:
            yield "", ""
            yield heading, "head"
        for message in messages[:TESTS_SHOWN]:
            yield f"  {out.shortened(message, MESSAGE_CHARS)}", ""
    if others := [one for one in found.files if one[0] != "SKILL.md"]:
        yield "", ""
        yield "Other files, which are not shown here:", "head"
        yield from ((f"  {name} ({size:,} bytes)", "") for name, size in others)
    lines = skill.text.splitlines()
    yield "", ""
    yield f"Its instructions ({counted(len(lines), 'line')}):", "head"
    yield from ((f"  {line}", "") for line in lines)
    yield from _warnings(found)


def _warnings(found: SkillDetails) -> out.Lines:
    if found.problems:
        yield "", ""
        yield "Problems:", "head"
        yield from map(_problem, dict.fromkeys(found.problems))
    if found.findings:
        yield "", ""
        yield "Look twice at:", "warn"
        yield from ((f"  {finding}", "warn") for finding in found.findings)
    if found.skill.state is SkillState.QUARANTINED:
        yield "", ""
        yield approving_words(found.skill), ""
        if not found.findings:
            yield "A search for well-known tricks found none. That says little: read it.", ""


def _state(skill: Skill, record: SkillRecord | None) -> str:
    when = f"; {when_words(skill.schedule)}" if skill.schedule is not None else ""
    return f"{state_words(skill, record)}{when}"


def _comes_in(skill: Skill) -> str:
    """Return which messages bring it in."""
    if skill.kind is SkillMode.CLOCK:
        ways = ["by the clock" if skill.patterns else "by the clock alone"]
    elif skill.kind is SkillMode.PLAYBOOK:
        ways = [f"when a message says {_some(skill.keywords)}"]
    else:
        ways = ["when a message shares enough words with its name and description"]
    if skill.patterns:
        ways.append(f"when a message fits the pattern {_some(skill.patterns)}")
    return "; ".join(ways)


def _some(words: Sequence[str]) -> str:
    shown = [repr(word) for word in words[:KEYWORDS_SHOWN]]
    if (more := len(words) - KEYWORDS_SHOWN) > 0:
        shown.append(f"{more} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _settings(skill: Skill) -> Iterator[tuple[str, str]]:
    schedule = skill.schedule
    if skill.allowed_tools is not None:
        yield "may use", ", ".join(skill.allowed_tools) or "what the bot's own rules allow"
    if skill.no_tools:
        yield "may use", "no tools at all"
    said = (
        ("tells", skill.instruction),
        ("needs tools", ", ".join(skill.required_tools)),
        ("max. steps", skill.max_steps),
        ("notifies", schedule.notify if schedule is not None else ""),
        ("delivers to", schedule.deliver_to if schedule is not None else ""),
        ("works with", skill.compatibility),
        ("version", skill.version),
        ("licence", skill.license),
    )
    yield from ((name, str(value)) for name, value in said if value)
    for one in skill.auto_invoke:
        yield "calls", f"{one.tool} {dict(one.args)}, when a reply was of no help"
    if skill.priority:
        yield "priority", str(skill.priority)


# --- why ---------------------------------------------------------------------------------------


def why_json(text: str, found: Explanation) -> out.Json:
    """Return each skill's `verdict` on a message with reasons, `near` for what came close, the
    `rules` of the settings and what is wrong with rules."""
    from agent.skills.matcher import SCORE_MIN

    return {
        "text": text,
        "skills": [
            {
                **out.fields(one.skill, "name", "kind", "state"),
                **out.fields(one, "verdict", "reasons", "score"),
                "place": PLACES[one.skill.place],
                "near": _near(one, text),
            }
            for one in found.skills
        ],
        "rules": [
            {
                **out.fields(one.rule, "source", "skills", "plugins", "instruction"),
                **out.fields(one, "fits", "reason"),
            }
            for one in found.rules
        ],
        "problems": found.problems,
        "score_needed": SCORE_MIN,
    }


def _near(one: SkillWhy, text: str) -> list[str]:
    """Return how one that was not picked came close."""
    from agent.skills.matcher import SCORE_MIN, near_misses
    from agent.skills.why import SkillVerdict, near_words

    if one.verdict is SkillVerdict.PICKED:
        return []
    if one.verdict is SkillVerdict.CANNOT:
        return list(one.reasons[1:])
    if one.skill.is_playbook:
        return [near_words(miss) for miss in near_misses(one.skill.keywords, text)]
    if one.score is not None and one.score >= NEAR_SHARE * SCORE_MIN:
        return list(one.reasons[:1])
    return []


_EFFECTS = {
    SkillMode.PLAYBOOK: "Its instructions join the prompt for this message.",
    SkillMode.SKILL: "It is named first among the skills for this message; the assistant reads it "
    "then.",
    SkillMode.CLOCK: "It joins the prompt for this message, besides running by the clock.",
}

_HOW = """
How it is decided:
  A playbook is picked when one of its keywords is in the message, as a whole word;
  "emails" and "emailing" count for the keyword "email", "profile" not for "file".
  A skill without keywords is picked when its name and description share enough rare
  words with the message (a score of {score:.2f}, of 1).
  A rule of the settings, or a skill's own pattern, picks where its pattern fits.
  A skill without keywords that is not picked is not lost: the prompt names it, and the
  assistant can read it when it sees that it fits. A playbook joins by its keywords only."""
_INSTEAD = """
If there should have been one:
  hearthbot skills list                       which there are, and what waits or
                                              is off
  hearthbot skills show NAME                  what brings one in
  hearthbot skills playbook set NAME --keywords "a, b" --file steps.md
                                              instructions of your own
"""


def why_lines(text: str, found: Explanation, *, show_all: bool) -> out.Lines:
    """For somebody who has not read how skills are picked."""
    from agent.skills.matcher import SCORE_MIN

    near = {one.skill.name: reasons for one in found.skills if (reasons := _near(one, text))}
    picked = [one for one in found.skills if one.verdict == "picked"]
    close = [one for one in found.skills if one.skill.name in near]
    rest = [one for one in found.skills if one not in picked and one not in close]
    fitting = [one for one in found.rules if one.fits]
    yield f"For the message {out.shortened(text, MESSAGE_CHARS)!r}:", "head"
    yield "", ""
    if picked:
        yield "Picked:", "good"
        for one in picked:
            yield from _verdict(one, one.reasons)
            yield f"      {_EFFECTS[one.skill.kind]}", "dim"
    else:
        yield "Nothing was picked: no skill adds instructions to the prompt for this message.", ""
    if fitting:
        yield "", ""
        yield "Rules of your settings that fit:", "good"
        yield from map(_rule, fitting)
    if close:
        yield "", ""
        yield "Came close, and was not picked:", "warn"
        for one in close:
            is_usable = one.skill.state is SkillState.USABLE
            yield from _verdict(one, near[one.skill.name] if is_usable else one.reasons)
    others = [one for one in found.rules if not one.fits]
    if show_all and (rest or others):
        yield "", ""
        yield "Not picked:", "head"
        for one in rest:
            yield from _verdict(one, one.reasons)
        yield from map(_rule, others)
    elif rest and not show_all:
        yield "", ""
        yield f"{counted(len(rest), 'other')} did not fit (--all shows each, with the reason).", ""
    yield from ((problem, "bad") for problem in found.problems)
    for line in (_HOW.format(score=SCORE_MIN) + ("" if picked else f"\n{_INSTEAD}")).splitlines():
        yield line, "head" if line.endswith(":") and not line.startswith(" ") else ""


def _verdict(one: SkillWhy, reasons: Sequence[str]) -> out.Lines:
    yield f"  {one.skill.name} ({one.skill.kind.value}, {PLACES[one.skill.place]})", "head"
    yield from ((f"      {reason}", "") for reason in reasons)


def _rule(one: RuleWhy) -> out.Line:
    rule = one.rule
    brings = [*rule.skills, *rule.plugins, *(["an instruction"] if rule.instruction else [])]
    what = f", which brings {', '.join(brings)}" if brings else ""
    return f"  {rule.source}: {one.reason}{what}", ""


# --- test and validate -------------------------------------------------------------------------


def report_json(report: TriggerReport) -> out.Json:
    """Return how the trigger tests of a skill came out."""
    return {
        **out.fields(report, "name", "file"),
        "results": [
            {
                **out.fields(one.test, "message", "line", "must_match"),
                **out.fields(one, "passed", "reasons"),
            }
            for one in report.results
        ],
        "problems": problems_json(report.problems),
    }


def tested_line(report: TriggerReport) -> out.Line:
    """Return how the tests of one skill came out."""
    total = counted(len(report.results), "test")
    if failed := sum(not one.passed for one in report.results):
        return f"FAIL {report.name}: {failed} of {total} failed", "bad"
    if any(one.severity.value == "error" for one in report.problems):
        return f"FAIL {report.name}: its tests cannot all be read", "bad"
    return f"ok   {report.name}: {total} passed", ""


def failed_tests(tested: Sequence[TriggerReport], *, passed: int, failed: int) -> out.Lines:
    """Return what failed, and why; the sum at the end."""
    for report in tested:
        yield from map(_problem, dict.fromkeys(report.problems))
        for one in report.results:
            if one.passed:
                continue
            must = "must match" if one.test.must_match else "must not match"
            message = out.shortened(one.test.message, MESSAGE_CHARS)
            yield f"{report.file}:{one.test.line}: {message!r} {must}", "bad"
            yield from ((f"    {reason}", "") for reason in one.reasons)
    if not tested:
        yield "There are no trigger tests: they stand in a tests.yaml beside a SKILL.md.", ""
        return
    total = f"{counted(passed, 'test')} passed, {failed} failed."
    yield total, "bad" if failed else "good"


def validated_lines(found: Sequence[Validated]) -> out.Lines:
    """Return `file:line: what is wrong`, warnings marked as such; the sum at the end."""
    problems = [problem for one in found for problem in one.problems]
    errors = sum(one.severity.value == "error" for one in problems)
    for text, look in map(_problem, problems):
        yield text.strip(), look
    tests = sum(one.tests for one in found)
    what = f"{counted(len(found), 'skill')} with {counted(tests, 'trigger test')}"
    result = f"{counted(errors, 'error')}, {counted(len(problems) - errors, 'warning')}"
    yield f"{what}: {result}.", "bad" if errors else "good"


def _problem(problem: Problem) -> out.Line:
    is_error = problem.severity.value == "error"
    text = problem.text if is_error else f"warning: {problem.text}"
    return f"  {_place(problem)}: {text}", "bad" if is_error else "warn"


def _place(problem: Problem) -> str:
    return f"{problem.file}:{problem.line}" if problem.line else str(problem.file)
