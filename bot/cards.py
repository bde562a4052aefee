"""Messages of ours with buttons: sent, and edited to what came of them once somebody has pressed.

Used by the desks whose buttons stand under messages that others sent, such as reminders.
"""

from __future__ import annotations

from typing import Protocol

from agent.messages import OutboxId
from agent.stored import NewMessage
from bot.channel import Pressed


class Outgoing(Protocol):
    """Sends and edits; `bot.outbox` is one. Raises StorageError."""

    async def post(self, message: NewMessage) -> OutboxId:
        """Sends one; the id is what `revise` wants."""

    async def revise(self, outbox_id: OutboxId, text: str) -> None:
        """Makes it read so, without buttons; may be repeated."""


class FindsCards(Protocol):
    """Knows our messages by the platform's ids; `memory.cards` does. Raises StorageError."""

    async def standing(self, lane: str, message_id: str) -> tuple[OutboxId, str] | None:
        """A message that still has its buttons, and its text."""


class Cards:
    """Everything may raise StorageError."""

    def __init__(self, outgoing: Outgoing, found: FindsCards) -> None:
        self._outgoing = outgoing
        self._found = found

    async def post(self, message: NewMessage) -> OutboxId:
        """Sends one; the id is what `revise` wants."""
        return await self._outgoing.post(message)

    async def revise(self, card: OutboxId, text: str) -> None:
        """Makes it read so, without buttons."""
        await self._outgoing.revise(card, text)

    async def close(self, pressed: Pressed, said: str) -> None:
        """Adds what came of a press to its message, in place of the buttons, if they still stand
        there."""
        card = await self._found.standing(pressed.address.key, pressed.message_id)
        if card is not None:
            outbox_id, text = card
            await self._outgoing.revise(outbox_id, f"{text}\n\n{said}")
