"""Commands and presses on buttons, answered as they come, ahead of the queue, each exactly once.
Used by the intake."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial

import structlog

from bot.channels.base import (
    OF_ONE_CONVERSATION,
    Channel,
    Pressed,
    hint,
    is_root,
    said_to_all,
    threads_of,
)
from bot.commands.command import OWNER_ALONE, Answer, Command, CommandCall, Tools
from bot.commands.conversation import bound_here, bound_in_threads
from bot.commands.table import left_out
from bot.inbox.admission import BROKEN, Backlog, EventCloser
from bot.inbox.background import BackgroundTasks, patiently
from bot.markup.command_text import all_as_typed, as_typed, slash
from bot.people.access import Access
from bot.people.pairing import is_group
from memory.records.errors import AssistantError, StorageError, StorageFull
from memory.records.messages import Role
from memory.records.ports import Clock, InboxState
from memory.records.rows import NewMessage, Person, StoredEvent

log = structlog.get_logger()


class CommandRunner:
    """Answers commands by what they act on."""

    def __init__(
        self,
        tools: Tools,
        backlog: Backlog,
        *,
        endings: EventCloser,
        tasks: BackgroundTasks,
        troubled: Callable[[StoredEvent, StorageError], None],
        clock: Clock,
    ) -> None:
        """`troubled` is called with the event that waits for storage."""
        self._tools = tools
        self._backlog = backlog
        self._endings = endings
        self._tasks = tasks
        self._troubled = troubled
        self._clock = clock

    async def take(self, event: StoredEvent, command: Command, asked: CommandCall) -> None:
        """Run a command ahead of the queue. One that waits for something (`/stop`) runs in a task
        of its own, and reaches its first pause before anything that came later is looked at.
        Raises StorageFull if nothing was done yet."""
        answer = partial(self._answer, event, command, asked)
        if not command.waits:
            await answer()
            return
        self._tasks.begin(self._patiently(event, answer), name=f"command {command.name}")
        await asyncio.sleep(0)

    async def _patiently(self, event: StoredEvent, act: Callable[[], Awaitable[None]]) -> None:
        await patiently(act, self._clock, troubled=partial(self._troubled, event))

    async def _answer(self, event: StoredEvent, command: Command, asked: CommandCall) -> None:
        lane = asked.message.address.key
        said = await self._said(command, asked)
        reply = NewMessage(
            lane=lane,
            text=said.text,
            buttons=said.buttons,
            keyboard=offered(command, self._tools, asked),
        )
        end = partial(
            self._endings.end, event, InboxState.COMMAND, reason=command.name, reply=reply
        )
        try:
            await end()
        except StorageError as trouble:
            # What it did stands: only its answer waits, and holds up nothing else that comes in.
            self._troubled(event, trouble)
            self._tasks.begin(self._patiently(event, end), name=f"answer {command.name}")
        await self._endings.answered(lane)

    async def _said(self, command: Command, asked: CommandCall) -> Answer:
        lane = asked.message.address.key
        try:
            ended = await self._before(command, asked)
            said = await answer(command, self._tools, asked)
            return replace(said, text=f"{said.text} {ended}") if ended else said
        except StorageFull:
            raise  # it is done once there is space
        except AssistantError as error:
            log.error("inbox.command", command=command.name, why=str(error))
            why = as_typed(str(error), lane)
            return Answer(text=f"{slash(lane)}{command.name} did not work: {why}")
        except Exception:  # else the event stays open, and ends the bot at each start anew
            log.exception("inbox.command", command=command.name)
            return Answer(text=BROKEN.format(name=f"{slash(lane)}{command.name}"))

    async def _before(self, command: Command, asked: CommandCall) -> str:
        """What waits because it was written too fast ends with the rest at `/stop`, which
        says so, and stays in the private conversation in which it was said. Raises StorageError."""
        message = asked.message
        lane = message.address.key
        flood = self._backlog.flood
        if command.name == "stop":
            away = [*flood.taken_away(lane, by=bound_here(asked))]
            if is_root(message):
                by = bound_in_threads(asked)
                for thread in threads_of(message.address, flood.lanes()):
                    away += flood.taken_away(thread, by=by)
            for event in (event for held in away for event in held.events):
                await self._endings.end(event, InboxState.CANCELLED, reason="stopped")
            return f"Stopped {len(away)} that waited." if away else ""
        leaves = command.name in {"new", "private"}
        if leaves and await self._tools.memory.private.is_private(lane):
            for held in flood.taken_away(lane):
                await held.act()
        return ""


async def answer(command: Command, tools: Tools, asked: CommandCall) -> Answer:
    """Return what a command says, to those who may use it here: the one way in, for every command.
    It is about the chat, also where one person alone is answered."""
    asked = replace(asked, message=said_to_all(asked.message))
    where = asked.message.address.key
    refused = refusal(command, role=asked.person.role, is_group=asked.message.is_group)
    if refused:
        # What belongs into a private chat is named as it is typed there.
        there = asked.message.address.channel if command.private else where
        return Answer(text=all_as_typed(refused, there))
    if command.instead and asked.rest:
        return Answer(text=as_typed(command.instead, where))
    said = await command.run(tools, asked)
    told = Answer(text=said) if isinstance(said, str) else said
    text = as_typed(told.text, where) if command.is_ours else told.text
    if command.is_bare and asked.rest:
        text = f"{left_out(command.name, asked.rest, where)}\n\n{text}"
    if command.name in OF_ONE_CONVERSATION and is_root(asked.message):
        text = f"{text}\n\n{hint(command.name)}"
    return replace(told, text=text)


def refusal(command: Command, *, role: Role, is_group: bool) -> str:
    """Why this person may not use the command here; empty when they may."""
    if role not in command.roles:
        return f"/{command.name} is for {_those(command.roles)}."
    if is_group and command.private:
        return f"/{command.name} is done in a private chat: write it to me there."
    if is_group and role not in command.group_roles:
        return (
            f"In a group /{command.name} is for {_those(command.group_roles)}, because it "
            "concerns everybody here."
        )
    return ""


def offered(command: Command, tools: Tools, asked: CommandCall) -> tuple[str, ...]:
    """The texts that a command's answer offers with it: for one person alone, not for a group."""
    if not command.offers or asked.message.is_group:
        return ()
    found = tools.snippets.read().snippets
    return tuple(f"{snippet.icon} {snippet.message}".strip() for snippet in found)


def _those(roles: frozenset[Role]) -> str:
    return "the owner" if roles == OWNER_ALONE else "the owner and members"


# --- buttons --------------------------------------------------------------------------------------

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
        prefix, colon, _ = pressed.data.partition(":")
        press = self.by_prefix.get(prefix) if colon else None
        try:
            text = NO_LONGER if press is None else await press(pressed, person)
        except StorageFull:
            raise  # it is done once there is space
        except AssistantError as error:
            log.error("inbox.press", prefix=prefix, why=str(error))
            text = str(error)
        except Exception:  # as with commands
            log.exception("inbox.press", prefix=prefix)
            text = BROKEN.format(name="That button")
        await self._endings.end(event, InboxState.COMMAND, reason="button")
        log.info("inbox.pressed", inbox=event.id, lane=pressed.address.key)
        self._tasks.begin(channel.answered(pressed, text), name="press answered")
        await asyncio.sleep(0)
        await self._endings.answered(pressed.address.key)
