"""What the assistant sends besides its answer, for the tools of the group `message`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from agent.messages import PersonId
from agent.ports import Conversations
from agent.stored import NewMessage
from agent.tools.own_chats import OwnChat
from agent.tools.sending_files import FileToSend, Noted
from bot.access import Access
from bot.outbox import NewFile

Say = Callable[[NewMessage], Awaitable[None]]

NOTED = "You sent this to the person with send_message, from another place: "
NOTED_FILE = "You sent this file to the person with send_file, from another place: "


class PostFile(Protocol):
    """Copied and stored, then on its way. Raises StorageError."""

    async def __call__(self, lane: str, file: NewFile, *, caption: str) -> None: ...


class BotMessenger:
    """Implements `Messenger` and `FileSender` of `agent.tools` over the outbox."""

    def __init__(
        self, access: Access, conversations: Conversations, say: Say, post_file: PostFile
    ) -> None:
        self._access = access
        self._conversations = conversations
        self._say = say
        self._post_file = post_file

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        """Where this person alone reads; the terminal is no place that waits."""
        return [OwnChat(lane=lane) for lane in await self._access.private_chats(person_id)]

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        """The note lets the person answer it there: the next turn knows what was sent."""
        await self._say(NewMessage(lane=lane, text=text))
        conversation = await self._conversations.current(lane)
        await self._conversations.note(conversation, f"{NOTED}{text}", untrusted=untrusted)

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, noted: Noted | None
    ) -> None:
        """Noted as `send` does."""
        new = NewFile(name=file.name, path=file.path, content=file.content)
        await self._post_file(lane, new, caption=caption)
        if noted is not None:
            conversation = await self._conversations.current(lane)
            words = f"\n\n{caption}" if caption else ""
            text = f"{NOTED_FILE}{file.path}{words}"
            await self._conversations.note(conversation, text, untrusted=noted.untrusted)
