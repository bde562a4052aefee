"""What becomes of a fact that is to be stored: the rules of writing (SPEC §9), in one transaction.

Called by `memory.facts.store`, which finds out beforehand what is like it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agent.learning.evidence import stands_in
from memory.database.stored_text import storable
from memory.facts import tombstones
from memory.facts.rows import (
    Narrowed,
    close,
    holding,
    insert,
    owned_by,
    refresh,
    select,
    select_ids,
)
from memory.facts.secrets import secret_in
from memory.facts.similarity import says_more, says_the_same, sentence
from memory.facts.statements import Statement, cues, statement
from memory.records.facts import FACT_CHARS_MAX, NewFact, Stored, StoredFact, Storing
from memory.records.text import clean

WHY_EMPTY = "There is nothing in it to remember."
WHY_LONG = (
    f"It is longer than {FACT_CHARS_MAX} characters. Say it in one sentence, "
    "or put it into the notes."
)
WHY_FORGOTTEN = (
    "You asked me to forget this, so I do not learn it again by myself. "
    "Tell me to remember it, and I will."
)
WHY_GONE = "The message that it was found in is not there any more."
_DIRECTIONS = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
_LINE = "select body from messages where id = ?"
_NAME_OF = "select name from people where id = ?"
_LIKE_ESCAPES = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """A fact that looks like the new one, and how much they mean the same, if that is known."""

    fact_id: int
    likeness: float | None


def tidy(text: str) -> str:
    """One line, of Unicode alone, without what nobody sees: control characters (NUL), terminal
    codes, and marks that turn the direction, by which a text can pose as another one."""
    lines = storable(text).replace("\v", "\n").replace("\f", "\n")
    return " ".join(_DIRECTIONS.sub("", clean(lines)).split())


def refusal(text: str) -> str:
    """Why a text is not stored, whatever else is known; empty where it may be."""
    if not any(letter.isalnum() for letter in text):
        return WHY_EMPTY
    if len(text) > FACT_CHARS_MAX:
        return WHY_LONG
    if kind := secret_in(text):
        return (
            f"It holds {kind}. I do not keep secrets: whatever is remembered can turn up in "
            "prompts and exports. A password manager is the place for it."
        )
    return ""


def write(
    connection: sqlite3.Connection,
    new: NewFact,
    text: str,
    *,
    alike: Sequence[Alike],
    now_ms: int,
) -> Stored:
    """Stores a text that is tidy and not refused, or says what stands in its way.

    What says the same as a known fact refreshes it; what says the same and more takes its place.
    Raises ForgottenMeanwhile.
    """
    if new.generation is not None:
        if tombstones.generation(connection) != new.generation:
            raise tombstones.ForgottenMeanwhile
        if not _is_said(connection, new):
            return Stored(outcome=Storing.REFUSED, why=WHY_GONE)
    woken = tombstones.matching(connection, new.whose, text)
    if woken and not new.asked:
        return Stored(outcome=Storing.REFUSED, why=WHY_FORGOTTEN)
    tombstones.lift(connection, woken)
    corrected = _held(connection, new, [] if new.replaces is None else [new.replaces])
    # Whoever corrects a fact chose the words: they are stored, however alike they are.
    reworded = {old.id for old in corrected if old.text != text}
    names = _names(connection, new)
    said = statement(text, names=names)
    stated = _stated(connection, new, said, names) if said else []
    repeated = [fact for fact, known in stated if said and said.repeats(known)]
    same = [*_same(connection, new, text, alike), *repeated]
    same = [fact for fact in same if fact.id not in reworded]
    shorter = [fact for fact in same if says_more(sentence(text), sentence(fact.text))]
    if same and not shorter:
        return _said_again(connection, new, same[0], corrected=corrected, now_ms=now_ms)
    against = [fact for fact, known in stated if said and said.contradicts(known)]
    closed = list({fact.id: fact for fact in (*shorter, *against, *corrected)}.values())
    fact = insert(connection, new, text, now_ms=now_ms)
    close(connection, [old.id for old in closed], by=fact.id, now_ms=now_ms)
    if not closed:
        return Stored(outcome=Storing.STORED, fact=fact)
    return Stored(outcome=Storing.SUPERSEDED, fact=fact, replaced=_now(connection, closed[-1]))


def _is_said(connection: sqlite3.Connection, new: NewFact) -> bool:
    """Whether the line that it rests on still stands, with its quote: it may have been erased in
    other ways than by a wish to forget."""
    if new.message_id is None:
        return True
    row = connection.execute(_LINE, (new.message_id,)).fetchone()
    text = json.loads(row[0]).get("text") if row else None
    return isinstance(text, str) and stands_in(new.quote, clean(text))


def _said_again(
    connection: sqlite3.Connection,
    new: NewFact,
    known: StoredFact,
    *,
    corrected: Sequence[StoredFact],
    now_ms: int,
) -> Stored:
    fact = refresh(connection, known.id, confidence=new.confidence, now_ms=now_ms)
    wrong = [old for old in corrected if old.id != known.id]
    if not wrong:
        return Stored(outcome=Storing.REFRESHED, fact=fact)
    close(connection, [old.id for old in wrong], by=fact.id, now_ms=now_ms)
    return Stored(outcome=Storing.SUPERSEDED, fact=fact, replaced=_now(connection, wrong[-1]))


def _same(
    connection: sqlite3.Connection, new: NewFact, text: str, alike: Sequence[Alike]
) -> list[StoredFact]:
    """The facts that say it already, in the same or in other words."""
    held = {fact.id: fact for fact in _held(connection, new, [one.fact_id for one in alike])}
    said = sentence(text)
    return [
        held[one.fact_id]
        for one in alike
        if one.fact_id in held
        and says_the_same(said, sentence(held[one.fact_id].text), one.likeness)
    ]


def _stated(
    connection: sqlite3.Connection, new: NewFact, said: Statement, names: Collection[str]
) -> list[tuple[StoredFact, Statement]]:
    """What is known of the same matter."""
    likes = [f"%{cue.translate(_LIKE_ESCAPES)}%" for cue in cues(said.what)]
    among = " or ".join([r"text like ? escape '\'"] * len(likes))
    where = holding(owned_by(new.whose)).and_(f"({among})", *likes)
    facts = select(connection, where)
    return [(fact, known) for fact in facts if (known := statement(fact.text, names=names))]


def _held(connection: sqlite3.Connection, new: NewFact, ids: Sequence[int]) -> list[StoredFact]:
    """Those of these that hold, and that are this person's to change."""
    return list(select_ids(connection, holding(owned_by(new.whose)), ids).values())


def _names(connection: sqlite3.Connection, new: NewFact) -> list[str]:
    """What the person is called."""
    row = connection.execute(_NAME_OF, (new.whose.person_id,)).fetchone()
    return [name for name in (row[0] if row else "", new.speaker) if name]


def _now(connection: sqlite3.Connection, fact: StoredFact) -> StoredFact:
    return select(connection, Narrowed("id = ?", (fact.id,)))[0]
