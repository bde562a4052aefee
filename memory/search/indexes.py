"""The searches over facts that are kept in memory: one for each person, and one for each group.

An index may be behind the table, and never decides who sees what: it takes in new rows before each
search, and what it finds is read from the table under the conditions of person, place and validity.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from memory.database.connection import Database
from memory.facts.rows import Narrowed, exists, holding, owned_by, seen_by, select, select_ids
from memory.records.facts import EVERYWHERE, StoredFact, Whose
from memory.records.ports import Ranked
from memory.search.hybrid import FOR_MEMORY, Item, Search
from memory.search.vectors import Embedding

ITEMS_MAX = 250_000
"""In all indexes together: some 2 kB each. The least recently used go first."""
_PAGE = 4_000
"""Rows that are read at once."""
_MORE_THAN_ASKED = 8
"""So many more are looked up at once, for rows that no longer hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A fact that was found. `cosine` is of its meaning alone, 0 without embeddings."""

    fact: StoredFact
    score: float
    cosine: float


@dataclass(slots=True)
class _FactIndex:
    """`upto` is the highest id that was looked at."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    search: Search | None = None
    upto: int = 0


class Indexes:
    """Searches facts of one person or group. Its methods are called from the event loop, and what
    takes long runs in threads. Raises StorageError."""

    def __init__(
        self, database: Database, *, embedding: Embedding, items_max: int = ITEMS_MAX
    ) -> None:
        self._database = database
        self._embedding = embedding
        self._items_max = items_max
        self._kept: OrderedDict[tuple[str, str], _FactIndex] = OrderedDict()

    @property
    def size(self) -> int:
        """How many items are kept, in all indexes."""
        return sum(len(index.search) for index in self._kept.values() if index.search is not None)

    def is_empty(self, of: Whose) -> bool:
        """Whether nothing was there when it was last searched."""
        index = self._kept.get(_key(of))
        return index is None or not index.search

    async def search(self, of: Whose, query: str, *, k: int) -> list[Hit]:
        """The best `k` of the facts that hold and that this person may see here, best first."""
        return await self._found(of, query, k=k, where=holding(seen_by(of)), drops=True)

    async def search_own(self, of: Whose, query: str, *, k: int) -> list[Hit]:
        """The same among those that this person may change."""
        return await self._found(of, query, k=k, where=holding(owned_by(of)), drops=False)

    async def search_past(self, of: Whose, query: str, *, k: int, at: datetime) -> list[Hit]:
        """The best `k` of those that held then. Builds an index for this one search."""
        where = holding(seen_by(of), at)
        facts = await self._database.read(partial(select, where=where))
        if not facts:
            return []
        search = await asyncio.to_thread(self._built, _items(facts, {}))
        ranked = await asyncio.to_thread(search.rank, query, k=k)
        return _hits(ranked, {fact.id: fact for fact in facts})

    async def likeness(self, text: str, others: Sequence[str]) -> list[float] | None:
        """How much each means the same as the text; None without embeddings."""
        if not others:
            return []
        return await asyncio.to_thread(self._embedding.likeness, text, others)

    def drop(self, of: Whose) -> None:
        """Has the index built anew when it is next needed: facts hold again that did not, or their
        very words have to go."""
        self._kept.pop(_key(of), None)
        self._kept.pop((of.person_id, EVERYWHERE), None)

    async def _found(
        self, of: Whose, query: str, *, k: int, where: Narrowed, drops: bool
    ) -> list[Hit]:
        search = await self._current(of)
        if search is None or k <= 0:
            return []
        wanted = k + _MORE_THAN_ASKED
        while True:
            ranked = await asyncio.to_thread(search.rank, query, k=wanted)
            ids = [int(one.id) for one in ranked]
            facts = await self._database.read(partial(select_ids, where=where, ids=ids))
            if drops and len(facts) < len(ids):
                gone = [one.id for one in ranked if int(one.id) not in facts]
                await asyncio.to_thread(search.remove, gone)
            hits = _hits(ranked, facts)
            if len(hits) >= k or len(ranked) < wanted:
                return hits[:k]
            wanted *= 4

    async def _current(self, of: Whose) -> Search | None:
        """The index with all rows that are committed; None where there is no fact."""
        index = self._kept.get(_key(of))
        if index is None:
            if not await self._database.read(partial(exists, where=holding(seen_by(of)))):
                return None
            index = self._kept.setdefault(_key(of), _FactIndex())
        self._kept.move_to_end(_key(of))
        async with index.lock:
            await self._catch_up(index, of)
        self._drop_oldest(but=_key(of))
        return index.search

    async def _catch_up(self, index: _FactIndex, of: Whose) -> None:
        items = await self._items_after(of, index.upto)
        if index.search is None:
            index.search = await asyncio.to_thread(self._built, items)
        elif items:
            await asyncio.to_thread(_taken_in, index.search, items)
        if items:
            index.upto = int(items[-1].id)
        if index.search.is_outgrown:
            everything = await self._items_after(of, 0)
            index.search = await asyncio.to_thread(self._built, everything)
            index.upto = max([index.upto, *(int(item.id) for item in everything[-1:])])

    async def _items_after(self, of: Whose, upto: int) -> list[Item]:
        """In pages, so that others may read meanwhile. What is closed between two of them is
        found out when it is looked up."""
        items: list[Item] = []
        last_of: dict[tuple[str, str], str] = {}
        where = holding(seen_by(of))
        while True:
            page = where.and_("id > ?", int(items[-1].id) if items else upto)
            facts = await self._database.read(partial(select, where=page, limit=_PAGE))
            items += _items(facts, last_of)
            if len(facts) < _PAGE:
                return items

    def _built(self, items: Sequence[Item]) -> Search:
        return Search(items, embedding=self._embedding, weights=FOR_MEMORY)

    def _drop_oldest(self, *, but: tuple[str, str]) -> None:
        while self.size > self._items_max and len(self._kept) > 1:
            oldest = next(key for key in self._kept if key != but)
            del self._kept[oldest]


def _key(of: Whose) -> tuple[str, str]:
    """In a group all share one index."""
    return (of.person_id if of.scope in {"", EVERYWHERE} else "", of.scope)


def _taken_in(search: Search, items: Sequence[Item]) -> None:
    search.add([item for item in items if item.id not in search])


def _items(facts: Sequence[StoredFact], last_of: dict[tuple[str, str], str]) -> list[Item]:
    """Facts of one turn stand beside each other; `last_of` is the last one of each."""
    items: list[Item] = []
    for fact in facts:
        turn = (fact.whose.person_id, fact.run_id or f"alone {fact.id}")
        items.append(
            Item(
                id=str(fact.id),
                text=fact.text,
                subject=fact.speaker,
                after=last_of.get(turn, ""),
                day=datetime.fromtimestamp(fact.valid_from_ms / 1000, UTC).date(),
            )
        )
        last_of[turn] = str(fact.id)
    return items


def _hits(ranked: Sequence[Ranked], facts: dict[int, StoredFact]) -> list[Hit]:
    return [
        Hit(fact=facts[int(one.id)], score=one.score, cosine=one.cosine)
        for one in ranked
        if int(one.id) in facts
    ]
