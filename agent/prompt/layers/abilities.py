"""What the assistant knows how to do: skills to read on demand, and playbooks that fit."""

from __future__ import annotations

from collections.abc import Iterable

from agent.prompt import templates as headings
from agent.prompt.scene import Scene
from agent.skills.skill import Skill, SkillPlace
from memory.records.text import one_line
from memory.records.transcript import Piece, PromptLayer, Repeat, Stability

DESCRIPTION_CHARS_MAX = 300
"""Of a skill's description in a list; read_skill shows all of it."""

MORE = "All skills: list_skills"
"""Ends the list, so that the way to the rest is there however short it had to become."""


def skills(scene: Scene) -> PromptLayer | None:
    """Layer 5: skills by name, to be read on demand; what does not fit is behind list_skills."""
    if not scene.listed:
        return None
    return PromptLayer(
        name="skills",
        pieces=tuple(_lines(scene.listed)),
        heading=headings.SKILLS_OPEN,
        closing=f"{MORE}\n{headings.SKILLS_CLOSE}",
        between="\n",
        stability=Stability.STATIC,
        trust="owner",
    )


def workflow_guidance(scene: Scene) -> PromptLayer | None:
    """Layer 10: the playbooks whose keywords stand in the message, by priority."""
    if not scene.playbooks:
        return None
    return PromptLayer(
        name="workflow guidance",
        pieces=tuple(
            Piece(
                heading=f"{headings.PLAYBOOK} {one_line(playbook.name)}",
                text=playbook.text,
                source=f"playbook:{playbook.name}",
                brief="(as above)",
            )
            for playbook in scene.playbooks
        ),
        heading=headings.GUIDANCE,
        stability=Stability.TURN,
        repeat=Repeat.MATERIAL,
        trust="owner",
    )


def relevant_skills(scene: Scene) -> PromptLayer | None:
    """Layer 11: skills that fit this message, forced ones first."""
    if not scene.relevant:
        return None
    return PromptLayer(
        name="skills for this message",
        pieces=tuple(_lines(scene.relevant)),
        heading=headings.RELEVANT_OPEN,
        closing=headings.RELEVANT_CLOSE,
        between="\n",
        stability=Stability.TURN,
        repeat=Repeat.MATERIAL,
        trust="owner",
    )


def _lines(found: Iterable[Skill]) -> Iterable[Piece]:
    for skill in found:
        description = one_line(skill.description, chars_max=DESCRIPTION_CHARS_MAX)
        place = one_line(skill.location, chars_max=DESCRIPTION_CHARS_MAX)
        source = "" if skill.place is SkillPlace.SHIPPED else f", {skill.place}"
        yield Piece(
            text=f"- {one_line(skill.name)}: {description} ({place}{source})",
            source=f"skill:{skill.name}",
        )
