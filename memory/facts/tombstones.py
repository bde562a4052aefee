"""What must not be learnt again, kept so that nobody can read it: keyed hashes of its words.

The functions work on a connection, inside of a transaction of whoever stores or forgets. The key is
made on first use. A copy of the database holds key and hashes, so that whoever has it could try out
words that they guess; what was forgotten does not stand in it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memory.facts.similarity import Sentence, sentence
from memory.records.errors import Temporary
from memory.records.facts import Whose

MATCHING_MIN = 0.80
"""Of the content words of a new text, from which it says what was forgotten."""
WORDS_MIN = 3
"""So many of them have to match: two words in common are chance."""
_KEY_BYTES = 32
_HASH_CHARS = 32

_TAKE_KEY = "select key from forgetting_key where id = 1"
_MAKE_KEY = "insert into forgetting_key (id, key) values (1, ?)"
_ADD = """
insert into tombstones (person_id, scope, whole, words, created_ms) values (?, ?, ?, ?, ?)
"""
_OF = """
select id, whole, words from tombstones where person_id = ? and scope in ('', ?) order by id
"""
_GENERATION = "select generation from forgetting_key where id = 1"
_RAISE = """
insert into forgetting_key (id, key, generation) values (1, ?, 1)
on conflict (id) do update set generation = generation + 1
"""
_NAME_OF = "select name from people where id = ?"
_REMOVE = "delete from tombstones where id = ?"

Hash = Callable[[str], str]


def add(connection: sqlite3.Connection, of: Whose, texts: Iterable[str], *, now_ms: int) -> None:
    """Remembers that these are to be forgotten."""
    hashed, names = _hash_of(connection, of), _names_of(connection, of)
    for text in texts:
        mark = _mark(sentence(text), hashed, names)
        words = json.dumps({"words": sorted(mark.words), "numbers": sorted(mark.numbers)})
        connection.execute(_ADD, (of.person_id, of.scope, mark.whole, words, now_ms))


def matching(connection: sqlite3.Connection, of: Whose, text: str) -> list[int]:
    """The tombstones that a text wakes: the person's private ones count in groups as well."""
    rows = connection.execute(_OF, (of.person_id, of.scope)).fetchall()
    if not rows:
        return []
    mark = _mark(sentence(text), _hash_of(connection, of), _names_of(connection, of))
    return [row_id for row_id, whole, words in rows if mark.wakes(whole, json.loads(words))]


def lift(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Takes tombstones away: the person wishes to have it remembered again."""
    connection.executemany(_REMOVE, [(row_id,) for row_id in ids])


class ForgottenMeanwhile(Temporary):
    """Something was forgotten since that was read which is to be stored: nothing of it is."""

    def __init__(self) -> None:
        super().__init__("Something was forgotten meanwhile, so it is looked at anew later.")


def generation(connection: sqlite3.Connection) -> int:
    """Return how often something was erased so far. Whoever works for long reads it with, or
    before, what the work rests on, and compares it in the transaction that stores what came of
    it."""
    row = connection.execute(_GENERATION).fetchone()
    return int(row[0]) if row else 0


def raise_generation(connection: sqlite3.Connection) -> None:
    """Part of each transaction that erases."""
    connection.execute(_RAISE, (secrets.token_bytes(_KEY_BYTES),))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """A text as it is compared: hashes and no words."""

    whole: str
    words: frozenset[str]
    numbers: frozenset[str]

    def wakes(self, whole: str, stored: dict[str, list[str]]) -> bool:
        if self.whole == whole:
            return True
        words = frozenset(stored["words"])
        if self.numbers != frozenset(stored["numbers"]):
            return False
        if self.words == words:
            return bool(words)
        matching = len(self.words & words)
        return matching >= WORDS_MIN and matching >= MATCHING_MIN * len(self.words)


def _mark(said: Sentence, hashed: Hash, names: frozenset[str]) -> _Mark:
    """The person's own name is no word of it: `Ada lives in Oslo`, `The user lives in Oslo`."""
    return _Mark(
        whole=hashed(f"whole {said.whole}"),
        words=frozenset(
            hashed(f"word {stem}")
            for stem in said.stems
            if stem not in names and stem not in said.numbers
        ),
        numbers=frozenset(hashed(f"number {number}") for number in said.numbers),
    )


def _names_of(connection: sqlite3.Connection, of: Whose) -> frozenset[str]:
    row = connection.execute(_NAME_OF, (of.person_id,)).fetchone()
    return frozenset(sentence(row[0]).stems) if row else frozenset()


def _hash_of(connection: sqlite3.Connection, of: Whose) -> Hash:
    """Of each person another one, so that nobody sees who forgot the same."""
    row = connection.execute(_TAKE_KEY).fetchone()
    if row is None:
        key = secrets.token_bytes(_KEY_BYTES)
        connection.execute(_MAKE_KEY, (key,))
    else:
        key = row[0]
    own = hmac.digest(key, of.person_id.encode(), "sha256")

    def hashed(text: str) -> str:
        return hmac.new(own, text.encode(), hashlib.sha256).hexdigest()[:_HASH_CHARS]

    return hashed
