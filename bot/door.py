"""A message comes in: stored, let in or refused, answered or handed on. Called by the channels.

`store` returns when all is durable, so that the channel may confirm to its platform; `handle`
then acts, and may be repeated after a crash for whatever has no terminal state yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, assert_never

import structlog

from agent.errors import AssistantError
from agent.messages import Address, IncomingMessage, OutboxId, Role, RunId, TurnInput
from agent.ports import Conversations, InboxState, NewRun, TurnEngine
from bot import commands
from bot.access import Access
from bot.channel import Channel, Ignored
from bot.outbox import Outbox
from bot.ports import Inbox, NewEvent, NewMessage, Person, StoredEvent

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """What a channel sees of an event before it is read: who, where, and the raw text.

    `sender` is None when nobody in particular sent it (a service event).
    """

    source: str
    event_id: str
    address: Address
    sender: str | None
    is_group: bool
    payload: str


class Door:
    """Takes events in and hands messages on, in order. An async context manager."""

    def __init__(
        self,
        inbox: Inbox,
        access: Access,
        engine: TurnEngine,
        conversations: Conversations,
        outbox: Outbox,
        *,
        command_tools: commands.Tools,
    ) -> None:
        self._inbox = inbox
        self._access = access
        self._engine = engine
        self._conversations = conversations
        self._outbox = outbox
        self._command_tools = command_tools
        self._group = asyncio.TaskGroup()
        self._commands: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
            (knock.source, knock.event_id): knock for knock in knocks if not knock.is_group
        }
        for event in stored:
            knock = strangers.get((event.event.source, event.event.event_id))
            if event.event.payload is None and knock is not None and knock.sender is not None:
                await self._answer_stranger(knock.address, knock.sender)
        return [event for event in stored if event.event.payload is not None]

    async def _event(self, knock: Knock) -> NewEvent:
        event = NewEvent(source=knock.source, event_id=knock.event_id)
        if knock.sender is None:
            return event
        person = await self._access.recognise(knock.sender, is_group=knock.is_group)
        admitted = (
            not knock.is_group
            or self._access.is_admitted(knock.address)
            or (person is not None and person.role is Role.OWNER)
        )
        if person is None or not admitted:
            return event
        return replace(event, lane=knock.address.key, payload=knock.payload)

    async def _answer_stranger(self, address: Address, sender: str) -> None:
        text = await self._access.answer_stranger(sender)
        if text is not None:
            await self._outbox.say(NewMessage(lane=address.key, text=text))

    # --- after it -----------------------------------------------------------------------------

    async def resume(self, channels: Mapping[str, Channel]) -> None:
        """Handles what a former process stored and did not finish."""
        for event in await self._inbox.unfinished():
            channel = channels.get(event.event.source.partition(":")[0])
            if channel is None:
                log.warning("door.no_channel", inbox=event.id, source=event.event.source)
                continue
            await self.handle(channel, [event])

    async def handle(self, channel: Channel, events: Sequence[StoredEvent]) -> None:
        """Acts on stored events, in order. An event that cannot be read is set aside."""
        for event in events:
            try:
                understood = channel.understand(event.event.payload or "")
            except ValueError as error:
                log.error("door.unreadable", inbox=event.id, why=str(error))
                await self._end(event, InboxState.SILENT, reason=f"unreadable: {error}")
                continue
            match understood:
                case Ignored(reason=reason):
                    await self._end(event, InboxState.SILENT, reason=reason)
                case IncomingMessage():
                    await self._message(event, understood)
                case other:
                    assert_never(other)

    async def _message(self, event: StoredEvent, message: IncomingMessage) -> None:
        person = self._access.who(message.sender)
        if person is None:
            await self._end(event, InboxState.REFUSED, reason="no longer let in")
            return
        if message.is_group and not self._access.is_admitted(message.address):
            await self._not_admitted(event, message)
            return
        if message.edited:
            await self._edited(event, message, person)
            return
        asked = commands.find(message.text)
        if asked is not None and person.role in asked[0].roles:
            await self._command(event, message, person, asked)
            return
        await self._submit(event, message, person)

    async def _submit(self, event: StoredEvent, message: IncomingMessage, person: Person) -> None:
        lane = message.address.key
        turn = await self._turn(message, person)
        run = NewRun(
            run_id=RunId(f"in-{event.id}"),
            lane=lane,
            by=person.id,
            payload=turn.to_json(),
            message_id=message.message_id,
            inbox_id=event.id,
        )
        await self._engine.submit(run)
        log.info("door.message", inbox=event.id, lane=lane, chars=len(message.text))

    async def _turn(self, message: IncomingMessage, person: Person) -> TurnInput:
        return TurnInput(
            message=message,
            conversation=await self._conversations.current(message.address.key),
            person_id=person.id,
            role=person.role,
            person_name=person.name,
            time_zone=person.time_zone,
            language=person.language,
        )

    async def _edited(self, event: StoredEvent, message: IncomingMessage, person: Person) -> None:
        """An edit replaces the text of a turn that has not begun; later it is a note for the
        next turn. It is never a turn of its own (SPEC §3, case CH-11)."""
        lane = message.address.key
        turn = await self._turn(replace(message, edited=False), person)
        if await self._engine.edit(lane, message.message_id, turn.to_json()):
            await self._end(event, InboxState.SILENT, reason="edit: text replaced")
            return
        await self._conversations.note(
            turn.conversation, f"The person edited an earlier message. It now reads: {message.text}"
        )
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
        what = commands.Asked(message=message, person=person, rest=rest)

        async def answer() -> None:
            try:
                text = await command.run(self._command_tools, what)
            except AssistantError as error:
                log.error("door.command", command=command.name, why=str(error))
                text = f"/{command.name} did not work: {error}"
            reply = NewMessage(lane=message.address.key, text=text)
            await self._end(event, InboxState.COMMAND, reason=command.name, reply=reply)

        if not command.waits:
            await answer()
            return
        task = self._group.create_task(answer(), name=f"command {command.name}")
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)
        await asyncio.sleep(0)

    async def idle(self) -> None:
        """Returns once no command is being answered."""
        while self._commands:
            await asyncio.wait(self._commands)

    async def _not_admitted(self, event: StoredEvent, message: IncomingMessage) -> None:
        """Only the owner's words get here; others' were not stored."""
        chat = f"{message.address.channel}:{message.address.chat_id}"
        text = (
            "This chat is not admitted, so I stay silent to everybody here. To admit it, run on "
            f"my machine: hearthbot access approve {chat}"
        )
        reply = NewMessage(lane=message.address.key, text=text)
        await self._end(event, InboxState.REFUSED, reason="chat not admitted", reply=reply)

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
