"""How long one call of a model may take, and what of that time counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from memory.records.errors import ModelTimeout

TICK_S = 1.0
STOOD_STILL_S = 5.0
"""A tick that is so late means that the process stood still, not that it was busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Seconds that one call may take: in all, to connect, and between two pieces of an answer."""

    timeout_s: float = 120
    connect_timeout_s: float = 10
    stall_timeout_s: float = 60


class CallDeadline:
    """The limit of one call in all, and the watch for a stall, which begins with the first piece:
    how long a model thinks before its first word is bounded by the limit of the call alone.

    `host` is named in the errors.
    """

    def __init__(self, limits: CallLimits, *, host: str) -> None:
        self._ends = asyncio.get_running_loop().time() + limits.timeout_s
        self._stall_s = limits.stall_timeout_s
        self._host = host
        self._timeout: asyncio.Timeout | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Bound what is done within. Raises TimeoutError."""
        with Standstill(self._stood_still):
            async with asyncio.timeout_at(self._ends) as self._timeout:
                yield

    def wind_up(self) -> None:
        """Begin the watch for a stall anew, since something came."""
        if self._timeout is not None:
            now = asyncio.get_running_loop().time()
            self._timeout.reschedule(min(self._ends, now + self._stall_s))

    def end(self) -> None:
        """End the call now, as if its time were over."""
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    def late(self) -> ModelTimeout:
        """Return the error of a call whose time is over."""
        if asyncio.get_running_loop().time() < self._ends:
            return ModelTimeout(f"{self._host} stopped in the middle of its answer")
        return ModelTimeout(f"{self._host} did not finish its answer in time")

    def _stood_still(self, seconds: float) -> None:
        """Extend the limits by the seconds in which we read nothing."""
        self._ends += seconds
        if self._timeout is None or self._timeout.expired():
            return
        if (ends := self._timeout.when()) is not None:
            self._timeout.reschedule(ends + seconds)


@dataclass(slots=True)
class Standstill:
    """Measures, while entered, how long this process stood still: stopped, or on a machine that
    slept. It could read nothing meanwhile, so the others' time limits should not have run.

    `woke` is called with each standstill before any time limit that ran out in it: ticks come
    first.
    """

    woke: Callable[[float], None] | None = None
    _lost: float = 0.0
    _last: float = 0.0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _tick: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """Return the seconds stood still so far, in all."""
        return self._lost + self._late()

    def __enter__(self) -> Self:
        self._wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._tick is not None:
            self._tick.cancel()

    def _wait(self) -> None:
        self._last = self._loop.time()
        self._tick = self._loop.call_later(TICK_S, self._passed)

    def _passed(self) -> None:
        late = self._late()
        self._lost += late
        self._wait()
        if late and self.woke is not None:
            self.woke(late)

    def _late(self) -> float:
        late = self._loop.time() - self._last - TICK_S
        return late if late > STOOD_STILL_S else 0.0
