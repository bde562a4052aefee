"""Whether a reply is of no help, so that a rule's `auto_invoke` may try instead (SPEC §7).

Called after a turn without any tool call. In doubt a reply is helpful: to replace a good answer is
worse than to keep a poor one. So words in code or quotation marks are somebody else's, and "if I
cannot …" is no refusal.
"""

from __future__ import annotations

import re

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


def looks_unhelpful(reply: str, list_a: str, list_b: str, *, message: str = "") -> bool:
    """Whether the reply is of no help: empty, short with a phrase of list A in it, or with one of
    list B at any length. The lists are `prompts/unhelpful_short.md` and `unhelpful_any.md`.

    `message` is what it answers, if known: a longer answer to "how do I …" counts as help, whatever
    words are in it.
    """
    bare = reply.strip()
    if not bare:
        return True
    own = own_sentences(bare)
    is_short = len(bare) < SHORT_CHARS
    if is_short and _is_said_outright(list_a, own):
        return True
    return (is_short or not asks_how(message)) and _is_said_outright(list_b, own)


def asks_how(message: str) -> bool:
    """Whether a message asks how something is done."""
    return bool(_HOW_TO.first(squeezed(fold(message))))


def own_sentences(reply: str) -> list[str]:
    """The sentences that the reply says itself, folded: without code and what it quotes."""
    plain = _QUOTED.sub(' "" ', _CODE.sub(" `` ", reply))
    return [squeezed(fold(part)) for part in _SENTENCE_END.split(plain) if part.strip()]


def _is_said_outright(phrases: str, sentences: list[str]) -> bool:
    """Whether a phrase is said, not supposed: "if there is …", "with no … at hand"."""
    listed = phrases_of(read_list(phrases), endings=False)
    for sentence in sentences:
        for hit in listed.all(sentence):
            clause = sentence[: hit.start].rpartition(",")[2]
            is_with = any(word.text in _WITH for word in words(clause)[-1:])
            if not is_with and not _IF.first(clause):
                return True
    return False
