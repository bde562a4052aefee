"""What was said in a conversation since it was last looked at: lines with who said them, and where.

Called by `agent.learning.extraction`. Tool output is left out of the lines. What somebody only
passed on, forwarded, quoted or pasted as a block, is not their own words and is never shown.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from memory.database.connection import Database
from memory.database.rows import named, record
from memory.records.facts import place_of
from memory.records.messages import Address, ConversationId, PersonId, Role, RunId
from memory.records.rows import Person
from memory.records.text import clean, one_line, visible
from memory.records.transcript import NOBODY, Answered, Entry, Said, ToolResult, entry_from_json

ASSISTANT = "assistant"
"""What the assistant is called; a person of this name is told apart from it."""
UNNAMED = "User"
LABEL_CHARS_MAX = 40
OUTSIDE_CHARS_MAX = 200_000
"""Of texts from outside that are kept to know again what was pasted; the newest count."""

_PLACE = """
select conversations.lane, is_private, coalesce(done_upto, 0)
from conversations left join idle_timers on conversation_id = id where id = ?
"""
_RUNS = """
select run_id, max(id) from messages where conversation_id = ? and id > ? group by run_id
"""
_NEWEST = f"{_RUNS} order by max(id) desc limit ?"
_OLDEST = f"{_RUNS} order by max(id) limit ?"
_WAITING = """
select count(distinct run_id) from messages where conversation_id = ? and id > ?
"""
_ROWS = """
select messages.id as message_id, messages.created_ms as at_ms, body, messages.run_id,
    coalesce(turns.person_id, '') as person_id, turns.inbox_id is not null as came_in,
    json_extract(turns.payload, '$.message.sender_name') as sender
from messages left join turns on turns.run_id = messages.run_id
where conversation_id = ? and messages.id > ? and messages.run_id = ?
    and kind in ('said', 'answered', 'result')
order by messages.id
"""
_LOOKED_AT = "update idle_timers set done_upto = max(done_upto, ?) where conversation_id = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenLine:
    """One message of a person or of the assistant. `speaker` is the label that is shown: unique
    among those who speak here. `person` is None for the assistant. `text` is what they wrote
    themselves; it may be empty."""

    message_id: int
    run_id: RunId
    at_ms: int
    speaker: str
    text: str
    person: Person | None = None


class Outside(NamedTuple):
    """A text from outside, and the message that it stands in."""

    message_id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenStretch:
    """What was said since the last look, of some exchanges, oldest first.

    `scope` is that of `Whose`; `upto` the last message, also where nothing of it is a line.
    `is_full` tells that it has as many exchanges as were asked for: what is said next is no part of
    it any more. `outside` are texts that somebody passed on, or a tool brought in.
    """

    conversation: ConversationId
    lane: str = ""
    scope: str = ""
    is_private: bool = False
    has_news: bool = False
    is_full: bool = False
    upto: int = 0
    lines: tuple[SpokenLine, ...] = ()
    outside: tuple[Outside, ...] = ()

    def own(self) -> tuple[SpokenLine, ...]:
        """The lines of people."""
        return tuple(line for line in self.lines if line.person is not None)

    def speakers(self) -> dict[str, Person]:
        """Who speaks, by label, in the order in which they spoke first."""
        return {line.speaker: line.person for line in self.lines if line.person is not None}


KnowsPerson = Callable[[PersonId], Person | None]
"""Finds who somebody is now; None for who was removed."""


class SqliteLines:
    """Reads lines, and keeps up to where they were looked at. Raises StorageError."""

    def __init__(self, database: Database, person: KnowsPerson) -> None:
        self._database = database
        self._person = person

    async def waiting(self, conversation: ConversationId) -> int:
        """Return how many exchanges were not looked at; none where memory is off."""

        def work(connection: sqlite3.Connection) -> int:
            place = connection.execute(_PLACE, (conversation,)).fetchone()
            if place is None or place[1]:
                return 0
            counted = connection.execute(_WAITING, (conversation, place[2])).fetchone()
            return int(counted[0])

        return await self._database.read(work)

    async def since_last_look(
        self, conversation: ConversationId, *, exchanges_max: int
    ) -> SpokenStretch:
        """Return what was said since, of the newest exchanges. Nothing of guests: what they say is
        not remembered, nor what was answered to them."""
        return await self._stretch(conversation, _NEWEST, exchanges_max)

    async def next_to_look_at(
        self, conversation: ConversationId, *, exchanges_max: int
    ) -> SpokenStretch:
        """The same of the oldest exchanges that were not looked at; `upto` is the last of these."""
        return await self._stretch(conversation, _OLDEST, exchanges_max)

    async def _stretch(
        self, conversation: ConversationId, choice: str, exchanges_max: int
    ) -> SpokenStretch:
        def work(connection: sqlite3.Connection) -> tuple[SpokenStretch, list[list[_LineRow]]]:
            place = connection.execute(_PLACE, (conversation,)).fetchone()
            lane, private, since = place or ("", 0, 0)
            stretch = SpokenStretch(conversation=conversation, lane=lane, is_private=bool(private))
            if private or place is None:
                return stretch, []
            found = connection.execute(choice, (conversation, since, exchanges_max)).fetchall()
            runs = sorted(found, key=lambda run: run[1])
            exchanges: list[list[_LineRow]] = [[] for _ in runs]
            for (run_id, _), rows in zip(runs, exchanges, strict=True):
                for row in named(connection.execute(_ROWS, (conversation, since, run_id))):
                    with suppress(ValueError, KeyError, TypeError):  # of a later version
                        entry = entry_from_json(json.loads(row["body"]))
                        rows.append(record(_LineRow, row, entry=entry))
            outside: list[Outside] = []
            room = OUTSIDE_CHARS_MAX
            for one in reversed([one for rows in exchanges for one in _outside(rows)]):
                if room > 0:
                    outside.insert(0, one._replace(text=one.text[:room]))
                room -= len(one.text)
            stretch = replace(
                stretch,
                scope=_scope(lane, exchanges),
                has_news=bool(exchanges),
                is_full=len(exchanges) >= exchanges_max,
                upto=runs[-1][1] if runs else since,
                outside=tuple(outside),
            )
            return stretch, exchanges

        stretch, exchanges = await self._database.read(work)
        # Not in the reader's thread: who somebody is is known to the event loop.
        return replace(stretch, lines=tuple(_LineReader(self._person).lines(exchanges)))

    async def looked_at(self, conversation: ConversationId, *, upto: int) -> None:
        """Up to this message nothing is to be looked at again."""
        await self._database.execute(_LOOKED_AT, (upto, conversation))


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineRow:
    """`came_in`: the turn began with what somebody sent, not with a report, a task or a job.
    `sender` is what the channel called them; in a private chat the message itself does not."""

    message_id: int
    at_ms: int
    entry: Entry
    run_id: RunId
    person_id: PersonId
    came_in: bool
    sender: str = ""


def _scope(lane: str, exchanges: Sequence[Sequence[_LineRow]]) -> str:
    """Only what is said in a group is stored with who said it."""
    said = (row.entry for rows in exchanges for row in rows)
    if not any(
        isinstance(one, Said) and (one.sender or (one.by and not one.by.startswith(NOBODY)))
        for one in said
    ):
        return ""
    try:
        return place_of(Address.parse(lane))
    except ValueError:
        return lane  # no place that is known; never private because of that


class _LineReader:
    """Takes rows for lines, and gives each person a label of their own."""

    def __init__(self, person: KnowsPerson) -> None:
        self._person = person
        self._labels: dict[PersonId, str] = {}

    def lines(self, exchanges: Sequence[Sequence[_LineRow]]) -> Iterator[SpokenLine]:
        """Yield the lines of all exchanges but those of guests."""
        for rows in exchanges:
            speaking = (self._who(row, row.entry) for row in rows if isinstance(row.entry, Said))
            if not any(person is not None and person.role is Role.GUEST for person in speaking):
                for row in rows:
                    if (line := self._line(row)) is not None:
                        yield line

    def _who(self, row: _LineRow, said: Said) -> Person | None:
        """Whose words these are; None where nobody spoke, or it cannot be said who."""
        if not row.came_in or said.by.startswith(NOBODY):
            return None
        if said.sender and not said.by:
            return None  # in a group, by a version that did not keep who it was
        return self._person(PersonId(said.by) if said.by else row.person_id)

    def _line(self, row: _LineRow) -> SpokenLine | None:
        match row.entry:
            case Said() as said if (person := self._who(row, said)) is not None:
                name = said.sender or person.name or row.sender
                label, text = self._label(person, name), own_words(said)
            case Answered() as answered:
                person, label, text = None, ASSISTANT, visible(answered.text)
                if not text:
                    return None
            case _:
                return None
        return SpokenLine(
            message_id=row.message_id,
            run_id=row.run_id,
            at_ms=row.at_ms,
            speaker=label,
            text=text,
            person=person,
        )

    def _label(self, person: Person, name: str) -> str:
        """Display names are whatever their bearers typed, and may be equal."""
        known = self._labels.get(person.id)
        if known is not None:
            return known
        bare = one_line(clean(name).translate(_NO_LABEL), chars_max=LABEL_CHARS_MAX) or UNNAMED
        taken = {ASSISTANT, *(label.casefold() for label in self._labels.values())}
        label, n = bare, 1
        while label.casefold() in taken:
            n += 1
            label = f"{bare} ({n})"
        self._labels[person.id] = label
        return label


_NO_LABEL = str.maketrans(":;[]{}|\n", "        ")


def _outside(rows: Sequence[_LineRow]) -> Iterator[Outside]:
    for row in rows:
        match row.entry:
            case ToolResult(untrusted=True, content=text) if text:
                yield Outside(row.message_id, text)
            case Said(forwarded=True, text=text) if text:
                yield Outside(row.message_id, text)
            case _:
                pass


# --- whose words -------------------------------------------------------------------------------

_FENCED = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTED = re.compile(r"^[ \t]*[>＞].*$", re.MULTILINE)


def own_words(said: Said) -> str:
    """Return what of a message its sender wrote themselves: without blocks of code and quoted
    lines; nothing of what was forwarded."""
    if said.forwarded:
        return ""
    text = _QUOTED.sub("", _FENCED.sub(" ", clean(said.text)))
    return text.strip()
