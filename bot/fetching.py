"""Where the files of messages are fetched: at the channel by which the message came."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.attached_ports import FileUnavailable
from agent.messages import Address, Attachment
from bot.channel import Channel, FetchesFiles


class ChannelFiles:
    """Implements `agent.attached_ports.FileSource` over the channels, by name."""

    def __init__(self, channels: Callable[[], Mapping[str, Channel]]) -> None:
        self._channels = channels

    async def fetch(self, address: Address, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole of it. Raises FileUnavailable, Temporary."""
        channel = self._channels().get(address.channel)
        if not isinstance(channel, FetchesFiles):
            raise FileUnavailable("files cannot be fetched where this message came from")
        return await channel.fetch(attachment, bytes_max=bytes_max)
