"""Recall: what is remembered for one prompt. Implements `memory.records.ports.Recall`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from memory.facts.insights import SqliteInsights
from memory.facts.similarity import gist, is_small_talk
from memory.facts.store import SqliteFacts
from memory.records.facts import (
    Chunk,
    Coming,
    Exchange,
    Fact,
    Recalled,
    RecallWanted,
    StoredFact,
    Whose,
)
from memory.search.archive import SqliteArchive
from memory.search.documents import SqliteDocuments

FACTS_RECALLED, EXCHANGES_RECALLED = 5, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Text about the person, and the prompt of their own persona."""

    profile: str = ""
    persona_prompt: str = ""


class SqliteRecall:
    """Asks each store for its part. Nothing is kept between calls: people change at run time."""

    def __init__(
        self,
        *,
        about: Callable[[RecallWanted], Awaitable[About]] | None = None,
        facts: SqliteFacts | None = None,
        facts_max: int = FACTS_RECALLED,
        insights: SqliteInsights | None = None,
        coming: Callable[[RecallWanted], Awaitable[Sequence[Coming]]] | None = None,
        archive: SqliteArchive | None = None,
        documents: SqliteDocuments | None = None,
    ) -> None:
        """A part that is not given stays empty. `about` is `memory.stores.people.AboutPeople`,
        `coming` finds what is due."""
        self._about = about
        self._facts = facts
        self._facts_max = facts_max
        self._insights = insights
        self._coming = coming
        self._archive = archive
        self._documents = documents

    async def recall(self, wanted: RecallWanted) -> Recalled:
        """Return what this person may see in this place; nothing at all where memory is off. In a
        group only what belongs to the group, and nothing of a profile (SPEC §9). Raise
        StorageError.

        One part after the other: each is some milliseconds of the one database and of the one
        interpreter, and a task group only hid which part had failed.
        """
        if wanted.memory_off:
            return Recalled()
        found = Recalled()
        if not wanted.scope:
            found = await self._private(wanted)
        if is_small_talk(gist(wanted.text)):
            return found  # there is nothing to search by
        facts: Sequence[StoredFact] = ()
        exchanges: Sequence[Exchange] = ()
        chunks: Sequence[Chunk] = ()
        of = Whose(person_id=wanted.person_id, scope=wanted.scope)
        if self._facts is not None:
            facts = await self._facts.recall(of, wanted.text, k=self._facts_max)
        if self._archive is not None:
            exchanges = await self._archive.search(
                wanted.person_id,
                wanted.place,
                wanted.text,
                k=EXCHANGES_RECALLED,
                before=wanted.history_from,
                conversation=wanted.conversation,
            )
        if self._documents is not None:
            chunks = await self._documents.recalled(wanted)
        shown = (
            Fact(
                id=fact.key,
                text=fact.text,
                category=fact.category,
                speaker=fact.speaker if wanted.scope else "",
            )
            for fact in facts
        )
        return replace(found, facts=tuple(shown), exchanges=tuple(exchanges), chunks=tuple(chunks))

    async def _private(self, wanted: RecallWanted) -> Recalled:
        """Return what is shown where the person is alone."""
        about = About() if self._about is None else await self._about(wanted)
        pins: tuple[str, ...] = ()
        recommendations: tuple[str, ...] = ()
        if self._insights is not None:
            pins, recommendations = await self._insights.relevant(
                wanted.conversation, wanted.text, wanted.now
            )
        coming = () if self._coming is None else await self._coming(wanted)
        return Recalled(
            profile=about.profile,
            persona_prompt=about.persona_prompt,
            pins=pins,
            recommendations=recommendations,
            coming=tuple(coming),
        )
