"""Searches that are kept in memory, one for each person and one for each group: over facts here,
over passages of documents in `memory.search.documents`.

An index may be behind the table, and never decides who sees what: it is brought up to date before
each search, and what it finds is read from the table again under the conditions of person, place
and validity.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import structlog

from memory.database.connection import Database
from memory.facts.rows import Narrowed, holding, owned_by, seen_by, select, select_ids
from memory.records.facts import EVERYWHERE, StoredFact, Whose
from memory.search.hybrid import FOR_MEMORY, OUTGROWN_SHARE, Item, Search
from memory.search.vectors import Embedding

log = structlog.get_logger()

ITEMS_MAX = 250_000
"""Facts in all indexes together: some 2 kB each. The least recently used go first."""
_PAGE = 2_000
"""Rows that are read at once, so that others may read meanwhile."""
_ROUNDS_MAX = 2
"""Of bringing an index up to date for one search: the first may have begun before what is looked
for was saved; the second has not."""
_MORE_THAN_ASKED = 8
"""So many more are looked up at once, for rows that no longer hold."""

Mark = tuple[int, int, int]
"""How many rows there are, the highest id and the sum of all: ids are never used again, so two
states of a table with the same mark are the same but for rare chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSource:
    """What is indexed of somebody: `ids` is a statement for those of the items. `name` is for the
    log."""

    name: str
    ids: Callable[[Whose], Narrowed]
    items: Callable[[Whose, Sequence[int], sqlite3.Connection], list[Item]]


@dataclass(slots=True)
class _LiveIndex:
    """`work` brings it up to date, and goes on when nobody waits for it any more."""

    work: asyncio.Task[None] | None = None
    search: Search | None = None
    ids: set[int] = field(default_factory=set)

    @property
    def mark(self) -> Mark:
        return len(self.ids), max(self.ids, default=0), sum(self.ids)


class LiveIndexes:
    """Keeps searches up to date. Its methods are called from the event loop, and what takes long
    runs in threads. Where there is nothing to find nothing is loaded. Raises StorageError."""

    def __init__(
        self, database: Database, source: IndexSource, *, embedding: Embedding, items_max: int
    ) -> None:
        self._database = database
        self._source = source
        self._embedding = embedding
        self._items_max = items_max
        self._kept: OrderedDict[tuple[str, str], _LiveIndex] = OrderedDict()

    @property
    def size(self) -> int:
        """Return how many items are kept, in all indexes."""
        return sum(len(index.ids) for index in self._kept.values())

    def is_empty(self, of: Whose) -> bool:
        """Return whether nothing was there when it was last searched."""
        index = self._kept.get(_key(of))
        return index is None or not index.search

    def drop(self, of: Whose) -> None:
        """Have the index built anew when it is next needed: its very words have to go."""
        self._kept.pop(_key(of), None)
        self._kept.pop((of.person_id, EVERYWHERE), None)

    async def current(self, of: Whose, *, within_s: float | None = None) -> Search | None:
        """Return the search with all rows that are committed, or, after `within_s` seconds, with
        those that it has by then; None where there are none."""
        ids = self._source.ids(of)
        sql = f"select count(*), coalesce(max(id), 0), coalesce(sum(id), 0) from ({ids.sql})"  # noqa: S608
        mark: Mark = (await self._database.rows(sql, ids.values))[0]
        key = _key(of)
        if not mark[0]:
            self._kept.pop(key, None)
            return None
        index = self._kept.setdefault(key, _LiveIndex())
        self._kept.move_to_end(key)
        for _ in range(_ROUNDS_MAX):
            if index.search is not None and index.mark == mark:
                break
            work = index.work or self._begun(index, of)
            done, _ = await asyncio.wait([work], timeout=within_s)
            if not done:
                log.info(
                    f"{self._source.name}.not_indexed_yet", rows=mark[0], indexed=len(index.ids)
                )
                break
            work.result()
        return index.search

    def _begun(self, index: _LiveIndex, of: Whose) -> asyncio.Task[None]:
        """Bring an index up to date; the index holds the task until it is done."""

        def done(work: asyncio.Task[None]) -> None:
            index.work = None
            if not work.cancelled() and (trouble := work.exception()):
                # Perhaps nobody waits for it any more: then nothing else would tell.
                name = f"{self._source.name}.not_indexed"
                log.warning(name, why=str(trouble), exc_info=trouble)
            while self.size > self._items_max and len(self._kept) > 1:
                del self._kept[next(key for key in self._kept if key != _key(of))]

        name = f"index of {self._source.name}"
        index.work = asyncio.create_task(self._catch_up(index, of), name=name)
        index.work.add_done_callback(done)
        return index.work

    async def _catch_up(self, index: _LiveIndex, of: Whose) -> None:
        wanted = self._source.ids(of)
        ids = {row[0] for row in await self._database.rows(wanted.sql, wanted.values)}
        changed = len(ids ^ index.ids)
        if index.search is not None and changed <= OUTGROWN_SHARE * len(index.ids):
            came = await self._items(of, ids - index.ids)
            await asyncio.to_thread(index.search.replace, came, map(str, index.ids - ids))
        if (
            index.search is None
            or changed > OUTGROWN_SHARE * len(index.ids)
            or (
                index.search.is_outgrown  # by many small changes
            )
        ):
            items = await self._items(of, ids)
            index.search = await asyncio.to_thread(
                Search, items, embedding=self._embedding, weights=FOR_MEMORY
            )
        index.ids = ids

    async def _items(self, of: Whose, ids: set[int]) -> list[Item]:
        wanted, items = sorted(ids), []
        for start in range(0, len(wanted), _PAGE):
            page = wanted[start : start + _PAGE]
            items += await self._database.read(partial(self._source.items, of, page))
        return items


def _key(of: Whose) -> tuple[str, str]:
    """In a group all share one index."""
    return (of.person_id if of.scope in {"", EVERYWHERE} else "", of.scope)


# --- facts ---------------------------------------------------------------------------------------


class Indexes(LiveIndexes):
    """Searches facts of one person or group."""

    def __init__(
        self, database: Database, *, embedding: Embedding, items_max: int = ITEMS_MAX
    ) -> None:
        super().__init__(database, _FACTS, embedding=embedding, items_max=items_max)

    async def search(self, of: Whose, query: str, *, k: int) -> list[StoredFact]:
        """Return the best `k` of the facts that hold and that this person may see here, best
        first."""
        return await self._found(of, query, k=k, where=holding(seen_by(of)))

    async def search_own(self, of: Whose, query: str, *, k: int) -> list[StoredFact]:
        """Return the same among those that this person may change."""
        return await self._found(of, query, k=k, where=holding(owned_by(of)))

    async def search_past(self, of: Whose, query: str, *, k: int, at: datetime) -> list[StoredFact]:
        """Return the best `k` of those that held then. Builds an index for this one search."""
        where = holding(seen_by(of), at)
        facts = await self._database.read(partial(select, where=where))
        if not facts:
            return []
        search = await asyncio.to_thread(
            Search, _items_of(facts), embedding=self._embedding, weights=FOR_MEMORY
        )
        ranked = await asyncio.to_thread(search.rank, query, k=k)
        by_id = {str(fact.id): fact for fact in facts}
        return [by_id[one.id] for one in ranked]

    async def likeness(self, text: str, others: Sequence[str]) -> list[float] | None:
        """Return how much each means the same as the text; None without embeddings."""
        if not others:
            return []
        return await asyncio.to_thread(self._embedding.likeness, text, others)

    async def _found(self, of: Whose, query: str, *, k: int, where: Narrowed) -> list[StoredFact]:
        search = await self.current(of)
        if search is None or k <= 0:
            return []
        wanted = k + _MORE_THAN_ASKED
        while True:
            ranked = await asyncio.to_thread(search.rank, query, k=wanted)
            ids = [int(one.id) for one in ranked]
            facts = await self._database.read(partial(select_ids, where=where, ids=ids))
            found = [fact for one in ids if (fact := facts.get(one)) is not None]
            if len(found) >= k or len(ranked) < wanted:
                return found[:k]
            wanted *= 4


def _ids(of: Whose) -> Narrowed:
    where = holding(seen_by(of))
    return Narrowed(f"select id from facts where {where.sql}", where.values)  # noqa: S608


def _items(of: Whose, ids: Sequence[int], connection: sqlite3.Connection) -> list[Item]:
    found = select_ids(connection, holding(seen_by(of)), ids)
    return _items_of([found[fact_id] for fact_id in ids if fact_id in found])


def _items_of(facts: Sequence[StoredFact]) -> list[Item]:
    """Facts of one turn stand beside each other."""
    items: list[Item] = []
    last_of: dict[tuple[str, str], str] = {}
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


_FACTS = IndexSource(name="facts", ids=_ids, items=_items)
