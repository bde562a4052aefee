"""Tells people that what they wrote waits because the disk is full. Sends by the channel itself, as
nothing can be stored meanwhile. Called by the inbox and the engine; what waits goes on by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import TracebackType
from typing import Self

import structlog

from bot.channels.base import (
    AlbumPart,
    Channel,
    InDoubt,
    Pressed,
    SentMessage,
    said_to_all,
)
from bot.commands.table import given
from bot.inbox.background import BackgroundTasks
from memory.records.messages import Address, IncomingMessage
from memory.records.ports import Clock
from memory.records.rows import NewEvent

log = structlog.get_logger()

DISK_FULL = (
    "The disk of the machine I run on is full. What you asked for is waiting; I will do it once "
    "there is space again."
)

OVER_S = 300.0
"""After so long without a failed write, the next failure counts as new trouble and is told again.
What waits is tried every 30 s (`bot.inbox.background`), and by the platforms after a minute or
so."""


class FullDisk:
    """Tells each chat once, and whoever gives a command each time. An async context manager."""

    def __init__(self, channels: Mapping[str, Channel], *, clock: Clock) -> None:
        self._channels = channels
        self._clock = clock
        self._tasks = BackgroundTasks()
        self._told = set[Hashable]()
        self._failed_s = clock.monotonic()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._tasks.__aexit__(kind, error, traceback)

    def holds_up(self, event: NewEvent) -> None:
        """Tell whoever sent this event, if they were let in, that it cannot be stored or acted on.
        Say nothing about an event that would have got no answer."""
        channel = self._channels.get(event.source.partition(":")[0])
        if channel is None or event.payload is None:
            return
        try:
            understood = channel.understand(event.payload)
        except ValueError:
            return
        key = (event.source, event.event_id)
        match understood:
            case Pressed():
                if self._is_news(key):
                    answered = channel.answered(understood, DISK_FULL)
                    self._tasks.begin(answered, name="press answered")
            case IncomingMessage() if not understood.edited and given(understood) is not None:
                self._tell(channel, understood.address, key)
            case IncomingMessage() | AlbumPart(message=IncomingMessage()):
                message = understood.message if isinstance(understood, AlbumPart) else understood
                self.holds_up_chat(said_to_all(message).address.key)

    def holds_up_chat(self, lane: str) -> None:
        """Tell this chat that what was written there cannot go on."""
        address = Address.parse(lane)
        channel = self._channels.get(address.channel)
        if channel is not None:
            self._tell(channel, address, lane)

    def _tell(self, channel: Channel, address: Address, key: Hashable) -> None:
        if self._is_news(key):
            self._told.add(address.key)
            self._tasks.begin(self._say(channel, address, key), name="disk full")

    def _is_news(self, key: Hashable) -> bool:
        now_s = self._clock.monotonic()
        if now_s - self._failed_s > OVER_S:
            self._told.clear()
        self._failed_s = now_s
        is_news = key not in self._told
        self._told.add(key)
        return is_news

    async def _say(self, channel: Channel, address: Address, key: Hashable) -> None:
        (part,) = channel.parts(DISK_FULL)
        await channel.ready(address)
        done = await channel.send(address, part)
        if not isinstance(done, SentMessage | InDoubt):
            log.info("disk_full.untold", lane=address.key, why=done.reason)
            self._told -= {key, address.key}
