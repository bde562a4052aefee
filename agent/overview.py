"""What a person is shown of what is remembered of them, beside what the stores themselves tell.

`memory.overview` implements the port; `bot.memory` uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agent.messages import PersonId
from agent.remembering import StoredFact, Whose


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A fact that was closed, and the one that took its place."""

    old: StoredFact
    new: StoredFact


class Overviews(Protocol):
    """Looks over what is there, for its own person. Raises StorageError."""

    async def facts(
        self, person_id: PersonId, *, at: datetime | None = None, past: bool = False
    ) -> Sequence[StoredFact]:
        """Facts of this person in every place, newest first: those that hold, or held at `at`; with
        `past` those that no longer hold instead."""

    async def fact(self, person_id: PersonId, fact_id: int) -> StoredFact | None:
        """One of this person, wherever it belongs to; also a closed one."""

    async def past(self, of: Whose, *, limit: int) -> Sequence[StoredFact]:
        """Facts that may be seen here and no longer hold, the last closed first."""

    async def corrected(self, of: Whose, *, since_ms: int, limit: int) -> Sequence[Corrected]:
        """What was replaced since then, the newest first."""

    async def insights(self, lane: str) -> Sequence[str]:
        """What is kept in mind for the open conversation of an address."""
