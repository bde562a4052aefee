"""The steps `gate` and `tool` of a turn: may this call run, and one call to its one result.

A running tool is shown to the person in plain words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from agent.files.attachments import Brought, brought
from agent.guards.tool_call_text import TOOL_CALL
from agent.policy.gate import Gate, Passed, Stopped, Waits, Wish
from agent.policy.taint import rests_on_memory, tainted_by
from agent.prompt.scene import PromptKind
from agent.subagents.subagents import SubagentCall, waits_for
from agent.tools.groups.agents import SUBAGENT, AgentTools
from agent.tools.selection import UNATTENDED
from agent.tools.tool import Caller, Effect, FunctionTool
from agent.tools.toolbox import KeepResult, Reach, Toolbox, ToolLimits, arguments_of, run_parsed
from agent.turn.progress import CALLS_MAX, TurnProgress, heard, without_surplus
from memory.records.codec import from_json
from memory.records.errors import StepUnknown
from memory.records.messages import RunId, TurnInput
from memory.records.ports import Clock, Drafts, Json, TurnContext, waits_on
from memory.records.rows import Outcome
from memory.records.transcript import Answered, ToolCall, ToolResult
from memory.records.turns import ToolCallState

OTHER_WORDS = "working …"
"""A status line in plain words: a tool's name means nothing to a person (case PR-05)."""


class ToolStep:
    """Runs one tool call to its one result; a failing tool never ends the turn."""

    def __init__(
        self,
        toolbox: Toolbox,
        reach: Reach,
        drafts: Drafts,
        gate: Gate,
        *,
        clock: Clock,
        keep: KeepResult | None,
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

    async def ask(self, ctx: TurnContext, wished: ToolCallState) -> Json:
        """The step `gate`: empty when the call may run, `{"ask": id}` when a person was asked, and
        else its result."""
        judged = await self._judged(ctx, wished)
        return judged if isinstance(judged, dict) else {}

    async def __call__(self, ctx: TurnContext, wished: ToolCallState) -> Json:
        """The step `tool`: the result as `{"content", "ok", "untrusted", "effect", …}`, or
        `{"ask": id}`."""
        judged = await self._judged(ctx, wished)
        if isinstance(judged, dict):
            return judged
        tool = judged.tool
        delegates = None
        if isinstance(tool, FunctionTool) and isinstance(tool.group, AgentTools):
            delegates = tool.group.bound(
                SubagentCall(
                    turn=wished.state.turn,
                    run_id=ctx.run_id,
                    call_id=judged.call.id,
                    place=judged.place,
                    offered=wished.state.prompt.tools,
                    tainted=judged.caller.tainted,
                    unattended=judged.caller.unattended,
                )
            )
            tool = tool.of(delegates)
        # Of a small window a result may take no more than its share.
        limits, fits = self._limits, wished.state.prompt.result_chars
        if fits and fits < limits.result_chars_max:
            limits = replace(limits, result_chars_max=fits)
        draft = self._drafts.open(ctx.run_id, judged.caller.address)
        draft.status(tool.card.status or OTHER_WORDS)
        try:
            result = await run_parsed(
                tool,
                judged.arguments,
                judged.call,
                judged.caller,
                clock=self._clock,
                limits=limits,
                keep=self._keep,
                redact=self._redact,
            )
        finally:
            draft.status("")
        if delegates is not None and result.ok and delegates.awaited is not None:
            return {"child": delegates.awaited}
        return _as_json(result)

    async def _judged(self, ctx: TurnContext, wished: ToolCallState) -> Wish | Json:
        """The wish that may run, or what the step answers in its place."""
        turn, offered = wished.state.turn, wished.state.prompt.tools
        call = self._toolbox.resolved(wished.call)
        if isinstance(call, ToolResult):
            return _as_json(call)
        caller = _caller(ctx, wished, described=self._toolbox.is_described_by_others)
        # The very call that a job was made for: a person agreed to it then, with exactly these
        # arguments (SPEC §11).
        is_ordered = turn.job is not None and turn.job.call == (call.name, call.arguments)
        tool = None
        if call.name in offered and not is_ordered:
            tool = self._toolbox.get(call.name)
        elif is_ordered or TOOL_CALL in offered:
            # Where tool_call was offered, also any other that this run may have: a model that names
            # it outright means the same. So for what a job was made for: its person may have fewer
            # rights by now.
            tool = self._reach.tool(call.name, caller)
        if tool is None:
            return _as_json(self._toolbox.unknown(call, offered))
        parsed: Any = arguments_of(tool.card, call, limits=self._limits)
        if isinstance(parsed, ToolResult):
            return _as_json(parsed)
        wish = Wish(tool=tool, call=call, arguments=parsed, caller=caller, place=wished.place)
        if is_ordered:
            return replace(wish, caller=replace(caller, agreed=True))
        match await self._gate.judge(wish, wished):
            case Passed(caller=passed):
                return replace(wish, caller=passed)
            case Stopped(why=why):
                return _as_json(ToolResult(call_id=call.id, content=why, ok=False))
            case Waits(approval_id=approval_id):
                return {"ask": approval_id}


def _caller(ctx: TurnContext, wished: ToolCallState, *, described: bool) -> Caller:
    turn = wished.state.turn
    # Whether nobody watches the run that gave a subagent its task.
    return Caller(
        person_id=turn.person_id,
        role=turn.role,
        address=turn.message.address,
        conversation=turn.conversation,
        run_id=ctx.run_id,
        is_group=turn.message.is_group,
        tainted=bool(wished.tainted),
        described=described or bool(turn.message.chat_title),
        unattended=PromptKind(wished.state.prompt.kind) in UNATTENDED
        or any(part is not None and part.unattended for part in (turn.task, turn.report)),
        makes_jobs=turn.job is not None and turn.job.makes_jobs,
        parent=None if turn.task is None else turn.task.conversation,
        message_id=turn.message.message_id,
        agent=turn.agent,
    )


def _as_json(result: ToolResult) -> Json:
    output = asdict(result)
    del output["call_id"]  # it is the step's own
    return output


# --- calling ------------------------------------------------------------------------------------
#
# Runs the calls of one answer to their results: at once or in order, agreed to where needed.
#
# Plain code over `ctx.step` and `ctx.wait`, so that a turn resumes behind its last recorded step.
# Called by `agent.turn.loop`.

SKIPPED = "Not run: the person sent a newer message, which follows."

TOO_MANY = (
    f"Not run: one answer may call {CALLS_MAX} tools at most. Call it again if you still need it."
)
"""The result of each call past the limit; short, as there may be thousands."""

NOT_SO_MANY = (
    "Not run: nobody agreed to more changes by this answer. Tell the person what is done and what "
    "is not."
)
"""The result of a change past `agent.policy.gate.UNASKED_MAX` once somebody has refused one."""

AGREED_NOT = {
    Outcome.DENIED: "Not run: the person said no to exactly this call. Do not try it another way; "
    "tell them what is not done, or ask what they want instead.",
    Outcome.EXPIRED: "Not run: nobody agreed to it in time. Say so; it can be asked for again.",
}

UNKNOWN_FATE = (
    "Unknown: the program stopped while this call ran, so it may or may not have happened. "
    "It was not run again. The person is told so below your answer; check before doing it again."
)


class CallRunner:
    """Runs the calls of one turn."""

    def __init__(self, toolbox: Toolbox, ctx: TurnContext, now: TurnProgress) -> None:
        self._toolbox = toolbox
        self._ctx = ctx
        self._now = now

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run all calls of one answer: each gets one result in the log, in the order of the calls.

        If the person has written something newer by the end of a call, the rest is not run and
        marked skipped. Nor are calls past the limit of one answer.
        """
        self._now.begin_answer()
        some, newer = calls[:CALLS_MAX], list[Brought]()
        is_pure = all(self._toolbox.is_pure(call) for call in some)
        if len(some) > 1 and (is_pure or all(call.name == SUBAGENT for call in some)):
            await self._at_once(some, is_pure=is_pure)
            newer = await self._newer() if is_pure else []
        else:
            for call in some:
                if newer:
                    result = ToolResult(call_id=call.id, content=SKIPPED, ok=False)
                else:
                    result = self._refused(call) or await self.one(call)
                    self._now.repeats.saw(call, result)
                self._now.add(result)
                newer = newer or await self._newer()
        for call in calls[CALLS_MAX:]:
            self._now.add(ToolResult(call_id=call.id, content=TOO_MANY, ok=False))
        for later in newer:
            self._now.add(*heard(later.turn, note=later.note))

    async def _at_once(self, calls: Sequence[ToolCall], *, is_pure: bool) -> None:
        """Begin all calls before the first is waited for, and log their results in the order of the
        calls, whichever is done first. Subagents are begun one after the other: steps have
        numbers, and a resumed turn has to count them alike."""
        refused = [self._refused(call) for call in calls]
        begun: list[ToolResult | _ForApproval | _ForSubagent | BaseException] = []
        if is_pure:
            running = [call for call, no in zip(calls, refused, strict=True) if no is None]
            tries = map(self._try_call, running)
            begun += await asyncio.gather(*tries, return_exceptions=True)
        else:
            for call, no in zip(calls, refused, strict=True):
                begun += [] if no else [await self._begin_call(call)]
        left = iter(begun)
        for call, no in zip(calls, refused, strict=True):
            outcome = no or next(left)
            if isinstance(outcome, _ForApproval | _ForSubagent):
                outcome = await self._settled(call, outcome)
            if isinstance(outcome, ToolResult):
                self._now.repeats.saw(call, outcome)
                self._now.add(outcome)
        for failed in begun:
            if isinstance(failed, BaseException):
                raise failed

    def _refused(self, call: ToolCall) -> ToolResult | None:
        refusal = self._now.repeats.refusal(call)
        if refusal is None:
            return None
        if self._now.repeats.should_sum_up:
            self._now.sum_up()
        return ToolResult(call_id=call.id, content=refusal, ok=False)

    async def one(self, call: ToolCall) -> ToolResult:
        """One call to its one result, after a person has agreed to it where that is needed.

        Of a call that may not be repeated the gate is a step of its own: a kill while it is only
        being asked for leaves its fate known.
        """
        pending = await self._begin_call(call)
        return await self._settled(call, pending)

    async def _begin_call(self, call: ToolCall) -> ToolResult | _ForApproval | _ForSubagent:
        if self._now.state.is_refused and not self._toolbox.is_pure(call):
            return ToolResult(call_id=call.id, content=NOT_SO_MANY, ok=False)
        pending = None
        if self._toolbox.redo(call) == "once":
            question = self._wish(call)
            pending = _outcome(call, await self._ctx.step("gate", question))
        pending = pending or await self._try_call(call)
        if not isinstance(pending, _ForApproval) and not self._toolbox.is_pure(call):
            self._now.ran_unasked()
        return pending

    async def _settled(
        self, call: ToolCall, pending: ToolResult | _ForApproval | _ForSubagent
    ) -> ToolResult:
        """Return the result, after whatever has to be waited for, for hours if need be: a person's
        answer, a subagent's end."""
        if isinstance(pending, _ForApproval):
            outcome = Outcome((await self._ctx.wait(waits_on(pending.approval_id)))["outcome"])
            if outcome in AGREED_NOT:
                self._now.was_refused()
                return ToolResult(call_id=call.id, content=AGREED_NOT[outcome], ok=False)
            pending = await self._try_call(call, agreed=pending.approval_id)
            if isinstance(pending, _ForApproval):
                expired = AGREED_NOT[Outcome.EXPIRED]
                return ToolResult(call_id=call.id, content=expired, ok=False)
        if isinstance(pending, ToolResult):
            return pending
        # What a subagent came to. Its words are a model's, about what it has read.
        value = await self._ctx.wait(waits_for(pending.run_id))
        return ToolResult(
            call_id=call.id,
            content=value["text"],
            ok=value["ok"],
            untrusted=True,
            effect=Effect.PERSON.value if value["ok"] else "",
        )

    async def _try_call(
        self, call: ToolCall, *, agreed: str = ""
    ) -> ToolResult | _ForApproval | _ForSubagent:
        """A call's result, or what it waits for."""
        try:
            output = await self._ctx.step(
                "tool",
                self._wish(call, agreed=agreed),
                redo=self._toolbox.redo(call),
                listens=True,
            )
        except StepUnknown:
            return ToolResult(call_id=call.id, content=UNKNOWN_FATE, ok=False)
        outcome = _outcome(call, output)
        assert outcome is not None
        return outcome

    def _wish(self, call: ToolCall, *, agreed: str = "") -> ToolCallState:
        state = self._now.state
        entries = without_surplus(state.entries)
        # What the model had read when it wished for its calls: results of the same answer came
        # later, and moved it to none of them.
        answers = (
            place for place in reversed(range(len(entries))) if isinstance(entries[place], Answered)
        )
        read = entries[: next(answers, len(entries))]
        return ToolCallState(
            state=state,
            call=call,
            entries=entries,
            tainted=state.prompt.tainted or tainted_by(read, person_id=state.turn.person_id),
            remembered=state.prompt.remembered or rests_on_memory(read),
            place=sum(isinstance(entry, Answered) for entry in entries),
            agreed=agreed,
        )

    async def _newer(self) -> list[Brought]:
        payloads = await self._ctx.receive()
        return [await brought(self._ctx, TurnInput.from_json(payload)) for payload in payloads]


@dataclass(frozen=True, slots=True)
class _ForApproval:
    """A call that waits for a person's answer."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class _ForSubagent:
    """A call that waits for its subagent."""

    run_id: RunId


def _outcome(call: ToolCall, output: Json) -> ToolResult | _ForApproval | _ForSubagent | None:
    """Return what a step about a call came to: its result, what it waits for, or None: go on."""
    if "ask" in output:
        return _ForApproval(output["ask"])
    if "child" in output:
        return _ForSubagent(RunId(output["child"]))
    if "content" not in output:
        return None
    return from_json(ToolResult, {**output, "call_id": call.id})
