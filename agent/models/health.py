"""How models are doing: the circuit breaker of each, and how long one in trouble is left alone.

All of it is kept in memory: after a restart every model is tried once. Times are monotonic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.records.errors import (
    AccountRefused,
    AssistantError,
    BillingRefused,
    Overloaded,
    Permanent,
    Temporary,
)
from memory.records.ports import Model

ERRORS_MAX = 5
OPEN_S = 60.0

REFUSALS_MAX = 2
"""Refusals in a row before a key or an account counts as refused: one may be the server's slip, and
whoever has just mended it need not wait."""

RESTS_S = (60.0, 300.0, 1_500.0, 3_600.0)
BILLING_RESTS_S = (5 * 3_600.0, 10 * 3_600.0, 20 * 3_600.0, 24 * 3_600.0)


@dataclass(eq=False, slots=True, kw_only=True)
class BreakerCall:
    """A call that the breaker let pass: alone (`is_trial`), or after so many `known` failures."""

    is_trial: bool
    known: int


@dataclass(slots=True)
class CircuitBreaker:
    """Closed, open until a moment, or half open with one trial under way.

    Failures must follow each other in time: while one call's failures count, those of calls that
    run beside it do not. So a moment's trouble with many calls in flight counts as one call's.
    """

    errors: int = 0
    open_until: float | None = None
    refusal: AccountRefused | None = None
    """Why the key or the account is refused, while it is."""
    _refusals: int = 0
    _is_trying: bool = False
    _known: int = 0
    _counts: BreakerCall | None = None
    """The call whose failures count, while it runs."""
    _untold: str = ""
    _told: type[AccountRefused] | tuple[()] = ()
    _is_mended: bool = False

    @property
    def is_open(self) -> bool:
        return self.open_until is not None

    @property
    def is_refused(self) -> bool:
        """Return whether it is open because of the key or the account."""
        return self.is_open and self.refusal is not None

    def enter(self, name: str, *, now: float) -> BreakerCall:
        """Let a call pass. Raises the refusal, or Overloaded, while the breaker is open."""
        is_trial = self.open_until is not None
        left = (self.open_until or now) - now
        if is_trial and (left > 0 or self._is_trying):
            raise self.refused_again() or Overloaded(
                f"The model {name} failed {ERRORS_MAX} times in a row; it is left alone for a "
                "while before it is tried again",
                retry_after_s=max(left, 1.0),
            )
        self._is_trying = is_trial
        return BreakerCall(is_trial=is_trial, known=self._known)

    def leave(self, call: BreakerCall) -> None:
        """Note that the call is over."""
        if call.is_trial:
            self._is_trying = False
        if self._counts is call:
            self._counts = None

    def saw(self, call: BreakerCall, error: AssistantError | None, *, now: float) -> None:
        """Count what came of a request of this call; None: an answer. Refusals of the request
        itself show that the server works."""
        match error:
            case Temporary():
                is_beside = self._counts is not None or call.known != self._known
                if is_beside and self._counts is not call:
                    return
                self._known += 1
                self._counts = call
                self.errors += 1
                if self.errors >= ERRORS_MAX or call.is_trial:
                    self.open_until = now + OPEN_S
            case AccountRefused():
                self.refused(error, now=now)
            case Permanent() | None:
                self.worked()

    def refused(self, error: AccountRefused, *, now: float) -> None:
        """Count a refusal of the key or the account. The second in a row shuts the model off for
        every call until somebody mends it."""
        error.is_known = isinstance(error, self._told)
        if not error.is_known:
            self._told, self._untold = type(error), str(error)
        self.refusal = error
        self._refusals += 1
        if self._refusals >= REFUSALS_MAX:
            self.open_until = now + OPEN_S

    def stay_shut(self, *, now: float) -> None:
        """Wait another while before the next trial, where the key or the account is refused."""
        if self.is_refused:
            self.open_until = now + OPEN_S

    def refused_again(self) -> AccountRefused | None:
        """Return the refusal to raise for a call that is not made because of it."""
        if self.refusal is None:
            return None
        again = type(self.refusal)(str(self.refusal))
        again.is_known = True
        return again

    def worked(self) -> None:
        """Close the breaker, since a request was answered."""
        self._is_mended = self._is_mended or bool(self._told and not self._untold)
        self._told, self._untold, self.refusal = (), "", None
        self.errors, self._refusals, self.open_until = 0, 0, None

    def take_refusal(self) -> str:
        """Return, once, a refusal that the owner was not told of yet; empty if there is none."""
        refusal, self._untold = self._untold, ""
        return refusal

    def take_mended(self) -> bool:
        """Return, once, whether it works again after the owner was told that it is refused."""
        is_mended, self._is_mended = self._is_mended, False
        return is_mended


@dataclass(frozen=True, slots=True, kw_only=True)
class RestingModel:
    """A model that is not asked for another `seconds`, for the status."""

    name: str
    seconds: float
    why: str


@dataclass(slots=True, kw_only=True)
class ModelHealth:
    """How a model is doing. `breaker` knows whether its key or account is
    refused, in every chain; if it is the only model of a chain, also its failures in a row."""

    model: Model
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    failures: int = 0
    rests: Sequence[float] = RESTS_S
    since: float = float("-inf")
    until: float = float("-inf")
    asked_until: float = float("-inf")
    why: str = ""
    on_trial: bool = False

    def resting(self, now: float) -> RestingModel | None:
        """None while it may be asked."""
        if self.until <= now:
            return None
        return RestingModel(name=self.model.name, seconds=self.until - now, why=self.why)

    def is_shut(self, now: float) -> bool:
        """Return whether its key or account is refused, and it is tried now or was within a
        minute."""
        if not self.breaker.is_refused:
            return False
        return self.on_trial or now < (self.breaker.open_until or now)

    def may_be_asked(self, now: float, *, is_last: bool) -> bool:
        """The last one that is left may rest or be on trial, but not before its server's pause."""
        if self.asked_until > now or self.is_shut(now):
            return False
        return is_last or (self.until <= now and not self.on_trial)

    def failed(self, error: AssistantError, *, began: float, now: float) -> None:
        """Calls that fail side by side are one failure: those begun before it tell nothing new."""
        if isinstance(error, Temporary) and error.retry_after_s is not None:
            self.asked_until = max(self.asked_until, now + error.retry_after_s)
        if isinstance(error, AccountRefused):
            self.breaker.refused(error, now=now)
        else:
            self.breaker.stay_shut(now=now)
        if began < self.since:
            return
        rests = BILLING_RESTS_S if isinstance(error, BillingRefused) else RESTS_S
        if rests is not self.rests:
            self.rests, self.failures = rests, 0
        self.since, self.why = now, str(error)
        self.until = max(now + rests[min(self.failures, len(rests) - 1)], self.asked_until)
        self.failures += 1

    def worked(self, *, began: float) -> None:
        if began >= self.since:
            self.failures, self.until, self.why = 0, float("-inf"), ""
            self.breaker.worked()
