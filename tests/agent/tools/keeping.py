"""What the tests of memory's tools start from: ports over lists, and a household."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from agent.tools.profile import PersonContext
from memory.records.errors import ProfileWrong
from memory.records.facts import (
    Exchange,
    NewFact,
    ProfileChange,
    Stored,
    StoredFact,
    Storing,
    Whose,
)
from memory.records.messages import ConversationId, PersonId, RunId
from tests.fakes import FixedClock

BERLIN = ZoneInfo("Europe/Berlin")
NAMES = {"p1": "Ada", "p2": "Bob"}


def household(
    *, clock: FixedClock | None = None, off: Sequence[str] = (), zone: str = "Europe/Berlin"
) -> PersonContext:
    """Everybody lives in `zone`; memory is off in the conversations `off`."""

    async def is_private(conversation: ConversationId) -> bool:
        return conversation in off

    return PersonContext(
        clock=clock or FixedClock(),
        name_of=lambda person_id: NAMES.get(person_id, ""),
        zone_of=lambda person_id: ZoneInfo(zone),
        is_private=is_private,
    )


class KeptFacts:
    """Implements Facts over a list: by words alone, and with as few rules as a tool can notice.
    `refuses` are words that it takes for secrets."""

    def __init__(self) -> None:
        self.rows: dict[int, StoredFact] = {}
        self.new: list[NewFact] = []
        self.forgotten: set[str] = set()
        self.searched: list[tuple[Whose, str, int, datetime | None]] = []
        self.now_ms = 1_785_700_000_000

    def seed(self, text: str, of: Whose, **more: object) -> StoredFact:
        """A fact that is there from the start."""
        new_id = len(self.rows) + 1
        fact = StoredFact(
            id=new_id,
            whose=of,
            text=text,
            category="preference",
            source=more.pop("source", "person"),  # type: ignore[arg-type]
            confidence=1.0,
            valid_from_ms=self.now_ms,
            created_ms=self.now_ms,
        )
        self.rows[new_id] = replace(fact, **more)  # type: ignore[arg-type]
        return self.rows[new_id]

    async def store(self, new: NewFact) -> Stored:
        self.new.append(new)
        if "password" in new.text:
            return Stored(outcome=Storing.REFUSED, why="it holds a password")
        if new.text in self.forgotten and not new.asked:
            return Stored(outcome=Storing.REFUSED, why="the person wished it to be forgotten")
        for fact in self._of(new.whose):
            if fact.text == new.text and fact.valid_to_ms is None:
                return Stored(outcome=Storing.REFRESHED, fact=fact)
        fact = self.seed(
            new.text,
            new.whose,
            category=new.category,
            source=new.source,
            run_id=new.run_id,
            quote=new.quote,
            speaker=new.speaker,
        )
        if new.replaces is None:
            return Stored(outcome=Storing.STORED, fact=fact)
        old = self.rows[new.replaces]
        self.rows[old.id] = replace(old, valid_to_ms=self.now_ms, superseded_by=fact.id)
        return Stored(outcome=Storing.SUPERSEDED, fact=fact, replaced=old)

    def _of(self, of: Whose) -> list[StoredFact]:
        return [
            fact
            for fact in self.rows.values()
            if fact.whose == of or (of.scope and fact.whose.scope == of.scope)
        ]

    async def get(self, of: Whose, fact_id: int) -> StoredFact | None:
        return next((fact for fact in self._of(of) if fact.id == fact_id), None)

    async def list(self, of: Whose, *, at: datetime | None = None) -> Sequence[StoredFact]:
        return [fact for fact in reversed(self._of(of)) if fact.valid_to_ms is None]

    async def past(self, of: Whose, fact_id: int) -> Sequence[StoredFact]:
        return [fact for fact in self._of(of) if fact.superseded_by == fact_id]

    async def search(
        self, of: Whose, query: str, *, k: int, at: datetime | None = None
    ) -> Sequence[StoredFact]:
        self.searched.append((of, query, k, at))
        words = query.casefold().split()
        fits = [
            fact
            for fact in await self.list(of)
            if any(word in fact.text.casefold() for word in words)
        ]
        return fits[:k]

    async def forget(self, of: Whose, fact_ids: Sequence[int]) -> int:
        gone = [fact for fact in self._of(of) if fact.id in fact_ids]
        assert all(fact.whose == of for fact in gone), "of another person"
        for fact in gone:
            self.forgotten.add(self.rows.pop(fact.id).text)
        return len(gone)

    async def undo(
        self, of: Whose, run_id: RunId
    ) -> tuple[Sequence[StoredFact], Sequence[StoredFact]]:
        raise AssertionError("no tool takes anything back")


class KeptProfiles:
    """Implements Profiles: one level deep is enough."""

    def __init__(self, **profiles: Mapping[str, object]) -> None:
        self.profiles = {PersonId(name): dict(profile) for name, profile in profiles.items()}
        self.changes: list[tuple[PersonId, str, object, str, RunId | None]] = []

    async def get(self, person_id: PersonId) -> Mapping[str, object]:
        return self.profiles.get(person_id, {})

    async def update(
        self,
        person_id: PersonId,
        path: str,
        value: object,
        *,
        reason: str,
        run_id: RunId | None = None,
    ) -> ProfileChange:
        if path == "nonsense":
            raise ProfileWrong("a profile has no 'nonsense'")
        profile = self.profiles.setdefault(person_id, {})
        old = profile.get(path)
        profile[path] = value
        self.changes.append((person_id, path, value, reason, run_id))
        return ProfileChange(id=1, path=path, old=old, new=value, reason=reason, at_ms=0)

    async def undo(self, person_id: PersonId, run_id: RunId) -> Sequence[ProfileChange]:
        raise AssertionError("no tool takes anything back")


class KeptArchive:
    """Implements Archive: whatever is asked is answered with all of this person and place."""

    def __init__(self, **exchanges: Sequence[Exchange]) -> None:
        self.exchanges = exchanges
        self.asked: list[tuple[str, str, str, int]] = []

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
        assert before is None, "nothing is left out"
        assert conversation is None, "nothing is left out"
        self.asked.append((person_id, place, query, k))
        return self.exchanges.get(person_id, ())[:k]
