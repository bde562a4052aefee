"""The group `agents`: work handed to a subagent, awaited (`subagent`) or in the background
(`spawn`). What is offered are Delegates; the step `tool` binds one to its call and runs that.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent.errors import Permanent
from agent.messages import RunId
from agent.subagents import Order, Subagents, Wish
from agent.tools.arguments import Arguments
from agent.tools.tool import Caller, Effect, Tool, ToolCard, Trust

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


class Delegate:
    """A tool that hands work on. It is run bound to its call: see `bound`."""

    def __init__(self, subagents: Subagents, card: ToolCard, *, waits: bool) -> None:
        self._subagents = subagents
        self._waits = waits
        self.card = card

    def bound(self, order: Order) -> Delegated:
        """The tool for this one call."""
        return Delegated(self._subagents, self.card, order, waits=self._waits)

    async def run(self, arguments: TaskArguments, caller: Caller) -> str:
        """Raises Unbound: there is no call that a subagent could belong to."""
        raise Unbound("A subagent can only be started from a turn.")


class Delegated:
    """Implements Tool: `run` starts the subagent of one call, however often it is called."""

    def __init__(self, subagents: Subagents, card: ToolCard, order: Order, *, waits: bool) -> None:
        self._subagents = subagents
        self._order = order
        self._waits = waits
        self.card = card
        self.awaited: RunId | None = None
        """The subagent whose end is to be waited for, once one runs."""

    async def run(self, arguments: TaskArguments, caller: Caller) -> str:
        """Says what was begun. Raises NotPossible, TooManySubagents, StorageError."""
        tools = None if arguments.tools is None else tuple(arguments.tools)
        wish = Wish(
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
