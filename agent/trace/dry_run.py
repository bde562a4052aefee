"""A dry run: a turn as it would go now, without any effect. What would be sent, what that costs,
and, if one wants to know, what the model would say. Called by `scheduler.kinds.dry_run`.

Nothing is stored and no tool runs; only a question to the model costs something.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agent.budget.ledger import charge_of
from agent.budget.payment import NO_PAYMENT, Payment, unheard
from agent.prompt.prefix_cache import schema_tokens, tools_part
from agent.prompt.scene import PromptOccasion
from agent.prompt.tokens import estimate_tokens, text_of
from agent.trace.inspect import view_of_plan
from agent.trace.sent import Where
from agent.turn.steps.plan import PromptPlan
from memory.records.messages import RunId, TurnInput
from memory.records.ports import Models
from memory.records.schedule import FREE_RUN, RunCost
from memory.records.text import visible
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    ModelRequest,
    Said,
    ToolCall,
    ToolResult,
    Usage,
)

CALLS_USUAL = 3
"""Calls of a model in a run that has tools: one that asks for them, one more, and the answer."""

OUTPUT_USUAL = 400
"""Tokens of one answer, where nothing better is known. The next call reads it again."""

OUTPUT_OF_NOTHING = 20
"""Tokens of a heartbeat's answer. Most looks find nothing and say so in the one word that they are
told; three calls for each of 48 looks a day would foretell a price that nobody pays."""

ROUNDS_MAX = 3
"""Questions to the model in one rehearsal."""

BLOCKED = (
    "Not run: this is a rehearsal, in which no tool has any effect. Go on as if nothing had been "
    "found, and say what you would report."
)

Priced = Callable[[str, Usage], Awaitable[float | None]]
"""US dollars of a call at an address; None where the price is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunOptions:
    """`redact` takes the secrets of the settings out of whatever would be sent."""

    output_tokens_max: int = 8_192
    redact: Callable[[str], str] = str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunReport:
    """What would be sent. `system` and `user` are the texts, `tools` what is offered; without
    `asks` no model is asked, and all are empty."""

    system: str = ""
    user: str = ""
    tools: tuple[str, ...] = ()
    tokens: int = 0
    model: str = ""
    cost: RunCost = FREE_RUN
    asks: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What the model said; `wishes` are the calls that it asked for, none of which was run."""

    text: str
    wishes: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    dollars: float | None = None


NO_MODEL = DryRunReport(asks=False)


class DryRunner:
    """Plans a turn, and may ask its model. Raises StorageError, and the errors of models."""

    def __init__(
        self,
        plan: Callable[[PromptOccasion], Awaitable[PromptPlan]],
        models: Models,
        priced: Priced,
        *,
        options: DryRunOptions,
        payment: Payment = NO_PAYMENT,
    ) -> None:
        self._plan_of = plan
        self._models = models
        self._priced = priced
        self._options = options
        self._payment = payment

    async def rehearse(self, turn: TurnInput | None) -> DryRunReport:
        """Return what would be sent for a turn; None, or one that is a single call, asks no
        model."""
        if turn is None or (turn.job is not None and turn.job.call is not None):
            return NO_MODEL
        plan = await self._plan_of(PromptOccasion.of(turn))
        view = view_of_plan(plan, former=None, answer_tokens_max=self._options.output_tokens_max)
        tokens = view.tokens
        if plan.tools:
            tokens += schema_tokens(plan.tools) - tools_part(plan.tools).tokens
        calls, output = CALLS_USUAL if plan.tools else 1, OUTPUT_USUAL
        if turn.job is not None and turn.job.is_heartbeat:
            calls, output = 1, OUTPUT_OF_NOTHING
        # Each call reads what those before it have said: on average, half of all answers but one.
        each = Usage(prompt=tokens + output * (calls - 1) // 2, completion=output)
        dollars = await self._priced(turn.message.address.key, each)
        # All that follows the system message, in its order.
        places = {Where.HISTORY, Where.WORDS, Where.BLOCK}
        user = "\n\n".join(row.text for row in view.rows if row.where in places and row.text)
        return DryRunReport(
            system=self._options.redact(plan.prompt.system),
            user=self._options.redact(user),
            tools=view.tools,
            tokens=tokens,
            model=plan.model.name,
            cost=RunCost(
                calls=calls,
                tokens=(each.prompt + each.completion) * calls,
                dollars=None if dollars is None else dollars * calls,
            ),
        )

    async def ask(self, turn: TurnInput) -> Heard:
        """Return what the model says now, every call of a tool blocked."""
        redact = self._options.redact
        plan = await self._plan_of(PromptOccasion.of(turn))
        model = await self._models.named(plan.model.name, agent=turn.agent)
        # The words in place of a message, and what changes.
        words = plan.prompt.user or plan.gathered.scene.turn.message.text
        entries: list[Entry] = [*plan.entries(), Said(text=redact(words))]
        if context := redact(plan.prompt.context):
            entries.append(Context(text=context))
        wishes: list[ToolCall] = []
        used = Usage()
        answer = Answered(text="")
        for number in range(ROUNDS_MAX):
            request = ModelRequest(
                system=redact(plan.prompt.system),
                entries=tuple(entries),
                tools=plan.tools if number < ROUNDS_MAX - 1 else (),
                max_output_tokens=model.traits.output_tokens(self._options.output_tokens_max),
            )
            async with self._payment.call(
                model.name,
                charge_of(RunId(""), turn),
                tokens_in=estimate_tokens(request.system)
                + sum(estimate_tokens(text_of(entry)) for entry in entries)
                + tools_part(request.tools).tokens,
                tokens_out=request.max_output_tokens,
            ) as call:
                answer = await model.answer(call.bounded(request), on_text=unheard)
                call.answered(answer.usage, by=answer.model)
            used = Usage(
                prompt=used.prompt + answer.usage.prompt,
                completion=used.completion + answer.usage.completion,
                cached=used.cached + answer.usage.cached,
            )
            if not answer.calls:
                break
            wishes += answer.calls
            results = [ToolResult(call_id=c.id, content=BLOCKED, ok=False) for c in answer.calls]
            entries += [answer, *results]
        return Heard(
            text=visible(answer.text).strip(),
            wishes=tuple(wishes),
            usage=used,
            dollars=await self._priced(turn.message.address.key, used),
        )
