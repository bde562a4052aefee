"""What is said in a chat to one person alone, where a platform can do so: the place of it, which is
the chat and who reads it there. Channels make such places and send there; commands never see one.
"""

from __future__ import annotations

from dataclasses import replace

from agent.messages import Address, IncomingMessage

FOR_ALL = frozenset({"compact", "new", "restore", "stop", "undo"})
"""Commands whose answer all in a chat are to read: what they change, such as the conversation, is
everybody's there."""

FOR_ALL_WITH_WORDS = frozenset({"agents", "job", "model", "remind"})
"""Those that change such a thing with words behind them, and only show it without."""

_MARK = "~"
"""How the thread of such a place begins. No platform's thread does."""


def is_for_all(command: str, rest: str) -> bool:
    """Whether a command concerns everybody in the chat; `rest` is what stands behind its name. A
    new one is for its person alone until somebody decides otherwise above."""
    return command in FOR_ALL or (command in FOR_ALL_WITH_WORDS and bool(rest))


def aside_to(chat: Address, reader: str) -> Address:
    """The place in a chat where this person alone reads, by the platform's id of them."""
    assert chat.thread_id is None, "nobody can be spoken to aside in a thread"
    return replace(chat, thread_id=f"{_MARK}{reader}")


def reader_of(address: Address) -> str:
    """Who alone reads there; empty where it is no such place."""
    thread = address.thread_id or ""
    return thread.removeprefix(_MARK) if thread.startswith(_MARK) else ""


def chat_of(address: Address) -> Address:
    """The chat itself, whoever reads; any other address as it is."""
    return replace(address, thread_id=None) if reader_of(address) else address


def said_to_all(message: IncomingMessage) -> IncomingMessage:
    """The message as it is of the chat, whoever alone is answered."""
    return replace(message, address=chat_of(message.address))
