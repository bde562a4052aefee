"""Fallback: a chain of models as one model, of which the next is asked while one is in trouble.

The one place where a call is tried again; no other layer may retry, so an answer of one model costs
at most `ATTEMPTS_MAX` requests. `agent.models.router` makes a chain for each call.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from random import Random
from typing import Protocol

import structlog

from agent.models.client import Standstill
from agent.models.health import CircuitBreaker, ModelHealth, RestingModel
from agent.prompt.tokens import estimate_tokens, picture_tokens, text_of
from memory.records.errors import (
    AccountRefused,
    AssistantError,
    ContextTooLong,
    Overloaded,
    Temporary,
)
from memory.records.ports import Clock, Model
from memory.records.transcript import Answered, ModelRequest, ModelTraits

log = structlog.get_logger()

ATTEMPTS_MAX = 4
PAUSE_FIRST_S = 0.5
PAUSE_MAX_S = 8.0
ASKED_PAUSE_MAX_S = 30.0

FIRST_AFTER_S = 20.0
"""So long after its first trouble, at most, a model without a word is left for the next one."""

LAST_AFTER_S = 60.0
"""No retry of the last model begins later than so long after it was first asked."""


class TextSink(Protocol):
    """What a caller may pass as `on_text` so that a broken stream can be tried again.

    Without `restart`, an error after the first visible text is raised at once: what was shown
    cannot be taken back.
    """

    def __call__(self, piece: str) -> None:
        """The next piece of visible text."""

    def restart(self) -> None:
        """What was passed on in this call is void; the answer begins anew."""


OnText = Callable[[str], None] | TextSink


class ModelChain:
    """Asks the models in order; `Answered.model` tells which one it was.

    One model alone:

    - Temporary errors are tried again after growing random pauses. A pause that the server asks
      for is kept; one of more than 30 s is the caller's to decide.
    - After 5 Temporary errors in a row (over all calls), or 2 refusals of the key or the account,
      every call fails at once for 60 s; then one call may try, alone and once, and its outcome
      closes or opens the breaker again.
    - Time in which this process stood still does not count.

    Several:

    - Temporary errors are tried again, at most `first_after_s` from the first one on; then the
      next model is asked. If a key or an account is refused, it is asked at once.
    - A request that is too long goes to the next model with a larger window. Other refusals of
      the request itself (filter, malformed) are raised: no model would take it.
    - Who failed rests, longer each time; then one call may try it while others pass it by.
    - If all rest, the one that would be back first is asked. Each whose key or account is refused
      is asked once a minute, by one call. A pause that a server asked for is always kept: up to
      30 s are waited; a longer one raises Overloaded with the time left.
    """

    def __init__(
        self,
        models: Sequence[Model | ModelHealth],
        *,
        clock: Clock,
        chance: Random,
        first_after_s: float = FIRST_AFTER_S,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        """The main model first; at least one. Chains that have a model in common share its
        ModelHealth."""
        self._clock = clock
        self._chance = chance
        self._first_after_s = first_after_s
        self._attempts_max = attempts_max
        self._states = [
            model if isinstance(model, ModelHealth) else ModelHealth(model=model)
            for model in models
        ]

    @property
    def name(self) -> str:
        """The main model's."""
        return self._states[0].model.name

    @property
    def traits(self) -> ModelTraits:
        """The main model's: prompts are made for it."""
        return self._states[0].model.traits

    def resting(self) -> Sequence[RestingModel]:
        """The models that are left alone now."""
        now = self._clock.monotonic()
        return [resting for state in self._states if (resting := state.resting(now)) is not None]

    async def answer(self, request: ModelRequest, *, on_text: OnText) -> Answered:
        """See `memory.records.ports.Model`. When no model answers, raises what befell the first
        asked."""
        sink = _Sink(on_text)
        async with self._opened():
            if len(self._states) == 1:
                only = self._states[0]
                return await self._patiently(only.model, request, sink, breaker=only.breaker)
            # Where every server asked for a pause, the shortest one is waited for if it is short.
            left = min(state.asked_until for state in self._states) - self._clock.monotonic()
            if 0 < left <= ASKED_PAUSE_MAX_S:
                await self._clock.sleep(left)
            order = [one for one in self._order() if _fits(request, one.model, main=self.traits)]
            first: AssistantError | None = None
            while order:
                state = order.pop(0)
                is_tried = not order or state.breaker.is_refused
                if not state.may_be_asked(self._clock.monotonic(), is_last=is_tried):
                    continue
                sink.restart()
                try:
                    with self._seen(state):
                        # What this model does not have is not asked of it.
                        extra = {
                            key: value
                            for key, value in request.extra.items()
                            if key != "reasoning_effort" or state.model.traits.effort
                        }
                        return await self._patiently(
                            state.model,
                            replace(
                                request,
                                max_output_tokens=_output(state.model, request),
                                extra=extra,
                            ),
                            sink,
                            # Beside others a model that fails rests: their breakers would know it
                            # too late.
                            breaker=CircuitBreaker(),
                            leave_after_s=self._first_after_s if order else None,
                        )
                except (Temporary, AccountRefused) as error:
                    first = first or error
                except ContextTooLong as error:
                    first = first or error
                    window = state.model.traits.window
                    order = [one for one in order if one.model.traits.window > window]
                if sink.is_stuck:
                    break
            raise first or self._nobody()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        """What has to be open while the models are asked."""
        yield

    def _order(self) -> list[ModelHealth]:
        """Return whom to ask, the likeliest first: all that are well, else the first to be back. If
        all are refused, return each, as nobody knows which one the owner has seen to."""
        now = self._clock.monotonic()
        free = [state for state in self._states if state.may_be_asked(now, is_last=True)]
        ready = [state for state in free if state.may_be_asked(now, is_last=False)]
        if not ready and all(state.breaker.is_refused for state in free):
            return free
        return ready or sorted(free, key=lambda state: state.until)[:1]

    def _nobody(self) -> AssistantError:
        """Return the error to raise when every model rests, is refused or is too small."""
        now = self._clock.monotonic()
        others = [state for state in self._states if not state.is_shut(now)]
        if not others and (refusal := self._states[0].breaker.refused_again()):
            return refusal
        soonest = min(others, key=lambda state: state.asked_until)
        if soonest.asked_until <= now:
            return ContextTooLong("The request is too long for the models that can be asked now")
        return Overloaded(
            f"No model can be asked now. {soonest.model.name} is the first to be back: "
            f"{soonest.why}",
            retry_after_s=soonest.asked_until - now,
        )

    @contextmanager
    def _seen(self, state: ModelHealth) -> Iterator[None]:
        """A call of a model, whose end its health remembers; alone where it failed before."""
        began = self._clock.monotonic()
        trial = state.failures > 0 and not state.on_trial
        state.on_trial = state.on_trial or trial
        try:
            yield
        except (Temporary, AccountRefused) as error:
            state.failed(error, began=began, now=self._clock.monotonic())
            log.warning("model.rests", model=state.model.name, why=str(error))
            raise
        finally:
            if trial:
                state.on_trial = False
        state.worked(began=began)

    async def _patiently(
        self,
        model: Model,
        request: ModelRequest,
        sink: _Sink,
        *,
        breaker: CircuitBreaker,
        leave_after_s: float | None = None,
    ) -> Answered:
        """Ask one model, and again where that may help. Raises its last error, also when that was
        a while ago and it hangs since."""
        call = breaker.enter(model.name, now=self._clock.monotonic())
        give_up_at = self._clock.monotonic() + (leave_after_s or LAST_AFTER_S)
        leave_at: float | None = None
        trouble: Temporary | None = None
        try:
            with Standstill() as stood:
                async with asyncio.timeout(None) as sink.leaving:
                    for attempt in range(1, self._attempts_max + 1):
                        try:
                            answer = await model.answer(request, on_text=sink)
                        except AssistantError as error:
                            breaker.saw(call, error, now=self._clock.monotonic())
                            if not isinstance(error, Temporary):
                                raise
                            trouble = error
                        else:
                            sink.leave(at=None)
                            breaker.saw(call, None, now=self._clock.monotonic())
                            return answer
                        if leave_after_s is not None:
                            now = asyncio.get_running_loop().time()
                            leave_at = leave_at or now + leave_after_s
                            sink.leave(at=leave_at)
                        last = call.is_trial or breaker.is_open or attempt == self._attempts_max
                        # Full jitter; never shorter than what the server asked for.
                        ceiling = min(PAUSE_MAX_S, PAUSE_FIRST_S * 2 ** (attempt - 1))
                        pause = self._chance.uniform(0, ceiling)
                        if trouble.retry_after_s is not None:
                            pause = trouble.retry_after_s + min(1.0, pause)
                        too_late = self._clock.monotonic() + pause > give_up_at + stood.seconds
                        if last or too_late or pause > ASKED_PAUSE_MAX_S + 1 or sink.is_stuck:
                            raise trouble
                        await self._clock.sleep(pause)
                        sink.restart()
        except TimeoutError:
            if trouble is None:
                raise
            raise trouble from None
        finally:
            breaker.leave(call)
        raise AssertionError("the last attempt returns or raises")


class _Sink:
    """The caller's `on_text` during one call: passes text on, and takes back what a failed attempt
    showed before the next one begins. `leaving` ends the attempts of a model."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._restart: Callable[[], None] | None = getattr(on_text, "restart", None)
        self._shown = False
        self.leaving: asyncio.Timeout | None = None

    def __call__(self, piece: str) -> None:
        self.leave(at=None)  # whoever speaks may finish
        self._shown = True
        self._on_text(piece)

    @property
    def is_stuck(self) -> bool:
        return self._shown and self._restart is None

    def restart(self) -> None:
        """Say nothing where nothing was shown."""
        if self._shown and self._restart is not None:
            self._shown = False
            self._restart()

    def leave(self, *, at: float | None) -> None:
        """Leave the model at this time of the loop; None: let it finish."""
        timeout = self.leaving
        if timeout is not None and timeout.when() != at and not timeout.expired():
            timeout.reschedule(at)


def _fits(request: ModelRequest, model: Model, *, main: ModelTraits) -> bool:
    """The main model's prompt was counted when it was made; for a smaller window it is here."""
    window = model.traits.window
    if window >= main.window:
        return True
    tools = (json.dumps([tool.description, dict(tool.parameters)]) for tool in request.tools)
    texts = (request.system, *map(text_of, request.entries), *tools)
    tokens = sum(map(estimate_tokens, texts)) + sum(map(picture_tokens, request.entries))
    return tokens <= window - _output(model, request)


def _output(model: Model, request: ModelRequest) -> int:
    return min(request.max_output_tokens, model.traits.window // 4)
