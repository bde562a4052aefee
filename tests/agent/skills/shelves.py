"""Skills and sets of them for tests."""

from __future__ import annotations

from typing import Any

from agent.skills.skill import Skill, SkillPlace, SkillSet


def skill(name: str, *keywords: str, **more: Any) -> Skill:
    """A usable skill of the workspace."""
    given: dict[str, Any] = {
        "description": f"About {name}.",
        "text": f"Do {name}.",
        "place": SkillPlace.WORKSPACE,
        "location": f"workspace/skills/{name}/SKILL.md",
        **more,
    }
    return Skill(name=name, keywords=keywords, **given)


def shelf(*skills: Skill, **more: Any) -> SkillSet:
    """A set of skills in its promised order."""
    ordered = sorted(skills, key=lambda one: (-one.priority, one.name))
    return SkillSet(skills=tuple(ordered), **more)
