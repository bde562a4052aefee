"""Pays for a call of a model: reserves what it may cost, and settles what it did cost (SPEC §13).

Every call goes through here: those of turns, of dry runs, those that nobody waits for, and
transcripts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from agent.budget.budget import Budget
from agent.budget.rate_limit import RateLimiter
from memory.records.transcript import ModelRequest, Usage
from memory.records.usage import Charge, SpendingRefused, Verdict


@dataclass(slots=True, kw_only=True)
class PaidCall:
    """A call that may be made: of this model, for an answer of `tokens_out` at most. What came of
    it is told by `answered`."""

    model: str
    tokens_out: int
    usage: Usage | None = None
    answered_by: str = ""

    def bounded(self, request: ModelRequest) -> ModelRequest:
        """The request, for an answer within what is allowed."""
        return replace(request, max_output_tokens=self.tokens_out)

    def answered(self, usage: Usage, *, by: str) -> None:
        """Note what the call took, and which model answered."""
        self.usage, self.answered_by = usage, by


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
        charge: Charge,
        *,
        tokens_in: int,
        tokens_out: int,
        cheap_model: str = "",
    ) -> AsyncIterator[PaidCall]:
        """Reserve what a call may cost; whoever makes it says what was `answered`.

        Near the end of a budget the `cheap_model` is to be asked, or for a shorter answer. Raises
        SpendingRefused with a sentence for the person.
        """
        call, reservation = PaidCall(model=model, tokens_out=tokens_out), None
        if self.budget is not None:
            allowed = await self.budget.before(
                charge,
                model=model,
                cheap_model=cheap_model,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
            )
            reservation = allowed.reservation
            if allowed.verdict is Verdict.REFUSE or reservation is None:
                raise SpendingRefused(
                    allowed.words, passes=allowed.passes, free_at_ms=allowed.free_at_ms
                )
            call.model = allowed.model
            call.tokens_out = min(tokens_out, allowed.tokens_out)
        try:
            if self.rates is not None:
                await self.rates.take(call.model, tokens_in)
            yield call
        except BaseException as error:
            if self.budget is not None and reservation is not None:
                self.budget.ended(reservation, error)
            raise
        usage = call.usage
        if usage is None:
            return
        if self.rates is not None and (used := usage.prompt + usage.completion):
            self.rates.correct(call.model, estimated=tokens_in, actual=used)
        if self.budget is not None and reservation is not None:
            await self.budget.after(reservation, usage, model=call.answered_by)


NO_PAYMENT = Payment()


def unheard(piece: str) -> None:
    """Take a piece of an answer that nobody reads as it comes."""
