"""What the tools of memory have to know of a person and a chat, and sentences that they share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from agent.errors import Permanent
from agent.events import Occasion
from agent.jobbook import TimeRead
from agent.messages import ConversationId, PersonId
from agent.ports import Clock
from agent.tools.tool import Caller

NOTHING_HERE = "Memory is off in this chat (`/private`), so nothing of it is looked at here."


class MemoryRefused(Permanent):
    """What cannot be remembered, found or forgotten like that; the text says why, for the model."""


async def _nobody_hears(occasion: Occasion, time: TimeRead, lane: str) -> None:
    """Where it is all the same by whose clock an event was noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Household:
    """Who is called what, where their day begins, and in which chats memory is off.

    `name_of` gives a person's name, or nothing; `zone_of` their time zone, or that of the host;
    `noted` hears of each event with a time, and of the chat where it was noted. `is_private` and
    `noted` may raise StorageError.
    """

    clock: Clock
    name_of: Callable[[PersonId], str]
    zone_of: Callable[[PersonId], tzinfo]
    is_private: Callable[[ConversationId], Awaitable[bool]]
    noted: Callable[[Occasion, TimeRead, str], Awaitable[None]] = _nobody_hears

    def now_of(self, person_id: PersonId) -> datetime:
        """This moment, on their clock."""
        return self.clock.now().astimezone(self.zone_of(person_id))

    async def is_off(self, caller: Caller) -> bool:
        """Whether memory is off where a call comes from, or where its task was given: then nothing
        is found."""
        if caller.parent is not None and await self.is_private(caller.parent):
            return True
        return await self.is_private(caller.conversation)

    async def check_writable(self, caller: Caller) -> None:
        """Raises MemoryRefused where memory is off: then nothing is written, or taken away."""
        if await self.is_off(caller):
            raise MemoryRefused(
                "memory is off in this chat (`/private`), so nothing was changed in it. Say so; "
                "the person may say it again in another chat"
            )
