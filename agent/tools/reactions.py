"""`react`, of the group `message`: a sign under a message of the person, in the place of words.

It changes nothing but what the person sees, and may be repeated without harm.
"""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from agent.errors import Permanent
from agent.messages import Address
from agent.tools.arguments import Arguments
from agent.tools.tool import Caller, Effect, ToolCard, Trust

EMOJI_CHARS_MAX = 64
MESSAGE_ID_CHARS_MAX = 100


class NothingToReactTo(Permanent):
    """No message is being answered, and none was named."""


class Reactor(Protocol):
    """Puts reactions on messages. May be called twice with the same."""

    async def react(self, address: Address, message_id: str, emoji: str) -> str:
        """What is shown now: the emoji, or the nearest that the platform has.

        Raises AssistantError with a sentence for the model.
        """


class ReactArguments(Arguments):
    """What to show, and under what."""

    emoji: str = Field(min_length=1, max_length=EMOJI_CHARS_MAX, description="such as 👍")
    message: str = Field(
        default="",
        max_length=MESSAGE_ID_CHARS_MAX,
        description="id of another message of this chat; empty: the one that is being answered",
    )


class React:
    """A reaction in the current chat, and in no other."""

    card = ToolCard(
        name="react",
        description=(
            "Put an emoji reaction on the message that is being answered, such as 👍 for a thing "
            "that is noted or done. It comes beside your answer, which is sent all the same."
        ),
        arguments=ReactArguments,
        group="message",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="reacting …",
    )

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor

    async def run(self, arguments: ReactArguments, caller: Caller) -> str:
        """What is shown now."""
        message_id = arguments.message.strip() or caller.message_id
        if not message_id:
            raise NothingToReactTo(
                "no message is being answered here, so there is none to react to"
            )
        shown = await self._reactor.react(caller.address, message_id, arguments.emoji.strip())
        return f"The reaction {shown} stands under the message."
