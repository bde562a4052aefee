"""Which agent answers at an address: the owner's bindings, gone through in their order (SPEC §4).

Pure. Asked by the intake, by jobs and by whatever shows or rehearses a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.records.messages import DEFAULT_AGENT, Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Chats that an agent takes. In `channel` and `chat_id` a `*` stands for any characters. A chat
    is meant with all its topics and threads."""

    channel: str
    chat_id: str
    agent: str

    def takes(self, address: Address) -> bool:
        """Return whether it speaks of this place."""
        return _fits(self.channel, address.channel) and _fits(self.chat_id, address.chat_id)

    def covers(self, other: Binding) -> bool:
        """Return whether it takes all that the other one takes. A `*` is matched by a `*` alone."""
        return _fits(self.channel, other.channel) and _fits(self.chat_id, other.chat_id)


class Bindings:
    """The first that fits decides; what none takes is the agent's that is called `default`."""

    def __init__(self, rules: Sequence[Binding] = ()) -> None:
        self._rules = tuple(rules)

    def agent_at(self, address: Address) -> str:
        """The name of the agent."""
        if not self._rules:
            return DEFAULT_AGENT
        return next((one.agent for one in self._rules if one.takes(address)), DEFAULT_AGENT)

    def agent_of(self, lane: str) -> str:
        """The same, by an address's key; of what is none, `default`."""
        try:
            return self.agent_at(Address.parse(lane))
        except ValueError:
            return DEFAULT_AGENT


def unreached(rules: Sequence[Binding]) -> list[tuple[int, int]]:
    """The places of bindings that never decide, each with that of the one before it which takes
    all that they would."""
    return [
        (place, earlier)
        for place, rule in enumerate(rules)
        for earlier in [next((n for n, one in enumerate(rules[:place]) if one.covers(rule)), None)]
        if earlier is not None
    ]


def _fits(pattern: str, text: str) -> bool:
    if "*" not in pattern:
        return pattern == text
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
