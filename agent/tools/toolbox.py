"""The list of tools, written out in `bot.app`: found by name, and offered by role and agent.

Called by the loop and by whoever builds a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from agent.messages import Role
from agent.ports import Redo
from agent.request import ToolSpec
from agent.tools.tool import CUT_OFF, Effect, Tool, may_call
from agent.transcript import ToolCall, ToolResult

NEAREST_MAX = 3


class Toolbox:
    """Tools in the order in which they are offered. Raises ValueError when a name is doubled."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.card.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            names = [tool.card.name for tool in tools]
            doubled = sorted({name for name in names if names.count(name) > 1})
            raise ValueError(f"two tools have the same name: {', '.join(doubled)}")
        self._specs = {name: tool.card.spec() for name, tool in self._tools.items()}

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._tools.get(name)

    def specs(
        self, allowed: Sequence[str], denied: Sequence[str], role: Role
    ) -> tuple[ToolSpec, ...]:
        """What a person of this role is offered, in stable order.

        `allowed` and `denied` are glob lists: an empty `allowed` means all, and `denied` wins.
        """
        return self.named(
            name
            for name, tool in self._tools.items()
            if may_call(role, tool.card.effect)
            and (not allowed or _matches(name, allowed))
            and not _matches(name, denied)
        )

    def named(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """The tools of these names, in the order given; unknown names are left out."""
        return tuple(self._specs[name] for name in names if name in self._specs)

    def redo(self, name: str) -> Redo:
        """What a kill in mid-call permits. A call of an unknown tool does nothing."""
        tool = self._tools.get(name)
        return tool.card.redo if tool else "repeat"

    def is_pure(self, name: str) -> bool:
        """Whether calls change nothing, so that several may run at once."""
        tool = self._tools.get(name)
        return tool is None or tool.card.effect is Effect.NONE

    def cut_off(self, call: ToolCall) -> ToolResult:
        """The result of a call whose answer was cut by the output limit: nothing was done."""
        return ToolResult(call_id=call.id, content=CUT_OFF, ok=False)

    def unknown(self, call: ToolCall, offered: Sequence[str]) -> ToolResult:
        """The result of a call of a tool that is not among those `offered`."""
        near = get_close_matches(call.name.lower(), offered, n=NEAREST_MAX, cutoff=0.5)
        advice = f" Nearest: {', '.join(near)}." if near else ""
        if not offered:
            advice = " No tools are available: answer in text."
        content = f"There is no tool {call.name[:64]!r}; nothing was done.{advice}"
        return ToolResult(call_id=call.id, content=content, ok=False)


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
