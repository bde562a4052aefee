"""What `/private` does: a conversation with memory off, which is erased for good at its end."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog

from agent.messages import IncomingMessage
from bot.ports import Person

log = structlog.get_logger()

BEGUN = (
    "Memory is off here from now on: I look up nothing of what I know about you, I learn nothing, "
    "and this conversation is kept apart. `/private off` or `/new` ends it, and then all of it is "
    "erased. The model's provider and this app see it all the same, and files that you have me "
    "write stay."
)
BEGUN_ALREADY = (
    "Memory is off here already. `/private off` ends it, and erases what was said since."
)
ENDED = "The private conversation is erased for good. A usual one begins, with memory on."
ENDED_LATER = (
    "The private conversation has ended, and a usual one begins. It is erased as soon as the "
    "answer that is still being made here is done; `/stop` ends that at once."
)
NOT_ON = "Memory is on here; `/private` begins a conversation without it."
IN_PRIVATE = "`/private` is done in a private chat: in a group others see what is said anyway."
USE = "`/private` begins a conversation with memory off, `/private off` ends and erases it."


class PrivateConversations(Protocol):
    """Conversations with memory off; `memory.private` keeps them. Raises StorageError."""

    async def begin(self, lane: str) -> None:
        """Closes the open conversation, which is kept, and opens one with memory off."""

    async def end(self, lane: str) -> None:
        """Closes it and opens a usual one."""

    async def is_private(self, lane: str) -> bool:
        """Whether memory is off at this address now."""

    async def erase_closed(self) -> int:
        """Erases all that are over, for good; returns how many are left, because a turn in their
        chat is not over. May be repeated."""


class PrivateDesk:
    """Implements `bot.command_tools.TellsPrivate`."""

    def __init__(self, conversations: PrivateConversations) -> None:
        self._conversations = conversations
        self._erasing = asyncio.Lock()

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """Begins one, or ends it. Raises StorageError."""
        if message.is_group:
            return IN_PRIVATE
        lane = message.address.key
        is_on = await self._conversations.is_private(lane)
        match rest.lower().split():
            case [] | ["on"]:
                if is_on:
                    return BEGUN_ALREADY
                await self._conversations.begin(lane)
                log.info("private.begun", lane=lane)
                return BEGUN
            case ["off"]:
                if not is_on:
                    return NOT_ON
                await self._conversations.end(lane)
                return await self.ended()
            case _:
                return USE

    async def is_private(self, lane: str) -> bool:
        """For `/new`, before it opens a usual conversation: whether `ended` has to follow."""
        return await self._conversations.is_private(lane)

    async def ended(self) -> str:
        """Erases what is over, and says so. Raises StorageError."""
        return ENDED_LATER if await self.sweep() else ENDED

    async def sweep(self) -> int:
        """Erases private conversations that are over, also those that a former process left; says
        how many have to wait. At every start, and once an hour. Raises StorageError."""
        async with self._erasing:
            left = await self._conversations.erase_closed()
        if left:
            log.info("private.waits", count=left)
        return left
