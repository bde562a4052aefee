"""Reactions that the assistant puts on messages: what stands behind the tool `react`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from agent.errors import Permanent, Temporary
from agent.messages import Address, IncomingMessage
from bot.channel import Acknowledges, Channel, NotSent, Reacted, Reacts, Refused


class NoReaction(Permanent):
    """A reaction that is not shown, and will not be."""


class NoReactionNow(Temporary):
    """A reaction that is not shown now."""


class Reactions:
    """Sets them at once: a reaction that comes late says nothing any more."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    async def react(self, address: Address, message_id: str, emoji: str) -> str:
        """What is shown now. Raises NoReaction, NoReactionNow."""
        channel = self._channels.get(address.channel)
        if not isinstance(channel, Reacts):
            raise NoReaction("there are no reactions in this chat; say it in your answer")
        match await channel.react(address, message_id, emoji):
            case Reacted(shown=shown):
                return shown
            case NotSent(reason=reason, retry_after_s=after_s):
                raise NoReactionNow(
                    f"the reaction could not be set now ({reason}); go on without it",
                    retry_after_s=after_s,
                )
            case Refused(reason=reason):
                raise NoReaction(reason)
            case other:
                assert_never(other)

    async def acknowledge(self, message: IncomingMessage) -> None:
        """Shows that it was taken in, where its channel does so."""
        channel = self._channels.get(message.address.channel)
        if isinstance(channel, Acknowledges):
            await channel.acknowledge(message)
