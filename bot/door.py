"""A message comes in: stored, let in or refused, answered or handed on. Called by the channels.

`store` returns when all is durable, so that the channel may confirm to its platform; `handle`
then acts, and may be repeated after a crash for whatever has no terminal state yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Self, assert_never

import structlog

from agent.bindings import Bindings
from agent.errors import AssistantError, StorageError
from agent.messages import Address, IncomingMessage, OutboxId, PersonId, Role, RunId, TurnInput
from agent.ports import Clock, Conversations, InboxState, NewRun, TurnEngine
from agent.scene import one_line
from bot import commands
from bot.access import Access
from bot.channel import AlbumPart, AnswersPresses, Channel, Ignored, Pressed
from bot.command_tools import Answer, Asked, Tools
from bot.flood import TOO_FAST, Flood, Held
from bot.outbox import Outbox
from bot.pairing import is_group
from bot.ports import Inbox, NewEvent, NewMessage, Person, StoredEvent
from bot.typed import slash

log = structlog.get_logger()

STORAGE_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between tries while the disk is full or the database is locked; the last one repeats."""

ALBUM_S = 0.5
"""An album is whole once nothing of it came for so long (SPEC §3)."""

ALBUM_PARTS_MAX = 10
"""More are never sent as one album; what comes beyond is an album of its own."""

BROKEN = (
    "{name} did not work, because of a fault in the bot itself. What happened stands in its log."
)

NO_LONGER = "This button no longer does anything."
"""To whoever presses one that nobody knows (any more)."""

PAUSED = "I am paused: your message is kept, and answered once the owner lets me go on."
PAUSED_OWNER = "Paused: your message is kept, and answered after `/resume`."

Press = Callable[[Pressed, Person], Awaitable[str]]
"""Acts on a button, and says what the person who pressed it is told; empty: nothing.

Whether they may is decided here, by the person, who was recognised by their address: buttons in a
group can be pressed by everybody there, and the data is what a client sent. It may be called again
for the same press after a crash, and a second time for a double tap; AssistantErrors are told.
"""

CONSOLE = "console"

CLOSING_S = 1.0
"""What answers and albums get to finish at a stop; the rest is taken up at the next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """What a channel sees of an event before it is read: who, where, and the raw text.

    `sender` is None when nobody in particular sent it (a service event). `link` is the code when
    the whole message is `/link CODE` (`bot.linking.link_code`): the only words of a stranger that
    are looked at, and they are not stored. `is_press`: a button was pressed, nothing was said.
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


@dataclass(slots=True)
class _Album:
    """Photos that were sent as one, while more may come. All are in the inbox, so a crash here
    loses none: they are gathered anew."""

    parts: list[tuple[StoredEvent, AlbumPart]] = field(default_factory=list)
    waiting: asyncio.Task[None] | None = None


class Door:
    """Takes events in and hands messages on, in order. An async context manager."""

    freshen: Callable[[str], Awaitable[object]] | None = None
    """May begin a new conversation at an address before a message joins the one there; set once,
    before the first message."""

    acknowledge: Callable[[IncomingMessage], Coroutine[None, None, None]] | None = None
    """Shows that a message was taken in; set once, before the first message. Never fails."""

    afterwards: Callable[[str], Awaitable[None]] | None = None
    """Hears of the address where a command or a press was answered; set once, before the first
    message. May raise StorageError, and may be called again."""

    stranger: Callable[[str, str], Awaitable[None]] | None = None
    """Hears of the address and the name of a stranger who got a code; set once, before the first
    message."""

    heard: Callable[[PersonId, str], None] | None = None
    """Hears of a person's command in a chat; set once, before the first message."""

    bindings: Bindings = Bindings()
    """Which agent answers where; set once, before the first message."""

    def __init__(
        self,
        inbox: Inbox,
        access: Access,
        engine: TurnEngine,
        conversations: Conversations,
        outbox: Outbox,
        *,
        command_tools: Tools,
        clock: Clock,
        presses: Mapping[str, Press] = MappingProxyType({}),
    ) -> None:
        """`presses` are by the prefix of a button's data, which stands before the colon."""
        self._inbox = inbox
        self._access = access
        self._engine = engine
        self._conversations = conversations
        self._outbox = outbox
        self._command_tools = command_tools
        self._clock = clock
        self._presses = presses
        self.flood = Flood(clock)
        """Who writes too fast; another one may be set once, before the first message."""
        self._working_off: set[asyncio.Task[None]] = set()
        self._is_resuming = False
        self._told_of_pause: set[str] = set()
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._albums: dict[tuple[str, str, str], _Album] = {}

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._working_off:
            task.cancel()  # what waits is in the inbox
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSING_S)
            for task in late:
                task.cancel()
        await self._group.__aexit__(kind, error, traceback)

    # --- before the confirmation --------------------------------------------------------------

    async def store(self, knocks: Sequence[Knock]) -> Sequence[StoredEvent]:
        """Stores events in one transaction; returns those that are new, in order.

        Of strangers, and of chats that were not admitted, only id and time are kept.
        Raises StorageError: then nothing may be confirmed.
        """
        events = [await self._event(knock) for knock in knocks]
        stored = await self._inbox.store(events)
        strangers = {
            (knock.source, knock.event_id): knock
            for knock in knocks
            if not knock.is_group and not knock.is_press
        }
        for event in stored:
            knock = strangers.get((event.event.source, event.event.event_id))
            if event.event.payload is None and knock is not None and knock.sender is not None:
                await self._answer_stranger(knock, knock.sender)
        return [event for event in stored if event.event.payload is not None]

    async def _event(self, knock: Knock) -> NewEvent:
        event = NewEvent(source=knock.source, event_id=knock.event_id)
        if knock.sender is None:
            return event
        person = await self._access.recognise(
            knock.sender, is_group=knock.is_group, link=knock.link
        )
        admitted = (
            not knock.is_group
            or self._access.is_admitted(knock.address)
            or (person is not None and person.role is Role.OWNER)
        )
        if person is None or not admitted:
            return event
        return replace(event, lane=knock.address.key, payload=knock.payload)

    async def _answer_stranger(self, knock: Knock, sender: str) -> None:
        """A courtesy: it must not undo that the events it came with are stored."""
        try:
            text = await self._access.answer_stranger(sender)
            if text is not None:
                await self._outbox.say(NewMessage(lane=knock.address.key, text=text))
                if self.stranger is not None:
                    await self.stranger(sender, knock.sender_name)
        except StorageError as error:
            log.warning("door.stranger_unanswered", why=str(error))

    # --- after it -----------------------------------------------------------------------------

    async def resume(self, channels: Mapping[str, Channel]) -> None:
        """Handles what a former process stored and did not finish. Raises StorageError."""
        self._is_resuming = True
        for event in await self._inbox.unfinished():
            channel = channels.get(event.event.source.partition(":")[0])
            if channel is None:
                log.warning("door.no_channel", inbox=event.id, source=event.event.source)
                continue
            await self._act(channel, event)
        self._is_resuming = False

    async def handle(self, channel: Channel, events: Sequence[StoredEvent]) -> None:
        """Acts on stored events, in order, and waits while storage is in trouble: they are
        confirmed, so nobody would bring them again. One that cannot be read is set aside."""
        for event in events:
            await self._patiently(partial(self._act, channel, event))

    async def _act(self, channel: Channel, event: StoredEvent) -> None:
        try:
            understood = channel.understand(event.event.payload or "")
        except ValueError as error:
            log.error("door.unreadable", inbox=event.id, why=str(error))
            await self._end(event, InboxState.SILENT, reason=f"unreadable: {error}")
            return
        match understood:
            case Ignored(reason=reason, sender=sender, reply=reply):
                told = reply if self._access.who(sender) is not None else None
                await self._end(event, InboxState.SILENT, reason=reason, reply=told)
            case AlbumPart(message=message) if message.edited:
                await self._message(event, message, alone=False)
            case AlbumPart():
                await self._gather(event, understood)
            case IncomingMessage():
                await self._hand_on_albums(understood.address.key)
                await self._message(event, understood)
            case Pressed():
                await self._press(channel, event, understood)
            case other:
                assert_never(other)

    async def _patiently(self, act: Callable[[], Awaitable[None]]) -> None:
        """Until it is done, while storage is in trouble: told once."""
        tries = 0
        while True:
            try:
                return await act()
            except StorageError as trouble:
                pause_s = STORAGE_PAUSES_S[min(tries, len(STORAGE_PAUSES_S) - 1)]
                if tries == 0:
                    log.error("door.storage", why=str(trouble))
                tries += 1
            await self._clock.sleep(pause_s)

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- albums -------------------------------------------------------------------------------

    async def _gather(self, event: StoredEvent, part: AlbumPart) -> None:
        """Waits for the rest of an album, beside what else comes in."""
        lane = part.message.address.key
        key = (lane, part.message.sender, part.album)
        album = self._albums.get(key)
        if album is not None and len(album.parts) < ALBUM_PARTS_MAX:
            album.parts.append((event, part))
            return
        await self._hand_on_albums(lane)
        album = self._albums[key] = _Album([(event, part)])
        album.waiting = self._spawn(self._wait_for_more(key, album), name=f"album {lane}")

    async def _wait_for_more(self, key: tuple[str, str, str], album: _Album) -> None:
        seen = 0
        while seen < len(album.parts):
            seen = len(album.parts)
            await self._clock.sleep(ALBUM_S)
        if self._albums.get(key) is album:
            del self._albums[key]
            await self._patiently(partial(self._album, album))

    async def _hand_on_albums(self, lane: str) -> None:
        """What comes after an album is not handled before it."""
        for key in [key for key in self._albums if key[0] == lane]:
            album = self._albums.pop(key)
            if album.waiting is not None:
                album.waiting.cancel()
            await self._patiently(partial(self._album, album))

    async def _album(self, album: _Album) -> None:
        """One message with all the photos: the later events are joined to the first one's turn
        in the transaction that stores it."""
        events = [event for event, _ in album.parts]
        messages = [part.message for _, part in album.parts]
        if not any(part.addressed for _, part in album.parts):
            for event in events:
                await self._end(event, InboxState.SILENT, reason="not addressed")
            return
        whole = replace(
            messages[0],
            text="\n".join(message.text for message in messages if message.text),
            quote=next((message.quote for message in messages if message.quote), ""),
            forwarded=next((message.forwarded for message in messages if message.forwarded), ""),
            attachments=tuple(one for message in messages for one in message.attachments),
            mentions_bot=any(message.mentions_bot for message in messages),
        )
        person = await self._let_in(events, whole)
        if person is not None:
            await self._take(events, whole, person)

    # --- one message --------------------------------------------------------------------------

    async def _message(
        self, event: StoredEvent, message: IncomingMessage, *, alone: bool = True
    ) -> None:
        person = await self._let_in([event], message)
        if person is None:
            return
        # Who forwards a command does not give it, and an edit becomes none.
        is_given = not message.forwarded and not message.edited
        asked = commands.given(message) if is_given else None
        if asked is not None:
            await self._command(event, message, person, asked)
            return
        await self._take([event], message, person, alone=alone)

    async def _take(
        self,
        events: Sequence[StoredEvent],
        message: IncomingMessage,
        person: Person,
        *,
        alone: bool = True,
    ) -> None:
        """Hands it on, or leaves it in the inbox until the sender's minute has room for it. Who
        sits at this machine may type and pipe as fast as they like."""
        if message.address.channel == CONSOLE or self.flood.admits(person.id):
            await self._hand_on(events, message, person, alone=alone)
            return

        async def later() -> None:
            still = await self._let_in(events, message)
            if still is not None:
                await self._hand_on(events, message, still, alone=alone)

        lane = message.address.key
        held = Held(sender=person.id, lane=lane, events=events, act=partial(self._patiently, later))
        if self.flood.hold(held):
            # What a former process left was told of by that one.
            notice = None if self._is_resuming else NewMessage(lane=lane, text=TOO_FAST)
            work = self._work_off(person.id, notice)
            task = self._group.create_task(work, name=f"flood {person.id}")
            self._working_off.add(task)
            task.add_done_callback(self._working_off.discard)

    async def _work_off(self, sender: PersonId, notice: NewMessage | None) -> None:
        """What somebody wrote too fast, one after the other."""
        log.info("door.flood", person=sender)
        try:
            if notice is not None:
                await self._outbox.say(notice)
        except StorageError as trouble:
            log.warning("door.flood_untold", why=str(trouble))
        while (held := await self.flood.freed(sender)) is not None:
            await held.act()

    async def _hand_on(
        self,
        events: Sequence[StoredEvent],
        message: IncomingMessage,
        person: Person,
        *,
        alone: bool,
    ) -> None:
        if message.edited:
            await self._edited(events[0], message, person, alone=alone)
        else:
            await self._submit(events, message, person)

    async def _let_in(
        self, events: Sequence[StoredEvent], message: IncomingMessage
    ) -> Person | None:
        """The person, unless they or the chat are not let in (any more): then the events end."""
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
            await self._end(event, InboxState.REFUSED, reason=reason)
        hint = None if person is None else self._hint(message, person)
        await self._end(events[0], InboxState.REFUSED, reason=reason, reply=hint)
        return None

    def _hint(self, message: IncomingMessage, person: Person) -> NewMessage | None:
        """The owner alone is told how to admit a chat."""
        if person.role is not Role.OWNER or not self._access.hint_is_due(message.address):
            return None
        chat = f"{message.address.channel}:{message.address.chat_id}"
        text = (
            "This chat is not admitted, so I stay silent to everybody here. To admit it, run on "
            f"my machine: hearthbot access approve {chat}"
        )
        return NewMessage(lane=message.address.key, text=text)

    async def _tell_of_pause(self, lane: str, person: Person) -> None:
        """Once a pause and chat: what was written is kept, and when it is answered."""
        if not self._command_tools.usage.is_paused:
            self._told_of_pause.clear()
        elif lane not in self._told_of_pause:
            self._told_of_pause.add(lane)
            text = PAUSED_OWNER if person.role is Role.OWNER else PAUSED
            await self._outbox.say(NewMessage(lane=lane, text=commands.as_typed(text, lane)))

    async def _submit(
        self, events: Sequence[StoredEvent], message: IncomingMessage, person: Person
    ) -> None:
        lane = message.address.key
        if self.freshen is not None:
            await self.freshen(lane)
        turn = await self._turn(message, person)
        run = NewRun(
            run_id=RunId(f"in-{events[0].id}"),
            lane=lane,
            by=person.id,
            payload=turn.to_json(),
            message_id=message.message_id,
            inbox_id=events[0].id,
            inbox_joined=tuple(event.id for event in events[1:]),
        )
        await self._engine.submit(run)
        if self.acknowledge is not None:
            self._spawn(self.acknowledge(message), name="acknowledged")
        await self._tell_of_pause(lane, person)
        log.info("door.message", inbox=events[0].id, lane=lane, chars=len(message.text))

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
            agent=self.bindings.agent_at(message.address),
        )

    async def _edited(
        self, event: StoredEvent, message: IncomingMessage, person: Person, *, alone: bool
    ) -> None:
        """An edit replaces the text of a turn that has not begun; later, and in an album (where
        it would replace the other photos too), it is a note for the next turn. It is never a turn
        of its own (SPEC §3, case CH-11)."""
        lane = message.address.key
        turn = await self._turn(replace(message, edited=False), person)
        if alone and await self._engine.edit(lane, message.message_id, turn.to_json()):
            await self._end(event, InboxState.SILENT, reason="edit: text replaced")
            return
        text, untrusted = _of_edit(message)
        await self._conversations.note(turn.conversation, text, untrusted=untrusted)
        await self._end(event, InboxState.SILENT, reason="edit: noted")

    async def _command(
        self,
        event: StoredEvent,
        message: IncomingMessage,
        person: Person,
        asked: tuple[commands.Command, str],
    ) -> None:
        """Commands overtake the queue. One that waits for something (`/stop`) runs in a task of
        its own; it gets to its first pause before anything that came later is looked at."""
        command, rest = asked
        lane = message.address.key
        what = Asked(message=message, person=person, rest=rest)
        if self.heard is not None:
            self.heard(person.id, lane)

        async def answer() -> None:
            try:
                ended = await self._before(command, message, person)
                said = await commands.answer(command, self._command_tools, what)
                if ended:
                    said = replace(said, text=f"{said.text} {ended}")
            except AssistantError as error:
                log.error("door.command", command=command.name, why=str(error))
                why = commands.as_typed(str(error), lane)
                said = Answer(text=f"{slash(lane)}{command.name} did not work: {why}")
            except Exception:  # else the event stays open, and ends the bot at each start anew
                log.exception("door.command", command=command.name)
                said = Answer(text=BROKEN.format(name=f"{slash(lane)}{command.name}"))
            reply = NewMessage(
                lane=lane,
                text=said.text,
                buttons=said.buttons,
                keyboard=commands.offered(command, self._command_tools, what),
            )
            end = partial(self._end, event, InboxState.COMMAND, reason=command.name, reply=reply)
            await self._patiently(end)
            await self._answered(lane)

        if not command.waits:
            await answer()
            return
        self._spawn(answer(), name=f"command {command.name}")
        await asyncio.sleep(0)

    async def _before(
        self, command: commands.Command, message: IncomingMessage, person: Person
    ) -> str:
        """What waits because it was written too fast ends with the rest at `/stop`, which says so,
        and stays in the private conversation in which it was said. Raises StorageError."""
        lane = message.address.key
        if command.name == "stop":
            is_bounded = message.is_group and person.role is Role.GUEST
            away = self.flood.taken_away(lane, by=person.id if is_bounded else None)
            for event in (event for held in away for event in held.events):
                await self._end(event, InboxState.CANCELLED, reason="stopped")
            return f"Stopped {len(away)} that waited." if away else ""
        leaves = command.name in {"new", "private"}
        if leaves and await self._command_tools.private.is_private(lane):
            for held in self.flood.taken_away(lane):
                await held.act()
        return ""

    # --- one press ----------------------------------------------------------------------------

    async def _press(self, channel: Channel, event: StoredEvent, pressed: Pressed) -> None:
        """Acts on a button, whose effect is stored before the event ends: a crash in between has
        it done anew. The answer goes out beside what comes next."""
        person = self._access.who(pressed.sender)
        if person is None:
            await self._end(event, InboxState.REFUSED, reason="no longer let in")
            return
        in_group = is_group(f"{pressed.address.channel}:{pressed.address.chat_id}")
        if in_group and not self._access.is_admitted(pressed.address):
            await self._end(event, InboxState.REFUSED, reason="chat not admitted")
            return
        text = await self._pressed(pressed, person)
        await self._end(event, InboxState.COMMAND, reason="button")
        log.info("door.pressed", inbox=event.id, lane=pressed.address.key)
        if isinstance(channel, AnswersPresses):
            self._spawn(channel.answered(pressed, text), name="press answered")
            await asyncio.sleep(0)
        await self._answered(pressed.address.key)

    async def _pressed(self, pressed: Pressed, person: Person) -> str:
        prefix, colon, _ = pressed.data.partition(":")
        press = self._presses.get(prefix)
        if press is None or not colon:
            return NO_LONGER
        try:
            return await press(pressed, person)
        except AssistantError as error:
            log.error("door.press", prefix=prefix, why=str(error))
            return str(error)
        except Exception:  # as with commands
            log.exception("door.press", prefix=prefix)
            return BROKEN.format(name="That button")

    async def _answered(self, lane: str) -> None:
        """What follows is a thing of its own: its trouble is not the answer's."""
        if self.afterwards is None:
            return
        try:
            await self.afterwards(lane)
        except StorageError as trouble:
            log.warning("door.afterwards", lane=lane, why=str(trouble))

    async def state_of(self, knock: Knock) -> InboxState | None:
        """What became of an event."""
        return await self._inbox.state(knock.source, knock.event_id)

    async def idle(self) -> None:
        """Returns once no command is being answered, and no album is waited for."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def worked_off(self) -> None:
        """Returns once nothing waits because it was written too fast: minutes, perhaps."""
        while self._working_off:
            await asyncio.wait(self._working_off)

    async def _end(
        self,
        event: StoredEvent,
        state: InboxState,
        *,
        reason: str,
        reply: NewMessage | None = None,
    ) -> None:
        row: OutboxId | None = await self._inbox.end(event.id, state, reason=reason, reply=reply)
        if row is not None and reply is not None:
            self._outbox.deliver([(reply.lane, row)])


def _of_edit(message: IncomingMessage) -> tuple[str, bool]:
    """The note of an edit, and whether it is outside text for whoever writes next: in a group that
    may be anybody else, and what is forwarded or quoted is nobody's own."""
    who = one_line(message.sender_name) if message.is_group else ""
    who = f"«{who}»" if who else "The person"
    untrusted = message.is_group or bool(message.forwarded) or bool(message.quote)
    if message.forwarded:
        return f"{who} edited an earlier message, which they had forwarded.", untrusted
    return f"{who} edited an earlier message. It now reads: {message.text}", untrusted
