"""What a person sees while a turn runs: typing, then a message that grows. Called by the outbox.

A turn that is over soon costs nothing here: no task, no request. The message is the reply's own
row, begun early, so that a crash finds it and the final edit completes it. What outgrows it goes on
in further messages, which are parts of the same row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from bot.channels.base import (
    Channel,
    DeliveryRefused,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    SentMessage,
)
from memory.records.errors import StorageError
from memory.records.messages import Address, RunId
from memory.records.rows import OutboxState, OutPart, OutRow, PartState
from memory.stores.outbox import SqliteOutbox

log = structlog.get_logger()

TYPING_AFTER_S = 0.4
"""A turn that is over within this shows no typing: nobody would see it (DESIGN §2)."""

TYPING_EVERY_S = 4.5
"""Telegram shows a typing action for 5 s."""

STREAM_AFTER_S = 1.0
"""A reply that is whole within this is one plain send: a phone shows the first text."""

STREAM_CHARS_MIN = 40
"""Characters before a streamed message begins."""

FIRST_LOOK_S = 0.2
"""Until the message is there, how often it is looked whether there is enough text for it."""

EVERY_S_MIN = 0.1
"""Between two edits, also where the settings ask for no pause at all."""

MESSAGES_MAX = 8
"""A reply that is longer than so many messages shows the rest when it is whole."""

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(slots=True)
class _Message:
    """One message that grows, and what it reads now."""

    id: str
    shown: MessagePart | None = None


class DetachedDraft:
    """The draft of a turn whose channel is not configured any more. Nobody looks at it."""

    def text(self, so_far: str) -> None:
        """Nobody."""

    def status(self, line: str) -> None:
        """Nobody."""


class LiveDraft:
    """Implements `memory.records.ports.Draft`. Its task begins when the turn is not over soon."""

    def __init__(
        self,
        run_id: RunId,
        address: Address,
        channel: Channel,
        *,
        store: SqliteOutbox,
        spawn: Spawn,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._clean = clean
        self._run_id = run_id
        self._address = address
        self._channel = channel
        self._store = store
        self._spawn = spawn
        self._loop = asyncio.get_running_loop()
        self._text = ""
        self._status = ""
        self._shown = ""
        self._status_shown = False
        self._first_text_at: float | None = None
        self._messages: list[_Message] = []
        self._blocked = False
        self._paused_until = 0.0
        self._closed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(TYPING_AFTER_S, self._begin)
        self.task: asyncio.Task[None] | None = None

    # --- memory.records.ports.Draft -----------------------------------------------------------

    def text(self, so_far: str) -> None:
        """The visible text up to now."""
        if self._first_text_at is None and so_far:
            self._first_text_at = self._loop.time()
        self._text = so_far

    def status(self, line: str) -> None:
        """What is being done."""
        self._status = line
        self._channel.doing(self._address, line)

    # --- for the outbox ------------------------------------------------------------------------

    def close(self) -> None:
        """No further update."""
        self._closed.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- inside --------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._timer = None
        if not self._closed.is_set():
            self.task = self._spawn(self._show())

    async def _show(self) -> None:
        """Typing until the first text, then edits, until closed. Trouble ends it quietly: the
        final reply does not depend on it."""
        typed_at = -TYPING_EVERY_S
        while not self._closed.is_set():
            now = self._loop.time()
            if self._wants_text(now):
                try:
                    await self._update(self._with_status(), with_status=bool(self._status))
                except StorageError as error:
                    log.warning("draft.storage", run=self._run_id, why=str(error))
                    return
            elif not self._messages and now - typed_at >= TYPING_EVERY_S:
                typed_at = now
                await self._channel.typing(self._address)
            await self._pause()
        if self._status_shown and not self._blocked:
            # A cancelled turn has no reply that would overwrite the status line.
            await self._update(self._text, with_status=False)

    def _wants_text(self, now: float) -> bool:
        if (
            self._blocked
            or self._channel.stream_every(self._address) is None
            or now < self._paused_until
        ):
            return False
        if self._messages:
            return self._with_status() != self._shown
        started = self._first_text_at
        return (
            started is not None
            and now - started >= STREAM_AFTER_S
            and len(self._text) >= STREAM_CHARS_MIN
        )

    def _with_status(self) -> str:
        return f"{self._text}\n\n_{self._status}_" if self._status else self._text

    async def _pause(self) -> None:
        every_s = self._channel.stream_every(self._address)
        if every_s is None:
            wait_s = TYPING_EVERY_S
        else:
            wait_s = max(every_s, EVERY_S_MIN) if self._messages else FIRST_LOOK_S
        try:
            async with asyncio.timeout(wait_s):
                await self._closed.wait()
        except TimeoutError:
            return

    async def _update(self, text: str, *, with_status: bool) -> None:
        parts = self._parts(text, with_status=with_status)
        for n, part in enumerate(parts[:MESSAGES_MAX]):
            if n < len(self._messages):
                done = await self._edit(self._messages[n], part)
            elif self._messages:
                done = await self._further(n, part)
            else:
                done = await self._first(part)
            if not done:
                return
        if parts:
            self._shown = text
            self._status_shown = with_status

    def _parts(self, text: str, *, with_status: bool) -> Sequence[MessagePart]:
        """Return what the messages are to read. A status line alone begins no further one."""
        parts = self._channel.parts(self._clean(text))
        if not with_status or len(parts) <= max(1, len(self._messages)):
            return parts
        plain = self._channel.parts(self._clean(self._text))
        return parts if len(parts) == len(plain) else plain

    async def _first(self, part: MessagePart) -> bool:
        """The first send is part 0 of the reply's row, stored before it goes out. Whether it is
        shown now."""
        row = await self._store.row_of_run(self._run_id)
        if row is None:
            await self._channel.ready(self._address)
            if self._closed.is_set():
                return False  # the reply sends it, whole
            row = await self._store.open_draft(self._run_id, self._address.key)
            if row.state is not OutboxState.DRAFT or not row.parts:
                self._blocked = True  # the reply was stored meanwhile, and sends it
                return False
            return await self._settle(row, row.parts[0], part)
        if row.parts and all(stored.message_id for stored in row.parts):
            self._messages = [_Message(stored.message_id) for stored in row.parts]
            return await self._edit(self._messages[0], part)
        # A former process began it and nobody knows what became of that: the reply settles it.
        self._blocked = True
        return False

    async def _further(self, n: int, part: MessagePart) -> bool:
        """As the first, for what finds no room any more in the messages before."""
        row = await self._store.row_of_run(self._run_id)
        if row is None:
            self._blocked = True
            return False
        await self._channel.ready(self._address)
        if self._closed.is_set():
            return False  # the reply sends it, whole
        stored = OutPart(n=n, state=PartState.SENDING)
        await self._store.mark(row.id, stored)
        return await self._settle(row, stored, part)

    async def _settle(self, row: OutRow, stored: OutPart, part: MessagePart) -> bool:
        match await self._channel.send(self._address, replace(part, mark=row.mark(stored.n))):
            case SentMessage(message_id=message_id):
                self._messages.append(_Message(message_id, shown=part))
                stored = replace(stored, state=PartState.READY, message_id=message_id)
            case InDoubt():
                self._blocked = True
                stored = replace(stored, state=PartState.DOUBTFUL)
            case NotSent() | DeliveryRefused():
                self._blocked = True
                stored = replace(stored, state=PartState.READY)
        await self._store.mark(row.id, stored)
        return not self._blocked

    async def _edit(self, message: _Message, part: MessagePart) -> bool:
        """Return whether the message reads so now."""
        if message.shown == part:
            return True
        match await self._channel.edit(self._address, message.id, part):
            case SentMessage():
                message.shown = part
                return True
            case NotSent(retry_after_s=after_s):
                self._paused_until = self._loop.time() + (after_s or 5.0)
            case MessageGone() | DeliveryRefused():
                self._blocked = True
            case InDoubt():
                pass  # tried again with the next one: edits may be repeated
        return False


# --- streamed -----------------------------------------------------------------------------------
#
# What the messages of a row are to read, in view of those that stand there already. Called by
# `bot.outbox.delivery`: a streamed reply has begun some of them, and an edit makes each whole.

REPEATED = "\n\n(may be repeated)"
"""Ends the second copy of a message whose first fate is unknown."""


def planned(wanted: Sequence[MessagePart], stored: Sequence[OutPart]) -> list[OutPart]:
    """The parts, each with what became of its message so far; may be planned again.

    Where fewer are wanted than stand there, those beyond follow without words: they are to go.
    One whose fate is unknown cannot go; nothing is known of it but that it may be there.
    """
    known = {part.n: part for part in stored}
    parts = []
    for n, part in enumerate(wanted):
        before = known.get(n, OutPart(n=n))
        # What was sent whole stays so; what was begun is to be made whole.
        is_begun = before.message_id and before.source != part.source
        state = PartState.READY if is_begun else before.state
        parts.append(replace(before, markup=part.markup, source=part.source, state=state))
    beyond = [part for part in stored if part.n >= len(wanted) and part.message_id]
    return [*parts, *(replace(part, markup="", source="") for part in beyond)] if parts else []


def is_to_go(part: OutPart) -> bool:
    """Return whether the message of this part is one too many."""
    return not part.source and bool(part.message_id)


def ending(parts: Sequence[OutPart]) -> OutboxState:
    """Return what a row is whose parts are all done."""
    states = {part.state for part in parts}
    if PartState.FAILED in states:
        return OutboxState.FAILED
    return OutboxState.UNKNOWN if PartState.UNKNOWN in states else OutboxState.SENT


def as_tried(message: MessagePart, part: OutPart) -> MessagePart:
    """The second copy says that it may be one."""
    if part.state is not PartState.RESENDING:
        return message
    return replace(
        message,
        markup=(message.markup.rstrip() + REPEATED).lstrip(),
        source=(message.source.rstrip() + REPEATED).lstrip(),
    )
