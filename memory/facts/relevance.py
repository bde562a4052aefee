"""Relevance of what was found to a message: a search always finds something.

Called by `memory.facts.store` and `memory.facts.recall` before anything reaches a prompt. Pure.
"""

from __future__ import annotations

import math

from memory.facts.similarity import sentence
from memory.records.facts import StoredFact
from memory.records.words import fold, words
from memory.search.fts import STOP_WORDS

CLOSE_MIN = 0.35
"""Plain cosine from which a text has to do with a message, whatever words it shares with it."""
FAINT_MIN = 0.12
"""Enough for a short fact about the person: `prefers metric units`, and `convert 5 miles`."""
SHARED_MIN = 0.40
"""Stems that they share, by the geometric mean of how many each has."""
SHORT_STEMS_MAX = 7
HEAD_CHARS, TAIL_CHARS = 1_500, 500
"""Of a long message what is searched by: what is asked stands at its begin or at its end."""
_MATTERS = frozenset(["project", "decision"])
"""Categories of facts that are about a matter, and of no use to any other matter."""
_NO_NAMES = STOP_WORDS | {"project", "projects", "team", "user"}
"""They begin sentences, with a capital."""

_TALK = """
hi hello hey hiya yo good morning afternoon evening night thanks thank thx cheers ok okay yes no yep
nope yeah sure great cool nice perfect fine well bye goodbye see later soon welcome sorry lol haha
hmm oh wow right correct done go ahead continue stop wait maybe exactly
lot lots much job one got it sounds problem course agreed understood noted appreciated everyone
hallo moin servus danke bitte ja nein super tschüss guten tag morgen abend
merci bonjour salut oui non gracias hola adios vale
"""
_OF_REMEMBERING = """
remember know knew known memory memories remembered facts fact stored saved learnt learned tell told
everything anything something all things thing list show summary summarize summarise so far info
information say said weißt weisst erinnerst alles sais souviens tout sabes recuerdas todo
"""
_SMALL = frozenset(_TALK.split()) | STOP_WORDS
_REMEMBERING = frozenset(_OF_REMEMBERING.split())
_REMEMBER = frozenset(
    ["remember", "know", "knew", "memory", "memories", "facts", "learnt", "learned"]
)
_SELF = frozenset(["me", "my", "mine", "myself", "i", "mich", "mir", "mein", "meine", "moi", "mon"])


def gist(message: str) -> str:
    """The message, without the middle of a long one."""
    if len(message) <= HEAD_CHARS + TAIL_CHARS:
        return message
    return f"{message[:HEAD_CHARS]} {message[-TAIL_CHARS:]}"


def is_small_talk(message: str) -> bool:
    """Whether a message is a greeting or the like, or has no word at all; never where it speaks
    of whoever writes it."""
    said = sentence(message)
    return (
        not said.every & _SELF
        and not said.numbers
        and (not said.stems or all(word in _SMALL for word in said.every))
    )


def is_about_self(message: str) -> bool:
    """Whether it asks what is known of whoever asks, and of nothing in particular."""
    every = [word.text for word in words(fold(message))]
    if every == ["who", "am", "i"]:
        return True
    telling = [word for word in every if word not in STOP_WORDS]
    asks = all(word in _REMEMBERING for word in telling) and not _REMEMBER.isdisjoint(telling)
    return asks and not _SELF.isdisjoint(every)


def speaks_of_self(message: str) -> bool:
    """Whether somebody speaks of themselves: `Plan my week`, `Where do I live?`"""
    return not sentence(message).every.isdisjoint(_SELF)


def fitting(message: str, fact: StoredFact, likeness: float | None) -> bool:
    """Whether a fact has to do with a message.

    A matter needs to be spoken of: by name, or closely. What is said of the person in few words
    may bear on much, so little is asked of it, and nothing where they speak of themselves.
    """
    asked, known = sentence(message), sentence(fact.text)
    mine, others = set(asked.stems), set(known.stems)
    shared = len(mine & others)
    # The geometric mean of how many each has: a long message shares a few words with anything.
    is_shared = bool(shared) and shared / math.sqrt(len(mine) * len(others)) >= SHARED_MIN
    if is_shared or (likeness or 0.0) >= CLOSE_MIN:
        return True
    is_long = len(known.stems) > SHORT_STEMS_MAX
    if is_long or fact.category in _MATTERS or "project" in known.every:
        return any(name in asked.every for name in known.names if name not in _NO_NAMES)
    return speaks_of_self(message) or bool(shared) or (likeness or 0.0) >= FAINT_MIN
