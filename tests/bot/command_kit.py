"""What slash commands act on, as far as one of them asks for it."""

from __future__ import annotations

from bot.commands.command import CommandCall, Tools
from memory.records.messages import Address, IncomingMessage
from memory.records.rows import Person


def tools_with(**parts: object) -> Tools:
    """Return Tools that have these parts, and no others."""
    tools = object.__new__(Tools)
    for name, part in {"host_zone": "UTC", **parts}.items():
        object.__setattr__(tools, name, part)
    return tools


def asks(person: Person, rest: str = "", *, chat: str = "5", is_group: bool = False) -> CommandCall:
    """Return a command as it came from a chat of Telegram, with these words behind it."""
    message = IncomingMessage(
        address=Address(channel="telegram", chat_id=chat),
        message_id="1",
        sender_id="5",
        is_group=is_group,
    )
    return CommandCall(message=message, person=person, rest=rest)
