"""Documents that were saved to be looked things up in, and their passages."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memory.database.connection import Database
from memory.database.rows import named, record, records, storable, to_row
from memory.facts.rows import Narrowed
from memory.records.errors import DocumentWrong
from memory.records.facts import Chunk, Document, RecallWanted, Whose
from memory.records.text import clean
from memory.search.fts import STOP_WORDS, Words, query_terms
from memory.search.hybrid import Item
from memory.search.indexes import IndexSource, LiveIndexes
from memory.search.vectors import Embedding

# --- passages -----------------------------------------------------------------------------------
#
# Cuts a document into the passages that it is found by. Pure.
#
# A passage ends where a paragraph, a sentence or a word does, if one is near, and repeats the end
# of the one before it, so that what stands at a border is found whole. Of a table each passage
# begins with the table's first line.

PASSAGE_CHARS = 800
OVERLAP_CHARS = 100
_EARLIEST_END = 600
"""No passage that another follows is shorter, so that their number is bounded."""
_HEADER_CHARS_MAX = 200

_ENDS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"(?<=[.!?…])[\"'”’»)]?\s|(?<=[。！？])"),
    re.compile(r"\n"),
    re.compile(r"\s"),
)
"""Where a passage would rather end, the best first."""
_WORD_START = re.compile(r"(?<=\s)\S")


def passages(text: str) -> Iterator[str]:
    """Of running text."""
    start = 0
    while start < len(text):
        end = last = start + PASSAGE_CHARS
        for ends in _ENDS if last < len(text) else ():
            found = [place.end() for place in ends.finditer(text, start + _EARLIEST_END, last)]
            if found:
                end = found[-1]
                break
        if passage := text[start:end].strip():
            yield passage
        if end >= len(text):
            return
        # Some words before the end; right at it where the text has no words.
        word = _WORD_START.search(text, max(end - OVERLAP_CHARS, 0), end)
        start = word.start() if word else end


def table_passages(text: str) -> Iterator[str]:
    """Of lines that stand for themselves, each passage under the first line of all."""
    header, _, body = text.strip("\n").partition("\n")
    if len(header) > _HEADER_CHARS_MAX or not body.strip():
        header, body = "", text
    room = PASSAGE_CHARS - len(header) - bool(header)
    lines: list[str] = []
    left = room
    for line in _lines(body, room):
        if len(line) + bool(lines) > left:
            yield "\n".join([header, *lines] if header else lines)
            lines, left = [], room
        left -= len(line) + bool(lines)
        lines.append(line)
    if lines:
        yield "\n".join([header, *lines] if header else lines)


def _lines(body: str, chars_max: int) -> Iterator[str]:
    for line in body.split("\n"):
        if line.strip():
            yield from (line[at : at + chars_max] for at in range(0, len(line), chars_max))


NAME_CHARS_MAX = 120
SOURCE_CHARS_MAX = 500
INDEXED_MAX = 60_000
"""Passages in all indexes together, some 4 kB each."""
RECALLED_MAX = 5
"""Passages in a prompt (SPEC §5)."""
RECALL_S = 1.5
"""How long a message waits for an index that is not built yet."""
QUERY_CHARS_MAX = 2_000
"""Of a message that passages are looked for by."""
COSINE_MIN = 0.28
"""A passage that comes as close as this to a query is about it, whatever its words. Measured on 250
questions about long texts: with it and the words the passage that answers is among the first five
in 85 % (86 % without any bound), and 9 of 10 messages about something else find none."""
SHARED_WORDS_MIN = 3
"""Telling words of a query in a passage that are enough, if they are not half of them."""
_USED_AGAIN_MS = 3_600_000
"""A document that was used within the hour is not marked anew: each mark is a write."""
_LOOKED_AT_MIN = 40
_TABLES = frozenset({"csv", "tsv"})

# A person's own documents; in a group what anybody saved there, and nothing else (SPEC §9). Takes
# the person and the scope, which are the first two parameters.
_SEEN = "((d.scope = '' and ?2 = '' and d.person_id = ?1) or (d.scope = ?2 and ?2 <> ''))"
_COUNTED = """
d.id, d.person_id as "whose.person_id", d.scope as "whose.scope", d.name, d.kind, d.source, d.chars,
    d.saved_ms, d.used_ms, (select count(*) from chunks c where c.document_id = d.id) as chunks
"""
_KNOWN = "select id, digest from documents where person_id = ? and scope = ? and name = ?"
_DOCUMENTS_OF = "select count(*) from documents where person_id = ?"
_CHUNKS_IN = f"""
select count(*) from chunks c join documents d on d.id = c.document_id
where {_SEEN} and c.document_id <> ?3
"""  # noqa: S608 - our own words
_PUT = """
insert into documents (person_id, scope, name, kind, source, digest, chars, saved_ms, used_ms)
values (:person_id, :scope, :name, :kind, :source, :digest, :chars, :saved_ms, :used_ms)
on conflict (person_id, scope, name) do update set
    kind = excluded.kind, source = excluded.source, digest = excluded.digest,
    chars = excluded.chars, saved_ms = excluded.saved_ms, used_ms = excluded.used_ms
returning id
"""
_REMOVE_CHUNKS = "delete from chunks where document_id = ?"
_ADD_CHUNK = "insert into chunks (document_id, n, text) values (?, ?, ?)"
_ONE = f"select {_COUNTED} from documents d where d.id = ?"  # noqa: S608 - our own words
_LIST = f"""
select {_COUNTED} from documents d where {_SEEN} order by d.name, d.id
"""  # noqa: S608 - our own words
_REMOVE = "delete from documents where id = ?"
_PASSAGES = f"""
select c.id, c.text, d.name, d.id as document, d.used_ms
from chunks c join documents d on d.id = c.document_id
where {_SEEN} and c.id in (select value from json_each(?3))
"""  # noqa: S608 - our own words
_USED = """
update documents set used_ms = ? where id in (select value from json_each(?))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentBounds:
    """Of one document, of a person, and of what is searched at once."""

    chars_max: int = 2_000_000
    passages_max: int = 5_000
    documents_max: int = 500
    passages_in_all_max: int = 20_000
    """Of a person, or of a group: an index of so many takes some ten seconds to build."""


_BOUNDS = DocumentBounds()


class SqliteDocuments:
    """Keeps and finds documents. Raises StorageError.

    A document belongs to who saved it, and only they replace or remove it; in a group all may read
    what was saved there.
    """

    def __init__(
        self,
        database: Database,
        *,
        embedding: Embedding,
        bounds: DocumentBounds = _BOUNDS,
        recall_s: float = RECALL_S,
    ) -> None:
        """`recall_s` bounds how long a message waits for what is recalled, in seconds."""
        self._database = database
        self._bounds = bounds
        self._recall_s = recall_s
        self._indexes = LiveIndexes(database, _SOURCE, embedding=embedding, items_max=INDEXED_MAX)

    async def save(self, of: Whose, *, name: str, kind: str, source: str, text: str) -> Document:
        """Saves one, or replaces the one of this name; the same text again changes nothing.

        Raises DocumentWrong.
        """
        now_ms = self._database.now_ms()
        new = Document(
            id=0,
            whose=of,
            name=_name(name),
            kind=storable(kind)[:20],
            source=storable(" ".join(clean(source).split()))[:SOURCE_CHARS_MAX],
            chars=0,
            chunks=0,
            saved_ms=now_ms,
            used_ms=now_ms,
        )
        cut = await asyncio.to_thread(_cut, new, text, self._bounds)
        return await self._database.write(lambda c: _put(c, cut, self._bounds))

    async def search(self, of: Whose, query: str, *, k: int) -> Sequence[Chunk]:
        """The best `k` passages that have to do with the query, best first; often fewer. Waits
        until all documents are indexed."""
        return await self._found(of, query, k=k, within_s=None)

    async def _found(
        self, of: Whose, query: str, *, k: int, within_s: float | None
    ) -> Sequence[Chunk]:
        if k <= 0 or not query.strip():
            return []
        search = await self._indexes.current(of, within_s=within_s)
        if search is None:
            return []
        ranked = await asyncio.to_thread(search.rank, query, k=max(4 * k, _LOOKED_AT_MIN))
        ids = json.dumps([int(one.id) for one in ranked])

        def work(connection: sqlite3.Connection) -> list[_Passage]:
            values = (of.person_id, of.scope, ids)
            rows = {row["id"]: row for row in named(connection.execute(_PASSAGES, values))}
            return [
                record(_Passage, row, cosine=one.cosine)
                for one in ranked
                if (row := rows.get(int(one.id))) is not None
            ]

        # Those that this person may see here, in the order of `ranked`.
        seen = await self._database.read(work)
        found = (await asyncio.to_thread(_fitting, seen, query))[:k]
        now_ms = self._database.now_ms()
        stale = {one.document for one in found if one.used_ms < now_ms - _USED_AGAIN_MS}
        if stale:
            await self._database.execute(_USED, (now_ms, json.dumps(sorted(stale))))
        return [Chunk(id=str(one.id), text=one.text, document=one.name) for one in found]

    async def recalled(self, wanted: RecallWanted) -> Sequence[Chunk]:
        """For a prompt: part of `memory.facts.recall.SqliteRecall`. Only of what is indexed
        within a bound: after a start the first message does not wait for the index of all
        documents."""
        of = Whose(person_id=wanted.person_id, scope=wanted.scope)
        query = wanted.text[:QUERY_CHARS_MAX]
        return await self._found(of, query, k=RECALLED_MAX, within_s=self._recall_s)

    async def list(self, of: Whose) -> Sequence[Document]:
        """By name."""
        return await self._database.records(Document, _LIST, (of.person_id, of.scope))

    async def remove(self, of: Whose, name: str) -> Document | None:
        """Removes one that this person saved here."""
        key = (of.person_id, of.scope, _name(name))

        def work(connection: sqlite3.Connection) -> Document | None:
            known = connection.execute(_KNOWN, key).fetchone()
            if known is None:
                return None
            document = records(Document, connection.execute(_ONE, (known[0],)))[0]
            connection.execute(_REMOVE_CHUNKS, (document.id,))
            connection.execute(_REMOVE, (document.id,))
            return document

        return await self._database.write(work)


# --- saving --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """A document that is to be saved, and the passages that it is cut into."""

    document: Document
    digest: str
    passages: tuple[str, ...]


def _name(name: str) -> str:
    """On one line, and not too long: of a long one the end is kept, which tells more."""
    return storable(" ".join(clean(name).split()))[-NAME_CHARS_MAX:].strip()


def _cut(new: Document, text: str, bounds: DocumentBounds) -> _Cut:
    """Cut into passages, and nothing that the table could not hold. Raise DocumentWrong."""
    if not new.name:
        raise DocumentWrong("A document needs a name.")
    if len(text) > bounds.chars_max:
        raise DocumentWrong(
            f"{new.name!r} has {len(text):,} characters (at most {bounds.chars_max:,}): save a "
            "part of it."
        )
    text = storable(clean(text)).strip()
    pieces = tuple(table_passages(text) if new.kind in _TABLES else passages(text))
    if not pieces:
        raise DocumentWrong(f"{new.name!r} has no text in it.")
    if len(pieces) > bounds.passages_max:
        raise DocumentWrong(
            f"{new.name!r} has {len(pieces):,} passages (at most {bounds.passages_max:,}): save a "
            "part of it."
        )
    digest = hashlib.sha256(f"{new.kind}\n{text}".encode()).hexdigest()
    return _Cut(document=replace(new, chars=len(text)), digest=digest, passages=pieces)


def _put(connection: sqlite3.Connection, cut: _Cut, bounds: DocumentBounds) -> Document:
    new, of = cut.document, cut.document.whose
    known = connection.execute(_KNOWN, (of.person_id, of.scope, new.name)).fetchone()
    document_id, digest = known or (None, "")
    if digest != cut.digest:
        documents = connection.execute(_DOCUMENTS_OF, (of.person_id,)).fetchone()[0]
        if document_id is None and documents >= bounds.documents_max:
            raise DocumentWrong(
                f"{documents:,} documents are saved, which is as many as can be: remove one first."
            )
        others = connection.execute(_CHUNKS_IN, (of.person_id, of.scope, document_id or -1))
        room = bounds.passages_in_all_max - others.fetchone()[0]
        if len(cut.passages) > room:
            raise DocumentWrong(
                f"{new.name!r} has {len(cut.passages):,} passages, and beside the documents that "
                f"are saved here there is room for {max(room, 0):,}: remove one first, or save a "
                "part of it."
            )
        values = {**to_row(new), **to_row(of), "digest": cut.digest}
        (document_id,) = connection.execute(_PUT, values).fetchone()
        connection.execute(_REMOVE_CHUNKS, (document_id,))
        pieces = [(document_id, n, text) for n, text in enumerate(cut.passages)]
        connection.executemany(_ADD_CHUNK, pieces)
    return records(Document, connection.execute(_ONE, (document_id,)))[0]


# --- indexing ------------------------------------------------------------------------------------

_IDS = f"""
select c.id as id from chunks c join documents d on d.id = c.document_id where {_SEEN}
"""  # noqa: S608 - our own words
_ITEMS = f"""
select cast(c.id as text) as id, c.text, d.name as title,
    (
        select cast(p.id as text) from chunks p
        where p.document_id = c.document_id and p.n = c.n - 1
    ) as after
from chunks c join documents d on d.id = c.document_id
where {_SEEN} and c.id in (select value from json_each(?3)) order by c.document_id, c.n
"""  # noqa: S608 - our own words


def _items(of: Whose, ids: Sequence[int], connection: sqlite3.Connection) -> list[Item]:
    values = (of.person_id, of.scope, json.dumps(ids))
    return records(Item, connection.execute(_ITEMS, values))


_SOURCE = IndexSource(
    name="documents",
    ids=lambda of: Narrowed(_IDS, (of.person_id, of.scope)),
    items=_items,
)


# --- finding -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passage:
    """A passage that was found, as it stands in the table now."""

    id: int
    text: str
    name: str
    document: int
    used_ms: int
    cosine: float


def _fitting(found: Sequence[_Passage], query: str) -> list[_Passage]:
    """Without those that are merely the nearest there is: some passage always is (case ME-09)."""
    terms = [term for term in query_terms(query) if term not in STOP_WORDS]
    shared = [0] * len(found)
    words = Words([("", f"{one.name} {one.text}") for one in found])
    for term in terms:
        for place in words.matches(term, limit=len(found)):
            shared[place] += 1
    enough = min(SHARED_WORDS_MIN, max(1, (len(terms) + 1) // 2))
    return [
        one
        for one, count in zip(found, shared, strict=True)
        if one.cosine >= COSINE_MIN or (terms and count >= enough)
    ]
