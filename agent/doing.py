"""The step `tool` of a turn: one call, shown to the person in plain words while it runs."""

from __future__ import annotations

from agent.messages import TurnInput
from agent.ports import Clock, Drafts, Json, TurnContext
from agent.tools.tool import Caller, KeepWhole, ToolLimits, run_tool
from agent.tools.toolbox import Toolbox
from agent.transcript import ToolCall

WORDS = {
    "read_file": "reading a file …",
    "write_file": "writing a file …",
    "edit_file": "changing a file …",
    "list_dir": "looking through the files …",
}
"""Status lines, in plain words: a tool's name means nothing to a person (case PR-05)."""

OTHER_WORDS = "working …"


class Doing:
    """Runs one tool call to its one result; a failing tool never ends the turn."""

    def __init__(
        self,
        toolbox: Toolbox,
        drafts: Drafts,
        *,
        clock: Clock,
        keep: KeepWhole | None,
        limits: ToolLimits,
    ) -> None:
        self._toolbox = toolbox
        self._drafts = drafts
        self._clock = clock
        self._keep = keep
        self._limits = limits

    async def __call__(self, ctx: TurnContext, arguments: Json) -> Json:
        """Answers with `{"content", "ok"}`."""
        turn = TurnInput.from_json(arguments["turn"])
        call = ToolCall(**arguments["call"])
        tool = self._toolbox.get(call.name) if call.name in arguments["offered"] else None
        if tool is None:
            result = self._toolbox.unknown(call, arguments["offered"])
            return {"content": result.content, "ok": result.ok}
        draft = self._drafts.open(ctx.run_id, turn.message.address)
        draft.status(WORDS.get(call.name, OTHER_WORDS))
        try:
            result = await run_tool(
                tool,
                call,
                _caller(ctx, turn),
                clock=self._clock,
                limits=self._limits,
                keep=self._keep,
            )
        finally:
            draft.status("")
        return {"content": result.content, "ok": result.ok}


def _caller(ctx: TurnContext, turn: TurnInput) -> Caller:
    return Caller(
        person_id=turn.person_id,
        role=turn.role,
        address=turn.message.address,
        conversation=turn.conversation,
        run_id=ctx.run_id,
        is_group=turn.message.is_group,
    )
