"""What texts mean, as vectors: a small static table of the library wordllama, loaded on first use.

The only module that knows wordllama and numpy. Called by `memory.search.hybrid`. Where the library
is absent or broken there are no vectors, and everything else works by words.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from memory.records.ports import Ranker
from memory.records.text import without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]

DIMENSIONS = 256
TEXT_CHARS_MAX = 4_000
"""Of one text; what follows adds little to a mean."""
IDF_POWER = 0.8
"""How strongly rare tokens outweigh common ones. A little under 1, because in a list of a few
dozen texts nearly every token is rare by accident."""
_MORE_MIN = 64
"""Texts that room is made for when one is added."""
SINGLE_TEXTS_MAX = 64
"""Up to so many are done one by one: a batch wakes threads, and knows no text again."""
KNOWN_TEXTS_MAX, KNOWN_CHARS_MAX = 1_024, 1_000
"""Texts whose tokens are kept: what is near to one message of a talk is mostly near to the next."""
_AT_ONCE = 512
"""Texts that are worked on together: what lies between is several times as large as they are."""

_THREADS = "OPENBLAS_NUM_THREADS"

_log = structlog.get_logger(__name__)


class VectorTable:
    """A vector for each token. Safe to use from several threads; nobody changes what it gives."""

    def __init__(self, *, rows: Floats, tokenizer: Any) -> None:
        self.rows = rows
        self._tokenizer = tokenizer
        self._known = lru_cache(maxsize=KNOWN_TEXTS_MAX)(self._encoded)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text."""
        lowered = [without_surrogates(text[:TEXT_CHARS_MAX].lower()) for text in texts]
        if len(lowered) <= SINGLE_TEXTS_MAX:
            return [
                self._known(text) if len(text) <= KNOWN_CHARS_MAX else self._encoded(text)
                for text in lowered
            ]
        return [
            one.ids
            for start in range(0, len(lowered), _AT_ONCE)
            for one in self._tokenizer.encode_batch_fast(
                lowered[start : start + _AT_ONCE], add_special_tokens=False
            )
        ]

    def drop_known(self) -> None:
        """Keeps none of the texts that were taken apart."""
        self._known.cache_clear()

    def _encoded(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


class Embedding:
    """The table, loaded when it is first needed and once for all. May be asked from any thread.

    Loading takes a third of a second and about 100 MB, so it is not for the event loop.
    """

    def __init__(
        self, *, enabled: bool = True, load: Callable[[], VectorTable] | None = None
    ) -> None:
        self._load = load or _load_wordllama
        self._lock = threading.Lock()
        self._settled = not enabled
        self._table: VectorTable | None = None

    @property
    def is_settled(self) -> bool:
        """Return whether it was found out if there is one, so that `table` answers at once."""
        return self._settled

    def table(self) -> VectorTable | None:
        """The table, or None where there is none. Raises nothing; the reason is logged once."""
        with self._lock:
            if not self._settled:
                try:
                    self._table = self._load()
                except Exception as error:  # noqa: BLE001 - the tokenizer library raises bare Exceptions
                    _log.warning("embedding_off", reason=f"{type(error).__name__}: {error}")
                self._settled = True
            return self._table

    def drop_known(self) -> None:
        """Keeps none of the texts that were taken apart."""
        if self._table is not None:
            self._table.drop_known()

    def likeness(self, text: str, others: Sequence[str]) -> list[float] | None:
        """Return how much each of the others means the same: plain cosines, between -1 and 1.

        Independent of any collection, so that a bound on it (such as that of near-duplicates)
        holds everywhere. None without a table.
        """
        table = self.table()
        if table is None:
            return None
        import numpy as np

        weights = np.ones(len(table.rows), dtype=np.float32)
        pooled = _pooled(table, weights, table.tokens([text]) + table.tokens(list(others)))
        return [float(cosine) for cosine in pooled[1:] @ pooled[0]]


class Meanings:
    """The vectors of a list of texts, weighted by how rare each token is among those at first."""

    def __init__(
        self, table: VectorTable, texts: Sequence[str], *, before: Sequence[int], context: float
    ) -> None:
        """`before` holds for each text the place of the one that it follows, or -1.

        With `context` above 0 each vector takes in that share of its neighbours.
        """
        import numpy as np

        documents = table.tokens(texts)
        tokens = np.fromiter(chain.from_iterable(map(set, documents)), dtype=np.int64)
        seen = np.bincount(tokens, minlength=len(table.rows)).astype(np.float32)
        self._table = table
        # By how many of the texts a token stands in: most stand in none, and have one weight.
        places = np.append(np.flatnonzero(seen), seen.argmin())
        found = np.log(1 + (len(texts) - seen[places] + 0.5) / (seen[places] + 0.5)) ** IDF_POWER
        self._weights: Floats = np.full(len(seen), found[-1], dtype=np.float32)
        self._weights[places] = found
        self._vectors = _pooled(table, self._weights, documents)
        self._size = len(texts)
        self._context = context
        if context > 0:
            earlier: Ints = np.asarray(before, dtype=np.int64)
            later = np.flatnonzero(earlier >= 0)
            mixed = self._vectors.copy()
            mixed[later] += np.float32(context) * self._vectors[earlier[later]]
            np.add.at(mixed, earlier[later], np.float32(context) * self._vectors[later])
            self._vectors = _unit(mixed)

    def of(self, query: str) -> Cosines:
        """Return how close each text comes to the query."""
        return Cosines(self._vectors[: self._size] @ self._of(query))

    def add(self, text: str, *, before: int) -> None:
        """One more text, at the next place."""
        import numpy as np

        if self._size == len(self._vectors):
            room = np.zeros((_MORE_MIN + self._size // 8, DIMENSIONS), dtype=np.float32)
            self._vectors = np.concatenate([self._vectors, room])
        place, vector = self._size, self._of(text)
        self._vectors[place] = vector
        if self._context > 0 and before >= 0:
            earlier = self._vectors[before].copy()
            self._vectors[place] += np.float32(self._context) * earlier
            self._vectors[before] += np.float32(self._context) * vector
            for changed in (place, before):
                self._vectors[changed : changed + 1] = _unit(self._vectors[changed : changed + 1])
        self._size += 1

    def clear(self, place: int) -> None:
        """Takes the meaning of a text away; the places of the others stay."""
        self._vectors[place] = 0

    def _of(self, text: str) -> Floats:
        vector: Floats = _pooled(self._table, self._weights, self._table.tokens([text]))[0]
        return vector


class Cosines:
    """The cosine of each text, by its place in the list, with lowest and highest."""

    def __init__(self, values: Floats) -> None:
        self._values = values.round(6)  # equal texts are equal, whatever is summed up first
        self.lowest = float(self._values.min(initial=1.0))
        self.highest = float(self._values.max(initial=-1.0))

    def __getitem__(self, place: int) -> float:
        return float(self._values[place])

    def top(self, count: int) -> list[int]:
        """The places of the `count` highest, in no promised order."""
        import numpy as np

        if count >= len(self._values):
            return list(range(len(self._values)))
        places: list[int] = np.argpartition(-self._values, count)[:count].tolist()
        return places


def _pooled(table: VectorTable, weights: Floats, documents: Sequence[Sequence[int]]) -> Floats:
    """One vector of length 1 for each document; zeros for one that has no token."""
    import numpy as np

    # One after the other: adding up ranges of one long array takes numpy four times as long.
    pooled = np.zeros((len(documents), table.rows.shape[1]), dtype=np.float32)
    for place, document in enumerate(documents):
        if document:
            tokens: Ints = np.asarray(document, dtype=np.int64)
            pooled[place] = weights[tokens] @ table.rows[tokens]
    return _unit(pooled)


def _unit(vectors: Floats) -> Floats:
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.maximum(lengths, np.float32(1e-9), out=lengths)
    vectors /= lengths
    return vectors


@cache
def _load_wordllama() -> VectorTable:
    # One for a process: it takes a third of a second and 70 MB, and nothing in it changes.
    with _own_way():
        import wordllama  # type: ignore[import-untyped]

        # Its own folder as the cache, and no download: else it would ask the network.
        folder = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=folder, dim=DIMENSIONS, disable_download=True)
    model.tokenizer.no_padding()
    return VectorTable(rows=model.embedding, tokenizer=model.tokenizer)


@contextmanager
def _own_way() -> Iterator[None]:
    """Undo what an import of wordllama does to others. It sets up the root logger, unless that has
    a handler already. And numpy's library for matrices reads once how many threads it may use. One:
    more would save a millisecond, and spin for many more beside whatever else the machine does."""
    root, placeholder = logging.getLogger(), logging.NullHandler()
    former = os.environ.get(_THREADS)
    root.addHandler(placeholder)
    os.environ[_THREADS] = former or "1"
    try:
        yield
    finally:
        root.removeHandler(placeholder)
        if former is None:
            del os.environ[_THREADS]


# --- ranking ------------------------------------------------------------------------------------
#
# The search engine as the tools want it: indexed by name, title and words of each.


class Described(Protocol):
    """What is known of a thing in words."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


def ranker_maker(
    *, meanings: bool = True, embedding: Embedding | None = None
) -> Callable[[Sequence[Described]], Ranker]:
    """Return what makes rankers that share their embeddings, loaded when the first is made: those
    of `embedding`, which others use too, since its table takes 70 MB. `meanings` False: words
    alone."""
    shared = embedding if meanings and embedding is not None else Embedding(enabled=meanings)

    def make(things: Sequence[Described]) -> Ranker:
        # Numbers and vectors take 100 ms and more to load: not before they are needed.
        from memory.search.hybrid import FOR_TOOLS, Item, Search

        items = [Item(id=one.name, title=one.title, text=one.text) for one in things]
        return Search(items, embedding=shared, weights=FOR_TOOLS)

    return make
