"""Keyword matching in the shape of an outside harness: names and keywords in, ranked names out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.skills.matcher import Matcher
from agent.skills.skill import Skill, SkillPlace, SkillSet


def by_keywords(
    playbooks: Mapping[str, Sequence[str]], texts: Sequence[str]
) -> list[list[tuple[str, float]]]:
    """For each text the playbooks that match, by how many words of keywords hit, best first."""
    skills = tuple(
        Skill(
            name=name,
            description=name,
            text=name,
            place=SkillPlace.WORKSPACE,
            location=name,
            keywords=tuple(keywords),
        )
        for name, keywords in playbooks.items()
    )
    matcher = Matcher(SkillSet(skills=skills))
    ranked = []
    for text in texts:
        scored = [
            (match.skill.name, float(sum(len(hit.keyword.split()) for hit in match.hits)))
            for match in matcher.playbooks(text)
        ]
        ranked.append(sorted(scored, key=lambda one: -one[1]))
    return ranked
