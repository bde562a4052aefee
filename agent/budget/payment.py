"""Pays for a call of a model: reserves what it may cost, and settles what it did cost (SPEC §13).

Every call goes through here: those of turns, of dry runs, and those that nobody waits for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from agent.budget.budget import Budget
from agent.budget.rate_limit import RateLimiter
from memory.records.request import ModelRequest
from memory.records.transcript import Answered
from memory.records.usage import Charge, SpendingRefused, Verdict


@dataclass(slots=True, kw_only=True)
class PaidCall:
    """A call that may be made: of this model, with this request. `answer` is what came of it."""

    model: str
    request: ModelRequest
    answer: Answered | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """What a call has to pass: the budget (None: nothing is counted), and the rate limits of its
    provider (None: there are none)."""

    budget: Budget | None = None
    rates: RateLimiter | None = None

    @asynccontextmanager
    async def call(
        self,
        model: str,
        request: ModelRequest,
        charge: Charge,
        *,
        tokens: int,
        cheap_model: str = "",
    ) -> AsyncIterator[PaidCall]:
        """Reserve what a request of `tokens` may cost; whoever makes the call sets its `answer`.

        Near the end of a budget the `cheap_model` is to be asked, or for a shorter answer. Raises
        SpendingRefused with a sentence for the person.
        """
        call, reservation = PaidCall(model=model, request=request), None
        if self.budget is not None:
            allowed = await self.budget.before(
                charge,
                model=model,
                cheap_model=cheap_model,
                tokens_in=tokens,
                tokens_out=request.max_output_tokens,
            )
            reservation = allowed.reservation
            if allowed.verdict is Verdict.REFUSE or reservation is None:
                raise SpendingRefused(
                    allowed.words, passes=allowed.passes, free_at_ms=allowed.free_at_ms
                )
            call.model = allowed.model
            tokens_out = min(request.max_output_tokens, allowed.tokens_out)
            call.request = replace(request, max_output_tokens=tokens_out)
        try:
            if self.rates is not None:
                await self.rates.take(call.model, tokens)
            yield call
        except BaseException as error:
            if self.budget is not None and reservation is not None:
                self.budget.ended(reservation, error)
            raise
        answer = call.answer
        if answer is None:
            return
        if self.rates is not None and (used := answer.usage.prompt + answer.usage.completion):
            self.rates.correct(call.model, estimated=tokens, actual=used)
        if self.budget is not None and reservation is not None:
            await self.budget.after(reservation, answer.usage, model=answer.model)


NO_PAYMENT = Payment()
