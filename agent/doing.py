"""The steps `gate` and `tool` of a turn: may this call run, and one call to its one result.

A running tool is shown to the person in plain words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent.choosing import UNATTENDED
from agent.gate import Gate, Passed, Stopped, Waits, Wish
from agent.meant import TOOL_CALL
from agent.messages import TurnInput
from agent.ports import Clock, Drafts, Json, TurnContext
from agent.scene import PromptKind
from agent.subagents import Order
from agent.tools.agents import Delegate, Delegated
from agent.tools.reach import Reach
from agent.tools.tool import Caller, KeepWhole, Tool, ToolLimits, arguments_of, run_parsed
from agent.tools.toolbox import Toolbox
from agent.transcript import ToolCall, ToolResult

OTHER_WORDS = "working …"
"""A status line in plain words: a tool's name means nothing to a person (case PR-05)."""


class Doing:
    """Runs one tool call to its one result; a failing tool never ends the turn."""

    def __init__(
        self,
        toolbox: Toolbox,
        reach: Reach,
        drafts: Drafts,
        gate: Gate,
        *,
        clock: Clock,
        keep: KeepWhole | None,
        limits: ToolLimits,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._toolbox = toolbox
        self._reach = reach
        self._drafts = drafts
        self._gate = gate
        self._clock = clock
        self._keep = keep
        self._limits = limits
        self._redact = redact

    async def ask(self, ctx: TurnContext, arguments: Json) -> Json:
        """The step `gate`: empty when the call may run, `{"ask": id}` when a person was asked, and
        else its result."""
        judged = await self._judged(ctx, arguments)
        return judged if isinstance(judged, dict) else {}

    async def __call__(self, ctx: TurnContext, arguments: Json) -> Json:
        """The step `tool`: the result as `{"content", "ok", "untrusted", "effect", …}`, or
        `{"ask": id}`."""
        judged = await self._judged(ctx, arguments)
        if isinstance(judged, dict):
            return judged
        tool = judged.tool
        if isinstance(tool, Delegate):
            tool = tool.bound(_order(ctx, arguments, judged))
        draft = self._drafts.open(ctx.run_id, judged.caller.address)
        draft.status(tool.card.status or OTHER_WORDS)
        try:
            result = await run_parsed(
                tool,
                judged.arguments,
                judged.call,
                judged.caller,
                clock=self._clock,
                limits=self._limits_of(arguments),
                keep=self._keep,
                redact=self._redact,
            )
        finally:
            draft.status("")
        if isinstance(tool, Delegated) and result.ok and tool.awaited is not None:
            return {"child": tool.awaited}
        return _as_json(result)

    async def _judged(self, ctx: TurnContext, arguments: Json) -> Wish | Json:
        """The wish that may run, or what the step answers in its place."""
        turn = TurnInput.from_json(arguments["turn"])
        call = self._toolbox.resolved(ToolCall(**arguments["call"]))
        if isinstance(call, ToolResult):
            return _as_json(call)
        caller = _caller(ctx, turn, arguments, described=self._toolbox.is_described_by_others)
        tool = self._reached(call, caller, arguments, is_ordered=_is_ordered(turn, call))
        if tool is None:
            return _as_json(self._toolbox.unknown(call, arguments["offered"]))
        parsed: Any = arguments_of(tool.card, call, limits=self._limits)
        if isinstance(parsed, ToolResult):
            return _as_json(parsed)
        wish = Wish(tool=tool, call=call, arguments=parsed, caller=caller, place=arguments["place"])
        if _is_ordered(turn, call):
            return replace(wish, caller=replace(caller, agreed=True))
        match await self._gate.judge(wish, arguments, self._toolbox):
            case Passed(caller=passed):
                return Wish(tool=tool, call=call, arguments=parsed, caller=passed, place=wish.place)
            case Stopped(why=why):
                return _as_json(ToolResult(call_id=call.id, content=why, ok=False))
            case Waits(approval_id=approval_id):
                return {"ask": approval_id}

    def _limits_of(self, arguments: Json) -> ToolLimits:
        """Those of the settings; of a small window a result may take no more than its share."""
        fits = arguments["result_chars"]
        if not fits or fits >= self._limits.result_chars_max:
            return self._limits
        return replace(self._limits, result_chars_max=fits)

    def _reached(
        self, call: ToolCall, caller: Caller, arguments: Json, *, is_ordered: bool
    ) -> Tool | None:
        """The tool, if it was offered; where tool_call was, also any other that this run may have,
        by whichever way: a model that names it outright means the same. So for what a job was made
        for: its person may have fewer rights by now."""
        offered = arguments["offered"]
        if call.name in offered and not is_ordered:
            return self._toolbox.get(call.name)
        if is_ordered or TOOL_CALL in offered:
            return self._reach.tool(call.name, caller)
        return None


def _caller(ctx: TurnContext, turn: TurnInput, arguments: Json, *, described: bool) -> Caller:
    return Caller(
        person_id=turn.person_id,
        role=turn.role,
        address=turn.message.address,
        conversation=turn.conversation,
        run_id=ctx.run_id,
        is_group=turn.message.is_group,
        tainted=bool(arguments["tainted"]),
        described=described or bool(turn.message.chat_title),
        unattended=PromptKind(arguments["kind"]) in UNATTENDED or _is_unattended(turn),
        makes_jobs=turn.job is not None and turn.job.makes_jobs,
        parent=None if turn.task is None else turn.task.conversation,
        message_id=turn.message.message_id,
        agent=turn.agent,
    )


def _is_ordered(turn: TurnInput, call: ToolCall) -> bool:
    """Whether this is the very call that a job was made for: a person agreed to it then, with
    exactly these arguments (SPEC §11)."""
    return turn.job is not None and turn.job.call == (call.name, call.arguments)


def _is_unattended(turn: TurnInput) -> bool:
    """Whether nobody watches the run that gave a subagent its task."""
    return any(part is not None and part.unattended for part in (turn.task, turn.report))


def _order(ctx: TurnContext, arguments: Json, judged: Wish) -> Order:
    return Order(
        turn=TurnInput.from_json(arguments["turn"]),
        run_id=ctx.run_id,
        call_id=judged.call.id,
        place=judged.place,
        offered=tuple(arguments["offered"]),
        tainted=judged.caller.tainted,
        unattended=judged.caller.unattended,
    )


def _as_json(result: ToolResult) -> Json:
    return {
        "content": result.content,
        "ok": result.ok,
        "untrusted": result.untrusted,
        "effect": result.effect,
        "file": result.file,
        "lost": result.lost,
    }
