"""Conversations as whole things: what a person or the owner looks at, takes back, or erases.

Values and ports; `memory` implements them, commands use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.records.facts import Compaction
from memory.records.messages import ConversationId
from memory.records.transcript import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What of a conversation is in the archive alone: how many messages, from when to when (epoch
    milliseconds; 0 where there are none)."""

    messages: int
    first_ms: int = 0
    last_ms: int = 0


class Compactions(Protocol):
    """What was summed up. Raises StorageError."""

    async def undo(self, conversation: ConversationId) -> Compaction | None:
        """Takes the last one back, from the next turn on; None when there is none. What it had
        replaced counts again."""

    async def aside(self, conversation: ConversationId) -> Aside:
        """What is not sent any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation. `lane` is where it is, `people` the names of those who spoke in it.

    `began_ms` and `last_ms` are of its first and last message; `tokens` of all of it, estimated;
    `summary` that of its last compaction.
    """

    id: ConversationId
    lane: str
    began_ms: int
    last_ms: int
    messages: int
    tokens: int
    people: tuple[str, ...] = ()
    closed_ms: int | None = None
    is_private: bool = False
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """Something that stands in a conversation."""

    id: int
    run_id: str
    at_ms: int
    entry: Entry


class Sessions(Protocol):
    """All conversations. Raises StorageError."""

    async def list(self, *, limit: int, all_lanes: bool = False) -> Sequence[Session]:
        """The last used first; those of subagents only with `all_lanes`."""

    async def find(self, wanted: str) -> Sequence[Session]:
        """Those whose id begins like this; a whole id finds that one alone."""

    async def entries(
        self, conversation: ConversationId, *, after: int, limit: int
    ) -> Sequence[SessionEntry]:
        """What stands in it behind the id `after`, in order."""

    async def last_entries(
        self, conversation: ConversationId, *, limit: int
    ) -> Sequence[SessionEntry]:
        """The newest, in order."""

    async def erase(self, conversation: ConversationId) -> bool:
        """Erases all that was said in it for good; False when it is not there."""
