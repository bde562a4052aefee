"""Whether a stored message is let in still, once it is its turn. Used by the door."""

from __future__ import annotations

from collections.abc import Sequence

from agent.messages import IncomingMessage, Role
from agent.ports import InboxState
from bot.access import Access
from bot.endings import Endings
from bot.ports import NewMessage, Person, StoredEvent


class Admission:
    """Asks anew who is let in: between what is stored and what is done, that may have changed."""

    def __init__(self, access: Access, endings: Endings) -> None:
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
        hint = None if person is None else self._hint(message, person)
        await self._endings.end(events[0], InboxState.REFUSED, reason=reason, reply=hint)
        return None

    def _hint(self, message: IncomingMessage, person: Person) -> NewMessage | None:
        """The owner alone is told how to admit a chat."""
        if person.role is not Role.OWNER or not self._access.hint_is_due(message.address):
            return None
        chat = f"{message.address.channel}:{message.address.chat_id}"
        text = (
            "This chat is not admitted, so I stay silent to everybody here. To admit it, run on "
            f"my machine: hearthbot access approve {chat}"
        )
        return NewMessage(lane=message.address.key, text=text)
