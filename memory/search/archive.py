"""Archive: all that was ever said, found again by its words.

The index is filled from the messages, which stay the truth: it may lag behind, be cleared, and be
built anew. What was said while memory was off is never in it.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, pairwise

from memory.database.connection import Database
from memory.database.rows import named, record
from memory.records.facts import Exchange, place_of
from memory.records.messages import AGENT_CHANNEL, Address, ConversationId, PersonId
from memory.records.text import visible
from memory.records.transcript import Answered, Entry, Said, entry_from_json
from memory.search.fts import ROWS_MAX, expression, query_terms, rarest, spaced
from memory.search.hybrid import Item, Search
from memory.search.vectors import Embedding
from memory.stores.compactions import own_words

CANDIDATES, CANDIDATES_MIN = 8, 40
"""So many of the best by words, for each that is given back, are compared by meaning too. Each
takes 50 microseconds, in every turn of a long conversation."""
ENTRIES_AT_ONCE = 1_000
TEXT_CHARS_MAX = 20_000
"""Of an exchange that is indexed; what is pasted beyond is not looked for by its words."""
RANKED_CHARS_MAX = 800
NEXT_WITHIN = 6
"""Exchanges of one conversation this near to each other, by message ids, follow one another."""

_INDEXED_UPTO = "select coalesce(max(last_id), 0) from exchanges"
_NEW = """
select m.id, m.run_id, m.body, m.created_ms, c.id, c.lane, t.person_id
from messages m
join conversations c on c.id = m.conversation_id
join turns t on t.run_id = m.run_id
where m.id > ? and m.kind in ('said', 'answered') and not c.is_private and c.lane not like ?
order by m.id limit ?
"""
_ADD = """
insert into exchanges (run_id, conversation_id, person_id, place, first_id, last_id, at_ms)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (run_id) do nothing
returning id
"""
_ADD_WORDS = "insert into exchange_words (rowid, body) values (?, ?)"
_OF = """
select e.id, e.at_ms, m.body from exchanges e
join messages m on m.run_id = e.run_id and m.kind in ('said', 'answered')
"""
_OF_CONVERSATION = f"{_OF} where e.conversation_id = ? order by e.id, m.id"
_OF_RUN = f"{_OF} where e.run_id = ? order by e.id, m.id"
_DROP_WORDS = """
insert into exchange_words (exchange_words, rowid, body) values ('delete', ?, ?)
"""
_DROP_EXCHANGES = "delete from exchanges where conversation_id = ?"
_DROP_EXCHANGE = "delete from exchanges where run_id = ?"
_MERGE_WORDS = "insert into exchange_words (exchange_words) values ('optimize')"
# The same as `optimize`, some pages at a time.
_MERGE_SOME = "insert into exchange_words (exchange_words, rank) values ('merge', -16)"
_SIZE = "select count(*) from exchanges"
_COUNT = """
select count(*) from (select 1 from exchange_words where exchange_words match ? limit ?)
"""
_FOUND = """
select e.run_id, e.conversation_id, e.first_id, e.last_id, e.at_ms
from exchange_words join exchanges e on e.id = exchange_words.rowid
where exchange_words match ? and e.person_id = ? and e.place = ?
    and (e.conversation_id <> ? or e.last_id < ?)
order by exchange_words.rank, e.id desc limit ?
"""
_TEXTS = """
select run_id, body from messages
where run_id in (select value from json_each(?)) and kind in ('said', 'answered') order by id
"""
# Within a text the quotes of such words would be escaped: only a field of an entry matches.
_READ_OUTSIDE = """
select id from messages
where conversation_id = ? and id <= ? and kind in ('said', 'result', 'note')
    and (body like '%"untrusted":true%' or body like '%"forwarded":true%')
order by id limit 1
"""
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewExchanges:
    """An exchange that is to be indexed."""

    row: tuple[str, str, str, str, int, int, int]
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundExchange:
    """An exchange that shares words with the query, with its texts."""

    run_id: str
    conversation_id: str
    first_id: int
    last_id: int
    at_ms: int
    said: str
    answered: str


class SqliteArchive:
    """Finds what was said, whether it is still sent or not. Raises StorageError."""

    def __init__(self, database: Database, *, embedding: Embedding | None = None) -> None:
        """Without an `embedding` words alone decide."""
        self._database = database
        self._embedding = embedding
        self._indexing = asyncio.Lock()

    async def search(
        self,
        person_id: PersonId,
        place: str,
        query: str,
        *,
        k: int,
        before: int | None = None,
        conversation: ConversationId | None = None,
    ) -> Sequence[Exchange]:
        """Exchanges of this person in this chat that share a word with the query, best first; of
        equals the newest."""
        terms = query_terms(query)
        if k <= 0 or not terms:
            return []
        # Where nothing is sent (0), nothing of the conversation is left out.
        without = (conversation or "", before) if before else ("", 0)

        embedding = self._embedding
        if embedding is not None and not embedding.is_settled:
            await asyncio.to_thread(embedding.table)  # others read meanwhile

        def look(connection: sqlite3.Connection) -> list[Exchange]:
            kept: Sequence[str] = terms
            if connection.execute(_SIZE).fetchone()[0] > ROWS_MAX:
                ask = partial(connection.execute, _COUNT)
                counted = ((one, ask((expression([one]), ROWS_MAX)).fetchone()[0]) for one in terms)
                kept = rarest(counted) or terms[:1]
            limit = max(CANDIDATES * k, CANDIDATES_MIN)
            values = (expression(kept), person_id, place, *without, limit)
            found = _candidates(connection, values)
            if len(found) > 1 and embedding is not None:
                found = _ranked(found, query, embedding, k)
            return _exchanges(connection, found[:k])

        def look_unless_behind(connection: sqlite3.Connection) -> list[Exchange] | None:
            new, _, is_all = _unindexed(connection, 0)
            return None if new or not is_all else look(connection)

        found = await self._database.read(look_unless_behind)
        if found is None:
            await self.index_new()
            found = await self._database.read(look)
        return found

    async def index_new(self) -> int:
        """Takes in what was said since; returns how many exchanges. In bites, so that nobody waits
        long, and never what belongs to a conversation with memory off."""

        def take_in(connection: sqlite3.Connection) -> tuple[int, int, bool]:
            new, last, is_all = _unindexed(connection, upto)
            added = 0
            for one in new:
                row = connection.execute(_ADD, one.row).fetchone()
                if row is not None:
                    connection.execute(_ADD_WORDS, (row[0], one.body))
                    added += 1
            return added, last, is_all

        total = upto = 0
        async with self._indexing:
            while True:
                added, upto, is_all = await self._database.write(take_in)
                total += added
                if is_all:
                    return total

    async def rebuild(self) -> int:
        """Forgets the index, down to the last word in it, and makes it anew; returns how many
        exchanges there are."""
        await self._database.write(clear_index)
        return await self.index_new()


def clear_index(connection: sqlite3.Connection) -> None:
    """Nothing is in the index any more, within the caller's transaction; it fills by itself."""
    connection.execute("insert into exchange_words (exchange_words) values ('delete-all')")
    connection.execute("delete from exchanges")


def drop_from_index(connection: sqlite3.Connection, conversation: ConversationId) -> None:
    """Takes a conversation out of the index, within the caller's transaction, while its messages
    are still there: an index without texts has to be told what it held."""
    if _drop_words(connection, connection.execute(_OF_CONVERSATION, (conversation,))):
        connection.execute(_DROP_EXCHANGES, (conversation,))
        # Only a merge of all its parts takes the deleted words out of the file.
        connection.execute(_MERGE_WORDS)


def drop_run_from_index(connection: sqlite3.Connection, run_id: str) -> None:
    """The same for one turn; its words stay in the file until `merge_some` has been through."""
    if _drop_words(connection, connection.execute(_OF_RUN, (run_id,))):
        connection.execute(_DROP_EXCHANGE, (run_id,))


def merge_some(connection: sqlite3.Connection) -> int:
    """Take a small step toward an index without deleted words; return 0 once it is done."""
    began = connection.total_changes
    connection.execute(_MERGE_SOME)
    changed = connection.total_changes - began
    return changed if changed > 1 else 0  # the command itself counts as one change


def _drop_words(connection: sqlite3.Connection, found: Iterable[tuple[int, int, str]]) -> bool:
    """Take exchanges out of the index of words; return whether there were any."""
    rows = list(found)
    for (exchange, at_ms), group in groupby(rows, key=lambda row: (row[0], row[1])):
        said, answered = _texts(entry_from_json(json.loads(body)) for _, _, body in group)
        connection.execute(_DROP_WORDS, (exchange, _body(said, answered, at_ms)))
    return bool(rows)


def _exchanges(connection: sqlite3.Connection, found: Sequence[_FoundExchange]) -> list[Exchange]:
    """Return them with whether text from outside stood in the conversation when that was answered;
    one look at each conversation, which may be long."""
    last: dict[str, int] = {}
    for one in found:
        last[one.conversation_id] = max(one.last_id, last.get(one.conversation_id, 0))
    first: dict[str, int] = {}
    for upto in last.items():
        for (message_id,) in connection.execute(_READ_OUTSIDE, upto):
            first[upto[0]] = message_id
    return [
        Exchange(
            id=one.run_id,
            when=datetime.fromtimestamp(one.at_ms / 1000, UTC),
            said=one.said,
            answered=one.answered,
            tainted=first.get(one.conversation_id, one.last_id + 1) <= one.last_id,
        )
        for one in found
    ]


# --- filling -------------------------------------------------------------------------------------


def _unindexed(connection: sqlite3.Connection, since: int) -> tuple[list[_NewExchanges], int, bool]:
    """Return what comes next behind `since` and behind what is indexed; the id up to which that
    goes, and whether it is all.

    The index itself is the only mark of how far it goes: ids of erased messages come again.
    """
    since = max(since, connection.execute(_INDEXED_UPTO).fetchone()[0])
    rows = connection.execute(_NEW, (since, f"{AGENT_CHANNEL}:%", ENTRIES_AT_ONCE)).fetchall()
    turns = [list(turn) for _, turn in groupby(rows, key=lambda row: row[1])]
    is_all = len(rows) < ENTRIES_AT_ONCE
    if not is_all and len(turns) > 1:
        turns.pop()  # its end may not be there yet
    upto = turns[-1][-1][0] if turns else since
    return [new for turn in turns if (new := _new(turn)) is not None], upto, is_all


def _new(turn: Sequence[tuple[int, str, str, int, str, str, str]]) -> _NewExchanges | None:
    """A turn as an exchange; None where nobody spoke."""
    said, answered = _texts(entry_from_json(json.loads(row[2])) for row in turn)
    if not said and not answered:
        return None
    first_id, run_id, _, at_ms, conversation, lane, person_id = turn[0]
    place = place_of(Address.parse(lane))
    row = (run_id, conversation, person_id, place, first_id, turn[-1][0], at_ms)
    return _NewExchanges(row=row, body=_body(said, answered, at_ms))


def _texts(entries: Iterable[Entry]) -> tuple[str, str]:
    """Return what a person said, and what was answered, of one turn."""
    said, answered = [], []
    for entry in entries:
        if isinstance(entry, Said) and (words := own_words(entry)):
            said.append(words)
        elif isinstance(entry, Answered) and (shown := visible(entry.text)):
            answered.append(shown)
    return "\n".join(said), "\n\n".join(answered)


def _body(said: str, answered: str, at_ms: int) -> str:
    """As it is indexed. What is deleted has to be told in exactly these words: whoever changes
    them has to build the index anew (a migration)."""
    day = datetime.fromtimestamp(at_ms / 1000, UTC)
    date = f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
    return spaced(f"{date}\n{said}\n{answered}"[:TEXT_CHARS_MAX])


# --- finding -------------------------------------------------------------------------------------


def _candidates(connection: sqlite3.Connection, values: tuple[object, ...]) -> list[_FoundExchange]:
    rows = list(named(connection.execute(_FOUND, values)))
    bodies: dict[str, list[Entry]] = {}
    for run_id, body in connection.execute(_TEXTS, (json.dumps([row["run_id"] for row in rows]),)):
        bodies.setdefault(run_id, []).append(entry_from_json(json.loads(body)))
    found = []
    for row in rows:
        said, answered = _texts(bodies.get(row["run_id"], ()))
        found.append(record(_FoundExchange, row, said=said, answered=answered))
    return found


def _ranked(
    found: list[_FoundExchange], query: str, embedding: Embedding, k: int
) -> list[_FoundExchange]:
    """By words and meaning. Ids sort by recency, for ties are broken by them."""
    newest_first = sorted(found, key=lambda one: -one.last_id)
    ids = {one.run_id: f"{n:05}" for n, one in enumerate(newest_first)}
    follows: dict[str, str] = {}
    for later, former in pairwise(newest_first):
        is_next = later.first_id - former.last_id <= NEXT_WITHIN
        if is_next and later.conversation_id == former.conversation_id:
            follows[later.run_id] = ids[former.run_id]
    search = Search(
        [
            Item(
                id=ids[one.run_id],
                text=f"{one.said}\n{one.answered}"[:RANKED_CHARS_MAX],
                after=follows.get(one.run_id, ""),
                day=datetime.fromtimestamp(one.at_ms / 1000, UTC).date(),
            )
            for one in newest_first
        ],
        embedding=embedding,
    )
    return [newest_first[int(one.id)] for one in search.rank(query, k=k)]
