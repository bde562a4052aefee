"""One row on its way out: its messages, in order, each through its states. Called by
`bot.outbox.outbox`.

A part that was sent is never sent again; one whose fate is unknown is looked up where the platform
lets us, and else sent again, marked. A file is the first part of its row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import assert_never

import structlog

from bot.channels.base import (
    NOBODY_CAN_TELL,
    Channel,
    Delivery,
    DeliveryRefused,
    EditOutcome,
    FileOut,
    InDoubt,
    LookedUp,
    MessageGone,
    MessagePart,
    NotSent,
    SentMessage,
    Uploaded,
)
from bot.markup.command_text import as_typed, bare
from bot.outbox.drafts import as_tried, ending, is_to_go, planned
from bot.outbox.files import CopyGone, OutgoingFiles
from bot.people.access import Access
from bot.people.approvals import is_shared
from memory.records.errors import StorageError
from memory.records.messages import Address, OutboxId
from memory.records.ports import Clock
from memory.records.rows import NewMessage, OutboxState, OutPart, OutRow, PartState
from memory.stores.outbox import SqliteOutbox

log = structlog.get_logger()

TRIED_MAX_S = 86_400.0
"""How long a row is tried, as the sum of the pauses between its tries (SPEC §2.7)."""

FILE_LOOKS = 2
"""Tries of a row before a file that is not found counts as not sent: a platform shows it a moment
after it said so."""

DONE = frozenset({PartState.SENT, PartState.UNKNOWN, PartState.FAILED})


class Superseded(Exception):
    """What was about to be sent is to read otherwise, and nothing of it went out yet."""


Undelivered = Callable[[OutRow, str], Awaitable[NewMessage | None]]
"""Return the notice that a row was given up, and why; None: nobody can be told. Raise
StorageError."""


async def untold(_row: OutRow, _why: str) -> None:
    """Tell nobody."""


class RowDelivery:
    """One row on its way: its parts, in order, each through its states."""

    def __init__(
        self,
        row: OutRow,
        channel: Channel,
        store: SqliteOutbox,
        *,
        copies: OutgoingFiles | None,
        undelivered: Undelivered,
        rest: Callable[[int, StorageError], Awaitable[None]],
        is_revised: Callable[[], bool],
    ) -> None:
        """`rest` waits while storage is in trouble; `is_revised` says whether the row is to read
        otherwise by now."""
        self._row = row
        self._rest = rest
        self._is_revised = is_revised
        self._address = Address.parse(row.lane)
        self._channel = channel
        self._copies = copies
        self._undelivered = undelivered
        self._store = store
        self.parts: list[OutPart] = list(row.parts)
        self.attempts = row.attempts
        self.tried_ms = row.tried_ms
        self.reason = ""
        self.is_ours = False
        """Whether the last try failed because of the bot itself (`bot.channels.base.NotSent`)."""
        self.notices: list[tuple[str, OutboxId]] = []
        """Further rows: notices of what could not be sent."""

    @property
    def row_id(self) -> OutboxId:
        return self._row.id

    async def plan(self) -> float | None:
        """Splits the text once; a former process may have done so, or left streamed parts. The
        first part of a file is its caption.

        The first part that needs a send is stored as SENDING in the same transaction, and sent;
        the answer is as that of `advance`.
        """
        if self._row.file is not None:
            if self.parts:
                return None
            text = self._row.text
            wanted = self._channel.captioned(text) or (MessagePart(markup=text, source=text),)
            self.parts = planned(wanted, ())
            await self._store.plan(self._row.id, self.parts)
            return None
        if self.parts and all(part.source for part in self.parts):
            return None
        self.parts = planned(self._channel.parts(self._row.text), self.parts)
        if self.parts and self.parts[0].state is PartState.READY and not self.parts[0].message_id:
            await self._ready()
            self.parts[0] = replace(self.parts[0], state=PartState.SENDING)
            await self._store.plan(self._row.id, self.parts)
            return await self._settle(self.parts[0], await self._send(self.parts[0]))
        if self.parts:
            await self._store.plan(self._row.id, self.parts)
        else:
            await self._store.mark(self._row.id, end=OutboxState.SENT)
        return None

    def next_open(self) -> OutPart | None:
        """The first part that is not done."""
        return next((part for part in self.parts if part.state not in DONE), None)

    async def advance(self, part: OutPart) -> float | None:
        """One try of one part. Seconds to wait before the next (0: back off), None: go on."""
        if is_to_go(part) and not self._is_file(part):
            return await self._remove(part)
        if part.message_id:
            return await self._edit(part)
        match part.state:
            case PartState.READY:
                await self._ready()
                if self._is_file(part):
                    return await self._send_file(part, PartState.SENDING)
                part = await self._mark(part, PartState.SENDING)
            case PartState.SENDING | PartState.DOUBTFUL | PartState.RESENDING:
                found = await self._looked_up(part)
                if not isinstance(found, DeliveryRefused):
                    return await self._settle_by(part, found)
                await self._channel.ready(self._address)
                if self._is_file(part):
                    return await self._send_file(part, PartState.RESENDING)
                part = await self._mark(part, PartState.RESENDING)
            case PartState.SENT | PartState.UNKNOWN | PartState.FAILED:
                return None
            case other:
                assert_never(other)
        return await self._settle(part, await self._send(part))

    async def _ready(self) -> None:
        """Waits for the platform's limits. Raises Superseded."""
        await self._channel.ready(self._address)
        is_unseen = all(p.state is PartState.READY and not p.message_id for p in self.parts)
        if is_unseen and self._is_revised():
            raise Superseded

    async def _looked_up(self, part: OutPart) -> LookedUp:
        """Return what the platform says of a send in doubt; Refused where it cannot be asked."""
        channel, since_ms = self._channel, self._row.created_ms
        if not self._is_file(part):
            mark = self._row.mark(part.n)
            return await channel.look_up(self._address, mark, since_ms=since_ms)
        if not part.ref:
            return DeliveryRefused(reason=NOBODY_CAN_TELL)
        found = await channel.look_up_file(self._address, part.ref, since_ms=since_ms)
        if isinstance(found, NotSent) and self.attempts < FILE_LOOKS:
            return InDoubt(reason=found.reason)
        return found

    async def _settle_by(self, part: OutPart, found: LookedUp) -> float | None:
        """Ends a doubt by what was found; seconds to wait where that is not known yet."""
        match found:
            case SentMessage(message_id=message_id):
                # The messages of a turn may stand there as a draft: an edit completes each.
                is_draft = self._row.run_id is not None
                state = PartState.READY if is_draft else PartState.SENT
                await self._mark(replace(part, message_id=message_id), state)
            case NotSent():
                await self._mark(part, PartState.READY)
            case InDoubt():
                return self._later(found)
            case DeliveryRefused():
                raise AssertionError("was handled before")
            case other:
                assert_never(other)
        return None

    async def postpone(self, now_s: float, pause_s: float) -> None:
        """Store when the next try may be. Waiting for the owner is not counted."""
        self.attempts += 1
        tried_ms = 0 if self.is_ours else int(pause_s * 1000)
        self.tried_ms += tried_ms
        await self._store.postpone(
            self._row.id,
            not_before_ms=int((now_s + pause_s) * 1000),
            attempts=self.attempts,
            tried_ms=tried_ms,
        )

    def is_over(self) -> bool:
        """Return whether it was tried for so long that it should be given up."""
        return not self.is_ours and self.tried_ms >= TRIED_MAX_S * 1000

    async def give_up(self) -> None:
        """End the row: parts that certainly did not arrive have failed, the rest is unknown. Raise
        StorageError."""
        log.error("outbox.given_up", row=self._row.id, why=self.reason, tries=self.attempts)
        await self._end_open_parts(f"gave up after a day of trying: {self.reason}")

    def end_state(self) -> OutboxState:
        """Return what the row is once all parts are done."""
        return ending(self.parts)

    async def _send(self, part: OutPart) -> Delivery:
        message = replace(
            self._message(part),
            mark=self._row.mark(part.n),
            keyboard=self._row.keyboard if self._is_last(part) else (),
        )
        return await self._channel.send(self._address, as_tried(message, part))

    # --- files -----------------------------------------------------------------------------------

    def _is_file(self, part: OutPart) -> bool:
        return self._row.file is not None and part.n == 0

    async def _send_file(self, part: OutPart, state: PartState) -> float | None:
        """One try of the file itself, which is `state` while it is on its way."""
        kept = self._row.file
        assert kept is not None
        assert self._copies is not None, "a file is stored only where there are copies"
        try:
            content = await asyncio.to_thread(self._copies.read, kept.digest)
        except CopyGone as error:
            await self._fail(str(error))
            return None
        file = FileOut(name=kept.name, path=kept.path, content=content)
        match await self._channel.upload(self._address, file):
            case Uploaded(ref=ref):
                part, file = replace(part, ref=ref), replace(file, ref=ref)
            case NotSent() as refusal:
                return self._later(refusal)
            case DeliveryRefused(reason=reason):
                await self._fail(reason)
                return None
            case other:
                assert_never(other)
        part = await self._mark(part, state)
        message = as_tried(self._message(part), part)
        return await self._settle(part, await self._channel.send_file(self._address, file, message))

    # --- what became of it -----------------------------------------------------------------------

    def _message(self, part: OutPart) -> MessagePart:
        buttons = self._row.buttons if self._is_last(part) else ()
        return MessagePart(markup=part.markup, source=part.source, buttons=buttons)

    def _is_last(self, part: OutPart) -> bool:
        return all(not other.source for other in self.parts[part.n + 1 :])

    async def _edit(self, part: OutPart) -> float | None:
        outcome: EditOutcome = await self._channel.edit(
            self._address, part.message_id, self._message(part)
        )
        match outcome:
            case SentMessage():
                await self._mark(part, PartState.SENT)
            case MessageGone():
                # Somebody deleted this message. It comes anew, and below it what stood below it.
                below = [one for one in self.parts[part.n + 1 :] if one.message_id and one.source]
                for one in below:
                    done = await self._channel.remove(self._address, one.message_id)
                    if isinstance(done, SentMessage | MessageGone):
                        await self._mark(replace(one, message_id=""), PartState.READY)
                await self._mark(replace(part, message_id=""), PartState.READY)
            case NotSent() | InDoubt():
                return self._later(outcome)
            case DeliveryRefused(reason=reason):
                await self._fail(reason)
            case other:
                assert_never(other)
        return None

    async def _remove(self, part: OutPart) -> float | None:
        """Takes a message away that was begun for words that the reply does not have in the end."""
        match await self._channel.remove(self._address, part.message_id):
            case (NotSent() | InDoubt()) as outcome:
                return self._later(outcome)
            case DeliveryRefused(reason=reason):
                log.warning("outbox.left_behind", row=self._row.id, part=part.n, why=reason)
            case SentMessage() | MessageGone():
                pass
            case other:
                assert_never(other)
        await self._mark(replace(part, message_id=""), PartState.SENT)
        return None

    async def _settle(self, part: OutPart, outcome: Delivery) -> float | None:
        match outcome:
            case SentMessage(message_id=message_id):
                await self._mark(replace(part, message_id=message_id), PartState.SENT)
            case NotSent():
                again_s = self._later(outcome)
                is_doubtful = part.state is PartState.RESENDING
                await self._mark(part, PartState.DOUBTFUL if is_doubtful else PartState.READY)
                return again_s
            case InDoubt(reason=reason):
                log.warning("outbox.doubt", row=self._row.id, part=part.n, why=reason)
                again_s = self._later(outcome)
                await self._mark(part, PartState.DOUBTFUL)
                return again_s
            case DeliveryRefused(reason=reason):
                await self._fail(reason)
            case other:
                assert_never(other)
        return None

    def _later(self, outcome: NotSent | InDoubt) -> float:
        """Return the seconds that the platform asks us to wait before the next try; 0: back off."""
        self.reason = outcome.reason
        self.is_ours = isinstance(outcome, NotSent) and outcome.is_ours
        return (isinstance(outcome, NotSent) and outcome.retry_after_s) or 0.0

    async def _mark(self, part: OutPart, state: PartState) -> OutPart:
        marked = replace(part, state=state)
        self.parts[part.n] = marked
        await self._keep(marked, end=self.end_state() if self.next_open() is None else None)
        return marked

    async def _keep(
        self, *parts: OutPart, end: OutboxState | None, notices: Sequence[NewMessage] = ()
    ) -> None:
        """Stores what became of parts, while storage is in trouble again and again: what is known
        now would be in doubt if the row were read anew."""
        tries = 0
        while True:
            try:
                self.notices += await self._store.mark(
                    self._row.id, *parts, end=end, reason=self.reason, notices=notices
                )
                return
            except StorageError as trouble:
                await self._rest(tries, trouble)
                tries += 1

    async def _fail(self, reason: str) -> None:
        """End the row for good: the platform says that this can never be sent."""
        log.error("outbox.refused", row=self._row.id, why=reason)
        in_place, file = None, self._row.file
        if file is not None and self.parts[0].state not in {PartState.SENT, PartState.UNKNOWN}:
            # Where a file did not arrive, the person reads so, with the words that it came with.
            name, why = file.name.replace("`", "'"), reason.strip().rstrip(".")
            text = f"I could not send the file `{name}` here: {why}.\n\n{self._row.text.strip()}"
            in_place = NewMessage(lane=self._row.lane, text=text.strip())
        await self._end_open_parts(reason, in_place=in_place, is_final=True)

    async def _end_open_parts(
        self, reason: str, *, in_place: NewMessage | None = None, is_final: bool = False
    ) -> None:
        """End the row and its open parts; tell the person where it was due, or else the owner."""
        self.reason = reason
        surely_not = {PartState.READY, PartState.SENDING} if is_final else {PartState.READY}
        for part in self.parts:
            if part.state not in DONE:
                state = PartState.FAILED if part.state in surely_not else PartState.UNKNOWN
                self.parts[part.n] = replace(part, state=state)
        notice = in_place
        if notice is None and not self._row.about:
            notice = await self._undelivered(self._row, reason)
        await self._keep(
            *self.parts, end=self.end_state(), notices=[] if notice is None else [notice]
        )


# --- what was given up ---------------------------------------------------------------------------

CHARS_MAX = 200
"""How much of the message's beginning is quoted."""

NOTICES_MAX = 5
"""Most notices about one chat in a day; `/status` and the doctor count the rest."""

LAST = "\n\nI will not report more about this chat today; `/status` counts what did not arrive."


class DeliveryNotices:
    """Writes the notices. Implements `bot.outbox.delivery.Undelivered`."""

    def __init__(self, access: Access, store: SqliteOutbox, *, clock: Clock) -> None:
        self._access = access
        self._store = store
        self._clock = clock

    async def __call__(self, row: OutRow, why: str) -> NewMessage | None:
        """Return the notice for the owner, in a private chat other than the message's own if there
        is one. A message for one person is quoted to nobody else. Raise StorageError."""
        owner = self._access.owner_id()
        since = self._clock.now() - timedelta(days=1)
        said = await self._store.notices(row.lane, since_ms=int(since.timestamp() * 1000))
        chats = [] if owner is None else await self._access.private_chats(owner)
        if not chats or said >= NOTICES_MAX:
            return None
        lane = next((chat for chat in chats if chat != row.lane), chats[0])
        reader = await self._access.alone_in(row.lane)
        address = Address.parse(row.lane)
        if reader == owner:
            whose = "your chat"
        elif reader is not None:
            person = self._access.person(reader)
            whose = bare(person.name if person is not None else "") or "a member"
        else:
            whose = "a group" if is_shared(row.lane) else "a chat"
        place = f"{whose} in {address.channel.capitalize()}"
        if reader is None:
            place += f" (`{address.chat_id}`)"
        text = f"**Not delivered** to {place}: {bare(why, chars_max=300).rstrip('.')}."
        if reader == owner or is_shared(row.lane):
            text += f"\n\nIt began: {bare(row.text, chars_max=CHARS_MAX)}"
        if said + 1 == NOTICES_MAX:
            text += LAST
        return NewMessage(lane=lane, text=as_typed(text, lane), about=row.lane)
