"""Model calls that nobody waits for: extraction, compaction, insights. On the same budget, at the
same pace and through the same redactor as those of a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.history.window import estimate_tokens
from agent.models.tokens import Encodings, TokenCounter
from agent.turn.steps.model import Payment
from memory.records.errors import BrokenAnswer, ContextTooLong
from memory.records.hidden_text import visible
from memory.records.ports import Model, Models
from memory.records.request import ModelRequest, ModelTraits
from memory.records.transcript import Answered, Said
from memory.records.usage import Charge, SpendingRefused, Verdict

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
        self, models: Models, *, options: BackgroundOptions, payment: Payment | None = None
    ) -> None:
        """Without `payment` calls are neither counted nor bounded."""
        self._models = models
        self._options = options
        self._payment = payment
        self._encodings = Encodings()

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
        tokens = await TokenCounter(model.name, encodings=self._encodings).total([text], limit=room)
        if tokens > room:
            raise ContextTooLong(
                f"The request has about {tokens} tokens; {model.name} takes {room}."
            )
        answer = await self._paid_for(model, request, charge, estimate_tokens(text))
        said = visible(answer.text).strip()
        if not said:
            raise BrokenAnswer(f"{model.name} answered nothing.")
        return said

    async def _model(self, lane: str) -> Model:
        name = self._options.cheap_model or (await self._models.at(lane)).name
        return await self._models.named(name)

    async def _paid_for(
        self, model: Model, request: ModelRequest, charge: Charge, tokens: int
    ) -> Answered:
        """The answer, if what it may cost is there (SPEC §13)."""
        if self._payment is None:
            return await model.answer(request, on_text=_unseen)
        budget = self._payment.budget
        allowed = await budget.before(
            charge,
            model=model.name,
            tokens_in=tokens,
            tokens_out=request.max_output_tokens,
        )
        reservation = allowed.reservation
        if allowed.verdict is Verdict.REFUSE or reservation is None:
            raise SpendingRefused(allowed.words)
        try:
            if self._payment.rates is not None:
                await self._payment.rates.take(model.name, tokens)
            answer = await model.answer(request, on_text=_unseen)
        except BaseException as error:
            budget.ended(reservation, error)
            raise
        await budget.after(reservation, answer.usage, model=answer.model)
        return answer


def _unseen(piece: str) -> None:
    """Nobody reads it as it comes."""
