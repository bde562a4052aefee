"""Messages that were sent and are to read otherwise: a card becomes its outcome. For the outbox.

What is wanted is stored before anything is asked of a platform, and tried until it is done; an edit
may be repeated without harm. Each message has a task of its own: one that waits holds nothing up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, assert_never

import structlog

from bot.channels.base import (
    Channel,
    DeliveryRefused,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    Pressed,
    SentMessage,
)
from memory.records.errors import StorageError
from memory.records.messages import Address, OutboxId
from memory.records.ports import Clock
from memory.records.rows import NewMessage, OutboxState, OutRow
from memory.stores.approvals import SqliteCards
from memory.stores.outbox import SqliteOutbox

log = structlog.get_logger()

OPEN = frozenset({OutboxState.DRAFT, OutboxState.READY})

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class Revisions:
    """Edits messages until they read as they should."""

    def __init__(
        self,
        store: SqliteOutbox,
        channels: Mapping[str, Channel],
        *,
        clock: Clock,
        clean: Callable[[str], str],
        pause_s: Callable[[int], float],
        spawn: Spawn,
        deliver: Callable[[str, OutboxId], None],
    ) -> None:
        """`pause_s` is the back-off after so many tries; `deliver` sends a further row."""
        self._store = store
        self._channels = channels
        self._clock = clock
        self._clean = clean
        self._pause_s = pause_s
        self._spawn = spawn
        self._deliver = deliver
        self._asked: set[OutboxId] = set()
        self._tasks: dict[OutboxId, tuple[str, asyncio.Task[None]]] = {}

    def take_up(self, lane: str, outbox_id: OutboxId) -> None:
        """A row is to read otherwise. Returns at once; does nothing while it is not sent."""
        self._asked.add(outbox_id)
        if outbox_id not in self._tasks:
            self._tasks[outbox_id] = (lane, self._spawn(self._work(outbox_id)))

    def tasks(self, lane: str | None = None) -> list[asyncio.Task[None]]:
        """Those that work (for this chat)."""
        return [task for key, task in self._tasks.values() if lane in {None, key}]

    def lanes(self) -> list[str]:
        """Where something is being revised."""
        return [lane for lane, _ in self._tasks.values()]

    async def _work(self, outbox_id: OutboxId) -> None:
        tries = 0
        try:
            while outbox_id in self._asked:
                self._asked.discard(outbox_id)
                while True:
                    try:
                        pause_s = await self._revise(outbox_id, is_first=tries == 0)
                    except StorageError as trouble:
                        if tries == 0:
                            log.error("outbox.storage", why=str(trouble))
                        pause_s = self._pause_s(tries)
                    if pause_s is None:
                        break
                    tries += 1
                    await self._clock.sleep(pause_s)
        finally:
            del self._tasks[outbox_id]

    async def _revise(self, outbox_id: OutboxId, *, is_first: bool) -> float | None:
        """One try. Seconds to wait before the next; None: there is nothing (more) to do."""
        while True:
            row = await self._store.row(outbox_id)
            if row is None or row.revision is None or row.state in OPEN:
                return None
            address = Address.parse(row.lane)
            channel = self._channels.get(address.channel)
            if channel is None:
                log.error("outbox.no_channel", row=outbox_id, channel=address.channel)
                return None
            wait_s = row.not_before_ms / 1000 - self._clock.now().timestamp()
            if wait_s > 0 and is_first:  # a former process was told to wait so long
                return min(wait_s, 3600)
            edits, rest = _planned(row, channel.parts(self._clean(row.revision)))
            for message_id, part in edits:
                again_s = await self._edit(channel, address, message_id, part)
                if again_s is not None:
                    # When the next try may be is stored: a restart does not hurry it.
                    pause_s = max(again_s, 0.0) or self._pause_s(row.attempts)
                    not_before_s = self._clock.now().timestamp() + pause_s
                    await self._store.postpone(
                        row.id, not_before_ms=int(not_before_s * 1000), attempts=row.attempts + 1
                    )
                    return pause_s
            message = NewMessage(lane=row.lane, text=rest) if rest.strip() else None
            further = await self._store.revised(row.id, row.revision, rest=message)
            if further is not None:
                self._deliver(row.lane, further)
            log.info("outbox.revised", row=row.id)

    async def _edit(
        self, channel: Channel, address: Address, message_id: str, part: MessagePart
    ) -> float | None:
        """Seconds to wait before it is tried again (0: back off). A message that is gone, or that
        the platform lets nobody change, is left as it is."""
        match await channel.edit(address, message_id, part):
            case SentMessage():
                return None
            case MessageGone():
                log.info("outbox.revision_without_message", lane=address.key)
                return None
            case DeliveryRefused(reason=reason):
                log.warning("outbox.revision_refused", lane=address.key, why=reason)
                return None
            case NotSent(reason=reason, retry_after_s=after_s):
                log.debug("outbox.revise_again", lane=address.key, why=reason)
                return after_s or 0.0
            case InDoubt(reason=reason):
                log.debug("outbox.revise_again", lane=address.key, why=reason)
                return 0.0
            case other:
                assert_never(other)


def _planned(
    row: OutRow, wanted: Sequence[MessagePart]
) -> tuple[list[tuple[str, MessagePart]], str]:
    """Return which message is to read how, and what of the text is left when all are used.

    Of several messages the last ones are taken, for they bore the buttons; what stands above
    stays: it is what the person decided on. Without a text, the buttons alone go.
    """
    there = [part for part in row.parts if part.message_id]
    if not there:
        return [], ""
    last = there[-1]
    texts = list(wanted) or [MessagePart(markup=last.markup, source=last.source)]
    used, left = texts[: len(there)], texts[len(there) :]
    edits = [
        (part.message_id, replace(text, loses_buttons=part.n == row.parts[-1].n))
        for part, text in zip(there[-len(used) :], used, strict=True)
    ]
    return edits, "".join(part.source for part in left)


# --- cards --------------------------------------------------------------------------------------
#
# Messages of ours with buttons: sent, and edited to what came of them once somebody has pressed.
#
# Used by those whose buttons stand under messages that others sent, such as reminders.


class SendsAndEdits(Protocol):
    """Sends and edits; `bot.outbox.outbox` is one. Raises StorageError."""

    async def post(self, message: NewMessage) -> OutboxId:
        """Sends one; the id is what `revise` wants."""

    async def revise(self, outbox_id: OutboxId, text: str) -> None:
        """Makes it read so, without buttons; may be repeated."""


class QuestionMessages:
    """Everything may raise StorageError."""

    def __init__(self, outgoing: SendsAndEdits, found: SqliteCards) -> None:
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
