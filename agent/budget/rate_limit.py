"""Rate limits by token buckets: that of a platform, and those of providers, in requests and tokens
a minute for each model.

The limiter is asked before a call; a wait is bounded, can be cancelled, and goes by order of
arrival.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from memory.records.errors import RateLimited
from memory.records.ports import Clock

MINUTE_S = 60.0


class TokenBucket:
    """Tokens that refill evenly, `rate` a second up to `size`. May be in debt."""

    def __init__(self, *, rate: float, size: float, now: float) -> None:
        self.rate = rate
        self.size = size
        self._level = size
        self._at = now

    def level(self, now: float) -> float:
        """Return how many there are."""
        self._level = min(self.size, self._level + (now - self._at) * self.rate)
        self._at = now
        return self._level

    def take(self, amount: float, now: float) -> None:
        """Take so many, or give back what is negative."""
        self._level = min(self.level(now) - amount, self.size)

    def wait_s(self, amount: float, now: float) -> float:
        """Return in how many seconds there are so many."""
        return max(0.0, amount - self.level(now)) / self.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """What a provider allows for one model; 0 is no limit."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0


class RateLimiter:
    """One pair of buckets for each model that has a limit. A bucket holds a minute's worth."""

    def __init__(
        self, limits: Mapping[str, RateLimit], clock: Clock, *, wait_s_max: float = 30.0
    ) -> None:
        """`limits` by model name. A wait that would be longer than `wait_s_max` is not begun."""
        self._clock = clock
        self._wait_s_max = wait_s_max
        self._lines = {name: _Queue(limit, clock) for name, limit in limits.items()}

    async def take(self, model: str, tokens: int) -> None:
        """Waits until one more request of so many tokens fits.

        Raises RateLimited at once, with the time, when that would take too long.
        """
        queue = self._lines.get(model)
        if queue is None:
            return
        wait_s = queue.wait_s(tokens)
        if wait_s > self._wait_s_max:
            raise RateLimited(
                f"{model} may be asked again in {wait_s:.0f} s: the requests or tokens a minute "
                "that the settings allow it are used up. Ask again then.",
                retry_after_s=wait_s,
            )
        await queue.take(tokens)

    def correct(self, model: str, *, estimated: int, actual: int) -> None:
        """After a call: what it used more or less than was taken for it."""
        if queue := self._lines.get(model):
            queue.correct(actual - estimated)


class _Queue:
    """Those who wait for one model. The first alone looks at the buckets: a lock lets them through
    by order of arrival, and who is cancelled leaves its place to the others."""

    def __init__(self, limit: RateLimit, clock: Clock) -> None:
        self._clock = clock
        now = clock.monotonic()
        self._requests = _a_minute(limit.requests_per_minute, now)
        self._tokens = _a_minute(limit.tokens_per_minute, now)
        self._first = asyncio.Lock()
        self._waiting: list[float] = []

    def wait_s(self, tokens: int) -> float:
        """Return how long a request that joins now has to wait, as far as can be known."""
        now = self._clock.monotonic()
        ahead = sum(self._waiting)
        waits = [0.0]
        if self._requests:
            waits.append(self._requests.wait_s(len(self._waiting) + 1, now))
        if self._tokens:
            waits.append(self._tokens.wait_s(ahead + self._sized(tokens), now))
        return max(waits)

    async def take(self, tokens: int) -> None:
        amount = self._sized(tokens)
        self._waiting.append(amount)
        try:
            async with self._first:
                while (wait_s := self._first_wait_s(amount)) > 0:
                    await self._clock.sleep(wait_s)
                now = self._clock.monotonic()
                if self._requests:
                    self._requests.take(1, now)
                if self._tokens:
                    self._tokens.take(amount, now)
        finally:
            self._waiting.remove(amount)

    def correct(self, more: int) -> None:
        if self._tokens:
            self._tokens.take(more, self._clock.monotonic())

    def _sized(self, tokens: int) -> float:
        """Return the tokens to count: more than a whole bucket goes once that is full."""
        return min(float(tokens), self._tokens.size) if self._tokens else 0.0

    def _first_wait_s(self, amount: float) -> float:
        now = self._clock.monotonic()
        requests_s = self._requests.wait_s(1, now) if self._requests else 0.0
        tokens_s = self._tokens.wait_s(amount, now) if self._tokens else 0.0
        wait_s = max(requests_s, tokens_s)
        # What is left by rounding is nothing to sleep for.
        return wait_s if wait_s > 1e-6 else 0.0


def _a_minute(amount: int, now: float) -> TokenBucket | None:
    """Return a bucket that holds a minute's worth; None where there is no limit."""
    if not amount:
        return None
    return TokenBucket(rate=amount / MINUTE_S, size=float(amount), now=now)
