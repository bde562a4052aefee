"""Whether a reply is of no help, so that a rule's `auto_invoke` may try instead (SPEC §7).

Called after a turn without any tool call. In doubt a reply is helpful: to replace a good answer is
worse than to keep a poor one. So words in code or quotation marks are somebody else's, and "if I
cannot …" is no refusal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from memory.records.words import Phrases, fold, phrases_of, read_list, squeezed, words

SHORT_CHARS = 100
"""A reply of fewer characters is judged by list A too."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»")
_SENTENCE_END = re.compile(r"(?<=[.!?…:;])\s|\n")
_IF = Phrases(
    (
        *("if", "when", "whenever", "unless", "in case", "should"),
        *("wenn", "falls", "sofern", "sobald", "si", "quand", "lorsque", "cuando"),
    ),
    endings=False,
)
_WITH = frozenset({"with", "without", "mit", "ohne", "avec", "sans", "con", "sin"})
_HOW_TO = Phrases(
    (
        *(
            "how do i",
            "how do you",
            "how do we",
            "how can i",
            "how can you",
            "how can we",
            "how to",
        ),
        *("how would i", "how should i", "how could i", "how does one", "how does", "how do"),
        *("what do i do", "wie kann ich", "wie kann man", "wie mache ich", "wie macht man"),
        *("wie geht", "wie funktioniert", "wie lösche ich", "wie bekomme ich", "wie stelle ich"),
        *("comment faire", "comment puis-je", "comment est-ce que", "comment je", "comment on"),
        *("cómo puedo", "cómo se", "cómo hago", "cómo hacer"),
    ),
    endings=False,
)


class UnhelpfulRule(StrEnum):
    """What makes a reply unhelpful."""

    EMPTY = "empty"
    SHORT = "short"
    """Few characters, and a phrase of list A."""
    ANYWHERE = "anywhere"
    """A phrase of list B, at any length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unhelpful:
    """Which rule found the reply unhelpful, and the phrase that did it."""

    rule: UnhelpfulRule
    found: str = ""


class UnhelpfulWords:
    """The two lists, `prompts/unhelpful_short.md` (A) and `unhelpful_any.md` (B), made ready."""

    def __init__(self, *, short: str, anywhere: str) -> None:
        """Takes the texts of the lists."""
        self._short = phrases_of(read_list(short), endings=False)
        self._anywhere = phrases_of(read_list(anywhere), endings=False)

    def look(self, reply: str, *, message: str = "") -> Unhelpful | None:
        """Why the reply is of no help, or None. `message` is what it answers, if known.

        A longer answer to "how do I …" counts as help, whatever words are in it.
        """
        bare = reply.strip()
        if not bare:
            return Unhelpful(rule=UnhelpfulRule.EMPTY)
        own = own_sentences(bare)
        is_short = len(bare) < SHORT_CHARS
        if is_short and (found := _outright(self._short, own)):
            return Unhelpful(rule=UnhelpfulRule.SHORT, found=found)
        if not is_short and asks_how(message):
            return None
        if found := _outright(self._anywhere, own):
            return Unhelpful(rule=UnhelpfulRule.ANYWHERE, found=found)
        return None


def looks_unhelpful(reply: str, list_a: str, list_b: str, *, message: str = "") -> bool:
    """The same for texts of the lists that are used once."""
    lists = UnhelpfulWords(short=list_a, anywhere=list_b)
    return lists.look(reply, message=message) is not None


def asks_how(message: str) -> bool:
    """Whether a message asks how something is done."""
    return bool(_HOW_TO.first(squeezed(fold(message))))


def own_sentences(reply: str) -> list[str]:
    """The sentences that the reply says itself, folded: without code and what it quotes."""
    plain = _QUOTED.sub(' "" ', _CODE.sub(" `` ", reply))
    return [squeezed(fold(part)) for part in _SENTENCE_END.split(plain) if part.strip()]


def _outright(phrases: Phrases, sentences: list[str]) -> str:
    """The first phrase that is said outright, not supposed; empty for none."""
    for sentence in sentences:
        for hit in phrases.all(sentence):
            if not _is_supposed(sentence[: hit.start]):
                return sentence[hit.start : hit.end]
    return ""


def _is_supposed(before: str) -> bool:
    """Whether what follows is only supposed: "if there is …", "with no … at hand"."""
    clause = before.rpartition(",")[2]
    last = words(clause)[-1:]
    return bool(_IF.first(clause)) or any(word.text in _WITH for word in last)
