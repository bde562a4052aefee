"""Whether a message is worth much thought: seven rules, the first hit decides (SPEC §5).

Called before each request of a chat. Where the answer is no, the prompt asks for directness and
models with a reasoning setting get less of it. The word lists are `prompts/words_*.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from memory.records.words import (
    Phrases,
    fold,
    phrases_of,
    read_list,
    squeezed,
    unbordered_runs,
    words,
)

SIMPLE_WORDS_MAX = 5
FEW_WORDS_MAX = 3
QUESTION_WORDS_MIN = 16
"""More than 15."""
_RUNS_A_WORD = 2
"""Characters of Chinese and the like that make about one word."""

_LOOKUPS = Phrases(
    (
        *("what is", "what's", "who is", "who's", "where is", "where's", "when is", "when's"),
        *("what are", "who are", "where are", "when are"),
        *("was ist", "wer ist", "wo ist", "wann ist"),
        *("c'est quoi", "qu'est-ce que c'est", "qui est", "où est", "quand est"),
        *("qué es", "quién es", "dónde está", "cuándo es"),
    ),
    endings=False,
)
_QUESTION_MARKS = frozenset("?؟;？")
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")


class ThinkingRule(StrEnum):
    """The rules in their order."""

    SIMPLE = "simple"
    """The whole message is a greeting, thanks or the like, or has no word at all."""
    SIMPLE_AND_SHORT = "simple_and_short"
    """At most five words, of which the first or last are such."""
    ANALYSIS = "analysis"
    """It holds a word that asks for thought."""
    FEW_WORDS = "few_words"
    LONG_QUESTION = "long_question"
    LOOKUP = "lookup"
    """It begins like a question for a plain fact: what is, who is, where is, when is."""
    NOTHING = "nothing"
    """No rule hit: no thinking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """The verdict, the rule that decided, and the words that made it (empty: none in particular).

    `is_small_talk` is narrower than "no thinking": a greeting or thanks and next to nothing else,
    so that no tool need be looked for.
    """

    needed: bool
    rule: ThinkingRule
    found: str = ""
    is_small_talk: bool = False


class ReasoningControl:
    """The rules with their word lists. Built again when a list changes."""

    def __init__(self, *, simple: str, analysis: str) -> None:
        """Takes the texts of the two lists. An entry `=ok` counts as a whole message alone."""
        entries = read_list(simple)
        whole = (entry.removeprefix("=") for entry in entries)
        anywhere = [entry for entry in entries if not entry.startswith("=")]
        self._whole = frozenset(key for entry in whole for key in (_bare(entry), _raw(entry))) - {
            ""
        }
        self._simple = phrases_of(tuple(anywhere), endings=False)
        self._analysis = phrases_of(read_list(analysis), endings=True)

    def judge(self, text: str) -> Thinking:
        """Return which rule the message meets first."""
        folded = squeezed(fold(text))
        # How many words there are; of scripts without blanks about how many.
        runs = sum(-(-len(run) // _RUNS_A_WORD) for run in unbordered_runs(folded))
        count = len(words(folded)) + runs
        if _raw(text) in self._whole or any(one in self._whole for one in _variants(text)):
            return _no(ThinkingRule.SIMPLE, found=folded, is_small_talk=True)
        if folded and count == 0:
            return _no(ThinkingRule.SIMPLE, is_small_talk=True)
        if count <= SIMPLE_WORDS_MAX and (edge := self._edge(text)) is not None:
            found, left = edge
            return _no(ThinkingRule.SIMPLE_AND_SHORT, found=found, is_small_talk=left <= 1)
        if analysis := self._analysis.all(folded):
            found = folded[analysis[0].start : analysis[0].end]
            return Thinking(needed=True, rule=ThinkingRule.ANALYSIS, found=found)
        if count <= FEW_WORDS_MAX:
            return _no(ThinkingRule.FEW_WORDS)
        if count >= QUESTION_WORDS_MIN and not _QUESTION_MARKS.isdisjoint(text):
            return Thinking(needed=True, rule=ThinkingRule.LONG_QUESTION)
        lookup = [one for one in _LOOKUPS.all(folded) if not words(folded[: one.start])]
        if lookup:
            return _no(ThinkingRule.LOOKUP, found=folded[lookup[0].start : lookup[0].end])
        return _no(ThinkingRule.NOTHING)

    def _edge(self, text: str) -> tuple[str, int] | None:
        """The simple pattern at either end, and how many words are in none."""
        for variant in _variants(text):
            parts = words(variant)
            hits = self._simple.all(variant)
            for hit in hits:
                if hit.start == 0 or hit.end == len(variant):
                    inside = sum(
                        any(one.start <= part.start and part.end <= one.end for one in hits)
                        for part in parts
                    )
                    return variant[hit.start : hit.end], len(parts) - inside
        return None


def _no(rule: ThinkingRule, *, found: str = "", is_small_talk: bool = False) -> Thinking:
    return Thinking(needed=False, rule=rule, found=found, is_small_talk=is_small_talk)


def _raw(text: str) -> str:
    """The text as it is compared with its punctuation: `:)`."""
    return squeezed(fold(text))


def _bare(text: str) -> str:
    """Its words alone. Scripts without blanks keep their characters as they are."""
    folded = fold(text)
    kept = [*(word.text for word in words(folded)), *unbordered_runs(folded)]
    return " ".join(kept)


def _variants(text: str) -> Iterable[str]:
    """The words as typed, and with stretched ones (`hiiii`, `coool`) cut to one and two letters."""
    bare = _bare(text)
    return dict.fromkeys((bare, _STRETCHED.sub(r"\1", bare), _STRETCHED.sub(r"\1\1", bare)))
