"""Whether a stored message is let in still, once it is its turn, how it ends, and how often it may.

Used by the intake.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from bot.inbox.background import BackgroundTasks
from bot.outbox.outbox import Outbox
from bot.people.access import Access
from memory.records.errors import StorageError
from memory.records.messages import IncomingMessage, OutboxId, PersonId, Role
from memory.records.ports import Clock, InboxState
from memory.records.rows import NewMessage, Person, StoredEvent
from memory.stores.inbox import SqliteInbox

# --- how an event ends ----------------------------------------------------------------------------
#
# How a stored event ends: its state and its reply are stored, and what follows an answer is told
# of it. Used by the intake and its parts.

log = structlog.get_logger()

BROKEN = (
    "{name} did not work, because of a fault in the bot itself. What happened stands in its log."
)
"""To whoever asked for what did, by the name that they know it by."""


class EventCloser:
    """Gives events their terminal state."""

    def __init__(
        self,
        inbox: SqliteInbox,
        outbox: Outbox,
        *,
        afterwards: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`afterwards` hears of the address where a command or a press was answered; it may raise
        StorageError, and be called again."""
        self._afterwards = afterwards
        self._inbox = inbox
        self._outbox = outbox

    async def end(
        self,
        event: StoredEvent,
        state: InboxState,
        *,
        reason: str,
        reply: NewMessage | None = None,
    ) -> None:
        """Stores how it ended, and the reply with it, which then goes out. One that has ended
        already stays as it is. Raises StorageError."""
        row: OutboxId | None = await self._inbox.end(event.id, state, reason=reason, reply=reply)
        if row is not None and reply is not None:
            self._outbox.deliver([(reply.lane, row)])

    async def answered(self, lane: str) -> None:
        """What follows is a thing of its own: its trouble is not the answer's."""
        if self._afterwards is None:
            return
        try:
            await self._afterwards(lane)
        except StorageError as trouble:
            log.warning("inbox.afterwards", lane=lane, why=str(trouble))


class Admission:
    """Asks anew who is let in: between what is stored and what is done, that may have changed."""

    def __init__(self, access: Access, endings: EventCloser) -> None:
        self._access = access
        self._endings = endings

    async def let_in(
        self, events: Sequence[StoredEvent], message: IncomingMessage
    ) -> Person | None:
        """The person, unless they or the chat are not let in (any more): then the events end.
        Raises StorageError."""
        person = self._access.who(message.sender)
        if person is not None and (
            not message.is_group or self._access.is_admitted(message.address)
        ):
            if not message.sender_language:
                return person
            await self._access.introduce(message.sender, language=message.sender_language)
            return self._access.who(message.sender) or person
        reason = "no longer let in" if person is None else "chat not admitted"
        for event in events[1:]:
            await self._endings.end(event, InboxState.REFUSED, reason=reason)
        hint = None
        is_owners = person is not None and person.role is Role.OWNER
        if is_owners and self._access.hint_is_due(message.address):
            # The owner alone is told how to admit a chat.
            chat = f"{message.address.channel}:{message.address.chat_id}"
            text = (
                "This chat is not admitted, so I stay silent to everybody here. To admit it, run "
                f"on my machine: hearthbot access approve {chat}"
            )
            hint = NewMessage(lane=message.address.key, text=text)
        await self._endings.end(events[0], InboxState.REFUSED, reason=reason, reply=hint)
        return None


# --- rate limit -----------------------------------------------------------------------------------
#
# What people write faster than so many messages a minute waits in the inbox, in order, and loses
# nothing.

PER_MINUTE = 20
MINUTE_S = 60.0

TOO_FAST = "You write faster than I answer; I take them one after the other."
"""To whoever does, once until all of it is worked off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMessage:
    """A message that waits: its events are stored and open, so the next start finds them too.
    `act` hands it on; it is called once."""

    sender: PersonId
    lane: str
    events: Sequence[StoredEvent]
    act: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _SenderRate:
    """When the last messages of a person were taken in, and what waits behind them. `is_flood` as
    long as something waits, and while the last of it is being handed on."""

    taken_s: deque[float]
    held: deque[HeldMessage] = field(default_factory=deque)
    is_flood: bool = False


class MessageRateLimiter:
    """Counts the messages of each person within the last minute; 0 a minute: no limit.

    It is kept by people that are let in, of whom there are few, and forgotten at the end: after a
    start the minute begins anew.
    """

    def __init__(self, clock: Clock, *, per_minute: int = PER_MINUTE) -> None:
        self._clock = clock
        self._per_minute = per_minute
        self._paces: dict[PersonId, _SenderRate] = {}

    def admits(self, sender: PersonId) -> bool:
        """Return whether a message may be handed on now, which then counts; else `hold` it."""
        if not self._per_minute:
            return True
        pace = self._paces.setdefault(sender, _SenderRate(deque(maxlen=self._per_minute)))
        if pace.is_flood or self._wait_s(pace) > 0:
            return False
        pace.taken_s.append(self._clock.monotonic())
        return True

    def hold(self, held: HeldMessage) -> bool:
        """Puts it behind what waits of its sender. True when it is the first: then somebody has to
        call `freed` until that says None."""
        pace = self._paces[held.sender]
        pace.held.append(held)
        is_first, pace.is_flood = not pace.is_flood, True
        return is_first

    async def freed(self, sender: PersonId) -> HeldMessage | None:
        """The next message, once the minute has room for it. None when no more wait: then the
        flood is over."""
        pace = self._paces[sender]
        while pace.held:
            wait_s = self._wait_s(pace)
            if wait_s <= 0:
                pace.taken_s.append(self._clock.monotonic())
                return pace.held.popleft()
            await self._clock.sleep(wait_s)
        pace.is_flood = False
        return None

    def lanes(self) -> frozenset[str]:
        """Where something waits."""
        return frozenset(held.lane for pace in self._paces.values() for held in pace.held)

    def taken_away(self, lane: str, *, by: PersonId | None = None) -> Sequence[HeldMessage]:
        """Return what waits in a chat, of one person where `by` names one; it waits no longer."""
        away: list[HeldMessage] = []
        for sender, pace in self._paces.items():
            if by in {None, sender}:
                away += [held for held in pace.held if held.lane == lane]
                pace.held = deque(held for held in pace.held if held.lane != lane)
        return away

    def _wait_s(self, pace: _SenderRate) -> float:
        if len(pace.taken_s) < self._per_minute:
            return 0.0
        return pace.taken_s[0] + MINUTE_S - self._clock.monotonic()


class Backlog:
    """Works off what was written too fast, one after the other, beside what comes in."""

    def __init__(
        self, flood: MessageRateLimiter, *, outbox: Outbox, tasks: BackgroundTasks
    ) -> None:
        self.flood = flood
        self._outbox = outbox
        self._tasks = tasks

    def add(self, held: HeldMessage, *, is_told: bool) -> None:
        """Puts a message that the flood did not admit behind what waits of its sender. When it is
        the first, they are told so where `is_told`."""
        if not self.flood.hold(held):
            return
        notice = NewMessage(lane=held.lane, text=TOO_FAST) if is_told else None
        work = self._work_off(held.sender, notice)
        self._tasks.begin_long(work, name=f"flood {held.sender}")

    async def _work_off(self, sender: PersonId, notice: NewMessage | None) -> None:
        log.info("inbox.flood", person=sender)
        try:
            if notice is not None:
                await self._outbox.say(notice)
        except StorageError as trouble:
            log.warning("inbox.flood_untold", why=str(trouble))
        while (held := await self.flood.freed(sender)) is not None:
            await held.act()
