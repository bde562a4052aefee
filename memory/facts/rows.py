"""The table of facts: its SQL, and its rows as values. Called by the other modules about facts.

Every query is narrowed by person and place here, in SQL. What is private is that person's alone; in
a group everybody's facts of this group are read, and a person writes only their own.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from memory.database.stored_text import storable
from memory.facts.secrets import secret_in
from memory.facts.similarity import Sentence, sentence
from memory.records.facts import EVERYWHERE, Category, FactSource, NewFact, StoredFact, Whose
from memory.records.messages import PersonId, RunId
from memory.records.text import one_line
from memory.records.words import fold, words
from memory.search.fts import STOP_WORDS

_COLUMNS = """
id, person_id, scope, text, category, source, confidence, valid_from_ms, created_ms, valid_to_ms,
superseded_by, message_id, run_id, quote, speaker, last_used_ms, uses
"""
_SELECT = f"select {_COLUMNS} from facts where "  # noqa: S608 - the columns above
_INSERT = """
insert into facts (
    person_id, scope, text, category, source, confidence, valid_from_ms, created_ms, message_id,
    run_id, quote, speaker
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_HOLDS = "valid_to_ms is null"
_HELD = "valid_from_ms <= ? and (valid_to_ms is null or valid_to_ms > ?)"
QUOTE_CHARS_MAX = 1_000
_TIMES_MS = range(-62_135_596_800_000, 253_402_300_800_000)
"""The years 1 to 9999, which is what Python's dates know."""
_IDS = range(1, 2**63)
_AT_ONCE = 500
"""Ids in one statement; SQLite takes some thousand."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A condition in SQL, with its parameters."""

    sql: str
    values: tuple[object, ...]

    def and_(self, sql: str, *values: object) -> Narrowed:
        """Both."""
        return Narrowed(f"{self.sql} and {sql}", (*self.values, *values))


def seen_by(of: Whose) -> Narrowed:
    """What this person may see in this place."""
    if of.scope == EVERYWHERE:
        return Narrowed("person_id = ?", (of.person_id,))
    if of.scope:
        return Narrowed("scope = ? and scope <> ''", (of.scope,))
    return Narrowed("person_id = ? and scope = ''", (of.person_id,))


def owned_by(of: Whose) -> Narrowed:
    """What this person may change in this place."""
    return Narrowed("person_id = ? and scope = ?", (of.person_id, of.scope))


def holding(where: Narrowed, at: datetime | None = None) -> Narrowed:
    """Of these, what holds, or held at a moment."""
    if at is None:
        return where.and_(_HOLDS)
    at_ms = int(at.timestamp() * 1000)
    return where.and_(_HELD, at_ms, at_ms)


def select(
    connection: sqlite3.Connection, where: Narrowed, *, order: str = "id", limit: int = -1
) -> list[StoredFact]:
    """The facts of a condition. `order` is SQL of ours."""
    sql = f"{_SELECT}{where.sql} order by {order} limit ?"
    return [_fact(row) for row in connection.execute(sql, (*where.values, limit))]


def select_ids(
    connection: sqlite3.Connection, where: Narrowed, ids: Sequence[int]
) -> dict[int, StoredFact]:
    """Those of these ids that fulfil the condition."""
    found: dict[int, StoredFact] = {}
    for start in range(0, len(ids), _AT_ONCE):
        part = [fact_id for fact_id in ids[start : start + _AT_ONCE] if fact_id in _IDS]
        among = where.and_(f"id in ({', '.join('?' * len(part))})", *part)
        found.update((fact.id, fact) for fact in select(connection, among))
    return found


def insert(connection: sqlite3.Connection, new: NewFact, text: str, *, now_ms: int) -> StoredFact:
    """Adds a row. Of a quote that holds a secret nothing is kept."""
    values = (
        new.whose.person_id,
        new.whose.scope,
        text,
        new.category,
        new.source,
        min(1.0, max(0.0, new.confidence)),
        _possible(new.valid_from_ms, otherwise=now_ms),
        now_ms,
        new.message_id,
        new.run_id or "",
        "" if secret_in(new.quote) else storable(new.quote)[:QUOTE_CHARS_MAX],
        one_line(storable(new.speaker)),
    )
    row_id = connection.execute(_INSERT, values).lastrowid
    return select(connection, Narrowed("id = ?", (row_id,)))[0]


def _possible(time_ms: int | None, *, otherwise: int) -> int:
    return time_ms if time_ms is not None and time_ms in _TIMES_MS else otherwise


def close(connection: sqlite3.Connection, ids: Iterable[int], *, by: int, now_ms: int) -> None:
    """From now on these hold no more; `by` took their place."""
    connection.executemany(
        "update facts set valid_to_ms = ?, superseded_by = ? where id = ?",
        [(now_ms, by, fact_id) for fact_id in ids],
    )


def refresh(
    connection: sqlite3.Connection, fact_id: int, *, confidence: float, now_ms: int
) -> StoredFact:
    """Counts as said again."""
    connection.execute(
        "update facts set last_used_ms = ?, confidence = max(confidence, ?) where id = ?",
        (now_ms, confidence, fact_id),
    )
    return select(connection, Narrowed("id = ?", (fact_id,)))[0]


def reopen(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """These hold again."""
    connection.executemany(
        "update facts set valid_to_ms = null, superseded_by = null where id = ?",
        [(fact_id,) for fact_id in ids],
    )


def erase(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Takes rows away."""
    connection.executemany("delete from facts where id = ?", [(fact_id,) for fact_id in ids])


def use(connection: sqlite3.Connection, uses: Mapping[int, int], *, now_ms: int) -> None:
    """Counts how often facts were of use."""
    connection.executemany(
        "update facts set uses = uses + ?, last_used_ms = ? where id = ?",
        [(count, now_ms, fact_id) for fact_id, count in uses.items()],
    )


def replaced_by(
    connection: sqlite3.Connection, where: Narrowed, ids: Sequence[int]
) -> list[StoredFact]:
    """What these replaced, and what that replaced, as far as it fulfils the condition."""
    found: dict[int, StoredFact] = {}
    latest = list(ids)
    while latest:
        marks = ", ".join("?" * len(latest[:_AT_ONCE]))
        part, latest = latest[:_AT_ONCE], latest[_AT_ONCE:]
        for fact in select(connection, where.and_(f"superseded_by in ({marks})", *part)):
            if fact.id not in found:
                found[fact.id] = fact
                latest.append(fact.id)
    return list(found.values())


def _fact(row: tuple[Any, ...]) -> StoredFact:
    (fact_id, person_id, scope, text, category, source, confidence, valid_from_ms, created_ms) = (
        row[:9]
    )
    valid_to_ms, superseded_by, message_id, run_id, quote, speaker, last_used_ms, uses = row[9:]
    return StoredFact(
        id=fact_id,
        whose=Whose(person_id=PersonId(person_id), scope=scope),
        text=text,
        category=cast(Category, category),
        source=FactSource(source),
        confidence=confidence,
        valid_from_ms=valid_from_ms,
        created_ms=created_ms,
        valid_to_ms=valid_to_ms,
        superseded_by=superseded_by,
        message_id=message_id,
        run_id=RunId(run_id) if run_id else None,
        quote=quote,
        speaker=speaker,
        last_used_ms=last_used_ms,
        uses=uses,
    )


# --- relevance ----------------------------------------------------------------------------------
#
# Whether what was found has to do with a message at all: a search always finds something.
#
# Called by `memory.facts.store` and `memory.facts.recall` before anything reaches a prompt. Pure.

CLOSE_MIN = 0.35
"""Plain cosine from which a text has to do with a message, whatever words it shares with it."""
FAINT_MIN = 0.12
"""Enough for a short fact about the person: `prefers metric units`, and `convert 5 miles`."""
SHARED_MIN = 0.40
"""Stems that they share, by the geometric mean of how many each has."""
SHORT_STEMS_MAX = 7
HEAD_CHARS, TAIL_CHARS = 1_500, 500
"""Of a long message what is searched by: what is asked stands at its begin or at its end."""
_MATTERS = frozenset(["project", "decision"])
"""Categories of facts that are about a matter, and of no use to any other matter."""
_NO_NAMES = STOP_WORDS | {"project", "projects", "team", "user"}
"""They begin sentences, with a capital."""

_TALK = """
hi hello hey hiya yo good morning afternoon evening night thanks thank thx cheers ok okay yes no yep
nope yeah sure great cool nice perfect fine well bye goodbye see later soon welcome sorry lol haha
hmm oh wow right correct done go ahead continue stop wait maybe exactly
lot lots much job one got it sounds problem course agreed understood noted appreciated everyone
hallo moin servus danke bitte ja nein super tschüss guten tag morgen abend
merci bonjour salut oui non gracias hola adios vale
"""
_OF_REMEMBERING = """
remember know knew known memory memories remembered facts fact stored saved learnt learned tell told
everything anything something all things thing list show summary summarize summarise so far info
information say said weißt weisst erinnerst alles sais souviens tout sabes recuerdas todo
"""
_SMALL = frozenset(_TALK.split()) | STOP_WORDS
_REMEMBERING = frozenset(_OF_REMEMBERING.split())
_REMEMBER = frozenset(
    ["remember", "know", "knew", "memory", "memories", "facts", "learnt", "learned"]
)
_SELF = frozenset(["me", "my", "mine", "myself", "i", "mich", "mir", "mein", "meine", "moi", "mon"])


def gist(message: str) -> str:
    """The message, without the middle of a long one."""
    if len(message) <= HEAD_CHARS + TAIL_CHARS:
        return message
    return f"{message[:HEAD_CHARS]} {message[-TAIL_CHARS:]}"


def is_small_talk(message: str) -> bool:
    """Whether a message is a greeting or the like, or has no word at all; never where it speaks
    of whoever writes it."""
    said = sentence(message)
    return (
        not said.every & _SELF
        and not said.numbers
        and (not said.stems or all(word in _SMALL for word in said.every))
    )


def is_about_self(message: str) -> bool:
    """Whether it asks what is known of whoever asks, and of nothing in particular."""
    every = [word.text for word in words(fold(message))]
    if every == ["who", "am", "i"]:
        return True
    telling = [word for word in every if word not in STOP_WORDS]
    asks = all(word in _REMEMBERING for word in telling) and not _REMEMBER.isdisjoint(telling)
    return asks and not _SELF.isdisjoint(every)


def speaks_of_self(message: str) -> bool:
    """Whether somebody speaks of themselves: `Plan my week`, `Where do I live?`"""
    return not sentence(message).every.isdisjoint(_SELF)


def fitting(message: str, fact: StoredFact, likeness: float | None) -> bool:
    """Whether a fact has to do with a message.

    A matter needs to be spoken of: by name, or closely. What is said of the person in few words
    may bear on much, so little is asked of it, and nothing where they speak of themselves.
    """
    asked, known = sentence(message), sentence(fact.text)
    if (likeness or 0.0) >= CLOSE_MIN or _shared(asked.stems, known.stems) >= SHARED_MIN:
        return True
    if _is_of_a_matter(fact, known):
        return any(name in asked.every for name in known.names if name not in _NO_NAMES)
    if speaks_of_self(message) or not set(asked.stems).isdisjoint(known.stems):
        return True
    return (likeness or 0.0) >= FAINT_MIN


def _is_of_a_matter(fact: StoredFact, known: Sentence) -> bool:
    is_long = len(known.stems) > SHORT_STEMS_MAX
    return is_long or fact.category in _MATTERS or "project" in known.every


def _shared(asked: tuple[str, ...], known: tuple[str, ...]) -> float:
    mine, others = set(asked), set(known)
    if not mine or not others:
        return 0.0
    return len(mine & others) / math.sqrt(len(mine) * len(others))
