"""The chats that a person owns, and which of them a model means. Used by the tools that send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.tools.tool import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnChat:
    """A chat to which a person may have something sent. `lane` is its address key."""

    lane: str
    title: str = ""


def is_others_words(caller: Caller, lane: str) -> bool:
    """Whether what this caller's turn sends to `lane` may be words of somebody else than whoever
    writes there next: what follows from outside text, what any one member has a group told, and in
    another chat also what names and descriptions may have brought about."""
    is_here = lane == caller.address.key
    return caller.tainted or (caller.is_group if is_here else caller.described)


def chosen_chat(wanted: str, chats: Sequence[OwnChat]) -> str:
    """The lane of the chat that is meant by its address, or by its channel where the person has one
    chat there; empty where none is."""
    name = wanted.strip().casefold()
    if not name:
        return ""
    for chat in chats:
        if name in {chat.lane.casefold(), chat.title.casefold()}:
            return chat.lane
    of_channel = [chat.lane for chat in chats if chat.lane.partition(":")[0] == name]
    return of_channel[0] if len(of_channel) == 1 else ""
