"""Facts, profile and documents of a file, brought into the tables in one transaction.

What is known already is refreshed, what was forgotten stays so, and where a file is older than what
is known, what is known stands. Called by `memory.facts.export`.
"""

from __future__ import annotations

import hashlib
import sqlite3

from memory.database.rows import storable
from memory.facts import tombstones
from memory.facts.export import Carried, CarriedDocument, CarriedFact
from memory.facts.profile import add_change, profile_in, put_profile
from memory.facts.rows import close, insert, owned_by, reopen, select
from memory.facts.similarity import sentence
from memory.facts.store import refusal, tidy, write
from memory.records.erasure import CarryingRefused, Imported, RefusedFact
from memory.records.errors import ProfileWrong
from memory.records.facts import FactSource, NewFact, ProfileChange, StoredFact, Storing, Whose
from memory.records.messages import PersonId

WHY_FORGOTTEN = "it was to be forgotten"

_SET_PAST = """
update facts set valid_to_ms = ?, created_ms = ?, last_used_ms = ?, uses = ? where id = ?
"""
_SET_NOW = "update facts set created_ms = min(created_ms, ?), uses = uses + ? where id = ?"
_LINK = "update facts set superseded_by = ? where id = ? and superseded_by is null"
_HAS_CHANGES = "select exists (select 1 from profile_changes where person_id = ?)"
_DOCUMENT = "select id from documents where person_id = ? and scope = ? and name = ?"
_PASSAGES = "select text from chunks where document_id = ? order by n"
_ADD_DOCUMENT = """
insert into documents (person_id, scope, name, kind, source, digest, chars, saved_ms, used_ms)
values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning id
"""
_ADD_PASSAGE = "insert into chunks (document_id, n, text) values (?, ?, ?)"


def take_in(
    connection: sqlite3.Connection, person_id: PersonId, carried: Carried, now_ms: int
) -> Imported:
    """Take in all of it, in the caller's transaction. Raise CarryingRefused."""
    loader = _Loader(connection, person_id, now_ms)
    loader.take_facts(carried)
    loader.take_profile(carried)
    for document in carried.documents:
        loader.take_document(document)
    return loader.taken


class _Loader:
    """What is on its way in. `_ids` leads from the file's numbers of facts to ours."""

    def __init__(self, connection: sqlite3.Connection, person_id: PersonId, now_ms: int) -> None:
        self._connection = connection
        self._person_id = person_id
        self._now_ms = now_ms
        self._ids: dict[int, int] = {}
        self._known: dict[str, dict[str, list[StoredFact]]] = {}
        self.taken = Imported()

    def take_facts(self, carried: Carried) -> None:
        # What no longer holds comes first, so that what holds is compared with what is there.
        ordered = sorted(
            carried.facts, key=lambda fact: (fact.valid_to_ms is None, fact.valid_from_ms)
        )
        for fact in ordered:
            of, text = Whose(person_id=self._person_id, scope=fact.scope), tidy(fact.text)
            why = refusal(text)
            if not why and tombstones.matching(self._connection, of, text):
                why = WHY_FORGOTTEN
            if why:
                self.taken.refused.append(RefusedFact(text=fact.text, why=why))
                continue
            new = NewFact(
                whose=of,
                text=text,
                category=fact.category,
                source=FactSource.IMPORT,
                confidence=fact.confidence,
                quote=fact.quote,
                speaker=fact.speaker,
                valid_from_ms=fact.valid_from_ms,
            )
            if fact.valid_to_ms is None:
                self._take_current(fact, new)
            else:
                self._take_past(fact, new)
        for fact in ordered:
            mine, after = self._ids.get(fact.id), self._ids.get(fact.superseded_by or 0)
            if mine is not None and after is not None and mine != after:
                self._connection.execute(_LINK, (after, mine))

    def _take_current(self, fact: CarriedFact, new: NewFact) -> None:
        alike = {known.id: None for known in self._like(new) if known.valid_to_ms is None}
        made = write(self._connection, new, new.text, alike=alike, now_ms=self._now_ms)
        if made.fact is None:
            self.taken.refused.append(RefusedFact(text=fact.text, why=made.why))
            return
        self._ids[fact.id] = made.fact.id
        if made.outcome is Storing.REFRESHED:
            self.taken.refreshed += 1
            return
        self._connection.execute(_SET_NOW, (fact.created_ms, fact.uses, made.fact.id))
        if made.replaced is not None and made.replaced.valid_from_ms > fact.valid_from_ms:
            # What is known is the newer of the two, so it is the file that is corrected by it.
            newer = made.replaced
            reopen(self._connection, [newer.id])
            at_ms = max(newer.valid_from_ms, fact.valid_from_ms)
            close(self._connection, [made.fact.id], by=newer.id, now_ms=at_ms)
        elif made.replaced is not None:
            self.taken.superseded += 1
        self.taken.stored += 1

    def _take_past(self, fact: CarriedFact, new: NewFact) -> None:
        times = (fact.valid_from_ms, fact.valid_to_ms)
        for known in self._like(new):
            if (known.valid_from_ms, known.valid_to_ms) == times:
                self._ids[fact.id] = known.id
                self.taken.refreshed += 1
                return
        stored = insert(self._connection, new, new.text, now_ms=self._now_ms)
        past = (fact.valid_to_ms, fact.created_ms, fact.last_used_ms, fact.uses, stored.id)
        self._connection.execute(_SET_PAST, past)
        self._ids[fact.id] = stored.id
        self.taken.stored += 1

    def _like(self, new: NewFact) -> list[StoredFact]:
        """Facts of this place that say the same in the same words, as they stood before."""
        scope = new.whose.scope
        if scope not in self._known:
            found: dict[str, list[StoredFact]] = {}
            for known in select(self._connection, owned_by(new.whose)):
                found.setdefault(sentence(known.text).whole, []).append(known)
            self._known[scope] = found
        return self._known[scope].get(sentence(new.text).whole, [])

    def take_profile(self, carried: Carried) -> None:
        profile = profile_in(self._connection, self._person_id)
        new = {name: value for name, value in carried.profile.items() if name not in profile}
        self.taken.left += [
            f"profile {name}"
            for name, value in carried.profile.items()
            if name in profile and profile[name] != value
        ]
        if new:
            try:
                put_profile(
                    self._connection, self._person_id, {**profile, **new}, now_ms=self._now_ms
                )
            except ProfileWrong as error:
                raise CarryingRefused(
                    f"The profile in the file cannot be: {error} Nothing was changed."
                ) from error
            self.taken.profile += list(new)
        (has_changes,) = self._connection.execute(_HAS_CHANGES, (self._person_id,)).fetchone()
        # A history joins none that is there: the values in between would not fit each other.
        for one in [] if has_changes else carried.profile_history:
            add_change(self._connection, self._person_id, ProfileChange(id=0, **dict(one)))

    def take_document(self, document: CarriedDocument) -> None:
        passages = [storable(text) for text in document.passages]
        key = (self._person_id, document.scope, storable(document.name))
        known = self._connection.execute(_DOCUMENT, key).fetchone()
        if known is not None:
            if [text for (text,) in self._connection.execute(_PASSAGES, known)] != passages:
                self.taken.left.append(f"document {document.name}")
            return
        # No digest of the whole text is known: saved once more, it is taken for a new one.
        digest = hashlib.sha256("\n".join(passages).encode()).hexdigest()
        values = (document.kind, storable(document.source), f"import {digest}", document.chars)
        added = self._connection.execute(
            _ADD_DOCUMENT, (*key, *values, document.saved_ms, self._now_ms)
        )
        (document_id,) = added.fetchone()
        self._connection.executemany(
            _ADD_PASSAGE, [(document_id, n, text) for n, text in enumerate(passages)]
        )
        self.taken.documents.append(document.name)
