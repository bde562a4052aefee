"""Finds what was written down by what somebody asks: by words (FTS5) and by meaning, blended.

Called for facts, exchanges and documents, and, as the `Ranker` of the core, for tools.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from agent.ports import Ranked
from agent.words import fold, is_unbordered, unbordered_runs, words
from memory.embedding import Cosines, Embedding, Meanings
from memory.stop_words import STOP_WORDS
from memory.stored_text import storable

CANDIDATES_MIN = 200
"""How many of the best by words, and of the best by meaning, are looked at closely."""
QUERY_WORDS_MAX = 48
"""Of one query: more come only with pasted text, and each costs a pass over the index."""
ROWS_MAX = 12_000
"""Of an index of words that one query looks at, a microsecond each. In a large index its most
common words are left out; they tell the least."""
SPREAD_MIN = 0.01
"""Between the lowest and the highest cosine; less is chance, and would be blown up."""
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that can be found.

    `title` is what it is called: words of it that stand in the text count half as much again.
    `subject` is the person it is about or who said it. `after` is the id of the item that it
    follows, in the same conversation or document. `day` is when it was so.
    """

    id: str
    text: str
    title: str = ""
    subject: str = ""
    after: str = ""
    day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How the signs of a fit are put together. All are shares of the best possible score.

    `meaning` is the part of meaning, and the rest that of words. `subject` is added where the
    query names one person, and the item is theirs. `neighbours` is how much of their score an
    item gets from those before and after it; `context`, how much of their meaning.
    """

    meaning: float = 0.5
    subject: float = 0.2
    neighbours: float = 0.3
    context: float = 0.3


FOR_MEMORY = Weights()
FOR_TOOLS = Weights(meaning=0.7, subject=0.0, neighbours=0.0, context=0.0)


class Search:
    """A fixed list of items, indexed for search. Implements `agent.ports.Ranker`.

    Building it tokenises every text: some 15,000 sentences a second, so large lists are for a
    thread. Without a connection the index of words lives in memory, and ends with the object.
    """

    def __init__(
        self,
        items: Sequence[Item],
        *,
        embedding: Embedding | None = None,
        weights: Weights = FOR_MEMORY,
        connection: sqlite3.Connection | None = None,
    ) -> None:
        """Raises ValueError when an id is doubled."""
        places = {item.id: place for place, item in enumerate(items)}
        if len(places) != len(items):
            raise ValueError("two items have the same id")
        self._weights = weights
        self._ids = [item.id for item in items]
        self._names = _Names(item.subject for item in items)
        self._subjects = [fold(item.subject) for item in items]
        self._before = [places.get(item.after, -1) for item in items]
        self._behind = {before: place for place, before in enumerate(self._before) if before >= 0}
        self._words = Words([(item.title, _dated(item)) for item in items], connection=connection)
        self._meanings = self._meant(items, embedding)

    @property
    def has_meaning(self) -> bool:
        """Whether there are embeddings; without them, words decide alone."""
        return self._meanings is not None

    def rank(self, query: str, *, k: int) -> Sequence[Ranked]:
        """The best `k`, best first; ties by id. By words alone only what shares a word."""
        if k <= 0 or not self._ids:
            return []
        scores = self._scored(query, count=max(k, CANDIDATES_MIN))
        places = sorted(
            scores.places(), key=lambda place: (-round(scores.total(place), 6), self._ids[place])
        )
        return [
            Ranked(id=self._ids[place], score=scores.total(place), cosine=scores.cosine(place))
            for place in places[:k]
        ]

    def _meant(self, items: Sequence[Item], embedding: Embedding | None) -> Meanings | None:
        table = embedding.table() if embedding is not None and items else None
        if table is None:
            return None
        texts = [self._names.cut_from(_dated(item)) for item in items]
        return Meanings(table, texts, before=self._before, context=self._weights.context)

    def _scored(self, query: str, *, count: int) -> _Scores:
        by_meaning = None
        if self._meanings is not None and query.strip():
            by_meaning = self._meanings.of(self._names.cut_from(query))
        by_words = self._words.matches(query, limit=count)
        return _Scores(
            weights=self._weights,
            by_words=by_words,
            best_by_words=max(by_words.values(), default=1.0),
            by_meaning=by_meaning,
            count=count,
            before=self._before,
            behind=self._behind,
            of_subject=self._of_subject(query),
        )

    def _of_subject(self, query: str) -> _OfSubject:
        named = self._names.in_(query) if self._weights.subject else frozenset()
        return _OfSubject(self._subjects, next(iter(named)) if len(named) == 1 else "")


@dataclass(frozen=True, slots=True)
class _OfSubject:
    """Whether an item is of the one person that a query names; of none, where it names several."""

    subjects: Sequence[str]
    named: str

    def __call__(self, place: int) -> bool:
        return bool(self.named) and self.subjects[place] == self.named


@dataclass(slots=True, kw_only=True)
class _Scores:
    """The scores of one query, made for the places that are looked at."""

    weights: Weights
    by_words: Mapping[int, float]
    by_meaning: Cosines | None
    count: int
    before: Sequence[int]
    behind: Mapping[int, int]
    of_subject: _OfSubject
    best_by_words: float

    def places(self) -> set[int]:
        """Where a good score can be: the best of either kind, and what stands beside them."""
        near = set(self.by_words)
        if self.by_meaning is not None:
            near.update(self.by_meaning.top(self.count))
        if not self.weights.neighbours:
            return near
        return near | {beside for place in near for beside in self._beside(place)}

    def total(self, place: int) -> float:
        """The whole score of one place."""
        around = sum(self._own(beside) for beside in self._beside(place))
        return self._own(place) + self.weights.neighbours * around

    def cosine(self, place: int) -> float:
        """Of its meaning alone."""
        return 0.0 if self.by_meaning is None else self.by_meaning[place]

    def _own(self, place: int) -> float:
        by_words = self.by_words.get(place, 0.0) / self.best_by_words
        extra = self.weights.subject if self.of_subject(place) else 0.0
        if self.by_meaning is None:
            return by_words + extra
        lowest, highest = self.by_meaning.lowest, self.by_meaning.highest
        spread = (self.by_meaning[place] - lowest) / max(highest - lowest, SPREAD_MIN)
        share = self.weights.meaning
        return share * spread + (1 - share) * by_words + extra

    def _beside(self, place: int) -> Iterable[int]:
        if self.before[place] >= 0:
            yield self.before[place]
        if place in self.behind:
            yield self.behind[place]


class Words:
    """The words of a fixed list of texts, in an FTS5 table: accents off, English endings off."""

    def __init__(
        self,
        texts: Sequence[tuple[str, str]],
        *,
        connection: sqlite3.Connection | None = None,
    ) -> None:
        """Takes titles and texts. On a given connection the table is one of its temporary ones
        and replaces a former one; the caller sees to it that nobody else uses it meanwhile."""
        self._lock = threading.Lock()
        self._size = len(texts)
        self._counts: dict[str, int] = {}
        self._connection = connection or sqlite3.connect(":memory:", check_same_thread=False)
        if connection is None:
            weakref.finalize(self, self._connection.close)
        with self._lock:
            self._connection.executescript(_TABLE)
            self._connection.executemany(
                "insert into temp.searched (rowid, title, body) values (?, ?, ?)",
                ((place, spaced(title), spaced(text)) for place, (title, text) in enumerate(texts)),
            )
            self._connection.commit()

    def matches(self, query: str, *, limit: int) -> dict[int, float]:
        """The texts that share a word with the query, by place, with scores above 0."""
        terms = query_terms(query)
        with self._lock:
            if self._size > ROWS_MAX:
                terms = self._rarest(terms)
            if not terms:
                return {}
            rows = self._connection.execute(
                "select rowid, -rank from temp.searched where searched match ?"
                " order by rank limit ?",
                (expression(terms), limit),
            ).fetchall()
        return {place: max(score, _LEAST) for place, score in rows}

    def _rarest(self, terms: Sequence[str]) -> list[str]:
        """As many terms as rows may be looked at, the rarest first; one at least."""
        counted = sorted((count, term) for term in terms if (count := self._count(term)))
        kept: list[str] = []
        rows = 0
        for count, term in counted:
            rows += count
            if kept and rows > ROWS_MAX:
                break
            kept.append(term)
        return kept

    def _count(self, term: str) -> int:
        """In how many texts a term stands; remembered, since the texts stay the same."""
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
_TABLE = """
drop table if exists temp.searched;
create virtual table temp.searched using fts5(
  title, body, content='', tokenize='porter unicode61 remove_diacritics 2'
);
insert into temp.searched (searched, rank) values ('rank', 'bm25(0.5, 1.0)');
"""


def expression(terms: Iterable[str]) -> str:
    """What FTS5 is asked: each term quoted, any of them may hit."""
    return " OR ".join(f'"{term}"' for term in terms)


def query_terms(query: str) -> list[str]:
    """What a query is looked up by in an index of `spaced` texts; none for one without a word.

    Stop words are left out unless there is nothing else.
    """
    folded = fold(storable(query)).replace("'", " ").replace("_", " ")
    folded = _HYPHENED.sub(_joined_too, folded)
    found = list(dict.fromkeys(word.text for word in words(folded)))
    telling = [word for word in found if word not in STOP_WORDS] or found
    pairs = [pair for run in unbordered_runs(folded) for pair in _pairs(run)]
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


def _pairs(run: str) -> Iterable[str]:
    if len(run) == 1:
        return [run]
    return (f"{one} {other}" for one, other in pairwise(run))


def _dated(item: Item) -> str:
    """The text with its date before it, so that a question for a day or month finds it."""
    if item.day is None:
        return item.text
    day = item.day
    return f"[{day.day} {_MONTHS[day.month - 1]} {day.year}] {item.text}"


class _Names:
    """The people that items are about. For meaning they are cut out: a small table of vectors
    makes far too much of a name."""

    def __init__(self, names: Iterable[str]) -> None:
        known = sorted({name.strip() for name in names if name.strip()}, key=lambda n: (-len(n), n))
        joined = "|".join(re.escape(name) for name in known)
        self._pattern = (
            re.compile(rf"\b(?:{joined})(?:['’]s)?\b:?", re.IGNORECASE) if known else None
        )
        self._found = re.compile(rf"\b(?:{joined})\b", re.IGNORECASE) if known else None

    def cut_from(self, text: str) -> str:
        """The text without the names; as it is, where nothing else would be left."""
        if self._pattern is None:
            return text
        return " ".join(self._pattern.sub(" ", text).split()).strip(" :,") or text

    def in_(self, text: str) -> frozenset[str]:
        """Which of them a text names, folded."""
        if self._found is None:
            return frozenset()
        return frozenset(fold(name) for name in self._found.findall(text))
