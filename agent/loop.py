"""Model, tools, model again, until there is an answer. Called by `agent.assistant`.

The rounds are plain code over `ctx.step`; the step functions `model` and `tool` do the work and
take and give JSON, so that a turn resumes from its last recorded step. The person's words and all
that is done stand in the Log, which is what history gets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.claims import ClaimWords
from agent.errors import StepUnknown
from agent.guards import RepeatGuard, is_empty, visible
from agent.history import shorten
from agent.layers import notes
from agent.messages import RunId, TurnInput
from agent.ports import Json, TurnContext, waits_on
from agent.stored import Outcome
from agent.subagents import waits_for
from agent.taint import tainted_by
from agent.tools.agents import SUBAGENT
from agent.tools.tool import NO_OUTPUT, Effect
from agent.tools.toolbox import Toolbox
from agent.transcript import (
    Answered,
    Context,
    Entry,
    Note,
    Said,
    ToolCall,
    ToolResult,
    entry_from_json,
    to_json,
)
from agent.written import without_calls

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

SKIPPED = "Not run: the person sent a newer message, which follows."
INTERRUPTED = "Interrupted: the turn was ended before this call finished."
AUTO_UNKNOWN = (
    "I was stopped while a tool ran for this, so it may or may not have happened. Please check "
    "before you ask for it again."
)
"""What a person reads when a call that a rule made has an unknown fate."""

NOT_DONE = "_(To be exact: nothing was sent, saved or changed just now.)_"
"""What a reply gets that still claims what no tool did."""

AGREED_NOT = {
    Outcome.DENIED: "Not run: the person said no to exactly this call. Do not try it another way; "
    "tell them what is not done, or ask what they want instead.",
    Outcome.EXPIRED: "Not run: nobody agreed to it in time. Say so; it can be asked for again.",
}

UNKNOWN_FATE = (
    "Unknown: the program stopped while this call ran, so it may or may not have happened. "
    "It was not run again. Say so, and check before doing it again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What the `begin` step fixed: the rest of the turn builds on exactly this."""

    upto: int
    sent_from: int | None
    notes: tuple[tuple[int, str], ...]
    system: str
    context: str
    tools: tuple[str, ...]
    whole_context: str = ""
    kind: str = "chat"
    direct: bool = False
    shortened_to: int = 0
    layers: tuple[Json, ...] = ()
    auto_invoke: tuple[Json, ...] = ()
    model: str = ""
    answered_last: str = ""
    tainted: str = ""
    cooler: float | None = None
    claims: bool = False

    @classmethod
    def from_json(cls, data: Json) -> Begun:
        """Reads the step's output."""
        return cls(
            upto=data["upto"],
            sent_from=data["sent_from"],
            notes=tuple((note[0], note[1]) for note in data["notes"]),
            system=data["system"],
            context=data["context"],
            tools=tuple(data["tools"]),
            whole_context=data.get("whole_context", ""),
            kind=data.get("kind", "chat"),
            direct=data.get("direct", False),
            shortened_to=data.get("shortened_to", 0),
            layers=tuple(data.get("layers", ())),
            auto_invoke=tuple(data.get("auto_invoke", ())),
            model=data.get("model", ""),
            answered_last=data.get("answered_last", ""),
            tainted=data.get("tainted", ""),
            cooler=data.get("cooler"),
            claims=data.get("claims", False),
        )


@dataclass(slots=True)
class Log:
    """What this turn has said and done so far; becomes the Turn that history keeps."""

    entries: list[Entry] = field(default_factory=list)
    sent_from: int | None = None
    """Where the history that was sent began, once not all of it fitted."""
    stand_in: tuple[str, str] | None = None
    """The model that gave the last answer, and the usual one, where they differ."""
    for_owner: list[str] = field(default_factory=list)
    """What the owner has to hear, a sentence each."""

    def hear(self, turn: TurnInput, *, context: str = "") -> None:
        """The person's words as typed, after a note of what came with them, before the block."""
        message = turn.message
        if note := notes.came_along(message):
            self.add(Note(text=note))
        sender = message.sender_name if message.is_group else ""
        by = turn.person_id if message.is_group else ""
        self.add(Said(text=message.text, sender=sender, quote=message.quote, by=by))
        if context:
            self.add(Context(text=context))

    def add(self, *entries: Entry) -> None:
        """In order."""
        self.entries.extend(entries)

    def reply(self) -> str:
        """All the answers' texts that a person may see, in order: what was streamed stands."""
        texts = (visible(entry.text) for entry in self.entries if isinstance(entry, Answered))
        return "\n\n".join(text for text in texts if not is_empty(text))

    def close(self, why: str) -> None:
        """Gives every open call a result, so that each call has exactly one.

        Only calls of the last answer can be open; ids may come again from one answer to another.
        """
        calls: tuple[ToolCall, ...] = ()
        answered: set[str] = set()
        for entry in self.entries:
            if isinstance(entry, Answered):
                calls, answered = entry.calls, set()
            elif isinstance(entry, ToolResult):
                answered.add(entry.call_id)
        for call in calls:
            if call.id not in answered:
                self.add(ToolResult(call_id=call.id, content=why, ok=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why there is no answer. `kind` is an error class, `text` a sentence for the owner."""

    kind: str
    text: str


@dataclass(slots=True)
class Rounds:
    """What the rounds of one turn count. All of it follows from the recorded steps."""

    begun: Begun
    repeats: RepeatGuard = field(default_factory=RepeatGuard)
    shrinks: int = 0
    empties: int = 0
    cuts: int = 0
    sum_up: bool = False
    hint: str = ""
    detail: str = ""
    unhelpful: bool = False
    written: int = 0
    claimed: int = 0
    malformed: int = 0
    left: int | None = None
    """Rounds with tools that are left, where they became fewer on the way."""

    def again(self, hint: str, detail: str = "") -> None:
        """The same question once more, with what was wrong with the answer."""
        self.hint, self.detail = hint, detail

    def take(self) -> bool:
        """Whether this round may still have tools."""
        if self.left is None:
            return not self.sum_up
        self.left -= 1
        return self.left >= 0 and not self.sum_up


class Loop:
    """The rounds of a turn."""

    def __init__(self, toolbox: Toolbox, *, steps_max: int, claims: str = "") -> None:
        """`claims` is the word list of finished actions (`prompts/words_claims.md`)."""
        self._toolbox = toolbox
        self._steps_max = steps_max
        self._claims = ClaimWords(claims)

    async def run(
        self, ctx: TurnContext, turn: TurnInput, begun: Begun, log: Log
    ) -> Trouble | None:
        """Runs rounds until the log ends with an answer. Trouble when there is none.

        Raises TurnStopped once the turn has to end; the log is then closed by the caller.
        """
        rounds = Rounds(begun=begun)
        steps_max = turn.task.steps_max if turn.task is not None else self._steps_max
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
                await self._run_calls(ctx, turn, rounds, log, answer.calls)
        return None

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
                if error["kind"] == "ContextTooLong" and _made_smaller(rounds, log, output):
                    continue
                if error["kind"] == "MalformedCall" and (step := _down_the_ladder(rounds, log)):
                    offered = offered and step != "text"
                    continue
                return Trouble(kind=error["kind"], text=error["text"])
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
            if answer.calls or not is_empty(visible(answer.text)):
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
        claim = self._claims.claim(cleaned) if rounds.begun.claims else ""
        if not claim or any(isinstance(one, ToolResult) and one.effect for one in log.entries):
            return answer, False
        rounds.claimed += 1
        if rounds.claimed <= CLAIM_RETRIES_MAX:
            rounds.again("claim", claim)
            return answer, True
        return replace(answer, text=f"{answer.text.rstrip()}\n\n{NOT_DONE}"), False

    def _question(self, turn: TurnInput, rounds: Rounds, log: Log, *, offered: bool) -> Json:
        begun = rounds.begun
        hint = rounds.hint or ("" if offered else "sum_up")
        warmer = WARMER if rounds.malformed == 1 else 0.0
        return {
            "turn": turn.to_json(),
            "system": begun.system,
            "upto": begun.upto,
            "sent_from": begun.sent_from,
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
            result = await self._run_call(ctx, turn, rounds, log, call)
            is_unknown = result.content == UNKNOWN_FATE
            if not result.ok and not is_unknown:
                continue
            said = AUTO_UNKNOWN if is_unknown else result.content
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

    async def _run_calls(
        self,
        ctx: TurnContext,
        turn: TurnInput,
        rounds: Rounds,
        log: Log,
        calls: Sequence[ToolCall],
    ) -> None:
        if len(calls) > 1 and all(self._toolbox.is_pure(call) for call in calls):
            await self._in_parallel(ctx, turn, rounds, log, calls)
            for later in await self._newer(ctx):
                log.hear(later)
            return
        if len(calls) > 1 and all(call.name == SUBAGENT.name for call in calls):
            await self._together(ctx, turn, rounds, log, calls)
            return
        for number, call in enumerate(calls):
            result = self._refused(rounds, call) or await self._run_call(
                ctx, turn, rounds, log, call
            )
            rounds.repeats.saw(call, result)
            log.add(result)
            if newer := await self._newer(ctx):
                for skipped in calls[number + 1 :]:
                    log.add(ToolResult(call_id=skipped.id, content=SKIPPED, ok=False))
                for later in newer:
                    log.hear(later)
                return

    async def _together(
        self,
        ctx: TurnContext,
        turn: TurnInput,
        rounds: Rounds,
        log: Log,
        calls: Sequence[ToolCall],
    ) -> None:
        """Subagents of one answer work at once: all are begun before the first is waited for."""
        begun = [
            self._refused(rounds, call) or await self._begin_call(ctx, turn, rounds, log, call)
            for call in calls
        ]
        for call, pending in zip(calls, begun, strict=True):
            result = await self._settled(ctx, turn, rounds, log, call, pending)
            rounds.repeats.saw(call, result)
            log.add(result)

    async def _in_parallel(
        self,
        ctx: TurnContext,
        turn: TurnInput,
        rounds: Rounds,
        log: Log,
        calls: Sequence[ToolCall],
    ) -> None:
        """All at once. Results are logged in the order of the calls, whichever is done first."""
        refused = {call.id: self._refused(rounds, call) for call in calls}
        running = [call for call in calls if refused[call.id] is None]
        outcomes = dict(
            zip(
                [call.id for call in running],
                await asyncio.gather(
                    *(self._try_call(ctx, turn, rounds, log, call) for call in running),
                    return_exceptions=True,
                ),
                strict=True,
            )
        )
        for call in calls:
            outcome = refused[call.id] or outcomes[call.id]
            if isinstance(outcome, _Asked | _Child):
                outcome = await self._settled(ctx, turn, rounds, log, call, outcome)
            if isinstance(outcome, ToolResult):
                rounds.repeats.saw(call, outcome)
                log.add(outcome)
        for outcome in outcomes.values():
            if isinstance(outcome, BaseException):
                raise outcome

    def _refused(self, rounds: Rounds, call: ToolCall) -> ToolResult | None:
        refusal = rounds.repeats.refusal(call)
        if refusal is None:
            return None
        rounds.sum_up = rounds.sum_up or rounds.repeats.should_sum_up
        return ToolResult(call_id=call.id, content=refusal, ok=False)

    async def _run_call(
        self, ctx: TurnContext, turn: TurnInput, rounds: Rounds, log: Log, call: ToolCall
    ) -> ToolResult:
        """One call to its one result, after a person has agreed to it where that is needed.

        Of a call that may not be repeated the gate is a step of its own: a kill while it is only
        being asked for leaves its fate known.
        """
        pending = await self._begin_call(ctx, turn, rounds, log, call)
        return await self._settled(ctx, turn, rounds, log, call, pending)

    async def _begin_call(
        self, ctx: TurnContext, turn: TurnInput, rounds: Rounds, log: Log, call: ToolCall
    ) -> ToolResult | _Asked | _Child:
        pending = None
        if self._toolbox.redo(call) == "once":
            question = self._wish(turn, rounds, log, call)
            pending = _outcome(call, await ctx.step("gate", question))
        return pending or await self._try_call(ctx, turn, rounds, log, call)

    async def _settled(
        self,
        ctx: TurnContext,
        turn: TurnInput,
        rounds: Rounds,
        log: Log,
        call: ToolCall,
        pending: ToolResult | _Asked | _Child,
    ) -> ToolResult:
        """The result, after whatever has to be waited for: a person's answer, a subagent's end."""
        match pending:
            case _Asked(approval_id=asked):
                agreed = await self._once_agreed(ctx, turn, rounds, log, call, asked=asked)
                return await self._settled(ctx, turn, rounds, log, call, agreed)
            case _Child(run_id=child):
                return _reported(call, await ctx.wait(waits_for(child)))
            case result:
                return result

    async def _once_agreed(
        self,
        ctx: TurnContext,
        turn: TurnInput,
        rounds: Rounds,
        log: Log,
        call: ToolCall,
        *,
        asked: str,
    ) -> ToolResult | _Child:
        """Waits for a person's answer, for hours if need be, and runs the call if it is a yes."""
        answer = await ctx.wait(waits_on(asked))
        outcome = Outcome(answer["outcome"])
        if outcome in AGREED_NOT:
            return ToolResult(call_id=call.id, content=AGREED_NOT[outcome], ok=False)
        result = await self._try_call(ctx, turn, rounds, log, call, agreed=asked)
        if isinstance(result, _Asked):
            return ToolResult(call_id=call.id, content=AGREED_NOT[Outcome.EXPIRED], ok=False)
        return result

    async def _try_call(
        self,
        ctx: TurnContext,
        turn: TurnInput,
        rounds: Rounds,
        log: Log,
        call: ToolCall,
        *,
        agreed: str = "",
    ) -> ToolResult | _Asked | _Child:
        """A call's result, or what it waits for."""
        try:
            output = await ctx.step(
                "tool",
                self._wish(turn, rounds, log, call, agreed=agreed),
                redo=self._toolbox.redo(call),
                listens=True,
            )
        except StepUnknown:
            return ToolResult(call_id=call.id, content=UNKNOWN_FATE, ok=False)
        outcome = _outcome(call, output)
        assert outcome is not None
        return outcome

    def _wish(
        self, turn: TurnInput, rounds: Rounds, log: Log, call: ToolCall, *, agreed: str = ""
    ) -> Json:
        begun = rounds.begun
        tainted = begun.tainted or tainted_by(log.entries, person_id=turn.person_id)
        return {
            "turn": turn.to_json(),
            "call": {"id": call.id, "name": call.name, "arguments": call.arguments},
            "offered": list(begun.tools),
            "agreed": agreed,
            "tainted": tainted,
            "kind": begun.kind,
            # What was read decides only where the turn is tainted; else nobody looks.
            "entries": [to_json(entry) for entry in log.entries] if tainted else [],
            "upto": begun.upto,
            "sent_from": begun.sent_from,
            "place": sum(isinstance(entry, Answered) for entry in log.entries),
        }

    async def _newer(self, ctx: TurnContext) -> list[TurnInput]:
        return [TurnInput.from_json(payload) for payload in await ctx.receive()]


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


def _made_smaller(rounds: Rounds, log: Log, output: Json) -> bool:
    """Sees to it that the next request is smaller; False when nothing more may go.

    What is shortened here stays short: history keeps the turn as it was sent.
    """
    if output["turns_sent"] > 0 and rounds.shrinks + 1 < len(HISTORY_SHARES):
        rounds.shrinks += 1
        _tell_all(rounds.begun, log)
        return True
    shortened = list(shorten(log.entries, RESULT_CHARS_IN_NEED))
    if shortened == log.entries:
        return False
    log.entries = shortened
    return True


def _tell_all(begun: Begun, log: Log) -> None:
    """What the block spared stood in history that is gone now: it is told with all its layers."""
    if not begun.whole_context:
        return
    for position, entry in enumerate(log.entries):
        if isinstance(entry, Context):
            log.entries[position] = Context(text=begun.whole_context)
            return
    # All of it was spared, so there was no block: it follows the words that began the turn.
    answers = (n for n, entry in enumerate(log.entries) if isinstance(entry, Answered))
    position = next(answers, len(log.entries))
    log.entries.insert(position, Context(text=begun.whole_context))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call that waits for a person's answer."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class _Child:
    """A call that waits for its subagent."""

    run_id: RunId


def _outcome(call: ToolCall, output: Json) -> ToolResult | _Asked | _Child | None:
    """What a step about a call came to: its result, what it waits for, or None: go on."""
    if "ask" in output:
        return _Asked(output["ask"])
    if "child" in output:
        return _Child(RunId(output["child"]))
    if "content" not in output:
        return None
    return ToolResult(
        call_id=call.id,
        content=output["content"],
        ok=output["ok"],
        untrusted=output.get("untrusted", False),
        effect=output.get("effect", ""),
    )


def _reported(call: ToolCall, value: Json) -> ToolResult:
    """What a subagent came to. Its words are a model's, about what it has read."""
    effect = Effect.PERSON.value if value["ok"] else ""
    return ToolResult(
        call_id=call.id, content=value["text"], ok=value["ok"], untrusted=True, effect=effect
    )


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


def _without_calls(answer: Answered) -> Answered:
    return replace(answer, calls=(), finish="stop") if answer.calls else answer
