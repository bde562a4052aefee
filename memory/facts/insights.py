"""Insights: short notes for the next half hour of a conversation, in the database.

A restart loses none. They belong to one conversation and are shown nowhere else. What they say is
made in `agent.learning.insights`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.database.connection import Database
from memory.database.rows import dump
from memory.facts.tombstones import generation
from memory.records.messages import ConversationId, RunId
from memory.records.words import fold, unbordered_runs, words

PINS_SHOWN, RECOMMENDATIONS_SHOWN = 2, 1
PIN_MIN, RECOMMENDATION_MIN = 0.1, 0.05
"""What a note's relevance must be more than."""
BEGINS_ALIKE, FIRST_WORDS = 0.2, 3
"""What is added where one of the message's first words occurs."""
CHARS_MAX = 800
"""Added to a prompt in all."""

_NOTED = """
select pins, recommendations, updated_ms, is_private
from conversations left join insights on conversation_id = id where id = ?
"""
_IS_ERASED = "select exists (select 1 from turns where run_id = ? and erased_ms is not null)"
_PUT = """
insert into insights (conversation_id, pins, recommendations, updated_ms)
select id, ?, ?, ? from conversations where id = ? and not is_private
on conflict (conversation_id) do update set pins = excluded.pins,
    recommendations = excluded.recommendations, updated_ms = excluded.updated_ms
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insights:
    """The notes of a conversation; `updated_ms` 0: there were never any."""

    pins: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    updated_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What notes are made of: a turn, when something had been forgotten so many times."""

    run_id: RunId
    generation: int


class SqliteInsights:
    """Keeps the notes of conversations. Raises StorageError."""

    def __init__(self, database: Database, *, minutes: float = 30.0) -> None:
        """`minutes` is how long notes are used after their last update."""
        self._database = database
        self._used_ms = int(minutes * 60_000)

    async def current(self, conversation: ConversationId, now: datetime) -> Insights | None:
        """Return those still in use, maybe none; None where memory is off, or there is no such
        conversation."""
        row = await self._database.read(lambda c: c.execute(_NOTED, (conversation,)).fetchone())
        if row is None or row[3]:
            return None
        pins, recommendations, updated_ms, _ = row
        # Also of a future that a clock set back has left behind.
        if updated_ms is None or abs(now.timestamp() * 1000 - updated_ms) > self._used_ms:
            return Insights()
        return Insights(
            pins=tuple(map(str, json.loads(pins))),
            recommendations=tuple(map(str, json.loads(recommendations))),
            updated_ms=updated_ms,
        )

    async def generation(self) -> int:
        """Return how often something was forgotten so far."""
        return await self._database.read(generation)

    async def put(
        self, conversation: ConversationId, insights: Insights, *, basis: Basis | None = None
    ) -> None:
        """Replace the notes as a whole; do nothing where memory is off, or where something was
        forgotten, or the turn erased, that they may tell of."""
        texts = (dump(list(insights.pins)), dump(list(insights.recommendations)))
        values = (*texts, insights.updated_ms, conversation)

        def work(connection: sqlite3.Connection) -> None:
            if basis is not None:
                (is_erased,) = connection.execute(_IS_ERASED, (basis.run_id,)).fetchone()
                if is_erased or generation(connection) != basis.generation:
                    return
            connection.execute(_PUT, values)

        await self._database.write(work)

    async def relevant(
        self, conversation: ConversationId, text: str, now: datetime
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the pins and recommendations that fit a message, best first (SPEC §9)."""
        insights = await self.current(conversation, now) or Insights()
        pins = best(insights.pins, text, above=PIN_MIN, k=PINS_SHOWN)
        recommendations = best(
            insights.recommendations, text, above=RECOMMENDATION_MIN, k=RECOMMENDATIONS_SHOWN
        )
        room = CHARS_MAX - sum(len(pin) for pin in pins)
        return pins, tuple(one for one in recommendations if len(one) <= room)


def best(notes: Sequence[str], text: str, *, above: float, k: int) -> tuple[str, ...]:
    """Return the `k` notes of the highest relevance, if it is more than `above`; ties in order."""
    scored = [(relevance(note, text), note) for note in notes]
    fitting = sorted((one for one in scored if one[0] > above), key=lambda one: -one[0])
    return tuple(note for _, note in fitting[:k])


def relevance(note: str, text: str) -> float:
    """Return words shared ÷ words in the message, + 0.2 if one of its first three words occurs."""
    asked, noted = _words(text), set(_words(note))
    if not asked:
        return 0.0
    share = len(set(asked) & noted) / len(set(asked))
    return share + (BEGINS_ALIKE if noted.intersection(asked[:FIRST_WORDS]) else 0.0)


def _words(text: str) -> list[str]:
    """In order; of scripts without blanks each character."""
    folded = fold(text)
    return [word.text for word in words(folded)] + list("".join(unbordered_runs(folded)))
