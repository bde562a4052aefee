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

from agent.errors import StepUnknown
from agent.guards import RepeatGuard, is_empty, visible
from agent.history import shorten
from agent.layers import notes
from agent.messages import TurnInput
from agent.ports import Json, TurnContext
from agent.tools.tool import NO_OUTPUT
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

EMPTY_RETRIES_MAX = 1
"""Guard (e): one retry, then an honest notice (SPEC §8.6)."""

CUT_CALLS_MAX = 2
"""Answers cut inside a tool call before the turn is summed up without tools (case AG-01)."""

HISTORY_SHARES = (1.0, 0.5, 0.25, 0.0)
"""What is sent of the history's turns, the newest ones, each time a request does not fit: the older
half goes twice (SPEC §8.5), then the rest."""

RESULT_CHARS_IN_NEED = 400
"""Longer results are shortened when not even a request without history fits."""

SKIPPED = "Not run: the person sent a newer message, which follows."
INTERRUPTED = "Interrupted: the turn was ended before this call finished."
AUTO_UNKNOWN = (
    "I was stopped while a tool ran for this, so it may or may not have happened. Please check "
    "before you ask for it again."
)
"""What a person reads when a call that a rule made has an unknown fate."""

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
        self.add(Said(text=message.text, sender=sender, quote=message.quote))
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
    unhelpful: bool = False


class Loop:
    """The rounds of a turn."""

    def __init__(self, toolbox: Toolbox, *, steps_max: int) -> None:
        self._toolbox = toolbox
        self._steps_max = steps_max

    async def run(
        self, ctx: TurnContext, turn: TurnInput, begun: Begun, log: Log
    ) -> Trouble | None:
        """Runs rounds until the log ends with an answer. Trouble when there is none.

        Raises TurnStopped once the turn has to end; the log is then closed by the caller.
        """
        rounds = Rounds(begun=begun)
        for number in range(self._steps_max + 1):
            offered = number < self._steps_max and not rounds.sum_up
            answer = await self._ask(ctx, turn, rounds, log, offered=offered)
            if isinstance(answer, Trouble):
                if answer.kind != "Empty" or number > 0:
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
                return Trouble(kind=error["kind"], text=error["text"])
            if output.get("hint"):
                log.add(Note(text=output["hint"]))
            rounds.unhelpful = output.get("unhelpful", False)
            answer = entry_from_json(output["answer"])
            assert isinstance(answer, Answered)
            if not offered:
                answer = _without_calls(answer)
            if answer.calls or not is_empty(visible(answer.text)):
                rounds.hint = ""
                return answer
            if answer.finish == "filter":
                return Trouble(kind="ContentFiltered", text="The provider's filter held it back.")
            rounds.empties += 1
            if rounds.empties > EMPTY_RETRIES_MAX:
                return Trouble(kind="Empty", text="The model returned an empty answer twice.")
            rounds.hint = "empty"

    def _question(self, turn: TurnInput, rounds: Rounds, log: Log, *, offered: bool) -> Json:
        begun = rounds.begun
        hint = rounds.hint or ("" if offered else "sum_up")
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
            result = await self._run_call(ctx, turn, rounds, call)
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
        if len(calls) > 1 and all(self._toolbox.is_pure(call.name) for call in calls):
            await self._in_parallel(ctx, turn, rounds, log, calls)
            for later in await self._newer(ctx):
                log.hear(later)
            return
        for number, call in enumerate(calls):
            result = self._refused(rounds, call) or await self._run_call(ctx, turn, rounds, call)
            rounds.repeats.saw(call, result)
            log.add(result)
            if newer := await self._newer(ctx):
                for skipped in calls[number + 1 :]:
                    log.add(ToolResult(call_id=skipped.id, content=SKIPPED, ok=False))
                for later in newer:
                    log.hear(later)
                return

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
                    *(self._run_call(ctx, turn, rounds, call) for call in running),
                    return_exceptions=True,
                ),
                strict=True,
            )
        )
        for call in calls:
            outcome = refused[call.id] or outcomes[call.id]
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
        self, ctx: TurnContext, turn: TurnInput, rounds: Rounds, call: ToolCall
    ) -> ToolResult:
        arguments = {
            "turn": turn.to_json(),
            "call": {"id": call.id, "name": call.name, "arguments": call.arguments},
            "offered": list(rounds.begun.tools),
        }
        try:
            output = await ctx.step(
                "tool", arguments, redo=self._toolbox.redo(call.name), listens=True
            )
        except StepUnknown:
            return ToolResult(call_id=call.id, content=UNKNOWN_FATE, ok=False)
        return ToolResult(call_id=call.id, content=output["content"], ok=output["ok"])

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


def _without_calls(answer: Answered) -> Answered:
    return replace(answer, calls=(), finish="stop") if answer.calls else answer
