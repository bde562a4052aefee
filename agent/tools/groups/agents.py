"""The group `agents`: work handed to a subagent, awaited (`subagent`) or in the background
(`spawn`); and the group `system`, how the assistant itself is doing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agent.subagents.subagents import StartedSubagent, SubagentCall, Subagents, SubagentTask
from agent.tools.tool import (
    Caller,
    Effect,
    OwnWords,
    Trust,
    tool,
)
from memory.records.errors import Permanent
from memory.records.messages import Role, RunId

TASK_CHARS_MAX = 16_000
MINUTES_MAX = 30


class Unbound(Permanent):
    """A subagent was asked for outside a turn."""


SUBAGENT = "subagent"
SUBAGENT_STATUS = "having a part of it done …"

Task = Annotated[
    str,
    Field(
        min_length=1,
        max_length=TASK_CHARS_MAX,
        description="All that has to be known: it sees nothing of this conversation. Say what "
        "to find or do, where, and what the answer must hold.",
    ),
]
ToolNames = Annotated[
    list[str] | None,
    Field(max_length=50, description="Names of your tools that it may use. All, if left out."),
]
Minutes = Annotated[
    int | None, Field(ge=1, le=MINUTES_MAX, description="How long it may take; usually 5.")
]


class AgentTools:
    """Hands work to subagents. They belong to a call: the step `tool` runs what `bound` gives."""

    def __init__(self, subagents: Subagents, order: SubagentCall | None = None) -> None:
        self._subagents = subagents
        self._order = order
        self.awaited: RunId | None = None
        """The subagent whose end is to be waited for, once one runs."""

    def bound(self, order: SubagentCall) -> AgentTools:
        """The same for one call."""
        return AgentTools(self._subagents, order)

    @tool("agents", Effect.PERSON, redo="idempotent", trust=Trust.UNTRUSTED, status=SUBAGENT_STATUS)
    async def subagent(
        self, caller: Caller, task: Task, tools: ToolNames = None, minutes: Minutes = None
    ) -> str:
        """Have a piece of work done apart from this conversation, and wait for its result: research
        or reading whose details you do not need here. Several in one answer work at once."""
        started = await self._start(task, tools, minutes, waits=True)
        self.awaited = started.run_id
        return "It has begun."

    @tool("agents", Effect.PERSON, redo="idempotent", status="beginning a task in the background …")
    async def spawn(
        self, caller: Caller, task: Task, tools: ToolNames = None, minutes: Minutes = None
    ) -> str:
        """Begin a longer piece of work in the background and go on at once. Its result comes as a
        message later; tell the person that it was begun."""
        started = await self._start(task, tools, minutes, waits=False)
        with_tools = ", ".join(started.tools) or "no tools"
        return (
            f"Begun in the background as {started.run_id}, for at most {started.minutes} minutes, "
            f"with {with_tools}. Its result comes as a message of its own: do not wait for it, and "
            "do not say what it will find."
        )

    async def _start(
        self, task: str, tools: list[str] | None, minutes: int | None, *, waits: bool
    ) -> StartedSubagent:
        """However often it is called, one call starts one. Raises Unbound, NotPossible,
        TooManySubagents, StorageError."""
        if self._order is None:
            raise Unbound("A subagent can only be started from a turn.")
        chosen = None if tools is None else tuple(tools)
        wish = SubagentTask(task=task, waits=waits, tools=chosen, minutes=minutes or 0)
        return await self._subagents.start(self._order, wish)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTold:
    """A line each; `quotes` says that words of servers, or of errors, stand in them."""

    lines: tuple[str, ...]
    quotes: bool = False


TellsStatus = Callable[..., Awaitable[StatusTold]]
"""Says how the bot is doing, given `for_owner` and `lane`: `bot.commands.status`."""


class SystemTools:
    """Says how the assistant is doing, and ends runs in silence."""

    def __init__(self, tells: TellsStatus) -> None:
        self._tells = tells

    # The lines of /status: to the owner alone what is the machine's own. While a server is down
    # they tell its last words, and after an error its reason: these are not ours.
    @tool("system", Effect.NONE, trust=Trust.UNTRUSTED, status="looking at myself …")
    async def get_status(self, caller: Caller) -> str:
        """How this assistant is doing: version, model, channels, servers, jobs, last errors, cost
        today."""
        is_owner_alone = caller.role is Role.OWNER and not caller.is_group
        told = await self._tells(for_owner=is_owner_alone, lane=caller.address.key)
        text = "\n".join(told.lines)
        return text if told.quotes else OwnWords(text)

    # Ends a run that nobody watches, in silence: the loop asks the model no more.
    @tool("system", Effect.NONE, status="finishing …")
    async def nothing_to_report(self, caller: Caller) -> str:
        """End this run in silence: nothing is worth a message to anybody."""
        return "Nothing is reported."
