"""A button was pressed: who may act on it, what it does, and what they are told. Used by the
intake."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from bot.channels.base import Channel, Pressed
from bot.inbox.admission import BROKEN, EventCloser
from bot.inbox.background import BackgroundTasks
from bot.people.access import Access
from bot.people.pairing import is_group
from memory.records.errors import AssistantError, StorageFull
from memory.records.ports import InboxState
from memory.records.rows import Person, StoredEvent

log = structlog.get_logger()

NO_LONGER = "This button no longer does anything."
"""To whoever presses one that nobody knows (any more)."""

Press = Callable[[Pressed, Person], Awaitable[str]]
"""Acts on a button, and says what the person who pressed it is told; empty: nothing.

Whether they may is decided here, by the person, who was recognised by their address: buttons in a
group can be pressed by everybody there, and the data is what a client sent. It may be called again
for the same press after a crash, and a second time for a double tap; AssistantErrors are told.
"""


class ButtonHandler:
    """Acts on buttons, by the prefix of their data, which stands before the colon."""

    def __init__(
        self,
        by_prefix: Mapping[str, Press],
        access: Access,
        *,
        endings: EventCloser,
        tasks: BackgroundTasks,
    ) -> None:
        self.by_prefix = by_prefix
        self._access = access
        self._endings = endings
        self._tasks = tasks

    async def take(self, channel: Channel, event: StoredEvent, pressed: Pressed) -> None:
        """Acts on a button, whose effect is stored before the event ends: a crash in between has
        it done anew. The answer goes out beside what comes next. Raises StorageError."""
        person = self._access.who(pressed.sender)
        if person is None:
            await self._endings.end(event, InboxState.REFUSED, reason="no longer let in")
            return
        in_group = is_group(f"{pressed.address.channel}:{pressed.address.chat_id}")
        if in_group and not self._access.is_admitted(pressed.address):
            await self._endings.end(event, InboxState.REFUSED, reason="chat not admitted")
            return
        text = await self._acted(pressed, person)
        await self._endings.end(event, InboxState.COMMAND, reason="button")
        log.info("inbox.pressed", inbox=event.id, lane=pressed.address.key)
        self._tasks.begin(channel.answered(pressed, text), name="press answered")
        await asyncio.sleep(0)
        await self._endings.answered(pressed.address.key)

    async def _acted(self, pressed: Pressed, person: Person) -> str:
        prefix, colon, _ = pressed.data.partition(":")
        press = self.by_prefix.get(prefix)
        if press is None or not colon:
            return NO_LONGER
        try:
            return await press(pressed, person)
        except StorageFull:
            raise  # it is done once there is space
        except AssistantError as error:
            log.error("inbox.press", prefix=prefix, why=str(error))
            return str(error)
        except Exception:  # as with commands
            log.exception("inbox.press", prefix=prefix)
            return BROKEN.format(name="That button")
