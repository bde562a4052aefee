"""How a stored event ends: its state and its reply are stored, and what follows an answer is told
of it. Used by the door and its parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from agent.errors import StorageError
from agent.messages import OutboxId
from agent.ports import InboxState
from bot.outbox import Outbox
from bot.ports import Inbox, NewMessage, StoredEvent

log = structlog.get_logger()

BROKEN = (
    "{name} did not work, because of a fault in the bot itself. What happened stands in its log."
)
"""To whoever asked for what did, by the name that they know it by."""


class Endings:
    """Gives events their terminal state."""

    afterwards: Callable[[str], Awaitable[None]] | None = None
    """Hears of the address where a command or a press was answered; set once, before the first
    message. May raise StorageError, and may be called again."""

    def __init__(self, inbox: Inbox, outbox: Outbox) -> None:
        self._inbox = inbox
        self._outbox = outbox

    async def end(
        self,
        event: StoredEvent,
        state: InboxState,
        *,
        reason: str,
        reply: NewMessage | None = None,
    ) -> None:
        """Stores how it ended, and the reply with it, which then goes out. One that has ended
        already stays as it is. Raises StorageError."""
        row: OutboxId | None = await self._inbox.end(event.id, state, reason=reason, reply=reply)
        if row is not None and reply is not None:
            self._outbox.deliver([(reply.lane, row)])

    async def answered(self, lane: str) -> None:
        """What follows is a thing of its own: its trouble is not the answer's."""
        if self.afterwards is None:
            return
        try:
            await self.afterwards(lane)
        except StorageError as trouble:
            log.warning("door.afterwards", lane=lane, why=str(trouble))
