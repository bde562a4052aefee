"""A message comes in: stored, let in or refused, answered or handed on. Called by the channels.

`store` returns when all is durable, so that the channel may confirm to its platform; `handle`
then acts, and may be repeated after a crash for whatever has no terminal state yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self, assert_never

import structlog

from agent.turn.agents import Bindings
from bot.channels.base import AlbumPart, Channel, Ignored, Pressed
from bot.commands.command import CommandCall, Tools
from bot.commands.table import given
from bot.inbox.admission import Admission, Backlog, EventCloser, HeldMessage, MessageRateLimiter
from bot.inbox.albums import Albums
from bot.inbox.background import BackgroundTasks, patiently
from bot.inbox.commands import ButtonHandler, CommandRunner, Press
from bot.inbox.full_disk import FullDisk
from bot.markup.command_text import as_typed
from bot.outbox.outbox import Outbox
from bot.people.access import Access
from memory.records.errors import StorageError, StorageFull
from memory.records.messages import Address, IncomingMessage, PersonId, Role, RunId, TurnInput
from memory.records.ports import Clock, InboxState, NewRun, TurnEngine
from memory.records.rows import NewEvent, NewMessage, Person, StoredEvent
from memory.records.text import one_line
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox

log = structlog.get_logger()

PAUSED = "I am paused: your message is kept, and answered once the owner lets me go on."
PAUSED_OWNER = "Paused: your message is kept, and answered after `/resume`."

CONSOLE = "console"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundEvent:
    """What a channel sees of an event before it is read: who, where, and the raw text.

    `sender` is None when nobody in particular sent it (a service event). `link` is the code when
    the whole message is `/link CODE` (`bot.channels.wire.link_code`): the only words of a stranger
    that are looked at, and they are not stored. `is_press`: a button was pressed, nothing was said.
    `sender_name` is what whoever sent it calls themselves, where the channel is told.
    """

    source: str
    event_id: str
    address: Address
    sender: str | None
    is_group: bool
    payload: str
    link: str = ""
    is_press: bool = False
    sender_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeHooks:
    """What is asked, and who hears, while messages come in.

    `presses` act on buttons, by the prefix of their data before the colon. `bindings` say which
    agent answers where, `limiter` who writes too fast. `full_disk` hears of each event that waits
    for disk space. `freshen` may begin a new conversation at an address before a message joins the
    one there. `acknowledge` shows that a message was taken in, and never fails. `stranger` hears of
    the address, name and chat of a stranger who got a code, `heard` of a person's command in a
    chat, `answered` of the address where a command or a press was answered: it may raise
    StorageError, and be called again.
    """

    presses: Mapping[str, Press] = field(default_factory=dict)
    bindings: Bindings = field(default_factory=Bindings)
    limiter: MessageRateLimiter | None = None
    full_disk: FullDisk | None = None
    freshen: Callable[[str], Awaitable[object]] | None = None
    acknowledge: Callable[[IncomingMessage], Coroutine[None, None, None]] | None = None
    stranger: Callable[[str, str, str], Awaitable[None]] | None = None
    heard: Callable[[PersonId, str], None] | None = None
    answered: Callable[[str], Awaitable[None]] | None = None


class Intake:
    """Takes events in and hands messages on, in order. An async context manager."""

    def __init__(
        self,
        inbox: SqliteInbox,
        access: Access,
        engine: TurnEngine,
        conversations: SqliteConversations,
        outbox: Outbox,
        *,
        command_tools: Tools,
        clock: Clock,
        hooks: IntakeHooks | None = None,
    ) -> None:
        self._hooks = hooks = hooks or IntakeHooks()
        self.endings = EventCloser(inbox, outbox, afterwards=hooks.answered)
        self._tasks = BackgroundTasks()
        limiter = hooks.limiter or MessageRateLimiter(clock)
        self.backlog = Backlog(limiter, outbox=outbox, tasks=self._tasks)
        self.presses = ButtonHandler(hooks.presses, access, endings=self.endings, tasks=self._tasks)
        self._inbox = inbox
        self._access = access
        self._admission = Admission(access, self.endings)
        self._engine = engine
        self._conversations = conversations
        self._outbox = outbox
        self._command_tools = command_tools
        self._clock = clock
        self._waiting: deque[tuple[Channel, StoredEvent]] = deque()
        self._trouble: StorageError | None = None
        self._commands = CommandRunner(
            command_tools,
            self.backlog,
            endings=self.endings,
            tasks=self._tasks,
            troubled=self._troubled,
            clock=clock,
        )
        self._albums = Albums(
            partial(self._take, alone=False),
            endings=self.endings,
            tasks=self._tasks,
            troubled=self._troubled,
            clock=clock,
        )
        self._is_resuming = False
        self._told_of_pause: set[str] = set()

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

    # --- before the confirmation --------------------------------------------------------------

    async def store(self, arrived: Sequence[InboundEvent]) -> Sequence[StoredEvent]:
        """Stores events in one transaction; returns those that are new, in order.

        Of strangers, and of chats that were not admitted, only id and time are kept.
        Raises StorageError: then nothing may be confirmed.
        """
        events = [await self._event(inbound) for inbound in arrived]
        try:
            stored = await self._inbox.store(events)
        except StorageFull:
            for new in events:
                self._held_up(new)
            raise
        strangers = {
            (inbound.source, inbound.event_id): inbound
            for inbound in arrived
            if not inbound.is_group and not inbound.is_press
        }
        for event in stored:
            inbound = strangers.get((event.event.source, event.event.event_id))
            if event.event.payload is None and inbound is not None and inbound.sender is not None:
                await self._answer_stranger(inbound, inbound.sender)
        return [event for event in stored if event.event.payload is not None]

    async def _event(self, inbound: InboundEvent) -> NewEvent:
        event = NewEvent(source=inbound.source, event_id=inbound.event_id)
        if inbound.sender is None:
            return event
        person = await self._access.recognise(
            inbound.sender, is_group=inbound.is_group, link=inbound.link
        )
        admitted = (
            not inbound.is_group
            or self._access.is_admitted(inbound.address)
            or (person is not None and person.role is Role.OWNER)
        )
        if person is None or not admitted:
            return event
        return replace(event, lane=inbound.address.key, payload=inbound.payload)

    async def _answer_stranger(self, inbound: InboundEvent, sender: str) -> None:
        """A courtesy: it must not undo that the events it came with are stored."""
        try:
            text = await self._access.answer_stranger(sender)
            if text is not None:
                await self._outbox.say(NewMessage(lane=inbound.address.key, text=text))
                if self._hooks.stranger is not None:
                    await self._hooks.stranger(sender, inbound.sender_name, inbound.address.key)
        except StorageError as error:
            log.warning("inbox.stranger_unanswered", why=str(error))

    # --- after it -----------------------------------------------------------------------------

    async def resume(self, channels: Mapping[str, Channel]) -> None:
        """Handles what a former process stored and did not finish. Raises StorageError."""
        self._is_resuming = True
        for event in await self._inbox.unfinished():
            channel = channels.get(event.event.source.partition(":")[0])
            if channel is None:
                log.warning("inbox.no_channel", inbox=event.id, source=event.event.source)
                continue
            await self._act(channel, event)
        self._is_resuming = False

    async def handle(self, channel: Channel, events: Sequence[StoredEvent]) -> None:
        """Act on stored events, in order. One that cannot be read is set aside.

        If storage fails, that event waits with all that come after it, in a task of its own: being
        confirmed, they would not be delivered again, and commands are still to be taken in.
        """
        for event in events:
            if self._trouble is None:
                try:
                    await self._act(channel, event)
                    continue
                except StorageError as trouble:
                    self._trouble = trouble
                    self._tasks.begin(self._work_off(), name="waits for storage")
            self._waiting.append((channel, event))
            self._troubled(event, self._trouble)

    async def _work_off(self) -> None:
        while self._waiting:
            channel, event = self._waiting[0]
            act = partial(self._act, channel, event)
            await patiently(act, self._clock, troubled=partial(self._troubled, event))
            self._waiting.popleft()
        self._trouble = None

    def _troubled(self, event: StoredEvent, trouble: StorageError) -> None:
        if isinstance(trouble, StorageFull):
            self._held_up(event.event)

    def _held_up(self, event: NewEvent) -> None:
        if self._hooks.full_disk is not None:
            self._hooks.full_disk.holds_up(event)

    async def _act(self, channel: Channel, event: StoredEvent) -> None:
        try:
            understood = channel.understand(event.event.payload or "")
        except ValueError as error:
            log.error("inbox.unreadable", inbox=event.id, why=str(error))
            await self.endings.end(event, InboxState.SILENT, reason=f"unreadable: {error}")
            return
        match understood:
            case Ignored(reason=reason, sender=sender, reply=reply):
                told = reply if self._access.who(sender) is not None else None
                await self.endings.end(event, InboxState.SILENT, reason=reason, reply=told)
            case AlbumPart(message=message) if message.edited:
                await self._take([event], message, alone=False)
            case AlbumPart():
                await self._albums.gather(event, understood)
            case IncomingMessage():
                await self._albums.hand_on(understood.address.key)
                await self._take([event], understood)
            case Pressed():
                await self.presses.take(channel, event, understood)
            case other:
                assert_never(other)

    # --- one message --------------------------------------------------------------------------

    async def _take(
        self,
        events: Sequence[StoredEvent],
        message: IncomingMessage,
        *,
        alone: bool = True,
        paced: bool = True,
    ) -> None:
        """Make a command or a turn of a message, if its sender is still let in.

        It waits in the inbox until the sender's minute has room for it, unless it has waited
        (`paced` is False) or comes from this machine. What is not `alone` came in an album.
        """
        person = await self._admission.let_in(events, message)
        if person is None:
            return
        # Who forwards a command does not give it; an edit becomes none, nor does an album.
        is_given = alone and not message.forwarded and not message.edited
        if is_given and (asked := given(message)) is not None:
            if self._hooks.heard is not None:
                self._hooks.heard(person.id, message.address.key)
            command, rest = asked
            request = CommandCall(message=message, person=person, rest=rest)
            return await self._commands.take(events[0], command, request)
        is_local = message.address.channel == CONSOLE
        if paced and not is_local and not self.backlog.flood.admits(person.id):
            return self._hold(events, message, person, alone=alone)
        if message.edited:
            turn = await self._turn(replace(message, edited=False), person)
            return await self._edited(events[0], turn, alone=alone)
        if self._hooks.freshen is not None:
            await self._hooks.freshen(message.address.key)
        turn = await self._turn(message, person)
        await self._engine.submit(
            NewRun(
                run_id=RunId(f"in-{events[0].id}"),
                lane=message.address.key,
                by=turn.person_id,
                payload=turn.to_json(),
                message_id=message.message_id,
                inbox_id=events[0].id,
                inbox_joined=tuple(event.id for event in events[1:]),
            )
        )
        if self._hooks.acknowledge is not None:
            self._tasks.begin(self._hooks.acknowledge(message), name="acknowledged")
        await self._tell_of_pause(message.address.key, person)
        chars = len(message.text)
        log.info("inbox.message", inbox=events[0].id, lane=message.address.key, chars=chars)

    async def _edited(self, event: StoredEvent, turn: TurnInput, *, alone: bool) -> None:
        """Replace the text of a turn that has not begun; later, note it for the next turn. An edit
        is never a turn of its own (SPEC §3, case CH-11).

        `turn` is what the message would be now. In an album (not `alone`) it would replace the
        other photos too, so there it is always a note. The note is outside text for whoever writes
        next: in a group that may be anybody else, and what is forwarded or quoted is nobody's own.
        """
        message = turn.message
        lane = message.address.key
        if alone and await self._engine.edit(lane, message.message_id, turn.to_json()):
            await self.endings.end(event, InboxState.SILENT, reason="edit: text replaced")
            return
        name = one_line(message.sender_name) if message.is_group else ""
        who = f"«{name}»" if name else "The person"
        text = f"{who} edited an earlier message. It now reads: {message.text}"
        if message.forwarded:
            text = f"{who} edited an earlier message, which they had forwarded."
        untrusted = message.is_group or bool(message.forwarded) or bool(message.quote)
        await self._conversations.note(turn.conversation, text, untrusted=untrusted)
        await self.endings.end(event, InboxState.SILENT, reason="edit: noted")

    def _hold(
        self,
        events: Sequence[StoredEvent],
        message: IncomingMessage,
        person: Person,
        *,
        alone: bool,
    ) -> None:
        later = partial(self._take, events, message, alone=alone, paced=False)
        troubled = partial(self._troubled, events[0])
        act = partial(patiently, later, self._clock, troubled=troubled)
        held = HeldMessage(sender=person.id, lane=message.address.key, events=events, act=act)
        # What a former process left was told of by that one.
        self.backlog.add(held, is_told=not self._is_resuming)

    async def _tell_of_pause(self, lane: str, person: Person) -> None:
        """Once a pause and chat: what was written is kept, and when it is answered."""
        if not self._command_tools.usage.is_paused:
            self._told_of_pause.clear()
        elif lane not in self._told_of_pause:
            self._told_of_pause.add(lane)
            text = PAUSED_OWNER if person.role is Role.OWNER else PAUSED
            await self._outbox.say(NewMessage(lane=lane, text=as_typed(text, lane)))

    async def _turn(self, message: IncomingMessage, person: Person) -> TurnInput:
        return TurnInput(
            message=message,
            conversation=await self._conversations.current(message.address.key),
            person_id=person.id,
            role=person.role,
            person_name=person.name,
            time_zone=person.time_zone,
            language=person.language,
            language_hint=person.language_hint,
            agent=self._hooks.bindings.agent_at(message.address),
        )

    async def state_of(self, inbound: InboundEvent) -> InboxState | None:
        """Return what became of an event."""
        return await self._inbox.state(inbound.source, inbound.event_id)

    async def idle(self) -> None:
        """Returns once no command is being answered, and no album is waited for."""
        await self._tasks.idle()

    async def worked_off(self) -> None:
        """Returns once nothing waits because it was written too fast: minutes, perhaps."""
        await self._tasks.worked_off()
