"""Which playbooks a message calls up, by their keywords (SPEC §7).

Called for each message by what fills the prompt layer 10, and by `why`. A keyword hits as a whole
word with the light endings of `agent.words.forms`, so `schedule` hits "scheduling" and `plan` hits
"planned", but `file` does not hit "profile".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agent.skills.skill import Shelf, Skill
from agent.words import fold, forms, is_whole_words, phrases_of, squeezed, words

PART_MIN = 3
"""Letters that a word must have to be worth a near miss: `it` is a part of too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordHit:
    """A keyword as the playbook has it, and what hit it, folded (`emails`)."""

    keyword: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookMatch:
    """A playbook that a message calls up, and all its keywords that hit, in the file's order."""

    skill: Skill
    hits: tuple[KeywordHit, ...]


class Almost(StrEnum):
    """How a keyword came near and still did not hit."""

    PART = "part"
    """It is only a part of a longer word."""
    LONGER = "longer"
    """The keyword has an ending that the message lacks: endings are allowed the other way round."""
    ACCENT = "accent"
    """The same letters, and other accents."""
    SCATTERED = "scattered"
    """All words of the phrase are there, and not side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """A keyword that did not hit, and the word of the message that came near."""

    keyword: str
    found: str
    almost: Almost


class Matcher:
    """The keywords of one shelf, made ready: keep it as long as the shelf is the same object.

    Skills that are not used are left out. To build it takes about 15 ms for 2,000 keywords.
    """

    def __init__(self, shelf: Shelf) -> None:
        playbooks = (skill for skill in shelf.used if skill.is_playbook)
        self._playbooks = sorted(playbooks, key=lambda skill: (-skill.priority, skill.name))
        self._owner = [
            (place, keyword)
            for place, skill in enumerate(self._playbooks)
            for keyword in dict.fromkeys(skill.keywords)
        ]
        keywords = tuple(keyword for _, keyword in self._owner)
        self._phrases = phrases_of(keywords, endings=True)

    def playbooks(self, text: str) -> tuple[PlaybookMatch, ...]:
        """All that match, by priority (high first), then name."""
        flat = squeezed(fold(text))
        hits: dict[int, list[KeywordHit]] = {}
        for number, found in sorted(self._phrases.first(flat).items()):
            place, keyword = self._owner[number]
            hit = KeywordHit(keyword=keyword, found=flat[found.start : found.end])
            hits.setdefault(place, []).append(hit)
        return tuple(
            PlaybookMatch(skill=self._playbooks[place], hits=tuple(of_one))
            for place, of_one in sorted(hits.items())
        )


def required_tools(matches: Iterable[PlaybookMatch]) -> tuple[str, ...]:
    """The tools that matched playbooks need, each once, in order."""
    return tuple(dict.fromkeys(tool for match in matches for tool in match.skill.required_tools))


def near_misses(keywords: Iterable[str], text: str) -> tuple[NearMiss, ...]:
    """For keywords that did not hit: what in the message came near. Slow, for explanations."""
    folded = fold(text)
    there = list(dict.fromkeys(word.text for word in words(folded)))
    found = (_near(keyword, there) for keyword in dict.fromkeys(keywords))
    return tuple(one for one in found if one is not None)


def _near(keyword: str, there: list[str]) -> NearMiss | None:
    folded = squeezed(fold(keyword))
    if not is_whole_words(folded):
        return None
    parts = [word.text for word in words(folded)]
    if len(parts) > 1:
        each = [next((one for one in there if one in forms(part)), None) for part in parts]
        if any(one is None for one in each):
            return None
        together = " … ".join(one for one in each if one is not None)
        return NearMiss(keyword=keyword, found=together, almost=Almost.SCATTERED)
    word = parts[0]
    plain = _without_accents(word)
    for one in there:
        if len(one) >= PART_MIN and word in forms(one):
            return NearMiss(keyword=keyword, found=one, almost=Almost.LONGER)
        if plain == _without_accents(one):
            return NearMiss(keyword=keyword, found=one, almost=Almost.ACCENT)
    part_of = next((one for one in there if word in one), None)
    if part_of is None or len(word) < PART_MIN:
        return None
    return NearMiss(keyword=keyword, found=part_of, almost=Almost.PART)


def _without_accents(word: str) -> str:
    parts = unicodedata.normalize("NFD", word)
    return "".join(one for one in parts if not unicodedata.combining(one))
