"""Messages that the assistant sends besides its answer, for the tools of the group `message`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from agent.messages import PersonId
from agent.ports import Conversations
from agent.stored import NewMessage
from agent.tools.message import OwnChat
from bot.access import Access

Say = Callable[[NewMessage], Awaitable[None]]

NOTED = "You sent this to the person with send_message, from another place: "


class BotMessenger:
    """Implements `agent.tools.message.Messenger` over the outbox."""

    def __init__(self, access: Access, conversations: Conversations, say: Say) -> None:
        self._access = access
        self._conversations = conversations
        self._say = say

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        """Where this person alone reads; the terminal is no place that waits."""
        return [OwnChat(lane=lane) for lane in await self._access.private_chats(person_id)]

    async def send(self, lane: str, text: str) -> None:
        """The note lets the person answer it there: the next turn knows what was sent."""
        await self._say(NewMessage(lane=lane, text=text))
        conversation = await self._conversations.current(lane)
        await self._conversations.note(conversation, f"{NOTED}{text}")
