"""Conversations as whole things: what a person or the owner looks at, takes back, or erases.

Kept by `memory.stores`, and used by commands.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.records.messages import ConversationId
from memory.records.transcript import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What of a conversation is in the archive alone: how many messages, from when to when (epoch
    milliseconds; 0 where there are none)."""

    messages: int
    first_ms: int = 0
    last_ms: int = 0


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
