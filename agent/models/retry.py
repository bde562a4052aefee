"""The one place where a model call is tried again: `Patient` wraps a Model, as a Model.

`bot.app` wraps each model once. No other layer may retry, so one answer costs at most
`attempts_max` requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from agent.errors import Overloaded, Permanent, Temporary
from agent.ports import Clock, Model
from agent.request import ModelRequest, ModelTraits
from agent.transcript import Answered

PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 8.0
ASKED_PAUSE_MAX_S = 30.0
ERRORS_MAX = 5
OPEN_S = 60.0


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
    - After 5 Temporary errors in a row (over all calls) every call fails at once for 60 s; then one
      call may try, alone and once, and its outcome closes or opens the breaker again.
    """

    def __init__(
        self,
        model: Model,
        *,
        clock: Clock,
        chance: Random,
        attempts_max: int = 4,
        give_up_after_s: float = 60,
    ) -> None:
        self._model = model
        self._clock = clock
        self._chance = chance
        self._attempts_max = attempts_max
        self._give_up_after_s = give_up_after_s
        self._breaker = _Breaker(clock)

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def traits(self) -> ModelTraits:
        return self._model.traits

    async def answer(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | TextSink
    ) -> Answered:
        """See `agent.ports.Model`, and TextSink. Raises the last error when patience ends."""
        trial = self._breaker.enter(self.name)
        give_up_at = self._clock.monotonic() + self._give_up_after_s
        try:
            for attempt in range(1, self._attempts_max + 1):
                sink = _Sink(on_text)
                try:
                    return await self._once(request, sink)
                except Temporary as error:
                    last = trial or self._breaker.is_open or attempt == self._attempts_max
                    pause = self._pause(error, attempt)
                    too_late = self._clock.monotonic() + pause > give_up_at
                    if last or too_late or pause > ASKED_PAUSE_MAX_S + 1 or sink.is_stuck:
                        raise
                await self._clock.sleep(pause)
                sink.restart()
        finally:
            self._breaker.leave(trial=trial)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, request: ModelRequest, sink: _Sink) -> Answered:
        """One attempt, told to the breaker. A refusal shows that the server works."""
        try:
            answer = await self._model.answer(request, on_text=sink)
        except Temporary:
            self._breaker.failed()
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


@dataclass(slots=True)
class _Breaker:
    """Closed, open until a moment, or half open with one trial under way."""

    clock: Clock
    errors: int = 0
    open_until: float | None = None
    trying: bool = False

    @property
    def is_open(self) -> bool:
        return self.open_until is not None

    def enter(self, name: str) -> bool:
        """True when this call is the trial; raises Overloaded while the breaker is open."""
        if self.open_until is None:
            return False
        left = self.open_until - self.clock.monotonic()
        if left > 0 or self.trying:
            raise Overloaded(
                f"The model {name} failed {ERRORS_MAX} times in a row; it is left alone for a "
                "while before it is tried again",
                retry_after_s=max(left, 1.0),
            )
        self.trying = True
        return True

    def leave(self, *, trial: bool) -> None:
        if trial:
            self.trying = False

    def failed(self) -> None:
        self.errors += 1
        if self.errors >= ERRORS_MAX:
            self.open_until = self.clock.monotonic() + OPEN_S

    def worked(self) -> None:
        self.errors, self.open_until = 0, None
