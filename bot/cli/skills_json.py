"""What `hearthbot skills --json` prints: records of skills as JSON objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agent.skills.skill import Problem, Skill, SkillMode, SkillState
from bot.commands.skill_messages import (
    KINDS,
    PLACES,
    approving_words,
    state_words,
    when_words,
)

if TYPE_CHECKING:
    from agent.skills.checks import TriggerReport
    from agent.skills.service import SkillDetails, SkillList
    from agent.skills.why import Explanation, SkillWhy
    from memory.records.rows import SkillRecord

Json = dict[str, Any]

LISTED_CHARS = 250
NEAR_SHARE = 0.5
"""Of the score that is needed: what reaches so much is worth a word."""


def list_as_json(found: SkillList) -> Json:
    """`skills` by kind and name, `shadowed` (hidden by a stronger one) and `problems`."""
    kinds = list(SkillMode)
    by_kind = sorted(found.skills.skills, key=lambda one: (kinds.index(one.kind), one.name))
    stronger = {one.name: one.location for one in found.skills.skills}
    broken = [problem for one in found.tests.values() for problem in one.problems]
    return {
        "skills": [
            {**_row(one, found.records.get(one.name)), "tests": len(found.tests[one.name].tests)}
            for one in by_kind
        ],
        "shadowed": [
            {"name": one.name, "location": one.location, "by": stronger[one.name]}
            for one in found.skills.shadowed
        ],
        "problems": _problems((*found.skills.problems, *broken)),
    }


def details_as_json(found: SkillDetails) -> Json:
    """Everything about one skill."""
    skill, record = found.skill, found.record
    return {
        **_row(skill, record),
        "kind_words": KINDS[skill.kind],
        "front_matter": _front_matter(skill),
        "text": skill.text,
        "files": [{"name": name, "bytes": size} for name, size in found.files],
        "digest": skill.digest,
        "origin": record.origin if record is not None else "",
        "findings": list(found.findings),
        "approving": approving_words(skill) if skill.state is SkillState.QUARANTINED else "",
        "tests": [{"message": one.message, "match": one.must_match} for one in found.tests.tests],
        "hides": [one.location for one in found.hides],
        "problems": _problems(found.problems),
    }


def why_as_json(text: str, found: Explanation) -> Json:
    """Each skill's `verdict` on a message with reasons, `near` for what came close, the `rules` of
    the settings and what is wrong with rules."""
    from agent.skills.matcher import SCORE_MIN

    return {
        "text": text,
        "skills": [_verdict(one, text) for one in found.skills],
        "rules": [
            {
                "source": one.rule.source,
                "fits": one.fits,
                "reason": one.reason,
                "skills": list(one.rule.skills),
                "plugins": list(one.rule.plugins),
                "instruction": one.rule.instruction,
            }
            for one in found.rules
        ],
        "problems": list(found.problems),
        "score_needed": SCORE_MIN,
    }


def report_as_json(report: TriggerReport) -> Json:
    """How the trigger tests of a skill came out."""
    return {
        "name": report.name,
        "file": report.file,
        "results": [
            {
                "message": one.test.message,
                "line": one.test.line,
                "must_match": one.test.must_match,
                "passed": one.passed,
                "reasons": list(one.reasons),
            }
            for one in report.results
        ],
        "problems": _problems(report.problems),
    }


# --- pieces ------------------------------------------------------------------------------------


def _row(skill: Skill, record: SkillRecord | None) -> Json:
    """What the list shows of a skill."""
    short = len(skill.description) <= LISTED_CHARS
    return {
        "name": skill.name,
        "description": skill.description if short else skill.description[:LISTED_CHARS] + "…",
        "kind": skill.kind.value,
        "place": PLACES[skill.place],
        "location": skill.location,
        "priority": skill.priority,
        "state": skill.state.value,
        "reason": state_words(skill, record),
        "when": when_words(skill.schedule) if skill.schedule is not None else "",
    }


def _front_matter(skill: Skill) -> Json:
    """What the file sets, without what it leaves out."""
    schedule = skill.schedule
    said = {
        "description": skill.description,
        "keywords": list(skill.keywords),
        "patterns": list(skill.patterns),
        "instruction": skill.instruction,
        "auto_invoke": [{"tool": one.tool, "args": dict(one.args)} for one in skill.auto_invoke],
        "required_tools": list(skill.required_tools),
        "allowed_tools": list(skill.allowed_tools) if skill.allowed_tools is not None else None,
        "max_steps": skill.max_steps,
        "no_tools": skill.no_tools,
        "full_context": skill.full_context,
        "schedule": when_words(schedule) if schedule is not None else "",
        "notify": schedule.notify if schedule is not None else "",
        "deliver_to": schedule.deliver_to if schedule is not None else "",
        "missing": list(skill.missing),
        "version": skill.version,
        "license": skill.license,
        "compatibility": skill.compatibility,
    }
    kept = {"allowed_tools"} if skill.allowed_tools is not None else set()
    return {key: value for key, value in said.items() if value or key in kept}


def _problems(problems: Iterable[Problem]) -> list[Json]:
    """Each problem once."""
    keys = ("skill", "file", "line", "severity", "text")
    return [{key: getattr(one, key) for key in keys} for one in dict.fromkeys(problems)]


def _verdict(one: SkillWhy, text: str) -> Json:
    """What became of a skill for a message. `near` says how one that was not picked came close."""
    return {
        "name": one.skill.name,
        "kind": one.skill.kind.value,
        "place": PLACES[one.skill.place],
        "state": one.skill.state.value,
        "verdict": one.verdict.value,
        "reasons": list(one.reasons),
        "near": _near(one, text),
        "score": one.score,
    }


def _near(one: SkillWhy, text: str) -> list[str]:
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
