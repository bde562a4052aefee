"""Skills as JSON objects: what `bot.commands.skills` answers with, piece by piece. Changes nothing.

What reads files says so; the rest is pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent.skills.checks import TriggerResult
from agent.skills.matching import SCORE_MIN, near_misses
from agent.skills.parser import FILE_BYTES_MAX, Unreadable
from agent.skills.places import read_file, shown, stamps
from agent.skills.playbooks import findings, keyword_warnings, playbook_warnings
from agent.skills.skill import Problem, Skill
from agent.skills.why import RuleWhy, SkillWhy, Verdict, near_words
from bot.commands.skill_messages import PLACES, kind_of, state_words, when_words
from memory.records.rows import SkillRecord, StoredPlaybook

# --- skill words --------------------------------------------------------------------------------
#
# What is said about skills in plain words: by `hearthbot skills` and by `/skills`. Pure.


Json = dict[str, Any]

LISTED_CHARS = 250
NEAR_SHARE = 0.5
"""Of the score that is needed: what reaches so much is worth a word."""


def row_of(skill: Skill, record: SkillRecord | None) -> Json:
    """What the list shows of a skill."""
    short = len(skill.description) <= LISTED_CHARS
    return {
        "name": skill.name,
        "description": skill.description if short else skill.description[:LISTED_CHARS] + "…",
        "kind": kind_of(skill),
        "place": PLACES[skill.place],
        "location": skill.location,
        "priority": skill.priority,
        "state": skill.state.value,
        "reason": state_words(skill, record),
        "when": when_words(skill.schedule) if skill.schedule is not None else "",
    }


def front_matter_of(skill: Skill) -> Json:
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


def looked_through(skill: Skill) -> tuple[list[Json], list[str]]:
    """The files of a skill, and what in it should make one look twice. Reads files: blocks."""
    if skill.folder is None:
        playbook = StoredPlaybook(
            name=skill.name,
            description=skill.description,
            keywords=skill.keywords,
            text=skill.text,
        )
        return [], list(playbook_warnings(playbook))
    files: list[Json] = []
    told = list(keyword_warnings(skill.keywords))
    try:
        for name, size, *_ in stamps(str(skill.folder)):
            files.append({"name": shown(name), "bytes": size})
            told += findings(name, read_file(str(skill.folder / name), bytes_max=FILE_BYTES_MAX))
    except (OSError, Unreadable) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        told.append(f"its files cannot be looked through: {why}")
    return files, told


def problems_of(problems: Iterable[Problem]) -> list[Json]:
    """Each problem once."""
    return [
        {
            "skill": one.skill,
            "file": one.file,
            "line": one.line,
            "severity": one.severity.value,
            "text": one.text,
        }
        for one in dict.fromkeys(problems)
    ]


def result_of(one: TriggerResult) -> Json:
    """How a trigger test came out."""
    return {
        "message": one.test.message,
        "line": one.test.line,
        "must_match": one.test.must_match,
        "passed": one.passed,
        "reasons": list(one.reasons),
    }


def verdict_of(one: SkillWhy, text: str) -> Json:
    """What became of a skill for a message. `near` says how one that was not picked came close."""
    return {
        "name": one.skill.name,
        "kind": kind_of(one.skill),
        "place": PLACES[one.skill.place],
        "state": one.skill.state.value,
        "verdict": one.verdict.value,
        "reasons": list(one.reasons),
        "near": _near(one, text),
        "score": one.score,
    }


def _near(one: SkillWhy, text: str) -> list[str]:
    if one.verdict is Verdict.PICKED:
        return []
    if one.verdict is Verdict.CANNOT:
        return list(one.reasons[1:])
    if one.skill.is_playbook:
        return [near_words(miss) for miss in near_misses(one.skill.keywords, text)]
    if one.score is not None and one.score >= NEAR_SHARE * SCORE_MIN:
        return list(one.reasons[:1])
    return []


def rule_of(one: RuleWhy) -> Json:
    """Whether a rule of the settings fits, and what it brings."""
    return {
        "source": one.rule.source,
        "fits": one.fits,
        "reason": one.reason,
        "skills": list(one.rule.skills),
        "plugins": list(one.rule.plugins),
        "instruction": one.rule.instruction,
    }
