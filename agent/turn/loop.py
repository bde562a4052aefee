"""Model, tools, model again, until there is an answer. Called by `agent.turn.assistant`.

The rounds are plain code over `ctx.step`; the step functions `model` and `tool` do the work and
take and give JSON, so that a turn resumes from its last recorded step. The person's words and all
that is done stand in the Log, which is what history gets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from agent.guards.action_claims import ClaimWords
from agent.guards.repetition import is_empty
from agent.guards.tool_call_text import without_calls
from agent.history.window import share_out, shorten, unanswered
from agent.prompt.scene import PromptKind
from agent.prompt.tokens import brought_tokens, tokens_of
from agent.tools.toolbox import NO_OUTPUT, Toolbox
from agent.turn.progress import (
    CALLS_MAX,
    ModelTrouble,
    TurnProgress,
    ledger_of,
    reply_of,
    said_nothing,
    without_surplus,
)
from agent.turn.steps.model import HISTORY_SHARES
from agent.turn.steps.tools import UNKNOWN_FATE, CallRunner
from memory.records.ports import Json, TurnContext
from memory.records.text import declines, visible
from memory.records.transcript import Answered, Context, Note, ToolCall, entry_from_json
from memory.records.turns import BeginRequest, FixedPrompt

EMPTY_RETRIES_MAX = 1
"""Guard (e): one retry, then an honest notice (SPEC §8.6)."""

CUT_CALLS_MAX = 2
"""Answers cut inside a tool call before the turn is summed up without tools (case AG-01)."""

WRITTEN_RETRIES_MAX = 1
CLAIM_RETRIES_MAX = 1
"""Guards (a) and (b): one more try, then the answer goes out without the call, or corrected."""

MALFORMED_STEPS_MAX = 4
"""Rounds that are left once a call came out malformed (SPEC §8.4)."""

REWORDED_CHARS_MAX = 300

RESULT_CHARS_IN_NEED = 400
"""Longer results are shortened when not even a request without history fits."""

ROUND_SHARE = 2
"""The results of one round may take half the room of a request; beyond that they are cut before
anything of the history goes."""

SURPLUS_GONE = (
    f"Calls of this answer beyond the first {CALLS_MAX} were not run, and are left out here."
)

FATE_UNKNOWN = "I cannot say what came of it."
"""The answer where a call that no model made has an unknown fate; what else is told of it stands in
`agent.turn.end`."""

CALL_FAILED = "CallFailed"
"""The kind of trouble of a job's one call that did not work; its text is the result."""


class Loop:
    """The rounds of a turn."""

    def __init__(
        self,
        toolbox: Toolbox,
        *,
        steps_max: int,
        others: Mapping[str, int] = MappingProxyType({}),
        claims: str = "",
    ) -> None:
        """`claims` is the word list of finished actions (`prompts/words_claims.md`); `others` are
        the `steps_max` of further agents, by their names."""
        self._toolbox = toolbox
        self._steps_max = steps_max
        self._others = others
        self._claims = ClaimWords(claims)

    async def run(self, ctx: TurnContext, now: TurnProgress) -> ModelTrouble | None:
        """Runs rounds until the turn ends with an answer. Trouble when there is none.

        Raises TurnStopped once the turn has to end; its open calls are then closed by the caller.
        """
        calls = CallRunner(self._toolbox, ctx, now)
        turn = now.state.turn
        # A task has its own number of rounds, and a job may.
        own = turn.task.steps_max if turn.task is not None else turn.job and turn.job.steps_max
        steps_max = own or self._others.get(turn.agent, self._steps_max)
        for number in range(steps_max + 1):
            if turn.task is not None and turn.task.tokens_max:
                usages = [one.usage for one in now.state.entries if isinstance(one, Answered)]
                # A subagent's model calls have used up what its task may cost.
                if sum(one.prompt + one.completion for one in usages) >= turn.task.tokens_max:
                    now.sum_up()
            now.begin_round(is_last=number == steps_max)
            answer: Answered | ModelTrouble | None = None
            while answer is None:
                output = await ctx.step("model", now.state)
                answer = await self._heard(ctx, now, output)
            if isinstance(answer, ModelTrouble):
                if answer.kind != "Empty" or number > 0 or now.state.malformed:
                    return answer
                helped = await _auto_invoke(now, calls)
                return None if helped else answer
            now.add(answer)
            if not answer.calls:
                if now.state.unhelpful and number == 0:
                    await _auto_invoke(now, calls)
                return None
            if answer.finish == "length":
                cuts = now.state.cuts + 1
                now.state = replace(now.state, cuts=cuts, sum_up=cuts >= CUT_CALLS_MAX)
                now.add(*map(self._toolbox.cut_off, answer.calls))
            else:
                await calls.run(answer.calls)
                if said_nothing(now.state.entries):
                    return None
        return None

    async def call(
        self, ctx: TurnContext, now: TurnProgress, wish: tuple[str, str]
    ) -> ModelTrouble | None:
        """One call without a model, as a job was made for it; its result is the answer."""
        name, arguments = wish
        call = ToolCall(id="job", name=name, arguments=arguments)
        now.state = replace(now.state, prompt=FixedPrompt(kind=PromptKind.PROACTIVE.value))
        now.add(Answered(text="", calls=(call,), finish="tool_calls"))
        result = await CallRunner(self._toolbox, ctx, now).one(call)
        now.add(result)
        if result.content == UNKNOWN_FATE:
            now.add(Answered(text=FATE_UNKNOWN))
            return None
        if not result.ok:
            return ModelTrouble(kind=CALL_FAILED, text=result.content)
        now.add(Answered(text="" if result.content == NO_OUTPUT else result.content))
        return None

    async def _heard(
        self, ctx: TurnContext, now: TurnProgress, output: Json
    ) -> Answered | ModelTrouble | None:
        """Return what the model answered, or why it did not; None when it is to be asked once
        more."""
        told, stand_in = output.get("owner", ()), output.get("stand_in")
        now.state = replace(
            now.state,
            sent_from=now.state.sent_from if (at := output.get("sent_from")) is None else at,
            for_owner=(*now.state.for_owner, *told),
            stand_in=(stand_in[0], stand_in[1]) if stand_in else None,
        )
        if (error := output.get("error")) is not None:
            if error["kind"] == "ContextTooLong" and await _made_smaller(ctx, now, output):
                return None
            if error["kind"] == "MalformedCall" and _down_the_ladder(now):
                return None
            return ModelTrouble(**error)
        if output.get("hint"):
            now.add(Note(text=output["hint"]))
        now.state = replace(now.state, unhelpful=output.get("unhelpful", False))
        answer = entry_from_json(output["answer"])
        assert isinstance(answer, Answered)
        if not now.state.offered and answer.calls:
            answer = replace(answer, calls=(), finish="stop")
        if not answer.calls:
            answer, again = self._checked(answer, now)
            if again:
                return None
        # Of a job silence is an answer, if it was meant; in a chat it is none.
        is_meant = now.state.turn.job is not None and declines(answer.text)
        if answer.calls or is_meant or not is_empty(visible(answer.text)):
            now.again("")
            return answer
        if answer.finish == "filter":
            return ModelTrouble(kind="ContentFiltered", text="The provider's filter held it back.")
        now.state = replace(now.state, empties=now.state.empties + 1)
        if now.state.empties > EMPTY_RETRIES_MAX:
            return ModelTrouble(kind="Empty", text="The model returned an empty answer twice.")
        now.again("empty")
        return None

    def _checked(self, answer: Answered, now: TurnProgress) -> tuple[Answered, bool]:
        """An answer in text, as far as it may go out; True when it is asked for once more.

        A call that was written as text goes (guard (a)); a claim of something done is true, or
        corrected (guard (b)). What is asked for again was never said.
        """
        shown = visible(answer.text)
        cleaned = without_calls(shown, self._toolbox.names)
        if cleaned is not shown:
            now.state = replace(now.state, written=now.state.written + 1)
            if now.state.written <= WRITTEN_RETRIES_MAX:
                now.again("written_call")
                return answer, True
            answer = replace(answer, text=cleaned)
        if not now.state.prompt.claims:
            return answer, False
        claim = self._claims.unbacked(cleaned, ledger_of(now.state.entries))
        if claim is None:
            return answer, False
        now.state = replace(now.state, claimed=now.state.claimed + 1)
        if now.state.claimed <= CLAIM_RETRIES_MAX:
            now.again("claim", claim.text)
            return answer, True
        return replace(answer, text=f"{answer.text.rstrip()}\n\n{claim.correction}"), False


async def _auto_invoke(now: TurnProgress, calls: CallRunner) -> bool:
    """Calls what the force-include rules name: the first that works becomes the reply.

    Only where the model called nothing by itself. Under the same gate as any call; an output
    without words keeps the model's answer (SPEC §7). A call of which nobody knows whether it
    happened ends the list, and is told. Returns whether there is another reply now.
    """
    for number, wish in enumerate(now.state.prompt.auto_invoke):
        arguments = json.dumps(_with_query(wish["args"], now.state.turn.message.text))
        call = ToolCall(id=f"auto-{number + 1}", name=wish["tool"], arguments=arguments)
        result = await calls.one(call)
        is_unknown = result.content == UNKNOWN_FATE
        if not result.ok and not is_unknown:
            continue
        said = FATE_UNKNOWN if is_unknown else result.content
        if said.strip() == NO_OUTPUT or is_empty(visible(said)):
            return False
        answer = Answered(text="")
        if now.state.entries and isinstance(last := now.state.entries[-1], Answered):
            answer = last
            now.state = replace(now.state, entries=now.state.entries[:-1])
        now.add(replace(answer, text="", calls=(call,), finish="tool_calls"), result)
        now.add(Answered(text=said, model=answer.model))
        return True
    return False


QUERY = "{{query}}"


def _with_query(value: Any, query: str) -> Any:
    """The arguments with the person's message in place of `{{query}}`, in every string."""
    match value:
        case str():
            return value.replace(QUERY, query.strip())
        case dict():
            return {name: _with_query(inner, query) for name, inner in value.items()}
        case list() | tuple():
            return [_with_query(inner, query) for inner in value]
        case _:
            return value


async def _made_smaller(ctx: TurnContext, now: TurnProgress, output: Json) -> bool:
    """Make the next request smaller. Return False if nothing more may go.

    What is shortened here stays short: history keeps the turn as it was sent. The newest results
    go last, unless they alone are too much for a request.
    """
    over, room = output.get("over", 0), output.get("room", 0)
    kept = without_surplus(now.state.entries)
    if len(kept) < len(now.state.entries):
        now.state = replace(now.state, entries=(*kept, Note(text=SURPLUS_GONE)))
        return True
    if room and _share_out(now, over, least=room // ROUND_SHARE):
        return True
    before = now.state.prompt
    if before.compacts and output["turns_sent"]:
        # The older history is summed up, once in a turn, before any of it is dropped (SPEC §8.5).
        # The turn then begins anew on what is left: the block after its words tells the summary.
        now.state = replace(now.state, prompt=replace(before, compacts=False))
        came = sum(map(brought_tokens, now.state.entries))
        request = BeginRequest(turn=now.state.turn, overflow=True, brought_tokens=came)
        again = FixedPrompt.from_json(await ctx.step("begin", request))
        if again.since > before.since:
            # What was read on the way stays read: a summary may rest on it.
            prompt = replace(again, compacts=False, tainted=again.tainted or before.tainted)
            now.state = replace(
                now.state, prompt=prompt, sent_from=again.since, shortened_to=again.shortened_to
            )
            _tell(now, again.context)
            return True
    if output["turns_sent"] > 0 and now.state.shrinks + 1 < len(HISTORY_SHARES):
        now.state = replace(now.state, shrinks=now.state.shrinks + 1)
        # What the block spared stood in history that is gone now: it is told with all its layers.
        _tell(now, now.state.prompt.whole_context)
        return True
    shortened = tuple(shorten(now.state.entries, RESULT_CHARS_IN_NEED))
    if shortened == now.state.entries:
        return _share_out(now, over, least=0)
    now.state = replace(now.state, entries=shortened)
    return True


def _share_out(now: TurnProgress, over: int, *, least: int) -> bool:
    """Cut the results of the last round by `over` tokens, and a little more since that is an
    estimate, but not below `least` in all. If `over` is unknown, cut them by half."""
    entries = now.state.entries
    tokens = sum(map(tokens_of, unanswered(entries)))
    cut = tuple(share_out(entries, max(tokens - (over * 11 // 10 or tokens // 2), least)))
    now.state = replace(now.state, entries=cut)
    return cut != entries


def _tell(now: TurnProgress, context: str) -> None:
    """This is the block of the turn from now on, where there is one."""
    if not context:
        return
    entries = list(now.state.entries)
    blocks = (n for n, entry in enumerate(entries) if isinstance(entry, Context))
    at = next(blocks, None)
    if at is not None:
        entries[at] = Context(text=context)
    else:
        # All of it was spared, so there was no block: it follows the words that began the turn.
        answers = (n for n, entry in enumerate(entries) if isinstance(entry, Answered))
        entries.insert(next(answers, len(entries)), Context(text=context))
    now.state = replace(now.state, entries=tuple(entries))


def _down_the_ladder(now: TurnProgress) -> bool:
    """Take the next try after a malformed call (SPEC §8.4). Return False when none is left.

    The same once more with a hint, a little warmer; then with what was said last; then without
    tools, to sum up what they gave or in plain text.
    """
    state = now.state = replace(now.state, malformed=now.state.malformed + 1)
    match state.malformed:
        case 1:
            left = MALFORMED_STEPS_MAX if state.rounds_left is None else state.rounds_left
            now.state = replace(state, rounds_left=left)
            now.again("malformed")
        case 2:
            said = reply_of(now.state.entries)
            now.again("reworded", said[-REWORDED_CHARS_MAX:] or "nothing yet")
        case 3:
            now.state = replace(now.state, sum_up=True, offered=False)
            now.again("sum_up")
        case _:
            return False
    return True
