"""Which playbooks a message calls up, by their keywords (SPEC §7).

Called for each message by what fills the prompt layer 10, and by `why`. A keyword hits as a whole
word with the light endings of `memory.records.words.forms`, so `schedule` hits "scheduling" and
`plan` hits "planned", but `file` does not hit "profile".
"""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import pairwise

from agent.skills.parser import Items, KeyValues, Node, Scalar, Unreadable, structured
from agent.skills.skill import Skill, SkillSet
from memory.records.words import (
    fold,
    forms,
    is_whole_words,
    phrases_of,
    squeezed,
    unbordered_runs,
    words,
)
from memory.search.fts import STOP_WORDS

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
    """The keywords of all skills, made ready: keep it as long as they are the same object.

    Skills that are not used are left out. To build it takes about 15 ms for 2,000 keywords.
    """

    def __init__(self, skills: SkillSet) -> None:
        playbooks = (skill for skill in skills.used if skill.is_playbook)
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


# --- relevance ----------------------------------------------------------------------------------
#
# Which skills without keywords fit a message, by words alone (SPEC §5, layer 11).
#
# A skill is scored by the words of its name and its description that the message has too; words
# that many skills have count less. The threshold is high on purpose: a skill that is missed here is
# still in the list that the model sees, or found by list_skills; a wrong one costs tokens in each
# turn.

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

_ASKING = """
all ask asked asks best cannot else etc every get gets give given go good great help helps know
let like make makes much need needed needs ok one really say see show skill skills something task
tasks tell thing things try use used user users uses using want wants way well whether within
without yes
"""
_STOP = STOP_WORDS.union(_ASKING.split())
"""What nearly every message says, and with it what is said to assistants in particular."""
_VAGUE = """
add answer app change check content create current data day different file find fix format handle
information keep line list look message name new note open part people point question read result
run save search send set start step stop system text time today tool turn type update view week
word work write
"""
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
    """Skills that are read on demand, ready to be scored."""

    def __init__(self, skills: SkillSet) -> None:
        self._skills = tuple(
            _Scored(
                skill,
                frozenset(stems(skill.name.replace("-", " ").replace("_", " "))),
                frozenset(stems(skill.description)),
            )
            for skill in skills.used
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
        whole = sum(self._weight(word) for word in one.name)
        heard = sum(self._weight(word) for word in one.name if word in said)
        name = _NAME_SHARE * heard / whole if whole else 0.0
        about = sum(self._weight(word) for word in one.about - one.name if word in said)
        about /= 1 + math.log2(max(1.0, len(said) / _MESSAGE_WORDS))
        score = 1 - (1 - name) * math.exp(-about / _WORDS_FOR_SURE)
        found = tuple(shown for word, shown in said.items() if word in one.name | one.about)
        return SkillScore(skill=one.skill, score=score, found=found)

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
        # Of `don't` and `what's` the part before the apostrophe is in the list.
        if not _STOP & {word.text, word.text.partition("'")[0]} and len(word.text) > 1:
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
_VAGUE_STEMS = frozenset(map(stem, _VAGUE.split()))


# --- allowed ------------------------------------------------------------------------------------
#
# `allowed-tools`: which commands a skill keeps itself to while it is followed.
#
# A limit only ever takes away: what the bot's own rules refuse stays refused whatever stands here.
# Called by the reader and by exec.

EXEC = "exec"
CHARS_MAX = 5_000

_ENTRY = re.compile(r"[A-Za-z*][\w*.:/-]*(?P<limit>\(.*\))?", re.DOTALL)
_SHELL_NAMES = frozenset({"bash", "shell"})
"""How other assistants call exec: a limit written for them means the same here."""

_SHELL = re.compile(r"[;&|<>`\n\r\0]|\$[({]|^\(")
_NO_LIMIT = frozenset({"", "(*)"})
_PREFIX = re.compile(r"(?::|\s+)\*$")


def allowed_entries(value: Node | None) -> tuple[str, ...] | None:
    """The entries of `allowed-tools`, each once, sorted: the shape it was written in is no matter.

    No key, null and an empty text set no limit (None); an empty list allows nothing. Raises
    Unreadable: a limit that cannot be understood is never taken for none.
    """
    match value:
        case None:
            return None
        case KeyValues():
            raise Unreadable("allowed-tools must be a list of tools", value.line)
        case Scalar() if value.is_null or not value.text.strip():
            return None
        case Scalar() if value.text.lstrip().startswith("["):
            inner = structured(value)
            if not isinstance(inner, Items):
                raise Unreadable("allowed-tools must be a list of tools", value.line)
            return allowed_entries(inner)
        case Scalar():
            return tuple(sorted(set(_entries(value))))
        case Items():
            entries = [entry for item in value.values for entry in _entries(item)]
            return tuple(sorted(set(entries)))


def allows_command(entries: Sequence[str] | None, argv: Sequence[str]) -> bool:
    """Return whether exec may run one command, given as the words of its argument vector.

    `Bash(git:*)` and `Bash(git *)` allow git with any arguments, `Bash(git status)` that alone,
    `Bash` everything. Under a limit the program must be the first word as written (no path, no
    wrapper before it), and no word may hold what a shell would act on, quoted or not.
    """
    if entries is None:
        return True
    limits = [
        bracket + limit
        for name, bracket, limit in (entry.partition("(") for entry in entries)
        if _matches(EXEC if name.casefold() in _SHELL_NAMES else name, EXEC)
    ]
    if not _NO_LIMIT.isdisjoint(limits):
        return True
    if not argv or any(_SHELL.search(word) for word in argv):
        return False
    return any(_fits(limit[1:-1].strip(), argv) for limit in limits)


def _entries(item: Node) -> list[str]:
    if not isinstance(item, Scalar):
        raise Unreadable("allowed-tools: each entry must be a text (in quotes)", item.line)
    found: list[str] = []
    entry, depth = "", 0
    # A blank before the bracket belongs to the entry: `Bash (git:*)` is not all of Bash.
    for letter in " ".join(item.text.split()).replace(" (", "(") + ",":
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and (letter == "," or letter.isspace()):
            found.append(entry)
            entry = ""
        else:
            entry += letter
    if (
        depth
        or len(item.text) > CHARS_MAX
        or not all(_ENTRY.fullmatch(entry) for entry in found if entry)
    ):
        raise Unreadable(f"allowed-tools: {item.text[:80]!r} cannot be read", item.line)
    return [entry for entry in found if entry]


def _matches(pattern: str, text: str) -> bool:
    """Return whether they are equal, where `*` alone stands for any characters."""
    return fnmatchcase(text, re.sub(r"[\[?]", r"[\g<0>]", pattern))


def _fits(limit: str, argv: Sequence[str]) -> bool:
    prefix = _PREFIX.sub("", limit)
    try:
        wanted = shlex.split(prefix)
    except ValueError:
        return False
    if not wanted or ("/" in argv[0] and "/" not in wanted[0]):
        return False
    is_long_enough = len(argv) >= len(wanted) if prefix != limit else len(argv) == len(wanted)
    return is_long_enough and all(map(_matches, wanted, argv))
