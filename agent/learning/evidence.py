"""Whether what a model noted rests on what a person said. Pure; for extraction and insights.

A model that obeys a text which it read can write anything, but it cannot make a person have said it
(threat model T14). So code looks: the quote must stand in the person's own words, and the note must
be made of them rather than of what others said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from agent.learning.assertions import ClausePlace, clauses, places
from agent.learning.said_values import says_no
from memory.facts.similarity import stem
from memory.records.words import fold, is_unbordered, squeezed, unbordered_runs, words
from memory.search.fts import STOP_WORDS

QUOTE_WORDS_MIN, QUOTE_CHARS_MIN = 2, 4
"""Of a quote that is less than the whole message; characters where no blanks part words."""
PASTED_WORDS_MIN, PASTED_CHARS_MIN = 4, 10
"""Of a quote that is looked for in texts from outside: fewer may be there by chance."""
STEM_CHARS = 4
"""Words that begin alike count as one: prefer, prefers, preference."""
NOT_AFTER_WORDS, NOT_AFTER_CHARS = 3, 10
"""Right after a quote, where a "not" turns it round; characters where no blanks part words."""
COVERED_SHARE = 0.5
"""More than this part of a note's words must stand in the line that it rests on."""

_MARKS = str.maketrans(dict.fromkeys('"“”„‟«»‹›*_`~', None) | {"…": "..."})
_EDGES = " \t.,;:!?'-()[]"
_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+\.\w+|\b(?:[\w-]+\.)+[a-z]{2,}(?:/\S*)?", re.IGNORECASE
)


def stands_in(quote: str, said: str) -> bool:
    """Whether a quote stands in what was said: whole words in one piece, whatever the case, the
    white space and the quotation marks; and enough of them to mean anything."""
    needle, text = _folded(quote), _folded(said)
    if not needle or not keys(needle):
        return False
    if needle == text:
        return True
    return _is_enough(needle) and _place(needle, text) is not None


def _is_enough(needle: str) -> bool:
    if is_unbordered(needle):
        return len(needle) >= QUOTE_CHARS_MIN
    return len(words(needle)) >= QUOTE_WORDS_MIN


def is_turned_round(quote: str, said: str, note: str) -> bool:
    """Whether a note says no where the quote does not, or drops a "not" that stands in the quote or
    belongs to it: "like tea" of "I don't like tea"."""
    noted, told = says_no(note), keys(note)
    return any(_says_no(place, told) != noted for place in places(quote, said))


def _says_no(place: ClausePlace, told: AbstractSet[str]) -> bool:
    """Of parts like "tea, not coffee" only those count that the note has something of."""
    parts = clauses(place.quote)
    meant = [part for part in parts if keys(part) & told] or parts
    return any(says_no(part) for part in (_before(place), *meant, _after(place)))


def _before(place: ClausePlace) -> str:
    """What is before a quote in its sentence; nothing where the quote is a statement of its own."""
    before = _CONTRAST.split(place.before)[-1]
    return "" if _IS_OVER.search(before) and _I.match(place.quote) else before


def _after(place: ClausePlace) -> str:
    part = re.split(r"[,;:、，]", place.after)[0]
    near = words(part)[:NOT_AFTER_WORDS]
    return part[:NOT_AFTER_CHARS] if is_unbordered(part) else part[: near[-1].end if near else 0]


_CONTRAST = re.compile(r";|\b(?:but|aber|sondern|mais|pero|ma|mas|maar|men|ale|но)\b")
_IS_OVER = re.compile(r"(?:[,:–—-]|\b(?:and|und|et|y|e|och|og|en|и|i))\s*$")
_I = re.compile(r"(?:i|i'm|i've|my|we|our|ich|mein\w*|wir|je|j'\w+|mon|ma|yo|mi|jag|я|мой|моя)\b")


def is_pasted(quote: str, outside: Iterable[str]) -> bool:
    """Whether a quote of some length stands word for word in what came from outside before."""
    needle = _folded(quote)
    if len(words(needle)) < PASTED_WORDS_MIN and not (
        is_unbordered(needle) and len(needle) >= PASTED_CHARS_MIN
    ):
        return False
    return any(_place(needle, _folded(text)) is not None for text in outside)


def is_carried(
    note: str, *, by: str, own: str, foreign: AbstractSet[str], names: Iterable[str]
) -> bool:
    """Whether a note is made of the words that are to carry it.

    `by` are those words, `own` all that the person said here, `foreign` the `keys` of what anybody
    else said or a tool returned. `names` are no evidence: every note has them. An address must be
    the person's own; of the other words at least one must be in `by`, and no more may come from
    others alone.
    """
    theirs = fold(own)
    if any(fold(found.group()).rstrip("./") not in theirs for found in _ADDRESS.finditer(note)):
        return False
    told = keys(note) - {key for name in names for key in keys(name)}
    carried = told & keys(by)
    return bool(carried) and len(told & (foreign - keys(own))) <= len(carried)


def is_covered(note: str, line: str, *, speaker: str, year: int) -> bool:
    """Whether a line of a speaker holds what a note tells of it: most of its words, whatever their
    endings, all names and all numbers. Of the speaker's name parts may be left in the note. A day
    that is reckoned from the `year` and day of the line needs not stand there, if no other one
    does."""
    theirs, left = _EvidenceLine.of(line), _DATE.sub(" ", note)
    months = {found[:3].casefold() for found in _MONTH.findall(note)}
    others = {found[:3].casefold() for found in _MONTH.findall(line)}
    if others and not months <= others:
        return False
    own = {word.text for word in words(fold(speaker))}
    counted = _numbers(left) - {str(year - 1), str(year), str(year + 1)}
    if not counted <= theirs.numbers:
        return False
    named = (name for name in _names(left) if fold(name).removesuffix("'s") not in own)
    if not all(map(theirs.names, named)):
        return False
    told = [word for word in _telling(left) if word not in own and not word.isdecimal()]
    pairs = [pair for run in unbordered_runs(fold(left)) for pair in _pairs(run)]
    held = sum(map(theirs.holds, told)) + sum(pair in theirs.keys for pair in pairs)
    if not told and not pairs:
        return bool(counted)
    return held > COVERED_SHARE * (len(told) + len(pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class _EvidenceLine:
    """The words of a line, as those of a note are looked for among them."""

    keys: AbstractSet[str]
    stems: AbstractSet[str]
    every: AbstractSet[str]
    numbers: AbstractSet[str]

    @classmethod
    def of(cls, line: str) -> _EvidenceLine:
        every = {word.text.removesuffix("'s") for word in words(fold(line))}
        # Of all words: what says nothing in one sentence ("I own it") is the point of another.
        begun = {word[:STEM_CHARS] for word in every} | keys(line)
        return cls(keys=begun, stems={*map(stem, every)}, every=every, numbers=_numbers(line))

    def holds(self, word: str) -> bool:
        if word[:STEM_CHARS] in self.keys or stem(word) in self.stems:
            return True
        if word.removesuffix("es") in self.every:
            return True  # goes
        # Short verbs of other languages: vivo, vive.
        return word[-1] in _VOWELS and any(word[:-1] + vowel in self.every for vowel in _VOWELS)

    def names(self, name: str) -> bool:
        folded = fold(name).removesuffix("'s")
        begun = folded[: max(STEM_CHARS, len(folded) - 2)]
        return any(word.startswith(begun) for word in self.every)


def _telling(note: str) -> list[str]:
    found = (word.text.removesuffix("'s") for word in words(fold(note)))
    return [w for w in found if w not in STOP_WORDS and w not in _NOBODY and not _is_trifle(w)]


def _names(note: str) -> Iterator[str]:
    """Words with a capital letter, but for the first one."""
    found = (match for match in _NAME.finditer(note) if note[: match.start()].strip())
    return (match.group() for match in found if match.group()[0].isupper())


def _numbers(text: str) -> set[str]:
    folded = fold(_THOUSANDS.sub("", text))
    found = set(re.findall(r"\d+(?:[.,:/]\d+)*", folded))
    return found | {_COUNTED[word.text] for word in words(folded) if word.text in _COUNTED}


_NOBODY = frozenset(
    ["user", "person", "speaker", "currently", "called", "named", "every", "always"]
)
"""They say nothing of their own, or are looked at elsewhere (`agent.learning.assertions`)."""
_VOWELS = "aeiou"
_NAME = re.compile(r"(?<![\w'’])[^\W\d_]{2,}(?:['’]s\b)?")
_THOUSANDS = re.compile(r"(?<=\d)[,'’ \u00a0\u202f](?=\d{3}\b)")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_COUNTED = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split()) if number > 1}
_MONTH_NAMES = (
    "Jan(?:uary|uar|vier)?|Feb(?:ruary|ruar)?|F[ée]v(?:rier)?|Mar(?:ch|s|zo)?|März|Apr(?:il)?|Avril"
    "|May|Mai|Mayo|June?|Juni|Juin|Junio|July?|Juli|Juillet|Julio|Aug(?:ust)?|Août|Agosto"
    "|Sept?(?:ember|embre)?|O[ck]t(?:ober|obre|ubre)?|Nov(?:ember|embre)?|De[cz](?:ember)?"
)
_MONTH = re.compile(rf"(?<!\w)(?:{_MONTH_NAMES})(?!\w)")
_DATE = re.compile(
    r"\b\d{4}-\d\d(?:-\d\d)?\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    rf"|(?:\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+)?\b(?-i:{_MONTH_NAMES})\b\.?"
    r"(?:\s+\d{1,2}(?:st|nd|rd|th)?\b)?(?:,?\s+\d{4}\b)?",
    re.IGNORECASE,
)


def keys(text: str) -> set[str]:
    """The words that say something, by how they begin; in scripts without blanks pairs of
    characters."""
    folded = fold(text)
    found = {
        word.text[:STEM_CHARS]
        for word in words(folded)
        if word.text not in STOP_WORDS and not _is_trifle(word.text)
    }
    for run in unbordered_runs(folded):
        found |= set(_pairs(run))
    return found


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(len(run) - 1, 1))]


def _is_trifle(word: str) -> bool:
    """One letter, or a contraction of words that say nothing: I'm, don't."""
    return len(word) < 2 or all(part in STOP_WORDS for part in word.split("'"))


def _folded(text: str) -> str:
    return squeezed(fold(text.translate(_MARKS))).strip(_EDGES)


def _place(needle: str, text: str) -> int | None:
    """Where it stands as whole words."""
    found = re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", text)
    if found is None and any(unbordered_runs(needle)):
        at = text.find(needle)
        return at if at >= 0 else None
    return None if found is None else found.start()
