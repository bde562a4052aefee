"""Every place in the database that may hold a person's words: found, and blanked.

What is looked at is the person's own: their facts, profile and documents, the conversations that
are theirs alone, and in shared ones what they said, what was answered to them, and what came of it
in the turns of others, unless somebody else said the same there. Called by `memory.erasure.erase`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from memory.erasure.verify import Wording, sentences
from memory.records.erasure import PlaceKind
from memory.records.messages import PersonId

TOLD_MAX, TOLD_CHARS_MIN = 400, 12
"""Sentences of somebody, the newest, that are looked for in what others were told; shorter ones say
too little."""

Key = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSearch:
    """Whose words are looked for, where, and which. The ids of `facts` count whatever they say.

    `lanes` are addresses that nobody else writes at, `own` the conversations there; `touched` those
    shared ones where the person said it, and nobody else did. Of everything, `shared` are all in
    which the person spoke, and `told` is what they said there, and nobody else did.
    """

    person_id: PersonId
    wording: Wording
    facts: tuple[int, ...] = ()
    lanes: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def among_others(self) -> PlaceSearch:
        """For what was told of it in shared conversations, by its words: rows of nobody's own."""
        wording = Wording(self.told)
        return PlaceSearch(person_id=PersonId(""), wording=wording, touched=self.shared)

    @property
    def values(self) -> dict[str, str]:
        """For the statements below; lists are JSON."""
        return {
            "person": self.person_id,
            "facts": json.dumps(self.facts),
            "lanes": json.dumps(self.lanes),
            "own": json.dumps(self.own),
            "touched": json.dumps(self.touched),
            "shared": json.dumps(self.shared),
        }


class ErasurePlace(Protocol):
    """A family of rows. `find` may run beside the bot; `erase` is part of a transaction."""

    @property
    def kind(self) -> PlaceKind: ...

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> Sequence[Key]:
        """Which rows hold it."""

    def erase(
        self, connection: sqlite3.Connection, search: PlaceSearch, keys: Sequence[Key]
    ) -> None:
        """Takes it out of these rows."""


# --- where to look ---------------------------------------------------------------------------

# In a channel of Slack, what was said to one person alone has an address of its own
# (`bot.channels.base`).
_OWN_LANES = """
select lane from turns group by lane having min(person_id) = :person and max(person_id) = :person
union select address from addresses where person_id = :person
union select lane from outbox where lane glob 'slack:*.*:~*' and exists (
    select 1 from addresses
    where person_id = :person and address =
        substr(lane, 1, instr(lane, '.') - 1) || ':' || substr(lane, instr(lane, ':~') + 2)
)
union select value from json_each(:lanes)
"""
_OWN = "select id from conversations where lane in (select value from json_each(:lanes))"
# The line of a fact that was corrected is still there, closed: it goes with the newer one.
_FACTS = """
with recursive chain (id) as (
    select id from facts
    where person_id = :person and id in (select value from json_each(:facts))
    union
    select facts.id from facts join chain on facts.superseded_by = chain.id
    where facts.person_id = :person
)
select id from chain
"""
_SHARED_SAYINGS = """
select conversation_id, body, turns.person_id
from messages join turns on turns.run_id = messages.run_id
where kind = 'said' and conversation_id in (
    select conversation_id from messages join turns on turns.run_id = messages.run_id
    where turns.person_id = :person
) and conversation_id not in (select value from json_each(:own))
"""
_OPEN_TURNS = """
select count(*) from turns where ended_ms is null and (
    person_id = :person
    or lane in (select value from json_each(:lanes))
    or lane in (
        select lane from conversations where id in (select value from json_each(:touched))
    )
)
"""


def located(connection: sqlite3.Connection, search: PlaceSearch) -> PlaceSearch:
    """The search with its addresses and conversations filled in, and the facts that belong."""
    found = replace(search, lanes=_column(connection, _OWN_LANES, search))
    found = replace(found, own=_column(connection, _OWN, found))
    found = replace(found, facts=tuple(map(int, _column(connection, _FACTS, found))))
    if search.wording.everything:
        return _with_shared(connection, found)
    return replace(found, touched=_touched(connection, found))


def is_busy(connection: sqlite3.Connection, search: PlaceSearch) -> bool:
    """Whether a turn that may have read it is not over."""
    values = {**search.values, "touched": json.dumps((*search.touched, *search.shared))}
    return bool(connection.execute(_OPEN_TURNS, values).fetchone()[0])


def _column(connection: sqlite3.Connection, sql: str, search: PlaceSearch) -> tuple[Any, ...]:
    return tuple(row[0] for row in connection.execute(sql, search.values))


def _touched(connection: sqlite3.Connection, search: PlaceSearch) -> tuple[str, ...]:
    mine: set[str] = set()
    theirs: set[str] = set()
    for conversation, body, person_id in connection.execute(_SHARED_SAYINGS, search.values):
        if search.wording.holds_json(body):
            by = json.loads(body).get("by") or person_id
            (mine if by == search.person_id else theirs).add(conversation)
    return tuple(sorted(mine - theirs))


def _with_shared(connection: sqlite3.Connection, search: PlaceSearch) -> PlaceSearch:
    shared: dict[str, None] = {}
    mine: dict[str, None] = {}
    theirs: list[str] = []
    for conversation, body, person_id in connection.execute(_SHARED_SAYINGS, search.values):
        shared[conversation] = None
        entry = json.loads(body)
        if (entry.get("by") or person_id) == search.person_id:
            parts = (part.strip(" .!?") for _, part in sentences(entry.get("text", "")))
            mine.update(dict.fromkeys(one for one in parts if len(one) >= TOLD_CHARS_MIN))
        else:
            theirs.append(entry.get("text", ""))
    told = list(mine)[-TOLD_MAX:]
    # Mostly nobody else said any of it: then one look at each text is enough.
    said = Wording(tuple(told))
    among = [text for text in theirs if said.says(text)]
    told = [one for one in told if not any(Wording((one,)).says(text) for text in among)]
    return replace(search, shared=tuple(shared), told=tuple(told))


# --- places of their own kind ----------------------------------------------------------------

_DROP_STEPS = "delete from steps where run_id = ?"
_MARK_ERASED = """
update turns set payload = '{}', erased_ms = coalesce(erased_ms, ?)
where run_id = ? and ended_ms is not null
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTraces:
    """What a turn began with and what its steps gave: such a turn cannot be replayed any more."""

    now_ms: int
    kind: PlaceKind = PlaceKind.TRACE

    _TURNS = """
        select run_id, payload from turns
        where (person_id = :person or run_id in (
            select run_id from messages
            where conversation_id in (select value from json_each(:touched))
        )) and ended_ms is not null
    """
    _STEPS = "select output from steps where run_id = ? and output is not null"

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> Sequence[Key]:
        """Turns that hold it."""
        turns = connection.execute(self._TURNS, search.values).fetchall()
        return [
            run_id
            for run_id, payload in turns
            if self._holds(connection, search.wording, run_id, payload)
        ]

    def erase(
        self, connection: sqlite3.Connection, search: PlaceSearch, keys: Sequence[Key]
    ) -> None:
        """Drops all steps of these turns, and what they began with."""
        connection.executemany(_DROP_STEPS, [(key,) for key in keys])
        connection.executemany(_MARK_ERASED, [(self.now_ms, key) for key in keys])

    def _holds(
        self, connection: sqlite3.Connection, wording: Wording, run_id: str, payload: str
    ) -> bool:
        if wording.everything:
            steps = connection.execute(self._STEPS, (run_id,)).fetchone()
            return payload != "{}" or steps is not None
        if payload != "{}" and wording.holds_json(payload):
            return True
        outputs = connection.execute(self._STEPS, (run_id,))
        return any(wording.holds_json(output) for (output,) in outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPrompts:
    """Kept texts of prompts, which hold notes, unless a turn of somebody else sent them too."""

    now_ms: int
    kind: PlaceKind = PlaceKind.PROMPT

    _TEXTS = "select digest, body from texts"
    # A turn names the text in the output of its first step.
    _SENDERS = """
        select json_extract(output, '$.system'), turns.run_id, turns.person_id
        from steps join turns on turns.run_id = steps.run_id
        where steps.name = 'begin' and json_valid(output)
    """
    _DROP = "delete from texts where digest = ?"

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> Sequence[Key]:
        """Digests of texts that hold it; of everything, those that the person alone was sent."""
        wording, senders = search.wording, self._senders(connection)
        found = []
        for digest, body in connection.execute(self._TEXTS).fetchall():
            says = wording.says(body)
            people = {person_id for _, person_id in senders.get(digest, ())}
            # One that no turn names any more is nobody's: that it says the words is reason enough.
            is_theirs = people == {search.person_id} or (not people and says)
            if is_theirs and (says or wording.everything):
                found.append(digest)
        return found

    def erase(
        self, connection: sqlite3.Connection, search: PlaceSearch, keys: Sequence[Key]
    ) -> None:
        """Drops the texts, and the steps of turns that cannot be told without them."""
        senders = self._senders(connection) if keys else {}
        runs = [run_id for key in keys for run_id, _ in senders.get(str(key), ())]
        connection.executemany(_DROP_STEPS, [(run_id,) for run_id in runs])
        connection.executemany(_MARK_ERASED, [(self.now_ms, run_id) for run_id in runs])
        connection.executemany(self._DROP, [(key,) for key in keys])

    def _senders(self, connection: sqlite3.Connection) -> Mapping[str, list[tuple[str, str]]]:
        """Turn and person of those that were sent a text, by its digest."""
        senders: dict[str, list[tuple[str, str]]] = {}
        for digest, run_id, person_id in connection.execute(self._SENDERS):
            senders.setdefault(str(digest), []).append((run_id, person_id))
        return senders


_SCOPES = """
select scope, id from facts where id in (select value from json_each(?)) order by scope, id
"""


def scopes_of(connection: sqlite3.Connection, fact_ids: Sequence[int]) -> dict[str, list[int]]:
    """Facts by the chat that they belong to."""
    scopes: dict[str, list[int]] = {}
    for scope, fact_id in connection.execute(_SCOPES, (json.dumps(fact_ids),)):
        scopes.setdefault(scope, []).append(fact_id)
    return scopes


_FACTS_HELD = "select id, text, quote from facts where person_id = :person"


def facts_holding(connection: sqlite3.Connection, search: PlaceSearch) -> list[int]:
    """Facts of the person that are to go: those that were named, and those that hold the words."""
    named, said = set(search.facts), search.wording
    return [
        fact_id
        for fact_id, text, quote in connection.execute(_FACTS_HELD, search.values)
        if fact_id in named or said.holds(text) or said.holds(quote)
    ]


# --- all of somebody -------------------------------------------------------------------------

_EVERYTHING = (
    "delete from insights where conversation_id in (select value from json_each(:own))",
    "delete from compactions where conversation_id in (select value from json_each(:own))",
    "delete from exchanges where conversation_id in (select value from json_each(:own))",
    "delete from idle_timers where conversation_id in (select value from json_each(:own))",
    "delete from notes where conversation_id in (select value from json_each(:own))",
    "delete from messages where conversation_id in (select value from json_each(:own))",
    """
    delete from conversations
    where closed_ms is not null and id in (select value from json_each(:own))
    """,
    """
    update conversations set sent_from = 0, shortened_to = 0
    where id in (select value from json_each(:own))
    """,
    "delete from profiles where person_id = :person",
    "delete from profile_changes where person_id = :person",
    "delete from documents where person_id = :person",
    "delete from events where person_id = :person",
    "delete from tellings where person_id = :person",
    # What the bot and skills set up is no word of anybody.
    "delete from jobs where person_id = :person and set_by = 'person'",
)


def drop_everything(connection: sqlite3.Connection, search: PlaceSearch) -> None:
    """Whole conversations, the profile and documents: what need not stay as a blank."""
    for statement in _EVERYTHING:
        connection.execute(statement, search.values)


_TABLES = """
select name from sqlite_schema
where type = 'table' and name not like 'sqlite_%' and name not like 'exchange_words%'
order by name
"""


_RUNS = "select run_id from turns where person_id = :person"


def left_over(connection: sqlite3.Connection, search: PlaceSearch) -> tuple[list[str], list[str]]:
    """Tables in which the phrases still stand: in rows of this person, and in others.

    Looks at every column of every table, so that one that comes later is not overlooked. What is
    whose by more than its own row is for `ErasurePlace.find`.
    """
    mine, theirs = [], []
    runs = {run_id for (run_id,) in connection.execute(_RUNS, search.values)}
    for (table,) in connection.execute(_TABLES).fetchall():
        found = connection.execute(f'select * from "{table}"')  # noqa: S608 - a name of ours
        names = [column[0] for column in found.description]
        held = [
            dict(zip(names, row, strict=True))
            for row in found
            if any(_says(search.wording, value) for value in row)
        ]
        # Steps of a turn that is not over are in use, and left by everybody else.
        of_person = [
            row
            for row in held
            if row.get("person_id") == search.person_id
            or (table == "steps" and row["run_id"] in runs)
        ]
        if of_person:
            mine.append(table)
        if len(of_person) < len(held):
            theirs.append(table)
    return mine, theirs


def _says(wording: Wording, value: object) -> bool:
    return isinstance(value, str) and wording.says(value)


def counted(found: Iterable[tuple[ErasurePlace, Sequence[Key]]]) -> Mapping[PlaceKind, int]:
    """How many rows of each kind."""
    counts: dict[PlaceKind, int] = {}
    for place, keys in found:
        if keys:
            counts[place.kind] = counts.get(place.kind, 0) + len(keys)
    return counts
