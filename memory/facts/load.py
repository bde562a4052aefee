"""Facts, profile and documents of a file, brought into the tables in one transaction.

What is known already is refreshed, what was forgotten stays so, and where a file is older than what
is known, what is known stands. Called by `memory.facts.export`.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable

from memory.database.stored_text import dump, storable
from memory.facts import tombstones
from memory.facts.export import Carried, CarriedDocument, CarriedFact
from memory.facts.profile_values import checked
from memory.facts.rows import close, insert, owned_by, reopen, select
from memory.facts.similarity import sentence
from memory.facts.write import refusal, tidy, write
from memory.records.erasure import CarryingRefused, Imported, RefusedFact
from memory.records.errors import ProfileWrong
from memory.records.facts import FactSource, NewFact, StoredFact, Storing, Whose
from memory.records.messages import PersonId

WHY_FORGOTTEN = "it was to be forgotten"

_SET_PAST = """
update facts set valid_to_ms = ?, created_ms = ?, last_used_ms = ?, uses = ? where id = ?
"""
_SET_NOW = "update facts set created_ms = min(created_ms, ?), uses = uses + ? where id = ?"
_LINK = "update facts set superseded_by = ? where id = ? and superseded_by is null"
_PROFILE = "select body from profiles where person_id = ?"
_PUT_PROFILE = """
insert into profiles (person_id, body, updated_ms) values (?, ?, ?)
on conflict (person_id) do update set body = excluded.body, updated_ms = excluded.updated_ms
"""
_ADD_CHANGE = """
insert into profile_changes (person_id, path, old, new, reason, at_ms, undone_ms)
values (?, ?, ?, ?, ?, ?, ?)
"""
_CHANGES = "select count(*) from profile_changes where person_id = ?"
_DOCUMENT = "select id from documents where person_id = ? and scope = ? and name = ?"
_SAME_PASSAGES = "select text from chunks where document_id = ? order by n"
_ADD_DOCUMENT = """
insert into documents (person_id, scope, name, kind, source, digest, chars, saved_ms, used_ms)
values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning id
"""
_ADD_PASSAGE = "insert into chunks (document_id, n, text) values (?, ?, ?)"


def take_in(
    connection: sqlite3.Connection, person_id: PersonId, carried: Carried, now_ms: int
) -> Imported:
    """All of it, in the caller's transaction. Raises CarryingRefused."""
    taken = Imported()
    _FactLoader(connection, person_id, now_ms, taken).take(carried.facts)
    _take_profile(connection, person_id, carried, taken, now_ms=now_ms)
    for document in carried.documents:
        _take_document(connection, person_id, document, taken, now_ms=now_ms)
    return taken


class _FactLoader:
    """Facts on their way in. `_ids` leads from the file's numbers to ours."""

    def __init__(
        self, connection: sqlite3.Connection, person_id: PersonId, now_ms: int, taken: Imported
    ) -> None:
        self._connection = connection
        self._person_id = person_id
        self._now_ms = now_ms
        self._taken = taken
        self._ids: dict[int, int] = {}
        self._known: dict[str, dict[str, list[StoredFact]]] = {}

    def take(self, facts: Iterable[CarriedFact]) -> None:
        """What no longer holds comes first, so that what holds is compared with what is there."""
        ordered = sorted(facts, key=lambda fact: (fact.valid_to_ms is None, fact.valid_from_ms))
        for fact in ordered:
            text = tidy(fact.text)
            why = refusal(text)
            if not why and tombstones.matching(self._connection, self._whose(fact), text):
                why = WHY_FORGOTTEN
            if why:
                self._taken.refused.append(RefusedFact(text=fact.text, why=why))
            elif fact.valid_to_ms is None:
                self._take_current(fact)
            else:
                self._take_past(fact, fact.valid_to_ms)
        for fact in ordered:
            mine, after = self._ids.get(fact.id), self._ids.get(fact.superseded_by or 0)
            if mine is not None and after is not None and mine != after:
                self._connection.execute(_LINK, (after, mine))

    def _take_current(self, fact: CarriedFact) -> None:
        alike = {known.id: None for known in self._like(fact) if known.valid_to_ms is None}
        text = tidy(fact.text)
        made = write(self._connection, self._new(fact), text, alike=alike, now_ms=self._now_ms)
        if made.fact is None:
            self._taken.refused.append(RefusedFact(text=fact.text, why=made.why))
            return
        self._ids[fact.id] = made.fact.id
        if made.outcome is Storing.REFRESHED:
            self._taken.refreshed += 1
            return
        self._connection.execute(_SET_NOW, (fact.created_ms, fact.uses, made.fact.id))
        if made.replaced is not None and made.replaced.valid_from_ms > fact.valid_from_ms:
            # What is known is the newer of the two, so it is the file that is corrected by it.
            newer = made.replaced
            reopen(self._connection, [newer.id])
            at_ms = max(newer.valid_from_ms, fact.valid_from_ms)
            close(self._connection, [made.fact.id], by=newer.id, now_ms=at_ms)
        elif made.replaced is not None:
            self._taken.superseded += 1
        self._taken.stored += 1

    def _take_past(self, fact: CarriedFact, valid_to_ms: int) -> None:
        same = [
            known
            for known in self._like(fact)
            if known.valid_to_ms == valid_to_ms and known.valid_from_ms == fact.valid_from_ms
        ]
        if same:
            self._ids[fact.id] = same[0].id
            self._taken.refreshed += 1
            return
        stored = insert(self._connection, self._new(fact), tidy(fact.text), now_ms=self._now_ms)
        past = (valid_to_ms, fact.created_ms, fact.last_used_ms, fact.uses, stored.id)
        self._connection.execute(_SET_PAST, past)
        self._ids[fact.id] = stored.id
        self._taken.stored += 1

    def _like(self, fact: CarriedFact) -> list[StoredFact]:
        """Facts of this place that say the same in the same words, as they stood before."""
        if fact.scope not in self._known:
            found: dict[str, list[StoredFact]] = {}
            for known in select(self._connection, owned_by(self._whose(fact))):
                found.setdefault(sentence(known.text).whole, []).append(known)
            self._known[fact.scope] = found
        return self._known[fact.scope].get(sentence(tidy(fact.text)).whole, [])

    def _whose(self, fact: CarriedFact) -> Whose:
        return Whose(person_id=self._person_id, scope=fact.scope)

    def _new(self, fact: CarriedFact) -> NewFact:
        return NewFact(
            whose=self._whose(fact),
            text=fact.text,
            category=fact.category,
            source=FactSource.IMPORT,
            confidence=fact.confidence,
            quote=fact.quote,
            speaker=fact.speaker,
            valid_from_ms=fact.valid_from_ms,
        )


def _take_profile(
    connection: sqlite3.Connection,
    person_id: PersonId,
    carried: Carried,
    taken: Imported,
    *,
    now_ms: int,
) -> None:
    row = connection.execute(_PROFILE, (person_id,)).fetchone()
    profile = {} if row is None else json.loads(row[0])
    new = {name: value for name, value in carried.profile.items() if name not in profile}
    taken.left += [
        f"profile {name}"
        for name, value in carried.profile.items()
        if name in profile and profile[name] != value
    ]
    if new:
        try:
            body = checked({**profile, **new})
        except ProfileWrong as error:
            raise CarryingRefused(
                f"The profile in the file cannot be: {error} Nothing was changed."
            ) from error
        connection.execute(_PUT_PROFILE, (person_id, body, now_ms))
        taken.profile += list(new)
    # A history joins none that is there: the values in between would not fit each other.
    if connection.execute(_CHANGES, (person_id,)).fetchone()[0] == 0:
        connection.executemany(
            _ADD_CHANGE,
            [
                (
                    *(person_id, one.path, _json(one.old), _json(one.new)),
                    *(storable(one.reason), one.at_ms, one.undone_ms),
                )
                for one in carried.profile_history
            ],
        )


def _take_document(
    connection: sqlite3.Connection,
    person_id: PersonId,
    document: CarriedDocument,
    taken: Imported,
    *,
    now_ms: int,
) -> None:
    passages = [storable(text) for text in document.passages]
    key = (person_id, document.scope, storable(document.name))
    known = connection.execute(_DOCUMENT, key).fetchone()
    if known is not None:
        there = [text for (text,) in connection.execute(_SAME_PASSAGES, known)]
        if there != passages:
            taken.left.append(f"document {document.name}")
        return
    # No digest of the whole text is known: saved once more, it is taken for a new one.
    digest = hashlib.sha256("\n".join(passages).encode()).hexdigest()
    values = (document.kind, storable(document.source), f"import {digest}", document.chars)
    added = connection.execute(_ADD_DOCUMENT, (*key, *values, document.saved_ms, now_ms))
    (document_id,) = added.fetchone()
    connection.executemany(
        _ADD_PASSAGE, [(document_id, n, text) for n, text in enumerate(passages)]
    )
    taken.documents.append(document.name)


def _json(value: object) -> str | None:
    return None if value is None else dump(value)
