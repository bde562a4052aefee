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
from agent.guards.text import declines, is_empty, visible
from agent.guards.tool_call_text import without_calls
from agent.history.window import brought_tokens, share_out, shorten, tokens_of, unanswered
from agent.prompt.scene import PromptKind
from agent.tools.call import NO_OUTPUT
from agent.tools.toolbox import Toolbox
from agent.turn.round import (
    CALLS_MAX,
    Begun,
    Log,
    Now,
    Rounds,
    Trouble,
    ledger_of,
    said_nothing,
    without_surplus,
)
from agent.turn.steps.tools import UNKNOWN_FATE, Calling
from memory.records.messages import TurnInput
from memory.records.ports import Json, TurnContext
from memory.records.transcript import Answered, Context, Note, ToolCall, entry_from_json, to_json

EMPTY_RETRIES_MAX = 1
"""Guard (e): one retry, then an honest notice (SPEC §8.6)."""

CUT_CALLS_MAX = 2
"""Answers cut inside a tool call before the turn is summed up without tools (case AG-01)."""

HISTORY_SHARES = (1.0, 0.5, 0.25, 0.0)
"""What is sent of the history's turns, the newest ones, each time a request does not fit: the older
half goes twice (SPEC §8.5), then the rest."""

WRITTEN_RETRIES_MAX = 1
CLAIM_RETRIES_MAX = 1
"""Guards (a) and (b): one more try, then the answer goes out without the call, or corrected."""

MALFORMED_STEPS_MAX = 4
"""Rounds that are left once a call came out malformed (SPEC §8.4)."""

WARMER = 0.1
"""What the next try after a malformed call adds to the temperature (SPEC §8.4)."""

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
`agent.turn.doubt`."""

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
        self._calling = Calling(toolbox)
        self._steps_max = steps_max
        self._others = others
        self._claims = ClaimWords(claims)

    async def run(
        self, ctx: TurnContext, turn: TurnInput, begun: Begun, log: Log
    ) -> Trouble | None:
        """Runs rounds until the log ends with an answer. Trouble when there is none.

        Raises TurnStopped once the turn has to end; the log is then closed by the caller.
        """
        rounds = Rounds(begun=begun)
        steps_max = self._steps_of(turn)
        for number in range(steps_max + 1):
            rounds.sum_up = rounds.sum_up or _is_spent(turn, log)
            offered = rounds.take() and number < steps_max
            answer = await self._ask(ctx, turn, rounds, log, offered=offered)
            if isinstance(answer, Trouble):
                if answer.kind != "Empty" or number > 0 or rounds.malformed:
                    return answer
                helped = await self._auto_invoke(ctx, turn, rounds, log)
                return None if helped else answer
            log.add(answer)
            if not answer.calls:
                if rounds.unhelpful and number == 0:
                    await self._auto_invoke(ctx, turn, rounds, log)
                return None
            if answer.finish == "length":
                self._refuse_cut(answer, rounds, log)
            else:
                now = Now(ctx=ctx, turn=turn, rounds=rounds, log=log)
                await self._calling.run(now, answer.calls)
                if said_nothing(log.entries):
                    return None
        return None

    async def call(
        self, ctx: TurnContext, turn: TurnInput, wish: tuple[str, str], log: Log
    ) -> Trouble | None:
        """One call without a model, as a job was made for it; its result is the answer."""
        name, arguments = wish
        call = ToolCall(id="job", name=name, arguments=arguments)
        begun = Begun(
            upto=0,
            sent_from=None,
            notes=(),
            system="",
            context="",
            tools=(),
            kind=PromptKind.PROACTIVE.value,
        )
        now = Now(ctx=ctx, turn=turn, rounds=Rounds(begun=begun), log=log)
        log.add(Answered(text="", calls=(call,), finish="tool_calls"))
        result = await self._calling.one(now, call)
        log.add(result)
        if result.content == UNKNOWN_FATE:
            log.add(Answered(text=FATE_UNKNOWN))
            return None
        if not result.ok:
            return Trouble(kind=CALL_FAILED, text=result.content)
        log.add(Answered(text="" if result.content == NO_OUTPUT else result.content))
        return None

    def _steps_of(self, turn: TurnInput) -> int:
        """A task has its own number of rounds, and a job may."""
        own = turn.task.steps_max if turn.task is not None else turn.job and turn.job.steps_max
        return own or self._others.get(turn.agent, self._steps_max)

    # --- asking the model ----------------------------------------------------------------------

    async def _ask(
        self, ctx: TurnContext, turn: TurnInput, rounds: Rounds, log: Log, *, offered: bool
    ) -> Answered | Trouble:
        while True:
            output = await ctx.step("model", self._question(turn, rounds, log, offered=offered))
            if output.get("sent_from") is not None:
                log.sent_from = output["sent_from"]
            log.for_owner += output.get("owner", ())
            stand_in = output.get("stand_in")
            log.stand_in = (stand_in[0], stand_in[1]) if stand_in else None
            if (error := output.get("error")) is not None:
                if error["kind"] == "ContextTooLong" and await _made_smaller(
                    Now(ctx=ctx, turn=turn, rounds=rounds, log=log), output
                ):
                    continue
                if error["kind"] == "MalformedCall" and (step := _down_the_ladder(rounds, log)):
                    offered = offered and step != "text"
                    continue
                return Trouble(**error)
            if output.get("hint"):
                log.add(Note(text=output["hint"]))
            rounds.unhelpful = output.get("unhelpful", False)
            answer = entry_from_json(output["answer"])
            assert isinstance(answer, Answered)
            if not offered:
                answer = _without_calls(answer)
            if not answer.calls:
                answer, again = self._checked(answer, rounds, log)
                if again:
                    continue
            if answer.calls or _is_said(answer, turn):
                rounds.again("")
                return answer
            if answer.finish == "filter":
                return Trouble(kind="ContentFiltered", text="The provider's filter held it back.")
            rounds.empties += 1
            if rounds.empties > EMPTY_RETRIES_MAX:
                return Trouble(kind="Empty", text="The model returned an empty answer twice.")
            rounds.again("empty")

    def _checked(self, answer: Answered, rounds: Rounds, log: Log) -> tuple[Answered, bool]:
        """An answer in text, as far as it may go out; True when it is asked for once more.

        A call that was written as text goes (guard (a)); a claim of something done is true, or
        corrected (guard (b)). What is asked for again was never said.
        """
        shown = visible(answer.text)
        cleaned = without_calls(shown, self._toolbox.names)
        if cleaned is not shown:
            rounds.written += 1
            if rounds.written <= WRITTEN_RETRIES_MAX:
                rounds.again("written_call")
                return answer, True
            answer = replace(answer, text=cleaned)
        if not rounds.begun.claims:
            return answer, False
        claim = self._claims.unbacked(cleaned, ledger_of(log.entries))
        if claim is None:
            return answer, False
        rounds.claimed += 1
        if rounds.claimed <= CLAIM_RETRIES_MAX:
            rounds.again("claim", claim.text)
            return answer, True
        return replace(answer, text=f"{answer.text.rstrip()}\n\n{claim.correction}"), False

    def _question(self, turn: TurnInput, rounds: Rounds, log: Log, *, offered: bool) -> Json:
        begun = rounds.begun
        hint = rounds.hint or ("" if offered else "sum_up")
        warmer = WARMER if rounds.malformed == 1 else 0.0
        return {
            "turn": turn.to_json(),
            "system": begun.system,
            "upto": begun.upto,
            "since": begun.since,
            "entries": [to_json(entry) for entry in log.entries],
            "shown": log.reply(),
            "shortened_to": begun.shortened_to,
            "tools": list(begun.tools) if offered else [],
            "history_share": HISTORY_SHARES[rounds.shrinks],
            "hint": hint,
            "detail": rounds.detail if rounds.hint else "",
            "warmer": warmer,
            "cooler": begun.cooler,
            "kind": begun.kind,
            "direct": begun.direct,
            "layers": [layer["name"] for layer in begun.layers],
            "static": [
                [layer["name"], layer["digest"], layer["tokens"]]
                for layer in begun.layers
                if layer["system"]
            ],
            "auto_invoke": bool(begun.auto_invoke),
            "model": begun.model,
        }

    # --- when the answer is of no help ---------------------------------------------------------

    async def _auto_invoke(
        self, ctx: TurnContext, turn: TurnInput, rounds: Rounds, log: Log
    ) -> bool:
        """Calls what the force-include rules name: the first that works becomes the reply.

        Only where the model called nothing by itself. Under the same gate as any call; an output
        without words keeps the model's answer (SPEC §7). A call of which nobody knows whether it
        happened ends the list, and is told. Returns whether there is another reply now.
        """
        for number, wish in enumerate(rounds.begun.auto_invoke):
            call = ToolCall(
                id=f"auto-{number + 1}",
                name=wish["tool"],
                arguments=json.dumps(_with_query(wish["args"], turn.message.text)),
            )
            result = await self._calling.one(Now(ctx=ctx, turn=turn, rounds=rounds, log=log), call)
            is_unknown = result.content == UNKNOWN_FATE
            if not result.ok and not is_unknown:
                continue
            said = FATE_UNKNOWN if is_unknown else result.content
            if said.strip() == NO_OUTPUT or is_empty(visible(said)):
                return False
            last = log.entries[-1] if log.entries else None
            answer = log.entries.pop() if isinstance(last, Answered) else Answered(text="")
            assert isinstance(answer, Answered)
            log.add(replace(answer, text="", calls=(call,), finish="tool_calls"), result)
            log.add(Answered(text=said, model=answer.model))
            return True
        return False

    # --- running tools ---------------------------------------------------------------------------

    def _refuse_cut(self, answer: Answered, rounds: Rounds, log: Log) -> None:
        rounds.cuts += 1
        rounds.sum_up = rounds.cuts >= CUT_CALLS_MAX
        for call in answer.calls:
            log.add(self._toolbox.cut_off(call))


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


async def _summed_up(now: Now, output: Json) -> bool:
    """Sums up the older history, once in a turn, before any of it is dropped (SPEC §8.5); False
    when that makes nothing smaller.

    The turn then begins anew on what is left: the block after its first words tells the summary.
    """
    rounds, log = now.rounds, now.log
    begun = rounds.begun
    if not begun.compacts or not output["turns_sent"]:
        return False
    rounds.begun = replace(begun, compacts=False)
    came = sum(map(brought_tokens, log.entries))
    payload = {**now.turn.to_json(), "overflow": True, "brought_tokens": came}
    again = Begun.from_json(await now.ctx.step("begin", payload))
    if again.since <= begun.since:
        return False
    # What was read on the way stays read: a summary may rest on it.
    rounds.begun = replace(again, compacts=False, tainted=again.tainted or begun.tainted)
    log.sent_from, log.shortened_to = again.since, again.shortened_to
    if again.context:
        _tell(log, again.context)
    return True


async def _made_smaller(now: Now, output: Json) -> bool:
    """Make the next request smaller. Return False if nothing more may go.

    What is shortened here stays short: history keeps the turn as it was sent. The newest results
    go last, unless they alone are too much for a request.
    """
    rounds, log = now.rounds, now.log
    over, room = output.get("over", 0), output.get("room", 0)
    if _without_surplus(log) or (room and _share_out(log, over, least=room // ROUND_SHARE)):
        return True
    if await _summed_up(now, output):
        return True
    if output["turns_sent"] > 0 and rounds.shrinks + 1 < len(HISTORY_SHARES):
        rounds.shrinks += 1
        _tell_all(rounds.begun, log)
        return True
    shortened = list(shorten(log.entries, RESULT_CHARS_IN_NEED))
    if shortened == log.entries:
        return _share_out(log, over, least=0)
    log.entries = shortened
    return True


def _without_surplus(log: Log) -> bool:
    """Leave out the calls past the limit. Return False if there are none."""
    kept = without_surplus(log.entries)
    if len(kept) == len(log.entries):
        return False
    log.entries = [*kept, Note(text=SURPLUS_GONE)]
    return True


def _share_out(log: Log, over: int, *, least: int) -> bool:
    """Cut the results of the last round by `over` tokens, and a little more since that is an
    estimate, but not below `least` in all. If `over` is unknown, cut them by half."""
    tokens = sum(map(tokens_of, unanswered(log.entries)))
    cut = list(share_out(log.entries, max(tokens - (over * 11 // 10 or tokens // 2), least)))
    if cut == log.entries:
        return False
    log.entries = cut
    return True


def _tell_all(begun: Begun, log: Log) -> None:
    """What the block spared stood in history that is gone now: it is told with all its layers."""
    if begun.whole_context:
        _tell(log, begun.whole_context)


def _tell(log: Log, context: str) -> None:
    """This is the block of the turn from now on."""
    for position, entry in enumerate(log.entries):
        if isinstance(entry, Context):
            log.entries[position] = Context(text=context)
            return
    # All of it was spared, so there was no block: it follows the words that began the turn.
    answers = (n for n, entry in enumerate(log.entries) if isinstance(entry, Answered))
    position = next(answers, len(log.entries))
    log.entries.insert(position, Context(text=context))


def _is_spent(turn: TurnInput, log: Log) -> bool:
    """Whether a subagent's model calls have used up what its task may cost."""
    if turn.task is None or not turn.task.tokens_max:
        return False
    used = (entry.usage for entry in log.entries if isinstance(entry, Answered))
    return sum(usage.prompt + usage.completion for usage in used) >= turn.task.tokens_max


def _down_the_ladder(rounds: Rounds, log: Log) -> str:
    """The next try after a malformed call (SPEC §8.4); empty when there is none left.

    The same once more with a hint, a little warmer; then with what was said last; then without
    tools, to sum up what they gave or in plain text.
    """
    rounds.malformed += 1
    match rounds.malformed:
        case 1:
            rounds.left = MALFORMED_STEPS_MAX if rounds.left is None else rounds.left
            rounds.again("malformed")
            return "hint"
        case 2:
            rounds.again("reworded", log.reply()[-REWORDED_CHARS_MAX:] or "nothing yet")
            return "reworded"
        case 3:
            rounds.sum_up = True
            rounds.again("sum_up")
            return "text"
        case _:
            return ""


def _is_said(answer: Answered, turn: TurnInput) -> bool:
    """Of a job silence is an answer, if it was meant; in a chat it is none."""
    is_meant = turn.job is not None and declines(answer.text)
    return is_meant or not is_empty(visible(answer.text))


def _without_calls(answer: Answered) -> Answered:
    return replace(answer, calls=(), finish="stop") if answer.calls else answer
