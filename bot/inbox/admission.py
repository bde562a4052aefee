"""Whether a stored message is let in still, once it is its turn. Used by the intake."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog

from bot.outbox.outbox import Outbox
from bot.people.access import Access
from memory.records.errors import StorageError
from memory.records.messages import IncomingMessage, OutboxId, Role
from memory.records.ports import InboxState
from memory.records.rows import NewMessage, Person, StoredEvent
from memory.stores.inbox import SqliteInbox

# --- endings ------------------------------------------------------------------------------------
#
# How a stored event ends: its state and its reply are stored, and what follows an answer is told
# of it. Used by the intake and its parts.

log = structlog.get_logger()

BROKEN = (
    "{name} did not work, because of a fault in the bot itself. What happened stands in its log."
)
"""To whoever asked for what did, by the name that they know it by."""


class EventCloser:
    """Gives events their terminal state."""

    def __init__(
        self,
        inbox: SqliteInbox,
        outbox: Outbox,
        *,
        afterwards: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`afterwards` hears of the address where a command or a press was answered; it may raise
        StorageError, and be called again."""
        self._afterwards = afterwards
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
        if self._afterwards is None:
            return
        try:
            await self._afterwards(lane)
        except StorageError as trouble:
            log.warning("inbox.afterwards", lane=lane, why=str(trouble))


class Admission:
    """Asks anew who is let in: between what is stored and what is done, that may have changed."""

    def __init__(self, access: Access, endings: EventCloser) -> None:
        self._access = access
        self._endings = endings

    async def let_in(
        self, events: Sequence[StoredEvent], message: IncomingMessage
    ) -> Person | None:
        """The person, unless they or the chat are not let in (any more): then the events end.
        Raises StorageError."""
        person = self._access.who(message.sender)
        if person is not None and (
            not message.is_group or self._access.is_admitted(message.address)
        ):
            if not message.sender_language:
                return person
            await self._access.introduce(message.sender, language=message.sender_language)
            return self._access.who(message.sender) or person
        reason = "no longer let in" if person is None else "chat not admitted"
        for event in events[1:]:
            await self._endings.end(event, InboxState.REFUSED, reason=reason)
        hint = None
        is_owners = person is not None and person.role is Role.OWNER
        if is_owners and self._access.hint_is_due(message.address):
            # The owner alone is told how to admit a chat.
            chat = f"{message.address.channel}:{message.address.chat_id}"
            text = (
                "This chat is not admitted, so I stay silent to everybody here. To admit it, run "
                f"on my machine: hearthbot access approve {chat}"
            )
            hint = NewMessage(lane=message.address.key, text=text)
        await self._endings.end(events[0], InboxState.REFUSED, reason=reason, reply=hint)
        return None
