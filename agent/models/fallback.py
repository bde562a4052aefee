"""Several models as one: the first that is well answers; one in trouble rests for a while.

`bot.app` puts it around the models of `llm.model` and `llm.fallbacks`, in place of a `Patient`
around one. How long each rests is kept in memory: after a restart every model is tried once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import structlog

from agent.history.window import estimate_tokens, picture_tokens, text_of
from agent.models.retry import ASKED_PAUSE_MAX_S, OPEN_S, Breaker, Patient, TextSink
from memory.records.errors import (
    AccountRefused,
    AssistantError,
    BillingRefused,
    ContextTooLong,
    Overloaded,
    Temporary,
)
from memory.records.ports import Clock, Model
from memory.records.request import ModelRequest, ModelTraits
from memory.records.transcript import Answered

log = structlog.get_logger()

FIRST_AFTER_S = 20.0
"""So long after its first trouble, at most, a model without a word is left for the next one."""

LAST_AFTER_S = 60.0
RESTS_S = (60.0, 300.0, 1_500.0, 3_600.0)
BILLING_RESTS_S = (5 * 3_600.0, 10 * 3_600.0, 20 * 3_600.0, 24 * 3_600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """A model that is not asked for another `seconds`, for the status."""

    name: str
    seconds: float
    why: str


class Fallback:
    """Asks the models in order; `Answered.model` tells which one it was.

    - Temporary errors are tried again by a Patient, at most `first_after_s` from the first one on;
      then the next model is asked. If a key or an account is refused, it is asked at once.
    - A request that is too long goes to the next model with a larger window. Other refusals of
      the request itself (filter, malformed) are raised: no model would take it.
    - Who failed rests, longer each time; then one call may try it while others pass it by.
    - If all rest, the one that would be back first is asked. Each whose key or account is refused
      is asked once a minute, by one call. A pause that a server asked for is always kept: up to
      30 s are waited; a longer one raises Overloaded with the time left.
    """

    def __init__(
        self,
        models: Sequence[Model | Health],
        *,
        clock: Clock,
        chance: Random,
        first_after_s: float = FIRST_AFTER_S,
    ) -> None:
        """The main model first; at least one. Chains that have a model in common share its
        Health."""
        self._clock = clock
        self._chance = chance
        self._first_after_s = first_after_s
        self._states = [
            model if isinstance(model, Health) else Health(model=model) for model in models
        ]

    @property
    def name(self) -> str:
        """The main model's."""
        return self._states[0].model.name

    @property
    def traits(self) -> ModelTraits:
        """The main model's: prompts are made for it."""
        return self._states[0].model.traits

    def resting(self) -> Sequence[Resting]:
        """The models that are left alone now."""
        now = self._clock.monotonic()
        return [resting for state in self._states if (resting := state.resting(now)) is not None]

    async def answer(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | TextSink
    ) -> Answered:
        """See `memory.records.ports.Model`. When no model answers, raises what befell the first
        asked."""
        sink = _Sink(on_text)
        await self._wait_for_one()
        order = [one for one in self._order() if _fits(request, one.model, main=self.traits)]
        first: AssistantError | None = None
        while order:
            state = order.pop(0)
            is_tried = not order or state.breaker.is_refused
            if not state.may_be_asked(self._clock.monotonic(), is_last=is_tried):
                continue
            sink.restart()
            try:
                return await self._ask(state, request, sink, is_last=not order)
            except (Temporary, AccountRefused) as error:
                first = first or error
            except ContextTooLong as error:
                first = first or error
                window = state.model.traits.window
                order = [one for one in order if one.model.traits.window > window]
            if sink.is_stuck:
                break
        raise first or self._nobody()

    async def _wait_for_one(self) -> None:
        """Where every server asked for a pause, the shortest one is waited for if it is short."""
        now = self._clock.monotonic()
        left = min(state.asked_until for state in self._states) - now
        if 0 < left <= ASKED_PAUSE_MAX_S:
            await self._clock.sleep(left)

    def _order(self) -> list[Health]:
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

    async def _ask(
        self, state: Health, request: ModelRequest, sink: _Sink, *, is_last: bool
    ) -> Answered:
        began = self._clock.monotonic()
        trial = state.failures > 0 and not state.on_trial
        state.on_trial = state.on_trial or trial
        try:
            answer = await self._patiently(state.model, request, sink, is_last=is_last)
        except (Temporary, AccountRefused) as error:
            state.failed(error, began=began, now=self._clock.monotonic())
            log.warning("model.rests", model=state.model.name, why=str(error))
            raise
        finally:
            if trial:
                state.on_trial = False
        state.worked(began=began)
        return answer

    async def _patiently(
        self, model: Model, request: ModelRequest, sink: _Sink, *, is_last: bool
    ) -> Answered:
        """Its last error, also when that was a while ago and it hangs since."""
        watched = _Watched(model, None if is_last else self._first_after_s)
        patient = Patient(
            watched,
            clock=self._clock,
            chance=self._chance,
            give_up_after_s=LAST_AFTER_S if is_last else self._first_after_s,
        )
        try:
            async with asyncio.timeout(None) as watched.timeout:
                return await patient.answer(_made_for(model, request), on_text=sink.on_text)
        except TimeoutError:
            assert watched.trouble is not None
            raise watched.trouble from None


@dataclass(slots=True, kw_only=True)
class Health:
    """How a model is doing. Times are monotonic. `breaker` knows whether its key or account is
    refused, in every chain; if it is the only model of a chain, also its failures in a row."""

    model: Model
    breaker: Breaker = field(default_factory=Breaker)
    failures: int = 0
    rests: Sequence[float] = RESTS_S
    since: float = float("-inf")
    until: float = float("-inf")
    asked_until: float = float("-inf")
    why: str = ""
    on_trial: bool = False

    def resting(self, now: float) -> Resting | None:
        """None while it may be asked."""
        if self.until <= now:
            return None
        return Resting(name=self.model.name, seconds=self.until - now, why=self.why)

    def take_refusal(self) -> str:
        """Empty when there is none that was not told yet."""
        return self.breaker.take_refusal()

    def is_shut(self, now: float) -> bool:
        """Whether its key or account is refused, and it is tried now or was within a minute."""
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
        elif self.breaker.is_refused:
            self.breaker.open_until = now + OPEN_S
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


class _Watched:
    """A model in one call: its first trouble starts the time after which it is left."""

    def __init__(self, model: Model, leave_after_s: float | None) -> None:
        self._model = model
        self._leave_after_s = leave_after_s
        self._leave_at: float | None = None
        self.timeout: asyncio.Timeout | None = None
        self.trouble: Temporary | None = None

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def traits(self) -> ModelTraits:
        return self._model.traits

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        def told(piece: str) -> None:
            self._leave(at=None)  # whoever speaks may finish
            on_text(piece)

        try:
            answer = await self._model.answer(request, on_text=told)
        except Temporary as error:
            self.trouble = error
            if self._leave_after_s is not None:
                now = asyncio.get_running_loop().time()
                self._leave_at = self._leave_at or now + self._leave_after_s
                self._leave(at=self._leave_at)
            raise
        self._leave(at=None)
        return answer

    def _leave(self, *, at: float | None) -> None:
        if self.timeout is not None and self.timeout.when() != at and not self.timeout.expired():
            self.timeout.reschedule(at)


class _Sink:
    """Passes text on, and takes back what a failed model said before the next one begins."""

    def __init__(self, on_text: Callable[[str], None] | TextSink) -> None:
        self._on_text = on_text
        self._restart: Callable[[], None] | None = getattr(on_text, "restart", None)
        self._shown = False

    def __call__(self, piece: str) -> None:
        self._shown = True
        self._on_text(piece)

    @property
    def on_text(self) -> Callable[[str], None] | TextSink:
        """Has a `restart` only where the caller's has one: Patient asks."""
        return self if self._restart is not None else self.__call__

    @property
    def is_stuck(self) -> bool:
        return self._shown and self._restart is None

    def restart(self) -> None:
        """Says nothing where nothing was shown."""
        if self._shown and self._restart is not None:
            self._shown = False
            self._restart()


def _fits(request: ModelRequest, model: Model, *, main: ModelTraits) -> bool:
    """The main model's prompt was counted when it was made; for a smaller window it is here."""
    window = model.traits.window
    if window >= main.window:
        return True
    tokens = sum(map(estimate_tokens, _texts(request))) + sum(map(picture_tokens, request.entries))
    return tokens <= window - _output(model, request)


def _texts(request: ModelRequest) -> Iterator[str]:
    yield request.system
    for entry in request.entries:
        yield text_of(entry)
    for tool in request.tools:
        yield json.dumps([tool.description, dict(tool.parameters)])


def _output(model: Model, request: ModelRequest) -> int:
    return min(request.max_output_tokens, model.traits.window // 4)


def _made_for(model: Model, request: ModelRequest) -> ModelRequest:
    """What this model does not have is not asked of it."""
    extra = {
        key: value
        for key, value in request.extra.items()
        if key != "reasoning_effort" or model.traits.effort
    }
    return replace(request, max_output_tokens=_output(model, request), extra=extra)
