"""The group `system`: how the assistant itself is doing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.messages import Role
from agent.tools.arguments import Arguments
from agent.tools.tool import Caller, Effect, OursAlone, Tool, ToolCard, Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTold:
    """A line each; `quotes` says that words of servers, or of errors, stand in them."""

    lines: tuple[str, ...]
    quotes: bool = False


class TellsStatus(Protocol):
    """Says how the bot is doing; `bot.status` is one."""

    async def told(self, *, for_owner: bool, lane: str = "") -> StatusTold: ...


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
    """The lines of /status: to the owner alone what is the machine's own. While a server is down
    they tell its last words, and after an error its reason: these are not ours."""

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
        told = await self._status.told(for_owner=is_owner_alone, lane=caller.address.key)
        text = "\n".join(told.lines)
        return text if told.quotes else OursAlone(text)
