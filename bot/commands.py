"""The slash commands, one function each, in one table. None calls a model. Called by the door."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from agent.messages import IncomingMessage, Role
from agent.ports import Conversations, TurnEngine
from bot.ports import Person


class Status(Protocol):
    """Says how the bot is doing; offered by `bot.app`."""

    async def lines(self, *, for_owner: bool) -> list[str]: ...


class TellsContext(Protocol):
    """Says what the last prompt of a conversation was made of; `bot.context` is one."""

    async def tell(self, message: IncomingMessage, person: Person) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command as it came: who, where, and what stands behind the word."""

    message: IncomingMessage
    person: Person
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What commands act on."""

    engine: TurnEngine
    conversations: Conversations
    status: Status
    context: TellsContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One row of the table. One that `waits` runs beside what comes in after it."""

    name: str
    help: str
    run: Callable[[Tools, Asked], Awaitable[str]]
    roles: frozenset[Role] = field(default=frozenset(Role))
    waits: bool = False


async def show_help(tools: Tools, asked: Asked) -> str:
    """What can be typed here."""
    lines = [
        f"/{command.name} – {command.help}"
        for command in COMMANDS
        if asked.person.role in command.roles
    ]
    return "\n".join(["Just write to me. These words act at once:", "", *lines])


async def start_new(tools: Tools, asked: Asked) -> str:
    """Opens a fresh conversation; the old one is kept."""
    await tools.conversations.start_new(asked.message.address.key)
    return "A new conversation begins. What was said before is kept, but no longer sent along."


async def stop(tools: Tools, asked: Asked) -> str:
    """Ends the running turn of this chat, and what waits behind it."""
    ended = await tools.engine.cancel(asked.message.address.key)
    if ended == 0:
        return "Nothing was running here."
    if ended == 1:
        return "Stopped."
    return f"Stopped, with {ended - 1} more that waited."


async def status(tools: Tools, asked: Asked) -> str:
    """How the bot is doing."""
    alone = not asked.message.is_group
    lines = await tools.status.lines(for_owner=alone and asked.person.role is Role.OWNER)
    return "\n".join(lines)


async def context(tools: Tools, asked: Asked) -> str:
    """What the last prompt of this conversation was made of."""
    return await tools.context.tell(asked.message, asked.person)


COMMANDS: tuple[Command, ...] = (
    Command(name="help", help="what can be typed here", run=show_help),
    Command(name="new", help="start a new conversation", run=start_new),
    Command(name="stop", help="end what is being done in this chat", run=stop, waits=True),
    Command(name="status", help="how the bot is doing", run=status),
    Command(name="context", help="what went to the model last, and how large it was", run=context),
)

ALIASES = {"start": "help"}
"""Telegram sends /start when somebody opens the chat for the first time."""

_WORD = re.compile(r"/([A-Za-z0-9_]+)(?:@[A-Za-z0-9_]+)?(?:\s(.*))?", re.DOTALL)


def find(text: str) -> tuple[Command, str] | None:
    """The command that a text asks for, and the rest of it; unknown slash words are None.

    `/stop@our_bot` counts; the channel has left out what is meant for other bots.
    """
    found = _WORD.fullmatch(text)
    if found is None:
        return None
    name = found[1].lower()
    wanted = ALIASES.get(name, name)
    for command in COMMANDS:
        if command.name == wanted:
            return command, (found[2] or "").strip()
    return None
