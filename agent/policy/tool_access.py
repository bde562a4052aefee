"""Which tools a run may have at all: by role, agent and kind of run. Offered or not, no call
reaches further (SPEC §6). Called where tools are selected, looked up and run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType

from agent.tools.tool import Caller, Effect, Tool, ToolCard, may_call
from agent.tools.toolbox import Toolbox
from memory.records.messages import DEFAULT_AGENT, Role

UNATTENDED_ALONE = frozenset({"nothing_to_report"})
"""Tools that make sense only where nobody is there."""

ATTENDED_ALONE = frozenset({"send_message", "send_file", "react"})
"""What the host does in a run that nobody watches: it delivers the result itself (SPEC §5)."""

MAKES_JOBS = frozenset({"schedule_job", "remind_me", "update_job", "run_job", "record_event"})
"""A job makes no jobs (SPEC §11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachOptions:
    """Glob lists of the agent: an empty `allowed` means all, and `denied` wins. With
    `members_approve_outside` members may wish for tools that act outside, and are asked."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    members_approve_outside: bool = False


class Reach:
    """The tools of a toolbox that a caller can use."""

    def __init__(
        self,
        toolbox: Toolbox,
        options: ReachOptions | None = None,
        others: Mapping[str, ReachOptions] = MappingProxyType({}),
    ) -> None:
        """`options` are those of the agent `default`, `others` those of further agents."""
        self._toolbox = toolbox
        self._options = options or ReachOptions()
        self._others = others

    def cards(self, caller: Caller) -> Sequence[ToolCard]:
        """All that this run may have, in the order of the toolbox."""
        kind = _AccessKind(role=caller.role, unattended=caller.unattended, jobs=caller.makes_jobs)
        return self._cards(kind, caller.agent)

    def cards_of(
        self,
        role: Role,
        *,
        unattended: bool = False,
        jobs: bool = False,
        agent: str = DEFAULT_AGENT,
    ) -> Sequence[ToolCard]:
        """All that a run for a person of this role may have, in the order of the toolbox. With
        `jobs` also one that nobody watches may make jobs."""
        return self._cards(_AccessKind(role=role, unattended=unattended, jobs=jobs), agent)

    def _cards(self, kind: _AccessKind, agent: str) -> Sequence[ToolCard]:
        options = self._of(agent)
        return [tool.card for tool in self._toolbox.tools() if _may(tool.card, kind, options)]

    def names(self, role: Role, *, unattended: bool = False) -> list[str]:
        """The same, by name."""
        return [card.name for card in self.cards_of(role, unattended=unattended)]

    def tool(self, name: str, caller: Caller) -> Tool | None:
        """One of them."""
        tool = self._toolbox.get(name)
        if tool is None:
            return None
        kind = _AccessKind(role=caller.role, unattended=caller.unattended, jobs=caller.makes_jobs)
        return tool if _may(tool.card, kind, self._of(caller.agent)) else None

    def _of(self, agent: str) -> ReachOptions:
        return self._others.get(agent, self._options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AccessKind:
    """A kind of run."""

    role: Role
    unattended: bool
    jobs: bool


def _may(card: ToolCard, kind: _AccessKind, options: ReachOptions) -> bool:
    name = card.name
    withheld = ATTENDED_ALONE if kind.jobs else ATTENDED_ALONE | MAKES_JOBS
    if name in (withheld if kind.unattended else UNATTENDED_ALONE):
        return False
    if options.allowed and not _matches(name, options.allowed):
        return False
    if _matches(name, options.denied):
        return False
    if may_call(kind.role, card.effect):
        return True
    asks = options.members_approve_outside and card.group != "exec"
    return asks and kind.role is Role.MEMBER and card.effect is Effect.OUTSIDE


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
