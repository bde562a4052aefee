"""What was spent, as people ask for it: by day, person, chat, job, model. Read by `bot.usage`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.messages import PersonId
from agent.spending import NOBODY

SLOT_MS = 900_000
"""A quarter of an hour: every time zone's days are made of whole ones."""

Dimension = Literal["slot", "person", "chat", "job", "agent", "model", "purpose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Calls from `since_ms` on and before `until_ms`, added up by some of the dimensions; of one
    person where `person_id` is set."""

    since_ms: int
    until_ms: int
    by: tuple[Dimension, ...] = ()
    person_id: PersonId = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One sum. What was not asked for is empty.

    `slot` is in quarters of an hour since the epoch. `unpriced` calls have no known price and are
    not in `micros`; `estimated` ones have figures of our own, or are still being made. Of those
    that the provider counted, `off_tokens` of `counted_tokens` were estimated wrong before.
    """

    slot: int = 0
    person_id: PersonId = NOBODY
    lane: str = ""
    job: str = ""
    agent: str = ""
    model: str = ""
    purpose: str = ""
    calls: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    micros: int = 0
    unpriced: int = 0
    estimated: int = 0
    counted_tokens: int = 0
    off_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and answer together."""
        return self.prompt + self.completion


class UsageSums(Protocol):
    """Adds up recorded calls. Raises StorageError."""

    async def groups(self, wanted: Wanted) -> Sequence[Group]:
        """One for each combination that there is, in no order."""
