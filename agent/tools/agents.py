"""The group `agents`: work handed to a subagent, awaited (`subagent`) or in the background
(`spawn`). What is offered are Delegates; the step `tool` binds one to its call and runs that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from agent.subagents.subagents import SubagentCall, Subagents, SubagentTask
from agent.tools.arguments import Arguments
from agent.tools.tool import Caller, Effect, OursAlone, Tool, ToolCard, Trust
from memory.records.errors import Permanent
from memory.records.messages import Role, RunId

TASK_CHARS_MAX = 16_000
MINUTES_MAX = 30


class Unbound(Permanent):
    """A subagent was asked for outside a turn."""


class TaskArguments(Arguments):
    """`tools` left out: all that may be given."""

    task: Annotated[
        str,
        Field(
            min_length=1,
            max_length=TASK_CHARS_MAX,
            description="All that has to be known: it sees nothing of this conversation. Say what "
            "to find or do, where, and what the answer must hold.",
        ),
    ]
    tools: Annotated[
        list[str] | None,
        Field(max_length=50, description="Names of your tools that it may use. All, if left out."),
    ] = None
    minutes: Annotated[
        int | None, Field(ge=1, le=MINUTES_MAX, description="How long it may take; usually 5.")
    ] = None


SUBAGENT = ToolCard(
    name="subagent",
    description="Have a piece of work done apart from this conversation, and wait for its result: "
    "research or reading whose details you do not need here. Several in one answer work at once.",
    arguments=TaskArguments,
    group="agents",
    effect=Effect.PERSON,
    redo="idempotent",
    trust=Trust.UNTRUSTED,
    status="having a part of it done …",
)

SPAWN = ToolCard(
    name="spawn",
    description="Begin a longer piece of work in the background and go on at once. Its result "
    "comes as a message later; tell the person that it was begun.",
    arguments=TaskArguments,
    group="agents",
    effect=Effect.PERSON,
    redo="idempotent",
    trust=Trust.OURS,
    status="beginning a task in the background …",
)


class Delegate(Tool):
    """A tool that hands work on. It is run bound to its call: see `bound`."""

    def __init__(self, subagents: Subagents, card: ToolCard, *, waits: bool) -> None:
        self._subagents = subagents
        self._waits = waits
        self.card = card

    def bound(self, order: SubagentCall) -> Delegated:
        """The tool for this one call."""
        return Delegated(self._subagents, self.card, order, waits=self._waits)

    async def run(self, arguments: TaskArguments, caller: Caller) -> str:
        """Raises Unbound: there is no call that a subagent could belong to."""
        raise Unbound("A subagent can only be started from a turn.")


class Delegated(Tool):
    """Implements Tool: `run` starts the subagent of one call, however often it is called."""

    def __init__(
        self, subagents: Subagents, card: ToolCard, order: SubagentCall, *, waits: bool
    ) -> None:
        self._subagents = subagents
        self._order = order
        self._waits = waits
        self.card = card
        self.awaited: RunId | None = None
        """The subagent whose end is to be waited for, once one runs."""

    async def run(self, arguments: TaskArguments, caller: Caller) -> str:
        """Says what was begun. Raises NotPossible, TooManySubagents, StorageError."""
        tools = None if arguments.tools is None else tuple(arguments.tools)
        wish = SubagentTask(
            task=arguments.task, waits=self._waits, tools=tools, minutes=arguments.minutes or 0
        )
        started = await self._subagents.start(self._order, wish)
        if self._waits:
            self.awaited = started.run_id
            return "It has begun."
        with_tools = ", ".join(started.tools) or "no tools"
        return (
            f"Begun in the background as {started.run_id}, for at most {started.minutes} minutes, "
            f"with {with_tools}. Its result comes as a message of its own: do not wait for it, and "
            "do not say what it will find."
        )


def agent_tools(subagents: Subagents) -> tuple[Tool, ...]:
    """All tools of this group."""
    return (
        Delegate(subagents, SUBAGENT, waits=True),
        Delegate(subagents, SPAWN, waits=False),
    )


# --- system -------------------------------------------------------------------------------------
#
# The group `system`: how the assistant itself is doing.


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTold:
    """A line each; `quotes` says that words of servers, or of errors, stand in them."""

    lines: tuple[str, ...]
    quotes: bool = False


class TellsStatus(Protocol):
    """Says how the bot is doing; `bot.commands.status` is one."""

    async def told(self, *, for_owner: bool, lane: str = "") -> StatusTold: ...


def system_tools(status: TellsStatus) -> tuple[Tool, ...]:
    """All tools of this group."""
    return GetStatus(status), NothingToReport()


class NothingArguments(Arguments):
    """No arguments."""


class NothingToReport(Tool):
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


class GetStatus(Tool):
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
