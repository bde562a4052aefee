"""What is remembered for a prompt: the `Recall` that the core needs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

from agent.prompt.languages import language_name
from agent.prompt.scene import one_line
from memory.database.connection import Database
from memory.facts.rows import Narrowed, gist, holding, is_small_talk, seen_by, select, select_ids
from memory.records.facts import (
    Chunk,
    Coming,
    Corrected,
    Exchange,
    Fact,
    Recalled,
    RecallWanted,
    StoredFact,
    Whose,
)
from memory.records.messages import PersonId

T = TypeVar("T")
Ask = Callable[[RecallWanted], Awaitable[T]]
"""Finds one part of what is remembered. Raises StorageError."""

FACTS_RECALLED = 5
_PERSON = "select name, language, time_zone, role from people where id = ?"
_LABELS = ("Name", "Language", "Time zone", "Role")


class FactsFound(Protocol):
    """Facts that have to do with a message."""

    async def recall(self, of: Whose, message: str, *, k: int) -> Sequence[StoredFact]:
        """Up to `k` that this person may see here, best first; none that do not fit."""


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
class Parts:
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
        facts: FactsFound | None = None,
        facts_max: int = FACTS_RECALLED,
        parts: Parts | None = None,
    ) -> None:
        """Without `parts.about`, the profile is what is stored of the person's row."""
        self._database = database
        self._facts = facts
        self._facts_max = facts_max
        self._parts = parts or Parts()

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


# --- overview -----------------------------------------------------------------------------------
#
# What is remembered, looked over for its person: the `Overviews` of the core.

_NEWEST = "id desc"
_LAST_CLOSED = "valid_to_ms desc, id desc"
_NO_LONGER = "valid_to_ms is not null"
_INSIGHTS = """
select pins, recommendations from insights
join conversations on conversations.id = conversation_id
where lane = ? and closed_ms is null and not is_private
"""


class SqliteOverviews:
    """Implements `memory.records.facts.Overviews`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def facts(
        self, person_id: PersonId, *, at: datetime | None = None, past: bool = False
    ) -> Sequence[StoredFact]:
        """Those that hold or held, or those that no longer do."""
        whose = _of(person_id)
        where = whose.and_(_NO_LONGER) if past else holding(whose, at)
        order = _LAST_CLOSED if past else _NEWEST
        return await self._database.read(partial(select, where=where, order=order))

    async def fact(self, person_id: PersonId, fact_id: int) -> StoredFact | None:
        """One of this person."""
        found = await self._database.read(partial(select_ids, where=_of(person_id), ids=[fact_id]))
        return found.get(fact_id)

    async def past(self, of: Whose, *, limit: int) -> Sequence[StoredFact]:
        """The last closed first."""
        where = seen_by(of).and_(_NO_LONGER)
        return await self._database.read(
            partial(select, where=where, order=_LAST_CLOSED, limit=limit)
        )

    async def corrected(self, of: Whose, *, since_ms: int, limit: int) -> Sequence[Corrected]:
        """Each with what took its place, unless that is gone."""
        where = seen_by(of).and_("superseded_by is not null and valid_to_ms >= ?", since_ms)

        def work(connection: sqlite3.Connection) -> list[Corrected]:
            closed = select(connection, where, order=_LAST_CLOSED, limit=limit)
            after = [fact.superseded_by for fact in closed if fact.superseded_by is not None]
            new = select_ids(connection, seen_by(of), after)
            return [
                Corrected(old=fact, new=new[fact.superseded_by])
                for fact in closed
                if fact.superseded_by in new
            ]

        return await self._database.read(work)

    async def insights(self, lane: str) -> Sequence[str]:
        """Pins and recommendations, as they are told to the model."""
        row = await self._database.read(lambda c: c.execute(_INSIGHTS, (lane,)).fetchone())
        return [] if row is None else [text for part in row for text in _texts(part)]


def _of(person_id: PersonId) -> Narrowed:
    return Narrowed("person_id = ?", (person_id,))


def _texts(part: str) -> list[str]:
    """Items are texts, or objects with one."""
    items = json.loads(part)
    found = [item.get("text", "") if isinstance(item, dict) else item for item in items]
    return [text for text in found if isinstance(text, str) and text]
