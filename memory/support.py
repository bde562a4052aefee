"""Whether what a model noted rests on what a person said. Pure; for extraction and insights.

A model that obeys a text which it read can write anything, but it cannot make a person have said it
(threat model T14). So code looks: the quote must stand in the person's own words, and the note must
be made of them rather than of what others said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from agent.words import fold, is_unbordered, squeezed, unbordered_runs, words
from memory.stop_words import STOP_WORDS

QUOTE_WORDS_MIN, QUOTE_CHARS_MIN = 2, 4
"""Of a quote that is less than the whole message; characters where no blanks part words."""
PASTED_WORDS_MIN, PASTED_CHARS_MIN = 4, 10
"""Of a quote that is looked for in texts from outside: fewer may be there by chance."""
STEM_CHARS = 4
"""Words that begin alike count as one: prefer, prefers, preference."""
NEGATIONS_BEFORE_MAX = 3
"""Words right before a quote among which a "not" turns it round."""

_MARKS = str.maketrans(dict.fromkeys('"“”„‟«»‹›*_`~', None) | {"…": "..."})
_EDGES = " \t.,;:!?'-()[]"
_NEGATED = """
not no never none neither nor without stopped quit isn't aren't wasn't weren't don't doesn't didn't
can't cannot couldn't won't wouldn't shouldn't haven't hasn't hadn't dont doesnt cant
nicht kein keine keinen keinem keiner nie niemals pas jamais aucun aucune nunca jamás ningún
"""
_NEGATIONS = frozenset(_NEGATED.split())
_SENTENCE_END = re.compile(r"[.!?\n。！？]")
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
    """Whether a "not" that belongs to the quote was left out of it, and of the note: "like tea" of
    "I don't like tea"."""
    place = _place(_folded(quote), text := _folded(said))
    if place is None or _negates(word.text for word in words(fold(note))):
        return False
    before = _SENTENCE_END.split(text[:place])[-1]
    return _negates(word.text for word in words(before)[-NEGATIONS_BEFORE_MAX:])


def _negates(found: Iterable[str]) -> bool:
    return not _NEGATIONS.isdisjoint(found)


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
        found |= {run[at : at + 2] for at in range(max(len(run) - 1, 1))}
    return found


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
