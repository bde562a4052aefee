"""The list of tools, written out in `bot.app`: found by name, and offered by role and agent.

Called by the loop and by whoever builds a request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Protocol

import structlog

from agent.tools.arguments import ArgumentsWrong
from agent.tools.call import CUT_OFF
from agent.tools.discovery import resolved
from agent.tools.tool import Effect, Tool, ToolCard, Trust
from memory.records.ports import Redo
from memory.records.request import ToolSpec
from memory.records.transcript import ToolCall, ToolResult

NEAREST_MAX = 3
NAMES_SHOWN_MAX = 10

_log = structlog.get_logger(__name__)

FOREIGN_READY_S = 5.0
"""How long a turn waits for a server that is just starting; later turns have its tools."""


class ForeignTools(Protocol):
    """Tools of others, such as those of MCP servers; `agent.mcp.servers` is one."""

    @property
    def version(self) -> int:
        """Another one whenever `tools` has changed."""

    def tools(self) -> Sequence[Tool]:
        """What there is now."""

    def wake(self) -> None:
        """Starts what is not started. Returns at once."""

    async def settled(self, *, limit_s: float) -> None:
        """Waits until each of them is up or has failed once, but no longer than this."""


class Toolbox:
    """Tools in the order in which they are offered: our own, then those of others.

    Those of others may change while the program runs; a turn that is running keeps the names it
    was offered, and is told when one is gone. Raises ValueError when a name of ours is doubled; of
    those of others only the first of a name is kept, as no turn may fail by what a server lists.
    """

    def __init__(self, tools: Sequence[Tool], foreign: ForeignTools | None = None) -> None:
        self._own = _by_name(tools)
        self._source = foreign
        self._version: int | None = None
        self._known: dict[str, Tool] = {}
        self._specs: dict[str, ToolSpec] = {}

    def add(self, tools: Sequence[Tool]) -> None:
        """Put further tools of ours behind those that are there. Raises ValueError."""
        self._own = _by_name([*self._own.values(), *tools])

    def tools(self) -> Sequence[Tool]:
        """All of them."""
        return [*self._own.values(), *self._foreign.values()]

    def cards(self) -> Sequence[ToolCard]:
        """Those of all tools."""
        return [tool.card for tool in self.tools()]

    async def ready(self) -> None:
        """Sees to it that the tools of others are there, as far as they come up soon."""
        if self._source is not None:
            self._source.wake()
            await self._source.settled(limit_s=FOREIGN_READY_S)

    @property
    def names(self) -> Collection[str]:
        """Of all tools."""
        return (self._own | self._foreign).keys()

    @property
    def is_described_by_others(self) -> bool:
        """Whether a tool has the description of a server that the owner does not trust."""
        return any(tool.card.trust is Trust.UNTRUSTED for tool in self._foreign.values())

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._own.get(name) or self._foreign.get(name)

    @property
    def foreign_count(self) -> int:
        """How many tools all servers have together."""
        return len(self._foreign)

    def named(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """The tools of these names, in the order given; unknown names are left out."""
        specs: list[ToolSpec] = []
        for name in names:
            if (tool := self.get(name)) is not None:
                if name not in self._specs:
                    self._specs[name] = tool.card.spec()
                specs.append(self._specs[name])
        return tuple(specs)

    def redo(self, call: ToolCall) -> Redo:
        """What a kill in mid-call permits. A call of an unknown tool does nothing."""
        tool = self._called(call)
        return tool.card.redo if tool else "repeat"

    def is_pure(self, call: ToolCall) -> bool:
        """Whether it changes nothing, so that several may run at once."""
        tool = self._called(call)
        return tool is None or tool.card.effect is Effect.NONE

    def resolved(self, call: ToolCall) -> ToolCall | ToolResult:
        """The call that is meant: that within a tool_call, or what is wrong with it."""
        try:
            return resolved(call)
        except ArgumentsWrong as error:
            content = f"{call.name} was not run: {error}"
            return ToolResult(call_id=call.id, content=content, ok=False)

    @property
    def _foreign(self) -> dict[str, Tool]:
        """Those of others as they are now. A name of ours is never taken over."""
        if self._source is not None and self._source.version != self._version:
            self._version = self._source.version
            self._known = self._first_of_each(self._source.tools())
            self._specs = {}
        return self._known

    def _first_of_each(self, tools: Sequence[Tool]) -> dict[str, Tool]:
        first: dict[str, Tool] = {}
        left_out: list[str] = []
        for tool in tools:
            name = tool.card.name
            if name in self._own or name in first:
                left_out.append(name)
            else:
                first[name] = tool
        if left_out:
            names = left_out[:NAMES_SHOWN_MAX]
            _log.warning("tools.name_taken", tools=names, left_out=len(left_out))
        return first

    def _called(self, call: ToolCall) -> Tool | None:
        inner = self.resolved(call)
        return None if isinstance(inner, ToolResult) else self.get(inner.name)

    def cut_off(self, call: ToolCall) -> ToolResult:
        """The result of a call whose answer was cut by the output limit: nothing was done."""
        return ToolResult(call_id=call.id, content=CUT_OFF, ok=False)

    def unknown(self, call: ToolCall, offered: Sequence[str]) -> ToolResult:
        """The result of a call of a tool that this run does not have; `offered` are those that it
        was shown."""
        near = get_close_matches(call.name.lower(), offered, n=NEAREST_MAX, cutoff=0.5)
        advice = f" Nearest: {', '.join(near)}." if near else ""
        if not offered:
            advice = " No tools are available: answer in text."
        what = f"There is no tool {call.name[:64]!r}"
        if self.get(call.name) is not None:
            what = f"{call.name[:64]!r} may not be used in this run"
        content = f"{what}; nothing was done.{advice}"
        return ToolResult(call_id=call.id, content=content, ok=False)


def _by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    names = [tool.card.name for tool in tools]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two tools have the same name: {', '.join(doubled)}")
    return dict(zip(names, tools, strict=True))
