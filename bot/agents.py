"""What `/agents` says and does: the subagents of a chat, how they stand, and how to stop one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent.messages import IncomingMessage, Role
from agent.ports import ChildRun, Clock, RunStatus, TurnEngine
from bot.ports import Person

ENDED_SHOWN_MAX = 5

STATES = {
    RunStatus.QUEUED: "about to begin",
    RunStatus.RUNNING: "at work",
    RunStatus.SUSPENDED: "waits for an answer of yours",
    RunStatus.DONE: "done",
    RunStatus.FAILED: "not done",
    RunStatus.CANCELLED: "stopped",
}
"""How a subagent stands, in plain words."""

NONE = "Nobody works for this chat apart from me, and nobody did lately."
HOW_TO_STOP = "`/agents stop NUMBER` stops one, `/stop` everything in this chat."
USAGE = "Write `/agents` to see them, or `/agents stop NUMBER` to stop one."


class Children(Protocol):
    """Knows the subagents of a chat; `agent.subagents.Subagents` is one."""

    async def of(self, lane: str, *, limit: int = 50) -> Sequence[ChildRun]:
        """Those that are not over, then the newest. Raises StorageError."""


class AgentsDesk:
    """Implements `bot.command_tools.TellsAgents`."""

    def __init__(self, children: Children, engine: TurnEngine, *, clock: Clock) -> None:
        self._children = children
        self._engine = engine
        self._clock = clock

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """The list, or what came of `stop NUMBER`. Raises StorageError."""
        children = await self._children.of(message.address.key)
        words = rest.split()
        if not words:
            return self._list(children)
        if len(words) != 2 or words[0].lower() != "stop":
            return USAGE
        return await self._stop(children, words[1].lstrip("#"), message, person)

    def _list(self, children: Sequence[ChildRun]) -> str:
        open_ones = [child for child in children if child.ended_ms is None]
        ended = [child for child in children if child.ended_ms is not None]
        blocks = []
        if open_ones:
            blocks += ["\n".join(["At work for this chat:", *map(self._line, open_ones)])]
        if ended:
            lines = map(self._line, ended[:ENDED_SHOWN_MAX])
            blocks += ["\n".join(["Ended lately:", *lines])]
        if open_ones:
            blocks += [HOW_TO_STOP]
        return "\n\n".join(blocks) or NONE

    def _line(self, child: ChildRun) -> str:
        now_ms = int(self._clock.now().timestamp() * 1000)
        how = "" if child.waits else " in the background"
        if child.ended_ms is None:
            when = f"{STATES[child.status]}{how}, for {span(now_ms - child.created_ms)}"
        else:
            when = f"{STATES[child.status]}, {span(now_ms - child.ended_ms)} ago"
        return f"- {child.number}: {child.head} ({when})"

    async def _stop(
        self, children: Sequence[ChildRun], number: str, message: IncomingMessage, person: Person
    ) -> str:
        found = [child for child in children if str(child.number) == number]
        if not found:
            return f"There is no number {number[:20]} here. {USAGE}"
        (child,) = found
        is_bounded = message.is_group and person.role is Role.GUEST
        if is_bounded and child.by != person.id:
            return f"Number {number} was not begun for you, so you cannot stop it."
        if child.ended_ms is not None or not await self._engine.cancel(child.lane):
            return f"Number {number} had ended already."
        return f"Stopped number {number}: {child.head}"


def span(ms: int) -> str:
    """How long ago, as one says it: `40 s`, `3 min`, `2 h`, `5 d`."""
    seconds = max(ms, 0) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
