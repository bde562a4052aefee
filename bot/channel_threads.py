"""A channel in which each mention opens a thread: what is typed at its root, and is about them.

Slack's channels are such. Used by the commands, and by whoever looks up what holds for a thread.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from agent.messages import Address, IncomingMessage
from bot.slack_fields import is_direct

OF_ONE_CONVERSATION = frozenset({"compact", "context", "new", "restore", "undo", "why"})
"""Commands that are about the conversation in which they are typed."""

_CHANNEL = "slack"


def is_root(message: IncomingMessage) -> bool:
    """Whether it was typed in such a channel, outside of its threads."""
    address = message.address
    return address.channel == _CHANNEL and message.is_group and address.thread_id is None


def around(lane: str) -> str:
    """The address of the channel around a thread; empty for what is no thread of such a one."""
    channel, *more = lane.split(":")
    if channel != _CHANNEL or len(more) != 2 or is_direct(more[0].partition(".")[2]):
        return ""
    return f"{channel}:{more[0]}"


def hint(name: str) -> str:
    """What is said of `/NAME` at the root, behind what it did there."""
    return (
        "Each thread here has a conversation of its own, which this is not about: in a thread, "
        f"write `@hearth /{name}`."
    )


def threads_of(channel: Address, lanes: Collection[str]) -> list[str]:
    """Those of these addresses that are threads of the channel."""
    root = replace(channel, thread_id=None).key
    return sorted(lane for lane in lanes if around(lane) == root)
