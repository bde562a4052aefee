"""Photos that were sent as one, put together to one message. Used by the intake.

A platform brings them one by one. All are in the inbox, so a crash here loses none: they are
gathered anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bot.channels.base import AlbumPart
from bot.inbox.admission import EventCloser
from bot.inbox.background import BackgroundTasks, patiently
from memory.records.errors import StorageError
from memory.records.messages import IncomingMessage
from memory.records.ports import Clock, InboxState
from memory.records.rows import StoredEvent

ALBUM_S = 0.5
"""An album is whole once nothing of it came for so long (SPEC §3)."""

ALBUM_PARTS_MAX = 10
"""More are never sent as one album; what comes beyond is an album of its own."""

TakesAlbum = Callable[[Sequence[StoredEvent], IncomingMessage], Awaitable[None]]
"""Acts on all events of an album as the one message that they are; may raise StorageError, and is
called again then."""


@dataclass(slots=True)
class _Album:
    """Photos that were sent as one, while more may come."""

    parts: list[tuple[StoredEvent, AlbumPart]] = field(default_factory=list)
    waiting: asyncio.Task[None] | None = None


class Albums:
    """Gathers albums, several at a time."""

    def __init__(
        self,
        take: TakesAlbum,
        *,
        endings: EventCloser,
        tasks: BackgroundTasks,
        troubled: Callable[[StoredEvent, StorageError], None],
        clock: Clock,
    ) -> None:
        """`troubled` is called with the event that waits for storage."""
        self._take = take
        self._endings = endings
        self._tasks = tasks
        self._troubled = troubled
        self._clock = clock
        self._open: dict[tuple[str, str, str], _Album] = {}

    async def gather(self, event: StoredEvent, part: AlbumPart) -> None:
        """Waits for the rest of an album, beside what else comes in."""
        lane = part.message.address.key
        key = (lane, part.message.sender, part.album)
        album = self._open.get(key)
        if album is not None and len(album.parts) < ALBUM_PARTS_MAX:
            album.parts.append((event, part))
            return
        await self.hand_on(lane)
        album = self._open[key] = _Album([(event, part)])
        album.waiting = self._tasks.begin(self._wait_for_more(key, album), name=f"album {lane}")

    async def hand_on(self, lane: str) -> None:
        """What comes after an album is not handled before it."""
        for key in [key for key in self._open if key[0] == lane]:
            album = self._open.pop(key)
            if album.waiting is not None:
                album.waiting.cancel()
            await self._patiently(album)

    async def _wait_for_more(self, key: tuple[str, str, str], album: _Album) -> None:
        seen = 0
        while seen < len(album.parts):
            seen = len(album.parts)
            await self._clock.sleep(ALBUM_S)
        if self._open.get(key) is album:
            del self._open[key]
            await self._patiently(album)

    async def _patiently(self, album: _Album) -> None:
        troubled = partial(self._troubled, album.parts[0][0])
        await patiently(partial(self._whole, album), self._clock, troubled=troubled)

    async def _whole(self, album: _Album) -> None:
        """One message with all the photos: the later events are joined to the first one's turn
        in the transaction that stores it."""
        events = [event for event, _ in album.parts]
        if not any(part.addressed for _, part in album.parts):
            for event in events:
                await self._endings.end(event, InboxState.SILENT, reason="not addressed")
            return
        messages = [part.message for _, part in album.parts]
        joined = replace(
            messages[0],
            text="\n".join(message.text for message in messages if message.text),
            quote=next((message.quote for message in messages if message.quote), ""),
            forwarded=next((message.forwarded for message in messages if message.forwarded), ""),
            attachments=tuple(one for message in messages for one in message.attachments),
            mentions_bot=any(message.mentions_bot for message in messages),
        )
        await self._take(events, joined)
