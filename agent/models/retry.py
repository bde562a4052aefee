"""The one place where a model call is tried again: `Patient` wraps a Model, as a Model.

`bot.app` wraps each model once. No other layer may retry, so one answer costs at most
`attempts_max` requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Protocol, Self

from memory.records.errors import AccountRefused, Overloaded, Permanent, Temporary
from memory.records.ports import Clock, Model
from memory.records.request import ModelRequest, ModelTraits
from memory.records.transcript import Answered

PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 8.0
ASKED_PAUSE_MAX_S = 30.0
ERRORS_MAX = 5
OPEN_S = 60.0

REFUSALS_MAX = 2
"""Refusals in a row before a key or an account counts as refused: one may be the server's slip, and
whoever has just mended it need not wait."""

TICK_S = 1.0
STOOD_STILL_S = 5.0
"""A tick that is so late means that the process stood still, not that it was busy."""


class TextSink(Protocol):
    """What a caller may pass as `on_text` so that a broken stream can be tried again.

    Without `restart`, an error after the first visible text is raised at once: what was shown
    cannot be taken back.
    """

    def __call__(self, piece: str) -> None:
        """The next piece of visible text."""

    def restart(self) -> None:
        """What was passed on in this call is void; the answer begins anew."""


class Patient:
    """Tries Temporary errors again, with growing random pauses, and stops asking a broken server.

    - At most `attempts_max` requests a call; no retry that would begin later than
      `give_up_after_s` after the call did.
    - A pause that the server asks for is kept; one of more than 30 s is the caller's to decide.
    - After 5 Temporary errors in a row (over all calls), or 2 refusals of the key or the account,
      every call fails at once for 60 s; then one call may try, alone and once, and its outcome
      closes or opens the breaker again.
    - Time in which this process stood still does not count.
    """

    def __init__(
        self,
        model: Model,
        *,
        clock: Clock,
        chance: Random,
        attempts_max: int = 4,
        give_up_after_s: float = 60,
        breaker: Breaker | None = None,
    ) -> None:
        self._model = model
        self._clock = clock
        self._chance = chance
        self._attempts_max = attempts_max
        self._give_up_after_s = give_up_after_s
        self._breaker = breaker or Breaker()

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def traits(self) -> ModelTraits:
        return self._model.traits

    async def answer(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | TextSink
    ) -> Answered:
        """See `memory.records.ports.Model`, and TextSink. Raises the last error when patience
        ends."""
        call = self._breaker.enter(self.name, now=self._clock.monotonic())
        give_up_at = self._clock.monotonic() + self._give_up_after_s
        try:
            with Standstill() as stood:
                for attempt in range(1, self._attempts_max + 1):
                    sink = _Sink(on_text)
                    try:
                        return await self._once(request, sink, call)
                    except Temporary as error:
                        last = call.is_trial or self._breaker.is_open
                        last = last or attempt == self._attempts_max
                        pause = self._pause(error, attempt)
                        too_late = self._clock.monotonic() + pause > give_up_at + stood.seconds
                        if last or too_late or pause > ASKED_PAUSE_MAX_S + 1 or sink.is_stuck:
                            raise
                    await self._clock.sleep(pause)
                    sink.restart()
        finally:
            self._breaker.leave(call)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, request: ModelRequest, sink: _Sink, call: Call) -> Answered:
        """Make one attempt and tell the breaker. Other refusals show that the server works."""
        try:
            answer = await self._model.answer(request, on_text=sink)
        except Temporary:
            self._breaker.failed(call, now=self._clock.monotonic())
            raise
        except AccountRefused as error:
            self._breaker.refused(error, now=self._clock.monotonic())
            raise
        except Permanent:
            self._breaker.worked()
            raise
        self._breaker.worked()
        return answer

    def _pause(self, error: Temporary, attempt: int) -> float:
        """Full jitter; never shorter than what the server asked for."""
        ceiling = min(PAUSE_MAX_S, PAUSE_FIRST_S * 2 ** (attempt - 1))
        if error.retry_after_s is None:
            return self._chance.uniform(0, ceiling)
        return error.retry_after_s + self._chance.uniform(0, min(1.0, ceiling))


class _Sink:
    """Passes text on and knows whether there was any."""

    def __init__(self, on_text: Callable[[str], None] | TextSink) -> None:
        self._on_text = on_text
        self._restart: Callable[[], None] | None = getattr(on_text, "restart", None)
        self._shown = False

    def __call__(self, piece: str) -> None:
        self._shown = True
        self._on_text(piece)

    @property
    def is_stuck(self) -> bool:
        return self._shown and self._restart is None

    def restart(self) -> None:
        if self._shown and self._restart is not None:
            self._restart()


@dataclass(eq=False, slots=True, kw_only=True)
class Call:
    """A call that the breaker let pass: alone (`is_trial`), or after so many `known` failures."""

    is_trial: bool
    known: int


@dataclass(slots=True)
class Breaker:
    """Closed, open until a moment, or half open with one trial under way. Times are monotonic.

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
    _counts: Call | None = None
    """The call whose failures count, while it runs."""
    _untold: str = ""
    _told: type[AccountRefused] | tuple[()] = ()
    _is_mended: bool = False

    @property
    def is_open(self) -> bool:
        return self.open_until is not None

    @property
    def is_refused(self) -> bool:
        """Whether it is open because of the key or the account."""
        return self.is_open and self.refusal is not None

    def enter(self, name: str, *, now: float) -> Call:
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
        return Call(is_trial=is_trial, known=self._known)

    def leave(self, call: Call) -> None:
        """Note that the call is over."""
        if call.is_trial:
            self._is_trying = False
        if self._counts is call:
            self._counts = None

    def failed(self, call: Call, *, now: float) -> None:
        """Count a failed request of this call."""
        is_beside = self._counts is not None or call.known != self._known
        if is_beside and self._counts is not call:
            return
        self._known += 1
        self._counts = call
        self.errors += 1
        if self.errors >= ERRORS_MAX or call.is_trial:
            self.open_until = now + OPEN_S

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
