"""The group `system`: how the assistant itself is doing."""

from __future__ import annotations

from typing import Protocol

from agent.messages import Role
from agent.tools.arguments import Arguments
from agent.tools.tool import Caller, Effect, Tool, ToolCard, Trust


class TellsStatus(Protocol):
    """Says how the bot is doing, a line each; `bot.status` is one."""

    async def lines(self, *, for_owner: bool, lane: str = "") -> list[str]: ...


def system_tools(status: TellsStatus) -> tuple[Tool, ...]:
    """All tools of this group."""
    return GetStatus(status), NothingToReport()


class NothingArguments(Arguments):
    """No arguments."""


class NothingToReport:
    """Ends a run that nobody watches, in silence: the loop asks the model no more."""

    card = ToolCard(
        name="nothing_to_report",
        description="End this run in silence: nothing is worth a message to anybody.",
        arguments=NothingArguments,
        group="system",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
        status="finishing …",
    )

    async def run(self, arguments: NothingArguments, caller: Caller) -> str:
        """Does nothing."""
        return "Nothing is reported."


class GetStatusArguments(Arguments):
    """No arguments."""


class GetStatus:
    """The lines of /status: to the owner alone what is the machine's own. They tell the last words
    of servers that went down, which are not ours."""

    card = ToolCard(
        name="get_status",
        description="How this assistant is doing: version, model, channels, servers, jobs, last "
        "errors, cost today.",
        arguments=GetStatusArguments,
        group="system",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="looking at myself …",
    )

    def __init__(self, status: TellsStatus) -> None:
        self._status = status

    async def run(self, arguments: GetStatusArguments, caller: Caller) -> str:
        """One line each."""
        is_owner_alone = caller.role is Role.OWNER and not caller.is_group
        lines = await self._status.lines(for_owner=is_owner_alone, lane=caller.address.key)
        return "\n".join(lines)
