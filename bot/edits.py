"""A message that was edited: what becomes of its new words. Used by the door."""

from __future__ import annotations

from agent.messages import IncomingMessage, TurnInput
from agent.ports import Conversations, InboxState, TurnEngine
from agent.scene import one_line
from bot.endings import Endings
from bot.ports import StoredEvent


class Edits:
    """An edit replaces the text of a turn that has not begun; later, it is a note for the next
    turn. It is never a turn of its own (SPEC §3, case CH-11)."""

    def __init__(self, engine: TurnEngine, conversations: Conversations, endings: Endings) -> None:
        self._engine = engine
        self._conversations = conversations
        self._endings = endings

    async def take(self, event: StoredEvent, turn: TurnInput, *, alone: bool) -> None:
        """`turn` is what the message would be now. One that is not `alone` came in an album, where
        it would replace the other photos too: it is always a note. Raises StorageError."""
        message = turn.message
        lane = message.address.key
        if alone and await self._engine.edit(lane, message.message_id, turn.to_json()):
            await self._endings.end(event, InboxState.SILENT, reason="edit: text replaced")
            return
        text, untrusted = _noted(message)
        await self._conversations.note(turn.conversation, text, untrusted=untrusted)
        await self._endings.end(event, InboxState.SILENT, reason="edit: noted")


def _noted(message: IncomingMessage) -> tuple[str, bool]:
    """The note of an edit, and whether it is outside text for whoever writes next: in a group that
    may be anybody else, and what is forwarded or quoted is nobody's own."""
    who = one_line(message.sender_name) if message.is_group else ""
    who = f"«{who}»" if who else "The person"
    untrusted = message.is_group or bool(message.forwarded) or bool(message.quote)
    if message.forwarded:
        return f"{who} edited an earlier message, which they had forwarded.", untrusted
    return f"{who} edited an earlier message. It now reads: {message.text}", untrusted
