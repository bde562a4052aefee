"""Which tools a run may have at all: by role, agent and kind of run. Offered or not, no call
reaches further (SPEC §6). Called where tools are selected, looked up and run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agent.messages import Role
from agent.tools.tool import Caller, Effect, Tool, ToolCard, may_call
from agent.tools.toolbox import Toolbox

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
    """Implements `agent.tools.discovery.Available` over a toolbox."""

    def __init__(self, toolbox: Toolbox, options: ReachOptions | None = None) -> None:
        self._toolbox = toolbox
        self._options = options or ReachOptions()

    def cards(self, caller: Caller) -> Sequence[ToolCard]:
        """All that this run may have, in the order of the toolbox."""
        return self.cards_of(caller.role, unattended=caller.unattended, jobs=caller.makes_jobs)

    def cards_of(
        self, role: Role, *, unattended: bool = False, jobs: bool = False
    ) -> Sequence[ToolCard]:
        """All that a run for a person of this role may have, in the order of the toolbox. With
        `jobs` also one that nobody watches may make jobs."""
        return [
            tool.card
            for tool in self._toolbox.tools()
            if self._may(tool.card, role=role, unattended=unattended, jobs=jobs)
        ]

    def names(self, role: Role, *, unattended: bool = False) -> list[str]:
        """The same, by name."""
        return [card.name for card in self.cards_of(role, unattended=unattended)]

    def tool(self, name: str, caller: Caller) -> Tool | None:
        """One of them."""
        tool = self._toolbox.get(name)
        if tool is None:
            return None
        is_open = self._may(
            tool.card, role=caller.role, unattended=caller.unattended, jobs=caller.makes_jobs
        )
        return tool if is_open else None

    def _may(self, card: ToolCard, *, role: Role, unattended: bool, jobs: bool = False) -> bool:
        name, options = card.name, self._options
        withheld = ATTENDED_ALONE if jobs else ATTENDED_ALONE | MAKES_JOBS
        if name in (withheld if unattended else UNATTENDED_ALONE):
            return False
        if options.allowed and not _matches(name, options.allowed):
            return False
        if _matches(name, options.denied):
            return False
        if may_call(role, card.effect):
            return True
        asks = options.members_approve_outside and card.group != "exec"
        return asks and role is Role.MEMBER and card.effect is Effect.OUTSIDE


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
