"""Why each skill was or was not picked for a message, in words for a person (SPEC §7).

Called by `hearthbot skills why` and `/why`; slower than the picking itself, and picks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.skills.matcher import (
    SCORE_MIN,
    SKILLS_MAX,
    Almost,
    Matcher,
    NearMiss,
    PlaybookMatch,
    Relevance,
    SkillScore,
    near_misses,
)
from agent.skills.rules import Rule, RuleBook, RuleHit, trigger_of
from agent.skills.skill import Skill, SkillSet, SkillState


class SkillVerdict(StrEnum):
    """What became of a skill."""

    PICKED = "picked"
    NOT_PICKED = "not picked"
    CANNOT = "cannot be picked"
    """It is not used at all now; `reasons` say why, and what would have picked it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillWhy:
    """The verdict on one skill, with a sentence for each reason, the deciding one first.

    `score` is that of skills without keywords, 0 to 1; None where no score is taken.
    """

    skill: Skill
    verdict: SkillVerdict
    reasons: tuple[str, ...]
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWhy:
    """A rule of the settings: whether it fits the message, and a sentence on that."""

    rule: Rule
    fits: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All of it: skills (picked ones first), rules of the settings, what is wrong with rules."""

    skills: tuple[SkillWhy, ...]
    rules: tuple[RuleWhy, ...] = ()
    problems: tuple[str, ...] = ()


def why(skills: SkillSet, rules: Sequence[Rule], text: str) -> Explanation:
    """Go through every skill and every rule for one message."""
    book = RuleBook(skills, rules)
    forced = book.forced(text)
    matches = {match.skill.name: match for match in Matcher(skills).playbooks(text)}
    ranked = enumerate(Relevance(skills).scores(text), start=1)
    scores = {one.skill.name: (place, one) for place, one in ranked}
    verdicts = [
        _of_used(skill, text, forced.hits, matches.get(skill.name), scores.get(skill.name))
        if skill.is_used
        else _cannot(skill, state_words(skill), *_would_match(skill, text))
        for skill in skills.skills
    ]
    for skill in skills.shadowed:
        stronger = skills.get(skill.name)
        where = f" at {stronger.location}" if stronger is not None else ""
        verdicts.append(_cannot(skill, f"another skill of the same name{where} is used instead"))
    of_rules: list[RuleWhy] = []
    for rule in rules:
        hit = next((one for one in forced.hits if one.rule is rule), None)
        reason = f"none of its patterns fits the message ({_quoted(rule.patterns)})"
        if hit is not None:
            reason = f"{hit.pattern!r} fits {_shown(hit.found)}"
        of_rules.append(RuleWhy(rule=rule, fits=hit is not None, reason=reason))
    order = list(SkillVerdict)
    problems = dict.fromkeys((*book.problems, *forced.problems))
    return Explanation(
        skills=tuple(sorted(verdicts, key=lambda one: order.index(one.verdict))),
        rules=tuple(of_rules),
        problems=tuple(problems),
    )


def _cannot(skill: Skill, *reasons: str) -> SkillWhy:
    return SkillWhy(skill=skill, verdict=SkillVerdict.CANNOT, reasons=reasons)


# --- skills that are used ----------------------------------------------------------------------


def _of_used(
    skill: Skill,
    text: str,
    hits: Sequence[RuleHit],
    match: PlaybookMatch | None,
    ranked: tuple[int, SkillScore] | None,
) -> SkillWhy:
    by_rule = [_hit_words(skill, hit) for hit in hits if skill.name in hit.rule.skills]
    score = None
    if skill.is_playbook:
        picked = match is not None
        if match is not None:
            reasons = [_keyword_words(hit.keyword, hit.found) for hit in match.hits]
        else:
            none = f"none of its keywords stands in the message ({_quoted(skill.keywords)})"
            reasons = [none, *map(near_words, near_misses(skill.keywords, text))]
    elif skill.is_listed:
        score = ranked[1].score if ranked is not None else 0.0
        picked, reasons = _score_reasons(ranked)
    else:
        picked, reasons = False, ["it runs by the clock; a message does not call it up"]
    if skill.patterns and not by_rule:
        reasons.append(f"none of its own patterns fits ({_quoted(skill.patterns)})")
    return SkillWhy(
        skill=skill,
        verdict=SkillVerdict.PICKED if picked or by_rule else SkillVerdict.NOT_PICKED,
        reasons=(*by_rule, *reasons),
        score=score,
    )


def _hit_words(skill: Skill, hit: RuleHit) -> str:
    whose = "its own pattern" if hit.rule.name == skill.name else f"the rule {hit.rule.source},"
    own = "" if hit.rule.name == skill.name else " whose pattern"
    return f"{whose}{own} {hit.pattern!r} fits {_shown(hit.found)}"


def _keyword_words(keyword: str, found: str) -> str:
    if keyword.casefold() == found:
        return f"the keyword {keyword!r} stands in the message"
    return f"the keyword {keyword!r} stands in the message, as {_shown(found)}"


def near_words(miss: NearMiss) -> str:
    """A near miss as a sentence."""
    keyword, found = repr(miss.keyword), _shown(miss.found)
    match miss.almost:
        case Almost.PART:
            return f"the keyword {keyword} stands in {found} only as a part of a longer word"
        case Almost.LONGER:
            return f"the message says {found}; the keyword {keyword} has an ending that it lacks"
        case Almost.ACCENT:
            return f"the message says {found}; the keyword {keyword} has other accents"
        case Almost.SCATTERED:
            return f"all words of {keyword} are there ({found}), but not side by side"


def _score_reasons(ranked: tuple[int, SkillScore] | None) -> tuple[bool, list[str]]:
    if ranked is None:
        return False, ["the message shares no word with its name or description"]
    place, one = ranked
    shared = f"the message shares {_quoted(one.found)} with its name and description"
    if one.score < SCORE_MIN:
        return False, [f"{shared}: score {one.score:.2f}, and {SCORE_MIN:.2f} is needed"]
    if place > SKILLS_MAX:
        return False, [
            f"{shared}: score {one.score:.2f} is enough, but {SKILLS_MAX} skills fit better"
        ]
    return True, [f"{shared}: score {one.score:.2f} ({SCORE_MIN:.2f} is needed)"]


# --- skills that are not ------------------------------------------------------------------------


def state_words(skill: Skill) -> str:
    """Why a skill is not used, and what to do about it."""
    match skill.state:
        case SkillState.USABLE:
            return "it is in use"
        case SkillState.QUARANTINED:
            return (
                "it is in quarantine: it is new, was changed, or the assistant wrote it; "
                "the owner has to approve it first"
            )
        case SkillState.MISSING:
            lacking = ", ".join(skill.missing) or "something that it requires"
            return f"this machine lacks what it needs: {lacking}"
        case SkillState.OFF:
            return "it is off: it runs by the clock, and nobody has enabled it"


def _would_match(skill: Skill, text: str) -> list[str]:
    """Return what would have picked it, were it in use."""
    keywords = Matcher(SkillSet(skills=(as_used(skill),))).playbooks(text)
    hits = RuleBook(SkillSet(), (trigger_of(skill),)).forced(text).hits
    words = [_keyword_words(hit.keyword, hit.found) for match in keywords for hit in match.hits]
    words += [_hit_words(skill, hit) for hit in hits]
    return [f"otherwise it would have been picked: {one}" for one in words]


def as_used(skill: Skill) -> Skill:
    """The same skill as if it were in use."""
    return replace(skill, state=SkillState.USABLE)


# --- words -------------------------------------------------------------------------------------


def _quoted(names: Sequence[str], *, shown_max: int = 6) -> str:
    """`'a', 'b' and 3 more`."""
    more = len(names) - shown_max
    shown = ", ".join(repr(name) for name in names[:shown_max])
    return f"{shown} and {more} more" if more > 0 else shown


def _shown(found: str, *, chars_max: int = 60) -> str:
    flat = " ".join(found.split())
    return repr(flat if len(flat) <= chars_max else flat[: chars_max - 1] + "…")
