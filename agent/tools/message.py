"""The group `message`: words and files to a chat that the person owns, and reactions to what they
wrote. The doors behind it are `bot`'s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic import Field

from agent.messages import PersonId
from agent.tools.arguments import Arguments
from agent.tools.own_chats import OwnChat, chosen_chat, is_others_words
from agent.tools.reactions import React, Reactor
from agent.tools.sending_files import FileSender, SendableFiles, SendFile
from agent.tools.tool import Caller, Effect, Needs, Tool, ToolCard, Trust

MESSAGE_CHARS_MAX = 8_000


class Messenger(Protocol):
    """Sends for the assistant; what is sent joins the history of its chat. Raises StorageError."""

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        """The private chats of this person, in all channels."""

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        """Stored, then on its way. `untrusted` marks it in that history, as in
        `Conversations.note`."""


def message_tools(
    messenger: Messenger, sender: FileSender, files: SendableFiles, reactor: Reactor
) -> tuple[Tool, ...]:
    """All tools of this group."""
    return SendMessage(messenger), SendFile(sender, files), React(reactor)


class SendMessageArguments(Arguments):
    """What to say, and where."""

    text: str = Field(min_length=1, max_length=MESSAGE_CHARS_MAX)
    chat: str = Field(default="", description="such as slack or telegram:42; empty: this chat")


class SendMessage:
    """A message of its own, to this chat or to another of the person's private chats.

    A chat id that is wrong or missing becomes the current one (SPEC §6): a model must never be
    able to pick a stranger by a slip.
    """

    card = ToolCard(
        name="send_message",
        description=(
            "Send a message to another private chat of the person, or an extra one here. Your "
            "answer itself is delivered without it."
        ),
        arguments=SendMessageArguments,
        group="message",
        effect=Effect.PERSON,
        redo="once",
        trust=Trust.OURS,
        status="sending a message …",
    )

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger

    def needs(self, arguments: SendMessageArguments, caller: Caller) -> Needs:
        """See SaysNeeds: after outside text, another chat than this one is a new target."""
        wanted = arguments.chat.strip()
        return Needs(target="" if wanted in {"", caller.address.key} else wanted)

    async def run(self, arguments: SendMessageArguments, caller: Caller) -> str:
        """Where it went."""
        chats = await self._messenger.chats(caller.person_id)
        lane = chosen_chat(arguments.chat, chats) or caller.address.key
        untrusted = is_others_words(caller, lane)
        await self._messenger.send(lane, arguments.text, untrusted=untrusted)
        if lane == caller.address.key:
            return "Sent to this chat. Do not repeat it in your answer."
        return f"Sent to {lane}."
