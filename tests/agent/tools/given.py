"""What the tests of tools start from: callers, a clock that stands still, calls."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from agent.policy.presentation import needs_of
from agent.tools.arguments import parse_arguments
from agent.tools.groups.agents import StatusTold
from agent.tools.tool import Caller, Needs, Tool, may_call, tools_of
from agent.tools.toolbox import KeepResult, arguments_of, run_parsed
from memory.records.messages import Address, ConversationId, PersonId, Role, RunId
from memory.records.transcript import ToolCall, ToolResult


class StillClock:
    """A Clock for tools, which only ask how long something took."""

    def now(self) -> datetime:
        return datetime(2026, 1, 7, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here should sleep")


def caller(
    person: str = "p1",
    role: Role = Role.OWNER,
    *,
    chat: str = "42",
    is_group: bool = False,
) -> Caller:
    return Caller(
        person_id=PersonId(person),
        role=role,
        address=Address(channel="telegram", chat_id=chat),
        conversation=ConversationId("c1"),
        run_id=RunId("run-1"),
        is_group=is_group,
    )


OWNER = caller()
MEMBER = caller("p2", Role.MEMBER, chat="43")
GUEST = caller("p3", Role.GUEST, chat="44")
GROUP = caller(chat="-100", is_group=True)


async def run_tool(
    tool: Tool, call: ToolCall, who: Caller, *, keep: KeepResult | None = None
) -> ToolResult:
    """A call with its arguments read, as the steps of a turn make it once it may run."""
    arguments = arguments_of(tool.card, call)
    if isinstance(arguments, ToolResult):
        return arguments
    if not may_call(who.role, tool.card.effect):
        content = f"{tool.card.name} was not run: a {who.role} may not use it."
        return ToolResult(call_id=call.id, content=content, ok=False)
    return await run_parsed(tool, arguments, call, who, clock=StillClock(), keep=keep)


def by_name(*groups: object) -> dict[str, Tool]:
    """The tools of these groups."""
    return {tool.card.name: tool for group in groups for tool in tools_of(group)}


async def no_reaction(address: Address, message_id: str, emoji: str) -> str:
    raise AssertionError("nobody should react")


async def no_status(**_: object) -> StatusTold:
    raise AssertionError("nobody should ask how the bot is doing")


def needs(tool: Tool, who: Caller, /, **arguments: object) -> Needs:
    """What a call with these arguments needs, as the gate finds it."""
    parsed = parse_arguments(tool.card.arguments, json.dumps(arguments))
    return needs_of(tool, parsed, who)


def call(name: str, arguments: object, *, id: str = "c1") -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(id=id, name=name, arguments=text)
