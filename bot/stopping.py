"""What `/stop` does: here, and from a channel's root in its threads too. A command of
`bot.commands`.
"""

from __future__ import annotations

import asyncio

from agent.messages import PersonId, Role
from bot.channel_threads import is_root, threads_of
from bot.command_tools import Asked, Tools


async def stop(tools: Tools, asked: Asked) -> str:
    """Ends what runs in this chat, and what waits behind it; at a channel's root that in its
    threads too. In a group a guest ends only what they asked for themselves: a guest has no effect
    on others (SPEC §4). In threads where they are not, that holds for all but the owner."""
    bound = bound_here(asked)
    ended = await tools.engine.cancel(asked.message.address.key, by=bound)
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
        return "Nothing was running here." if bound is None else "Nothing of yours was running."
    if ended == 1:
        return "Stopped."
    return f"Stopped, with {ended - 1} more."


def bound_here(asked: Asked) -> PersonId | None:
    """Whose answers they may end in this chat: None is everybody's."""
    is_guest = asked.message.is_group and asked.person.role is Role.GUEST
    return asked.person.id if is_guest else None


def bound_in_threads(asked: Asked) -> PersonId | None:
    """Whose answers they may end in all threads at once: None is everybody's."""
    return None if asked.person.role is Role.OWNER else asked.person.id
