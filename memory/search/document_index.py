"""The searches over passages of documents that are kept in memory: one a person, and one a group.

An index may be behind the table, and never decides who sees what: it is brought up to date before
each search, and what it finds is read from the table again by whoever asked. Used by
`memory.search.documents`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from memory.database.connection import Database
from memory.records.facts import Whose
from memory.records.ports import Ranked
from memory.search.hybrid import FOR_MEMORY, OUTGROWN_SHARE, Item, Search
from memory.search.vectors import Embedding

log = structlog.get_logger()

ITEMS_MAX = 60_000
"""Passages in all indexes together, some 4 kB each. The least recently used go first."""
_ROUNDS_MAX = 2
"""Of bringing an index up to date for one search: the first may have begun before what is looked
for was saved; the second has not."""
_PAGE = 2_000
"""Passages that are read at once, so that others may read meanwhile."""

# A person's own documents; in a group what anybody saved there, and nothing else (SPEC §9).
SEEN = "((d.scope = '' and ?2 = '' and d.person_id = ?1) or (d.scope = ?2 and ?2 <> ''))"
"""Takes the person and the scope, which are the first two parameters."""

_MARK = f"""
select count(*), max(c.id) from chunks c join documents d on d.id = c.document_id where {SEEN}
"""  # noqa: S608 - our own words
_IDS = f"""
select c.id from chunks c join documents d on d.id = c.document_id where {SEEN}
"""  # noqa: S608 - our own words
_TEXTS = f"""
select c.id, c.text, d.name,
    (select p.id from chunks p where p.document_id = c.document_id and p.n = c.n - 1)
from chunks c join documents d on d.id = c.document_id
where {SEEN} and c.id in (select value from json_each(?3)) order by c.document_id, c.n
"""  # noqa: S608 - our own words

_Mark = tuple[int, int | None]


@dataclass(slots=True)
class _Index:
    """`mark` is how many passages are in it, and the highest id: ids are never used again, so two
    states of the table with the same mark are the same. `work` brings it up to date, and goes on
    when nobody waits for it any more."""

    work: asyncio.Task[None] | None = None
    search: Search | None = None
    ids: set[int] = field(default_factory=set)

    @property
    def mark(self) -> _Mark:
        return len(self.ids), max(self.ids, default=None)


class DocumentIndex:
    """Its methods are called from the event loop, and what takes long runs in threads. Where there
    is no document nothing is loaded. Raises StorageError."""

    def __init__(
        self, database: Database, *, embedding: Embedding, items_max: int = ITEMS_MAX
    ) -> None:
        self._database = database
        self._embedding = embedding
        self._items_max = items_max
        self._kept: OrderedDict[tuple[str, str], _Index] = OrderedDict()

    @property
    def size(self) -> int:
        """How many passages are kept, in all indexes."""
        return sum(len(index.ids) for index in self._kept.values())

    async def rank(self, of: Whose, query: str, *, k: int) -> Sequence[Ranked]:
        """The best `k` passages by their ids, best first."""
        search = await self._current(of, within_s=None)
        return [] if search is None else await asyncio.to_thread(search.rank, query, k=k)

    async def rank_within(
        self, of: Whose, query: str, *, k: int, within_s: float
    ) -> Sequence[Ranked]:
        """The same of what is in the index by then: an index of many documents takes seconds, and
        goes on being built while others have their answer without it."""
        search = await self._current(of, within_s=within_s)
        return [] if search is None else await asyncio.to_thread(search.rank, query, k=k)

    async def _current(self, of: Whose, *, within_s: float | None) -> Search | None:
        mark = await self._database.read(lambda c: _mark(c, of))
        key = ("", of.scope) if of.scope else (of.person_id, "")
        if not mark[0]:
            self._kept.pop(key, None)
            return None
        index = self._kept.setdefault(key, _Index())
        self._kept.move_to_end(key)
        for _ in range(_ROUNDS_MAX):
            if index.search is not None and index.mark == mark:
                break
            work = index.work or self._begun(index, of, key)
            done, _ = await asyncio.wait([work], timeout=within_s)
            if not done:
                log.info("documents.not_indexed_yet", passages=mark[0], indexed=len(index.ids))
                break
            work.result()
        return index.search

    def _begun(self, index: _Index, of: Whose, key: tuple[str, str]) -> asyncio.Task[None]:
        """Brings an index up to date; the index holds the task until it is done."""

        def done(work: asyncio.Task[None]) -> None:
            index.work = None
            if not work.cancelled() and (trouble := work.exception()):
                # Perhaps nobody waits for it any more: then nothing else would tell.
                log.warning("documents.not_indexed", why=str(trouble), exc_info=trouble)
            self._drop_oldest(but=key)

        index.work = asyncio.create_task(self._catch_up(index, of), name="index of documents")
        index.work.add_done_callback(done)
        return index.work

    async def _catch_up(self, index: _Index, of: Whose) -> None:
        ids = await self._database.read(lambda c: _ids(c, of))
        changed = len(ids ^ index.ids)
        if index.search is None or changed > OUTGROWN_SHARE * len(index.ids):
            await self._build(index, of, ids)
        elif changed:
            came = await self._items(of, ids - index.ids)
            await asyncio.to_thread(_brought_up, index.search, came, index.ids - ids)
            index.ids = ids
            if index.search.is_outgrown:  # by many small changes
                await self._build(index, of, ids)

    async def _build(self, index: _Index, of: Whose, ids: set[int]) -> None:
        items = await self._items(of, ids)
        index.search = await asyncio.to_thread(
            Search, items, embedding=self._embedding, weights=FOR_MEMORY
        )
        index.ids = ids

    async def _items(self, of: Whose, ids: set[int]) -> list[Item]:
        wanted, items = sorted(ids), []
        for start in range(0, len(wanted), _PAGE):
            page = json.dumps(wanted[start : start + _PAGE])
            items += await self._database.read(partial(_read_items, of=of, ids=page))
        return items

    def _drop_oldest(self, *, but: tuple[str, str]) -> None:
        while self.size > self._items_max and len(self._kept) > 1:
            del self._kept[next(key for key in self._kept if key != but)]


def _mark(connection: sqlite3.Connection, of: Whose) -> _Mark:
    count, highest = connection.execute(_MARK, (of.person_id, of.scope)).fetchone()
    return count, highest


def _ids(connection: sqlite3.Connection, of: Whose) -> set[int]:
    return {row[0] for row in connection.execute(_IDS, (of.person_id, of.scope))}


def _read_items(connection: sqlite3.Connection, *, of: Whose, ids: str) -> list[Item]:
    rows = connection.execute(_TEXTS, (of.person_id, of.scope, ids))
    return [
        Item(id=str(id_), text=text, title=name, after="" if before is None else str(before))
        for id_, text, name, before in rows
    ]


def _brought_up(search: Search, came: Sequence[Item], gone: set[int]) -> None:
    search.remove(str(id_) for id_ in gone)
    search.add([item for item in came if item.id not in search])
