"""What is remembered for a prompt: the `Recall` that the core needs."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memory.database.connection import Database
from memory.facts.relevance import gist, is_small_talk
from memory.facts.store import SqliteFacts
from memory.records.facts import (
    Chunk,
    Coming,
    Exchange,
    Fact,
    Recalled,
    RecallWanted,
    Whose,
)
from memory.records.languages import language_name
from memory.records.messages import PersonId
from memory.records.text import one_line

T = TypeVar("T")
Ask = Callable[[RecallWanted], Awaitable[T]]
"""Finds one part of what is remembered. Raises StorageError."""

FACTS_RECALLED = 5
_PERSON = "select name, language, time_zone, role from people where id = ?"
_LABELS = ("Name", "Language", "Time zone", "Role")


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Text about the person, and the prompt of their own persona."""

    profile: str = ""
    persona_prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """What a model made of the last turns."""

    pins: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallParts:
    """Who finds what. A part that is not given stays empty.

    `about`, `insight` and `coming` are private, and not asked for in a group. `exchanges` and
    `chunks` are searched for, and not asked for where a message has nothing to search by.
    """

    about: Ask[About] | None = None
    insight: Ask[Insight] | None = None
    coming: Ask[Sequence[Coming]] | None = None
    exchanges: Ask[Sequence[Exchange]] | None = None
    chunks: Ask[Sequence[Chunk]] | None = None
    summary: Ask[str] | None = None


class SqliteRecall:
    """Implements `memory.records.ports.Recall`.

    Nothing is kept between calls: people change at run time, and one row costs little.
    """

    def __init__(
        self,
        database: Database,
        *,
        facts: SqliteFacts | None = None,
        facts_max: int = FACTS_RECALLED,
        parts: RecallParts | None = None,
    ) -> None:
        """Without `parts.about`, the profile is what is stored of the person's row."""
        self._database = database
        self._facts = facts
        self._facts_max = facts_max
        self._parts = parts or RecallParts()

    async def recall(self, wanted: RecallWanted) -> Recalled:
        """What this person may see in this place; nothing at all where memory is off. In a group
        only what belongs to the group, and nothing of a profile (SPEC §9)."""
        if wanted.memory_off:
            return Recalled()
        alone, searches = not wanted.scope, not is_small_talk(gist(wanted.text))
        parts = self._parts
        try:
            async with asyncio.TaskGroup() as group:
                about = group.create_task(_asked(parts.about or self._row, wanted, alone, About()))
                insight = group.create_task(_asked(parts.insight, wanted, alone, Insight()))
                coming = group.create_task(_all(parts.coming, wanted, alone))
                facts = group.create_task(_all(self._fitting, wanted, searches))
                exchanges = group.create_task(_all(parts.exchanges, wanted, searches))
                chunks = group.create_task(_all(parts.chunks, wanted, searches))
                summary = group.create_task(_asked(parts.summary, wanted, True, ""))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return Recalled(
            profile=about.result().profile,
            persona_prompt=about.result().persona_prompt,
            facts=facts.result(),
            exchanges=exchanges.result(),
            chunks=chunks.result(),
            pins=insight.result().pins,
            recommendations=insight.result().recommendations,
            coming=coming.result(),
            summary=summary.result(),
        )

    async def _row(self, wanted: RecallWanted) -> About:
        person_id = wanted.person_id
        return About(profile=await self._database.read(lambda c: profile_of_row(c, person_id)))

    async def _fitting(self, wanted: RecallWanted) -> Sequence[Fact]:
        if self._facts is None:
            return ()
        of = Whose(person_id=wanted.person_id, scope=wanted.scope)
        found = await self._facts.recall(of, wanted.text, k=self._facts_max)
        return [
            Fact(
                id=fact.key,
                text=fact.text,
                category=fact.category,
                speaker=fact.speaker if wanted.scope else "",
            )
            for fact in found
        ]


async def _asked(ask: Ask[T] | None, wanted: RecallWanted, wished: bool, otherwise: T) -> T:
    return otherwise if ask is None or not wished else await ask(wanted)


async def _all(ask: Ask[Sequence[T]] | None, wanted: RecallWanted, wished: bool) -> tuple[T, ...]:
    return () if ask is None or not wished else tuple(await ask(wanted))


def profile_of_row(connection: sqlite3.Connection, person_id: PersonId) -> str:
    """One line for each thing known; empty for somebody unknown."""
    row = connection.execute(_PERSON, (person_id,)).fetchone()
    if row is None:
        return ""
    # A name is whatever its bearer typed: it must not be able to add lines of its own.
    name, language, *others = row
    shown = (name, language_name(language), *others)
    known = zip(_LABELS, map(one_line, shown), strict=True)
    return "\n".join(f"{label}: {value}" for label, value in known if value)
