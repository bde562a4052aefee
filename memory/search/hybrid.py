"""Finds what was written down by what somebody asks: by words (FTS5) and by meaning, blended.

Called for facts, exchanges and documents, and, as the `Ranker` of the core, for tools.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date

from memory.records.ports import Ranked
from memory.records.words import fold
from memory.search.fts import Words
from memory.search.vectors import Cosines, Embedding, Meanings

CANDIDATES_MIN = 200
"""How many of the best by words, and of the best by meaning, are looked at closely."""
OUTGROWN_SHARE = 0.25
"""Of an index that came or went since it was built."""
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
    """Items, indexed for search. Implements `memory.records.ports.Ranker`. Safe to use from any
    thread.

    Building it tokenises every text: some 15,000 sentences a second, so large lists are for a
    thread.

    Items may come and go. How rare a word is stays as it was when all was built, so whoever
    changes much builds it anew (`is_outgrown`).
    """

    def __init__(
        self,
        items: Sequence[Item],
        *,
        embedding: Embedding | None = None,
        weights: Weights = FOR_MEMORY,
    ) -> None:
        """Raises ValueError when an id is doubled."""
        places = {item.id: place for place, item in enumerate(items)}
        if len(places) != len(items):
            raise ValueError("two items have the same id")
        self._lock = threading.Lock()
        self._weights = weights
        self._built = len(items)
        self._places = places
        self._gone: set[int] = set()
        self._ids = [item.id for item in items]
        self._names = _Names(item.subject for item in items)
        self._subjects = [fold(item.subject) for item in items]
        self._before = [places.get(item.after, -1) for item in items]
        self._behind = {before: place for place, before in enumerate(self._before) if before >= 0}
        self._words = Words([(item.title, _dated(item)) for item in items])
        table = embedding.table() if embedding is not None and items else None
        self._meanings: Meanings | None = None
        if table is not None:
            meant = [self._names.cut_from(_dated(item)) for item in items]
            context = weights.context
            self._meanings = Meanings(table, meant, before=self._before, context=context)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, id: str) -> bool:
        return id in self._places

    @property
    def is_outgrown(self) -> bool:
        """Return whether more than a quarter came or went since it was built: time to build it
        anew."""
        came = len(self._ids) - self._built
        return max(came, len(self._gone)) > self._built * OUTGROWN_SHARE

    def add(self, items: Sequence[Item]) -> None:
        """Takes more items in. Raises ValueError when an id is there already, and adds none."""
        with self._lock:
            ids = {item.id for item in items}
            if len(ids) != len(items) or not ids.isdisjoint(self._places):
                raise ValueError("two items have the same id")
            self._names = self._names.and_of(item.subject for item in items)
            for item in items:
                place, before = len(self._ids), self._places.get(item.after, -1)
                self._words.add(place, item.title, _dated(item))
                if self._meanings is not None:
                    self._meanings.add(self._names.cut_from(_dated(item)), before=before)
                self._ids.append(item.id)
                self._subjects.append(fold(item.subject))
                self._before.append(before)
                if before >= 0:
                    self._behind[before] = place
                self._places[item.id] = place

    def remove(self, ids: Iterable[str]) -> None:
        """Takes items out; unknown ids are passed over. Their words stay until all is built anew,
        and are found by nobody."""
        with self._lock:
            for place in [self._places.pop(id) for id in set(ids) if id in self._places]:
                self._gone.add(place)
                before, behind = self._before[place], self._behind.pop(place, -1)
                self._before[place] = -1
                if self._behind.get(before) == place:
                    del self._behind[before]
                if behind >= 0:
                    self._before[behind] = -1
                if self._meanings is not None:
                    self._meanings.clear(place)

    def replace(self, came: Iterable[Item], gone: Iterable[str]) -> None:
        """Take items out and others in; those that are here already stay as they are."""
        self.remove(gone)
        self.add([item for item in came if item.id not in self])

    def rank(self, query: str, *, k: int) -> Sequence[Ranked]:
        """The best `k`, best first; ties by id. By words alone only what shares a word."""
        if k <= 0:
            return []
        with self._lock:
            if not self._places:
                return []
            count = max(k, CANDIDATES_MIN)
            by_meaning = None
            if self._meanings is not None and query.strip():
                by_meaning = self._meanings.of(self._names.cut_from(query))
            named = self._names.in_(query) if self._weights.subject else frozenset()
            found = self._words.matches(query, limit=count + len(self._gone))
            by_words = {place: score for place, score in found.items() if place not in self._gone}
            scores = _Scores(
                weights=self._weights,
                by_words=by_words,
                best_by_words=max(by_words.values(), default=1.0),
                by_meaning=by_meaning,
                count=count,
                before=self._before,
                behind=self._behind,
                subjects=self._subjects,
                named=next(iter(named)) if len(named) == 1 else "",
                gone=self._gone,
            )
            totals = {place: scores.total(place) for place in scores.places()}
            places = sorted(totals, key=lambda place: (-round(totals[place], 6), self._ids[place]))
            return [
                Ranked(id=self._ids[place], score=totals[place], cosine=scores.cosine(place))
                for place in places[:k]
            ]


@dataclass(slots=True, kw_only=True)
class _Scores:
    """The scores of one query, made for the places that are looked at. `named` is the one person
    that it names, empty where it names several."""

    weights: Weights
    by_words: Mapping[int, float]
    by_meaning: Cosines | None
    count: int
    before: Sequence[int]
    behind: Mapping[int, int]
    subjects: Sequence[str]
    named: str
    best_by_words: float
    gone: AbstractSet[int]

    def places(self) -> set[int]:
        """Where a good score can be: the best of either kind, and what stands beside them."""
        near = set(self.by_words)
        if self.by_meaning is not None:
            near.update(self.by_meaning.top(self.count))
            near -= self.gone
        if not self.weights.neighbours:
            return near
        return near | {beside for place in near for beside in self._beside(place)}

    def total(self, place: int) -> float:
        """The whole score of one place."""
        if not self.weights.neighbours:
            return self._own(place)
        around = sum(self._own(beside) for beside in self._beside(place))
        return self._own(place) + self.weights.neighbours * around

    def cosine(self, place: int) -> float:
        """Of its meaning alone."""
        return 0.0 if self.by_meaning is None else self.by_meaning[place]

    def _own(self, place: int) -> float:
        by_words = self.by_words.get(place, 0.0) / self.best_by_words
        is_theirs = self.named and self.subjects[place] == self.named
        extra = self.weights.subject if is_theirs else 0.0
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
        self._known = frozenset(name.strip() for name in names if name.strip())
        known = sorted(self._known, key=lambda name: (-len(name), name))
        joined = "|".join(re.escape(name) for name in known)
        self._pattern = (
            re.compile(rf"\b(?:{joined})(?:['’]s)?\b:?", re.IGNORECASE) if known else None
        )
        self._found = re.compile(rf"\b(?:{joined})\b", re.IGNORECASE) if known else None

    def and_of(self, names: Iterable[str]) -> _Names:
        """These and those."""
        more = {name.strip() for name in names if name.strip()}
        return self if more <= self._known else _Names(self._known | more)

    def cut_from(self, text: str) -> str:
        """The text without the names; as it is, where nothing else would be left."""
        if self._pattern is None:
            return text
        return " ".join(self._pattern.sub(" ", text).split()).strip(" :,") or text

    def in_(self, text: str) -> frozenset[str]:
        """Return which of them a text names, folded."""
        if self._found is None:
            return frozenset()
        return frozenset(fold(name) for name in self._found.findall(text))
