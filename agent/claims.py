"""Whether a reply claims that something was done (guard (b), SPEC §8.6). Called by the loop.

Only what the reply itself says outright counts: not code, not what it quotes, nothing supposed,
denied or of an earlier time. In doubt there is no claim: to correct a true answer is worse.
"""

from __future__ import annotations

from agent.unhelpful import own_sentences
from agent.words import Phrases, read_list, words

CLAIM_CHARS_MAX = 120

_NOT_NOW = Phrases(
    (
        *("already", "earlier", "yesterday", "last time", "last week", "before", "previously"),
        *("if", "when", "once", "until", "unless", "would", "could", "should", "might", "not yet"),
        *(
            "schon",
            "bereits",
            "gestern",
            "wenn",
            "sobald",
            "falls",
            "würde",
            "könnte",
            "noch nicht",
        ),
        *("déjà", "hier", "si", "quand", "lorsque", "ya", "ayer", "cuando", "todavía no"),
        *("he said", "she said", "they said", "you said", "wrote that", "says that", "told me"),
    ),
    endings=False,
)
_NO = frozenset(
    {"not", "never", "no", "nothing", "nicht", "nichts", "nie", "kein", "pas", "rien", "nada"}
)
_NO_SHORT = ("n't", "n’t")


class ClaimWords:
    """The list `prompts/words_claims.md`, made ready."""

    def __init__(self, text: str) -> None:
        self._phrases = Phrases(read_list(text), endings=False)

    def claim(self, reply: str) -> str:
        """The first sentence that claims a finished action, shortened; empty for none."""
        for sentence in own_sentences(reply):
            if sentence.endswith("?"):
                continue
            if self._phrases.first(sentence) and not _is_other(sentence):
                shown = sentence.strip()
                is_long = len(shown) > CLAIM_CHARS_MAX
                return shown[: CLAIM_CHARS_MAX - 1] + "…" if is_long else shown
        return ""


def _is_other(sentence: str) -> bool:
    """Whether a sentence speaks of another time, supposes, or denies."""
    if _NOT_NOW.first(sentence):
        return True
    if any(short in sentence for short in _NO_SHORT):
        return True
    return any(word.text in _NO for word in words(sentence))
