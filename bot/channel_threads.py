"""A channel in which each mention opens a thread: what is typed at its root, and is about them.

Slack's channels are such. Used by the commands, and by whoever looks up what holds for a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

from agent.messages import Address, IncomingMessage, PersonId, Role
from bot.command_tools import Asked, Tools
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


async def stop(tools: Tools, asked: Asked) -> str:
    """Ends what runs in this chat, and what waits behind it; at a channel's root that in its
    threads too. In a group a guest ends only what they asked for themselves: a guest has no effect
    on others (SPEC §4). In threads where they are not, that holds for all but the owner."""
    is_bounded = asked.message.is_group and asked.person.role is Role.GUEST
    own = asked.person.id
    lane = asked.message.address.key
    ended = await tools.engine.cancel(lane, by=own if is_bounded else None)
    if is_root(asked.message):
        by = bound_in_threads(asked)
        threads = threads_of(asked.message.address, tools.lanes())
        ended += sum(
            await asyncio.gather(*(tools.engine.cancel(thread, by=by) for thread in threads))
        )
        if ended == 0:
            whose = "" if by is None else " of yours"
            return f"Nothing{whose} was running here, or in the threads."
        return f"Stopped {ended} answer{'s' if ended > 1 else ''}."
    if ended == 0:
        return "Nothing of yours was running." if is_bounded else "Nothing was running here."
    if ended == 1:
        return "Stopped."
    return f"Stopped, with {ended - 1} more."


def threads_of(channel: Address, lanes: Collection[str]) -> list[str]:
    """Those of these addresses that are threads of the channel."""
    root = replace(channel, thread_id=None).key
    return sorted(lane for lane in lanes if around(lane) == root)


def bound_in_threads(asked: Asked) -> PersonId | None:
    """Whose answers they may end in all threads at once: None is everybody's."""
    return None if asked.person.role is Role.OWNER else asked.person.id
