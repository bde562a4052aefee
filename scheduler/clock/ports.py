"""What the scheduler needs of others. `memory` implements it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memory.records.messages import ConversationId


class IdleTimer(Protocol):
    """A conversation in which something is left to do. `touched_ms` is the end of its last turn,
    epoch milliseconds; `tries` how often the work on it failed since."""

    @property
    def conversation(self) -> ConversationId: ...

    @property
    def lane(self) -> str: ...

    @property
    def touched_ms(self) -> int: ...

    @property
    def tries(self) -> int: ...


class IdleStore(Protocol):
    """Keeps one timer for each conversation; the end of a turn opens it. Raises StorageError.

    What changes a timer names the `touched_ms` that it was read with, and changes nothing once
    somebody has spoken since.
    """

    async def due(self, *, now_ms: int, idle_ms: int, limit: int) -> Sequence[IdleTimer]:
        """Open timers that need wait for nothing more, the longest silent first: untouched for
        `idle_ms`, or of a conversation that is closed. None of one in which memory is off."""

    async def close(self, conversation: ConversationId, *, touched_ms: int) -> bool:
        """Nothing is left to do; False when somebody has spoken since."""

    async def put_off(
        self, conversation: ConversationId, *, touched_ms: int, until_ms: int
    ) -> bool:
        """Counts a failure, and waits until then; False when somebody has spoken since."""

    async def steady(self, *, now_ms: int, ahead_ms: int) -> int:
        """Sets to now what is touched in the future, or put off for longer than `ahead_ms`: the
        clock was set back. Returns how many were."""

    async def last_touched(self, lane: str) -> int | None:
        """When the last turn of the open conversation of an address ended; None: there was none,
        or memory is off in it."""
