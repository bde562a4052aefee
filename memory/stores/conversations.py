"""Conversations and what was said in them."""

from __future__ import annotations

import json
import secrets
import sqlite3
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from memory.database.connection import Database
from memory.database.rows import first, storable
from memory.records.facts import Compaction
from memory.records.messages import ConversationId, RunId
from memory.records.ports import History, StoredEntry, WaitingNote
from memory.records.transcript import entry_from_json

_CURRENT = "select id from conversations where lane = ? and closed_ms is null"
OPEN = "insert into conversations (id, lane, created_ms, is_private) values (?, ?, ?, ?)"
_CLOSE = "update conversations set closed_ms = ? where lane = ? and closed_ms is null"
_SENT = "select sent_from, shortened_to, is_private from conversations where id = ?"
LAST_COMPACTION = """
select id, kind, from_id, sent_from, summary, reason, messages, tokens_before, tokens_after,
    made_ms, tainted
from compactions where conversation_id = ? and undone_ms is null order by id desc limit 1
"""
_ENTRIES = """
select id, run_id, body, created_ms from messages where conversation_id = ? and id >= ? order by id
"""
_LATER_TURNS = """
select count(distinct run_id), max(id) from messages where conversation_id = ? and id > ?
"""
_NOTES = "select id, text from notes where conversation_id = ? and run_id is null order by id"
_ADD_NOTE = "insert into notes (conversation_id, text, created_ms) values (?, ?, ?)"
_KEEP_TEXT = "insert into texts (digest, body) values (?, ?) on conflict (digest) do nothing"
_TEXT = "select body from texts where digest = ?"

_LANES_MAX = 10_000
_DIGESTS_MAX = 10_000
_COUNTS_MAX = 10_000


def random_id() -> str:
    """A conversation id that nobody can guess."""
    return f"c_{secrets.token_hex(8)}"


_OUTSIDE = "\x11\x13"
"""Stands in front of a note that is outside text, in the same column, so that neither is read or
moved without the other. It is part of no word, so that forgetting words leaves it; a text that
began with it would only be trusted less."""


def stored_note(text: str, *, untrusted: bool) -> str:
    """A note that waits for its turn, as the value of its column."""
    return f"{_OUTSIDE if untrusted else ''}{storable(text)}"


def note_of(note_id: int, stored: str) -> WaitingNote:
    """Return what `stored_note` made, or a version before it."""
    text = stored.removeprefix(_OUTSIDE)
    return WaitingNote(id=note_id, text=text, untrusted=text != stored)


EntryRow = tuple[int, str, str, int]
"""Id, run, body and time of a message."""


def read_entries(rows: Iterable[EntryRow]) -> tuple[StoredEntry, ...]:
    """Return the entries that these rows hold."""
    return tuple(
        StoredEntry(
            id=row_id, run_id=RunId(run_id), entry=entry_from_json(json.loads(body)), at_ms=at_ms
        )
        for row_id, run_id, body, at_ms in rows
    )


def opened(connection: sqlite3.Connection, lane: str, *, made: str, now_ms: int) -> str:
    """Return the open conversation of an address, within the caller's transaction; it is `made`
    when there is none."""
    row = connection.execute(_CURRENT, (lane,)).fetchone()
    if row is None:
        connection.execute(OPEN, (made, lane, now_ms, 0))
    return made if row is None else str(row[0])


class SqliteConversations:
    """Conversations and their entries, the only writer of them in the process. Raises
    StorageError."""

    def __init__(self, database: Database, *, new_id: Callable[[], str] = random_id) -> None:
        self._database = database
        self._new_id = new_id
        self._open: dict[str, ConversationId] = {}
        self._private: dict[ConversationId, bool] = {}
        self._restarts = 0
        self._kept = _KeptEntries()
        self._counts: dict[ConversationId, _Count] = {}
        self._digests: set[str] = set()

    async def current(self, lane: str) -> ConversationId:
        """The open conversation of an address; made when there is none."""
        known = self._open.get(lane)
        if known is not None:
            return known
        restarts = self._restarts
        made, now_ms = self._new_id(), self._database.now_ms()

        found = await self._database.write(lambda c: opened(c, lane, made=made, now_ms=now_ms))
        return self._remember(lane, found, restarts=restarts)

    async def start_new(self, lane: str, *, is_private: bool = False) -> ConversationId:
        """Close the open one (it is kept) and open another. In a private one memory is off, and it
        is dropped at its end."""
        self._open.pop(lane, None)
        self._restarts += 1
        restarts = self._restarts
        made, now_ms = self._new_id(), self._database.now_ms()

        def work(connection: sqlite3.Connection) -> str:
            connection.execute(_CLOSE, (now_ms, lane))
            connection.execute(OPEN, (made, lane, now_ms, is_private))
            return made

        return self._remember(lane, await self._database.write(work), restarts=restarts)

    async def is_private(self, conversation: ConversationId) -> bool:
        """Return whether memory is off in it; it stays as it was begun. Raises StorageError."""
        if conversation not in self._private:
            rows = await self._database.rows(_SENT, (conversation,))
            if not rows:
                return False
            if len(self._private) >= _LANES_MAX:
                self._private.clear()
            self._private[conversation] = bool(rows[0][2])
        return self._private[conversation]

    async def history(self, conversation: ConversationId, *, upto: int | None = None) -> History:
        """Entries that are sent, oldest first, up to id `upto` where one is given.

        Entries are never changed once stored: only those after the last one known are read, and
        only their turns are counted. `upto` does not touch the number of turns.
        """
        kept, counts = self._kept, self._counts
        known = kept.get(conversation)
        former = counts.get(conversation, _Count())

        def work(connection: sqlite3.Connection) -> tuple[History, _Entries, _Count]:
            row = connection.execute(_SENT, (conversation,)).fetchone()
            sent_from, shortened_to, is_private = (0, 0, 0) if row is None else row
            # Where the start was moved (seldom, and mostly to near the end) all is read again.
            had = (
                known
                if known is not None and known.first == sent_from
                else _Entries(first=sent_from)
            )
            next_id = had.entries[-1].id + 1 if had.entries else sent_from
            rows = connection.execute(_ENTRIES, (conversation, next_id)).fetchall()
            notes = connection.execute(_NOTES, (conversation,)).fetchall()
            entries = _extended(had, rows) if rows else had
            # Right because a turn's entries are stored in one transaction: none lies on both sides.
            turns, last = connection.execute(_LATER_TURNS, (conversation, former.upto)).fetchone()
            count = former if last is None else _Count(turns=former.turns + turns, upto=last)
            found = History(
                entries=entries.entries,
                notes=tuple(note_of(note_id, text) for note_id, text in notes),
                turns=count.turns,
                shortened_to=shortened_to,
                compaction=first(Compaction, connection.execute(LAST_COMPACTION, (conversation,))),
                is_private=bool(is_private),
            )
            return found, entries, count

        found, entries, count = await self._database.read(work)
        # Into those that it began with: after a `reread` they are nobody's any more.
        kept.put(conversation, entries)
        # Apart from the entries: a long conversation of which little is sent is quick to read
        # again, and slow to count again.
        if len(counts) >= _COUNTS_MAX and conversation not in counts:
            counts.clear()
        counts[conversation] = count
        return found if upto is None else replace(found, entries=_up_to(found.entries, upto))

    async def entries(self, conversation: ConversationId, *, upto: int) -> Sequence[StoredEntry]:
        """Those of `history` up to id `upto`; where all of them were read before, nothing is read:
        entries are never changed, and `reread` drops those that are erased."""
        known = self._kept.get(conversation)
        if known is None or not known.entries or known.entries[-1].id < upto:
            return (await self.history(conversation, upto=upto)).entries
        return _up_to(known.entries, upto)

    async def note(self, conversation: ConversationId, text: str, *, untrusted: bool) -> None:
        """Keep a note that the next turn tells the model.

        `untrusted`: words in it may be those of somebody else than whoever writes there next, or
        of a model that had read such. The mark stays with the note for good.
        """
        stored = stored_note(text, untrusted=untrusted)
        await self._database.execute(_ADD_NOTE, (conversation, stored, self._database.now_ms()))

    async def keep_text(self, digest: str, text: str) -> None:
        """Stores a long text under its digest, once."""
        if digest in self._digests:
            return
        await self._database.execute(_KEEP_TEXT, (digest, storable(text)))
        if len(self._digests) >= _DIGESTS_MAX:
            self._digests.clear()
        self._digests.add(digest)

    async def text(self, digest: str) -> str | None:
        """The text of a digest."""
        found: str | None = await self._database.value(_TEXT, (digest,))
        return found

    def reread(self) -> None:
        """Nothing that was read before counts any more: words of it were erased."""
        self._kept = _KeptEntries()
        self._counts = {}
        self._digests.clear()
        self._open.clear()
        self._restarts += 1

    def _remember(self, lane: str, conversation: str, *, restarts: int) -> ConversationId:
        # Not when another conversation was begun meanwhile: the answer may be an old one, and
        # whoever began it may have been cancelled before it could say so here.
        if restarts == self._restarts:
            if len(self._open) >= _LANES_MAX:
                self._open.clear()
            self._open[lane] = ConversationId(conversation)
        return ConversationId(conversation)


# --- entries already read --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """All entries of a conversation from `first` on, as far as they have been read."""

    first: int
    entries: tuple[StoredEntry, ...] = ()
    weight: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """How many turns a conversation has had up to and with message id `upto`."""

    turns: int = 0
    upto: int = 0


def _up_to(entries: tuple[StoredEntry, ...], last_id: int) -> tuple[StoredEntry, ...]:
    return entries[: bisect_right(entries, last_id, key=lambda one: one.id)]


def _extended(had: _Entries, rows: list[EntryRow]) -> _Entries:
    weight = had.weight + sum(len(row[2]) + _ENTRY_WEIGHT for row in rows)
    return _Entries(first=had.first, entries=had.entries + read_entries(rows), weight=weight)


_CONVERSATIONS_MAX = 256
_WEIGHT_MAX = 12_000_000
_ENTRY_WEIGHT = 1_200
"""What an entry costs beside its text, in bytes, what is found out about it and kept with it
included: at most 10,000 entries are kept."""


@dataclass(slots=True)
class _KeptEntries:
    """The conversations used last, so that turn 1,000 does not read 1,000 turns again."""

    _by_id: OrderedDict[ConversationId, _Entries] = field(default_factory=OrderedDict)
    _weight: int = 0

    def get(self, conversation: ConversationId) -> _Entries | None:
        return self._by_id.get(conversation)

    def put(self, conversation: ConversationId, entries: _Entries) -> None:
        former = self._by_id.pop(conversation, None)
        self._weight += entries.weight - (former.weight if former else 0)
        self._by_id[conversation] = entries
        while len(self._by_id) > _CONVERSATIONS_MAX or self._weight > _WEIGHT_MAX:
            _, dropped = self._by_id.popitem(last=False)
            self._weight -= dropped.weight
