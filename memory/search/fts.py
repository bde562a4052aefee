"""The words of texts, in an index of FTS5, and what a query is looked up by.

Called by `memory.search.hybrid`, and by whoever keeps an index of words in the file.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Sequence
from itertools import pairwise

from memory.database.rows import storable
from memory.records.words import fold, is_unbordered, unbordered_runs, words

# --- stop words ---------------------------------------------------------------------------------
#
# Words that stand in nearly every sentence and say nothing about its matter.
#
# Called by `memory.search.hybrid`. English, and of German, French and Spanish those that are no
# English words: a German "die" or "war" is left in, since it would be lost to English.

_ENGLISH = """
a an the this that these those some any each both few more most other another such same
i me my mine myself we us our ours you your yours he him his she her hers it its they them their
and or but nor so if because as until while than though although
of at by for with about against between into through during before after above below to from up
down in out on off over under again further then once here there
am is are was were be been being have has had having do does did doing done
can could shall should will would may might must ought
what which who whom whose when where why how
not no only own too very just also now ever
please s t d ll re ve m don isn aren wasn weren hasn haven hadn doesn didn won wouldn couldn shouldn
"""
_OTHERS = """
der das den dem des ein eine einen einem einer und oder aber wenn weil dass ich mich mir mein meine
du dich dir dein deine er sie wir uns unser ihr euch ist sind bin bist sein seine hat habe haben
wird werden kann auf mit von zu zum zur bei für über nicht auch noch schon nur bitte wie wo wann wer
le la les un une des et ou mais je tu il elle nous vous ils elles mon ma mes ton ta tes ses
est suis sont dans avec sur que qui quoi ne pas plus
el los las una unos unas y pero yo tú él ella nosotros mi tu su es soy son en con por para que
quién qué cómo cuándo dónde
"""
_ALSO_ENGLISH = {"son", "mine", "des", "pas", "plus", "ton", "sur", "con", "er", "la", "mi", "bin"}

STOP_WORDS = frozenset(_ENGLISH.split()) | (frozenset(_OTHERS.split()) - _ALSO_ENGLISH)


QUERY_WORDS_MAX = 48
"""Of one query: more come only with pasted text, and each costs a pass over the index."""
ROWS_MAX = 12_000
"""Of an index of words that one query looks at, a microsecond each. In a large index its most
common words are left out; they tell the least."""


class Words:
    """The words of a list of texts, in an FTS5 table: accents off, English endings off."""

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        """Takes titles and texts."""
        self._lock = threading.Lock()
        self._size = len(texts)
        self._counts: dict[str, int] = {}
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._connection.close)
        with self._lock:
            self._connection.executescript(_TABLE)
            self._connection.executemany(
                _INSERT,
                ((place, spaced(title), spaced(text)) for place, (title, text) in enumerate(texts)),
            )
            self._connection.commit()

    def add(self, place: int, title: str, text: str) -> None:
        """One more text."""
        with self._lock:
            self._connection.execute(_INSERT, (place, spaced(title), spaced(text)))
            self._connection.commit()
            self._size += 1
            self._counts.clear()

    def matches(self, query: str, *, limit: int) -> dict[int, float]:
        """The texts that share a word with the query, by place, with scores above 0."""
        terms = query_terms(query)
        with self._lock:
            if self._size > ROWS_MAX:
                terms = rarest((term, self._count(term)) for term in terms)
            if not terms:
                return {}
            rows = self._connection.execute(
                "select rowid, -rank from temp.searched where searched match ?"
                " order by rank limit ?",
                (expression(terms), limit),
            ).fetchall()
        return {place: max(score, _LEAST) for place, score in rows}

    def _count(self, term: str) -> int:
        """In how many texts a term stands; remembered until a text is added."""
        if term not in self._counts:
            if len(self._counts) >= _COUNTS_MAX:
                self._counts.clear()
            row = self._connection.execute(
                "select count(*) from temp.searched where searched match ?", (expression([term]),)
            ).fetchone()
            self._counts[term] = row[0]
        return self._counts[term]


_COUNTS_MAX = 10_000
_LEAST = 1e-6
_INSERT = "insert into temp.searched (rowid, title, body) values (?, ?, ?)"
_TABLE = """
create virtual table temp.searched using fts5(
  title, body, content='', tokenize='porter unicode61 remove_diacritics 2'
);
insert into temp.searched (searched, rank) values ('rank', 'bm25(0.5, 1.0)');
"""


def rarest(counted: Iterable[tuple[str, int]]) -> list[str]:
    """Return as many terms as rows may be looked at, the rarest first; one at least, of those that
    stand anywhere."""
    found: list[str] = []
    rows = 0
    for term, count in sorted(counted, key=lambda one: one[1]):
        rows += count
        if found and rows > ROWS_MAX:
            break
        if count:
            found.append(term)
    return found


def expression(terms: Iterable[str]) -> str:
    """Return what FTS5 is asked: each term quoted, any of them may hit."""
    return " OR ".join(f'"{term}"' for term in terms)


def query_terms(query: str) -> list[str]:
    """Return what a query is looked up by in an index of `spaced` texts; none for one without a
    word.

    Stop words are left out unless there is nothing else.
    """
    folded = fold(storable(query)).replace("'", " ").replace("_", " ")
    folded = _HYPHENED.sub(_joined_too, folded)
    found = list(dict.fromkeys(word.text for word in words(folded)))
    telling = [word for word in found if word not in STOP_WORDS] or found
    pairs = [
        pair
        for run in unbordered_runs(folded)
        for pair in (map(" ".join, pairwise(run)) if len(run) > 1 else run)
    ]
    return [*telling, *dict.fromkeys(pairs)][:QUERY_WORDS_MAX]


def spaced(text: str) -> str:
    """A text as it is indexed: characters of scripts without blanks stand alone, so that any
    two of them can be looked for."""
    text = _HYPHENED.sub(_joined_too, storable(text).replace("_", " "))
    folded = fold(text)  # as queries are: `Straße` is `strasse` in both
    if not is_unbordered(folded):
        return folded
    pieces, end = [], 0
    for run in unbordered_runs(folded):
        start = folded.index(run, end)
        pieces += [folded[end:start], *run]
        end = start + len(run)
    return " ".join([*pieces, folded[end:]])


_HYPHENED = re.compile(r"\b[^\W\d_]+-[^\W\d_]+\b")


def _joined_too(match: re.Match[str]) -> str:
    """`e-mail` is `email` too."""
    return f"{match[0]} {match[0].replace('-', '')}"
