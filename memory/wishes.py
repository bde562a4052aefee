"""What a wish to forget means: which words are looked for, and where.

Called by `memory.forgetting`.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TypeVar

from agent.forgotten import Wish, too_short
from memory.places import Search, facts_holding, located, sayings, texts_of
from memory.wording import Wording

T = TypeVar("T")

SAMPLED_MAX, SAMPLE_CHARS_MIN = 200, 12
"""Of everything that somebody said, what the files are looked through for at the end."""


def search_of(wish: Wish, wording: Wording) -> Search:
    return Search(person_id=wish.person_id, wording=wording, facts=wish.facts, lanes=wish.lanes)


def asked(wish: Wish, connection: sqlite3.Connection) -> tuple[Wording, Search]:
    """What to look for: the words of the facts too, and where."""
    plain = Wording(wish.phrases, everything=wish.everything)
    search = located(connection, search_of(wish, plain))
    if wish.everything:
        search = replace(search, facts=tuple(facts_holding(connection, search)))
    of_facts = [text for pair in texts_of(connection, search) for text in pair]
    of_facts = [text for text in dict.fromkeys(of_facts) if text and not too_short(text)]
    if wish.everything:
        said = [text for text in sayings(connection, search) if len(text) >= SAMPLE_CHARS_MIN]
        sample = tuple(dict.fromkeys([*of_facts, *said]))[:SAMPLED_MAX]
        wording = Wording(sample, everything=True)
    else:
        phrases = tuple(dict.fromkeys([*wish.phrases, *of_facts]))
        wording = Wording(phrases, tuple(of_facts), wish.names)
    return wording, located(connection, replace(search, wording=wording))


def together(former: tuple[Wish, Wording], now: tuple[Wish, Wording]) -> tuple[Wish, Wording]:
    """Both wishes of one person as one: the words of the former may be nowhere else any more."""
    (a, said), (b, says) = former, now
    wish = Wish(
        person_id=b.person_id,
        facts=_both(a.facts, b.facts),
        phrases=_both(a.phrases, b.phrases),
        everything=a.everything or b.everything,
        is_owner=b.is_owner,
        names=_both(a.names, b.names),
        lanes=_both(a.lanes, b.lanes),
        with_files=a.with_files or b.with_files,
        cards=_both(a.cards, b.cards),
    )
    wording = Wording(
        _both(said.phrases, says.phrases),
        _both(said.sentences, says.sentences),
        _both(said.names, says.names),
        everything=wish.everything,
    )
    return wish, wording


def _both(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *second)))
