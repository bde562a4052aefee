"""Which skills without keywords fit a message, by words alone (SPEC §5, layer 11).

A skill is scored by the words of its name and its description that the message has too; words that
many skills have count less. The threshold is high on purpose: a skill that is missed here is still
in the list that the model sees, or found by list_skills; a wrong one costs tokens in each turn.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from agent.skills.skill import Shelf, Skill
from agent.words import fold, unbordered_runs, words

SKILLS_MAX = 5
SCORE_MIN = 0.47
"""Reached by the whole name of a skill, by half of it and a rare word of its description, or by
three such words. On 88 messages with 18 skills this picked no wrong one and missed 8 of 36; lower
values began to pick wrong ones (0.45: one, 0.42: five) before they found as many more."""

_NAME_SHARE = 0.6
_WORDS_FOR_SURE = 3.5
_EDGE_CHARS = 500
"""What is read of a long message at either end: a wish stands before or after what was pasted."""
_MESSAGE_WORDS = 15
"""Beyond so many different words, chance hits become likely and each counts less."""
_VAGUE_WEIGHT = 0.4

_STOP = frozenset(
    word.text
    for word in words(
        """
    a about after again all also am an and any are as ask asked asks at be because been before being
    best but by can cannot could did do does doing done don't else etc every for from get gets give
    given go good great had has have having he help helps her here him his how i i'd i'll i'm i've
    if in into is isn't it it's its just know let let's like make makes may me more most much must
    my need needed needs no not now of off ok on one only or other our out over own please really
    same say see shall she should show skill skills so some something such task tasks tell than that
    that's the their them then there these they thing things this those to too try up us use used
    user user's users uses using very want wants was way we well were what what's when where whether
    which while who why will with within without would yes you you'd your you're

    aber als am auch auf aus bei bin bis bitte da das dass dein dem den der des die dies diese dir
    doch du ein eine einem einen einer er es für hat habe hast ich ihr im ist ja kann kannst können
    man mein meine mich mir mit nach nicht noch nur oder sein sich sie sind über um und uns unter
    vom von vor war was wenn wer wie wird wir wo zu zum zur

    au aux avec ce ces cette d'un d'une dans de du elle en est et eux il ils je j'ai la le les leur
    lui ma mais mes moi mon ne nos notre nous on ou par pas peux plus pour qu'il que qui sa se ses
    son sur ta te tes toi ton tu un une vos votre vous

    al como con cuando del el ella ellos esta este esto hay las lo los más mi mis muy nos para pero
    por puede puedes quiero ser si sin sobre son su sus también tengo tiene una uno unos ya yo
    """
    )
)
_VAGUE = frozenset(
    word.text
    for word in words(
        """
    add answer app change check content create current data day different file find fix format
    handle information keep line list look message name new note open part people point question
    read result run save search send set start step stop system text time today tool turn type
    update view week word work write
    """
    )
)
"""Words that stand in many descriptions and in many messages: they tell little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillScore:
    """How well a skill fits, 0 to 1, and the words that did it, as the message has them."""

    skill: Skill
    score: float
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Scored:
    skill: Skill
    name: frozenset[str]
    about: frozenset[str]


class Relevance:
    """The skills of one shelf that are read on demand, ready to be scored. Built once a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._skills = tuple(
            _Scored(
                skill,
                frozenset(stems(skill.name.replace("-", " ").replace("_", " "))),
                frozenset(stems(skill.description)),
            )
            for skill in shelf.used
            if skill.is_listed
        )
        self._in = Counter(word for one in self._skills for word in one.name | one.about)

    def scores(self, text: str) -> tuple[SkillScore, ...]:
        """Every skill that shares a word with the message, the best first."""
        if len(text) > 2 * _EDGE_CHARS:
            text = f"{text[:_EDGE_CHARS]}\n{text[-_EDGE_CHARS:]}"
        said = stems(text)
        scored = (self._score(one, said) for one in self._skills)
        there = [one for one in scored if one.score > 0]
        return tuple(sorted(there, key=lambda one: (-one.score, -one.skill.priority)))

    def relevant(self, text: str) -> tuple[SkillScore, ...]:
        """The few that fit well enough, the best first."""
        return tuple(one for one in self.scores(text) if one.score >= SCORE_MIN)[:SKILLS_MAX]

    def _score(self, one: _Scored, said: dict[str, str]) -> SkillScore:
        """Name and description are two witnesses: either may convince, both do so sooner."""
        name = _NAME_SHARE * self._share(one.name, said)
        about = sum(self._weight(word) for word in one.about - one.name if word in said)
        about /= 1 + math.log2(max(1.0, len(said) / _MESSAGE_WORDS))
        score = 1 - (1 - name) * math.exp(-about / _WORDS_FOR_SURE)
        found = tuple(shown for word, shown in said.items() if word in one.name | one.about)
        return SkillScore(skill=one.skill, score=score, found=found)

    def _share(self, name: frozenset[str], said: dict[str, str]) -> float:
        """How much of a name was said, 0 to 1."""
        whole = sum(self._weight(word) for word in name)
        heard = sum(self._weight(word) for word in name if word in said)
        return heard / whole if whole else 0.0

    def _weight(self, word: str) -> float:
        """1 for a word of one skill alone, towards 0 for one that all have."""
        skills = len(self._skills)
        rarity = math.log((skills + 1) / (self._in[word] + 0.5)) / math.log((skills + 1) / 1.5)
        return rarity * (_VAGUE_WEIGHT if word in _VAGUE_STEMS else 1.0)


def stems(text: str) -> dict[str, str]:
    """The words that tell something, without their endings, each with its first form as found.

    Scripts without blanks give pairs of characters, the usual stand-in for words.
    """
    folded = fold(text)
    found: dict[str, str] = {}
    for word in words(folded):
        if word.text not in _STOP and len(word.text) > 1:
            found.setdefault(stem(word.text), word.text)
    for run in unbordered_runs(folded):
        for first, second in pairwise(run):
            found.setdefault(first + second, first + second)
    return found


def stem(word: str) -> str:
    """A word without light English endings; not a word itself (`schedul`), only comparable."""
    word = word.removesuffix("'s")
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending) + instead
            break
    if len(word) > 5 and word.endswith("er"):
        word = word[:-2]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        word = word[:-1]
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    # British and American spelling: summarise, summarize.
    return word[:-1] + "z" if len(word) > 5 and word.endswith("is") else word


_ENDINGS = (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))
_VAGUE_STEMS = frozenset(stem(word) for word in _VAGUE)
