"""Model calls that nobody waits for: extraction, compaction, insights. On the same budget, at the
same pace and through the same redactor as those of a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.budget.payment import NO_PAYMENT, Payment, unheard
from agent.models.tokens import TokenCounter
from agent.prompt.tokens import estimate_tokens
from memory.records.errors import BrokenAnswer, ContextTooLong
from memory.records.hidden_text import visible
from memory.records.ports import Model, Models
from memory.records.request import ModelRequest, ModelTraits
from memory.records.transcript import Said
from memory.records.usage import Charge

TEMPERATURE = 0.1
"""What is wanted is the same answer each time, in a given form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundOptions:
    """`cheap_model` empty: the usual one of the address. `redact` takes the secrets of the settings
    out of whatever would be sent (SPEC §15)."""

    cheap_model: str = ""
    redact: Callable[[str], str] = str


class Background:
    """Implements `memory.records.ports.CheapModel`."""

    def __init__(
        self, models: Models, *, options: BackgroundOptions, payment: Payment = NO_PAYMENT
    ) -> None:
        self._models = models
        self._options = options
        self._payment = payment
        self._tokens = TokenCounter()

    async def traits(self, lane: str) -> ModelTraits:
        """Of the model that would be asked."""
        return (await self._model(lane)).traits

    async def ask(self, prompt: str, charge: Charge, *, tokens_max: int) -> str:
        """One answer to one message; see `memory.records.ports.CheapModel`."""
        model = await self._model(charge.lane)
        text = self._options.redact(prompt)
        request = ModelRequest(
            system="",
            entries=(Said(text=text),),
            tools=(),
            temperature=TEMPERATURE,
            max_output_tokens=min(tokens_max, model.traits.output_tokens(tokens_max)),
        )
        # A request that is larger than the window is never sent (SPEC §5).
        room = model.traits.window - request.max_output_tokens
        tokens = await self._tokens.total(model.name, [text], limit=room)
        if tokens > room:
            raise ContextTooLong(
                f"The request has about {tokens} tokens; {model.name} takes {room}."
            )
        async with self._payment.call(
            model.name,
            charge,
            tokens_in=estimate_tokens(text),
            tokens_out=request.max_output_tokens,
        ) as call:
            answer = await model.answer(call.bounded(request), on_text=unheard)
            call.answered(answer.usage, by=answer.model)
        said = visible(answer.text).strip()
        if not said:
            raise BrokenAnswer(f"{model.name} answered nothing.")
        return said

    async def _model(self, lane: str) -> Model:
        name = self._options.cheap_model or (await self._models.at(lane)).name
        return await self._models.named(name)
