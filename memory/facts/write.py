"""What becomes of a fact that is to be stored: the rules of writing (SPEC §9), in one transaction.

Called by `memory.facts.store`, which finds out beforehand what is like it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence

from memory.database.rows import storable
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
from memory.facts.similarity import says_more, says_the_same, sentence, stands_in
from memory.records.facts import FACT_CHARS_MAX, NewFact, Stored, StoredFact, Storing
from memory.records.text import clean
from memory.records.words import after_name, fold

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
_HOMES = "(text like '%live%' or text like '%living%')"
_LIVES = re.compile(
    r"(?:(?P<who>[^,;?]{1,60}?) )?(?:[Ll]ives?|(?:is |am )?living) in (?P<place>[A-Z][\w-]+)"
)
_MOVED = re.compile(
    r"(?:(?P<who>[^,;?]{1,60}?) )?(?:has |have )?(?:just |recently )?[Mm]oved to "
    r"(?P<place>[A-Z][\w-]+(?: [A-Z][\w-]+)*)(?: last (?:week|month)| recently)?"
)
_SELF = frozenset(["", "i", "user", "the user", "person", "the person"])


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
    alike: Mapping[int, float | None],
    now_ms: int,
) -> Stored:
    """Store a text that is tidy and not refused, or say what stands in its way.

    `alike` are facts that look like it, most alike first, and how close they are in meaning.
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
    own = holding(owned_by(new.whose))
    named = [] if new.replaces is None else [new.replaces]
    corrected = list(select_ids(connection, own, named).values())
    # Whoever corrects a fact chose the words: they are stored, however alike they are.
    reworded = {old.id for old in corrected if old.text != text}
    said = sentence(text)
    held = select_ids(connection, own, list(alike))
    same = [
        held[known]
        for known, likeness in alike.items()
        if known in held
        and known not in reworded
        and says_the_same(said, sentence(held[known].text), likeness)
    ]
    shorter = [fact for fact in same if says_more(said, sentence(fact.text))]
    if same and not shorter:
        fact = refresh(connection, same[0].id, confidence=new.confidence, now_ms=now_ms)
        closed = [old for old in corrected if old.id != fact.id]
    else:
        left = _homes_left(connection, new, text)
        closed = list({fact.id: fact for fact in (*shorter, *left, *corrected)}.values())
        fact = insert(connection, new, text, now_ms=now_ms)
    if not closed:
        is_known = bool(same)
        return Stored(outcome=Storing.REFRESHED if is_known else Storing.STORED, fact=fact)
    close(connection, [old.id for old in closed], by=fact.id, now_ms=now_ms)
    (replaced,) = select(connection, Narrowed("id = ?", (closed[-1].id,)))
    return Stored(outcome=Storing.SUPERSEDED, fact=fact, replaced=replaced)


def _is_said(connection: sqlite3.Connection, new: NewFact) -> bool:
    """Whether the line that it rests on still stands, with its quote: it may have been erased in
    other ways than by a wish to forget."""
    if new.message_id is None:
        return True
    row = connection.execute(_LINE, (new.message_id,)).fetchone()
    text = json.loads(row[0]).get("text") if row else None
    return isinstance(text, str) and stands_in(new.quote, clean(text))


def _homes_left(connection: sqlite3.Connection, new: NewFact, text: str) -> list[StoredFact]:
    """Return the homes of somebody who moved: the one contradiction that is told without a model.

    `/remember` asks none, and where people live is what they correct most. Of anything else
    whoever writes the fact says what it replaces (`NewFact.replaces`); else both are kept, since to
    close a true fact does harm and to keep an old one beside it does little (until 2026-11 rules of
    English judged homes, jobs, ages and favourites by lists of towns and countries).
    """
    moved = _MOVED.fullmatch(text.rstrip(".!"))
    if moved is None:
        return []
    row = connection.execute(_NAME_OF, (new.whose.person_id,)).fetchone()
    names = [name for name in (row[0] if row else "", new.speaker) if name]
    facts = select(connection, holding(owned_by(new.whose)).and_(_HOMES))
    return [
        fact
        for fact in facts
        if (home := _LIVES.match(fact.text)) is not None
        and _person(home["who"], names) == _person(moved["who"], names)
        and not moved["place"].startswith(home["place"])
    ]


def _person(who: str | None, names: Sequence[str]) -> str:
    """Return whom a sentence is about, by its first words; empty for the person themselves."""
    called = fold(who or "")
    own = {part for name in names for part in (fold(name), *fold(name).split()[:1])}
    return "" if called in own | _SELF or any(after_name(called, n) == "" for n in own) else called
