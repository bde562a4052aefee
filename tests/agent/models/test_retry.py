"""Patience: what is tried again, when, and how often at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from aiohttp import web

from agent.models.client import CallLimits
from agent.models.fallback import ModelChain
from agent.models.health import ModelHealth
from agent.models.openai_compatible import OpenAICompatible
from memory.records.errors import (
    AssistantError,
    AuthRefused,
    BillingRefused,
    BrokenAnswer,
    ModelTimeout,
    Overloaded,
    RateLimited,
)
from memory.records.request import ModelRequest, ModelTraits
from memory.records.transcript import Answered
from tests.agent.models.asking import Pieces, ask, request
from tests.agent.models.clock import QuickClock
from tests.agent.models.server import ModelServer, delta, events

Outcome = AssistantError | str


class Moody:
    """Answers or fails as told; streams "Hel" before an error that is marked so."""

    name = "moody"
    traits = ModelTraits()

    def __init__(self, *outcomes: Outcome, streams: bool = False) -> None:
        self.outcomes = list(outcomes)
        self.streams = streams
        self.asked_at: list[float] = []
        self.clock = QuickClock()
        self.takes_s = 0.0

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        self.asked_at.append(self.clock.passed)
        self.clock.passed += self.takes_s
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, str):
            on_text(outcome)
            return Answered(text=outcome)
        if self.streams:
            on_text("Hel")
        raise outcome

    def patient(self, **settings: Any) -> ModelChain:
        return ModelChain([self], clock=self.clock, chance=Random(7), **settings)


async def fail(model: ModelChain, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(AssistantError):
            await ask(model)


async def test_a_passing_trouble_is_not_seen() -> None:
    model = Moody(Overloaded("busy"), BrokenAnswer("cut"), "Hello")

    answer, pieces = await ask(model.patient())

    assert (answer.text, pieces) == ("Hello", ["Hello"])
    assert len(model.asked_at) == 3


async def test_the_last_error_is_raised_after_four_attempts() -> None:
    model = Moody(Overloaded("one"), Overloaded("two"), Overloaded("three"), Overloaded("four"))

    with pytest.raises(Overloaded, match="four"):
        await ask(model.patient())

    assert len(model.asked_at) == 4


async def test_pauses_grow_at_most_to_their_ceiling() -> None:
    for seed in range(50):
        model = Moody(Overloaded("busy"))
        with pytest.raises(Overloaded):
            await ask(ModelChain([model], clock=model.clock, chance=Random(seed)))

        for pause, ceiling in zip(model.clock.pauses, (0.5, 1.0, 2.0), strict=True):
            assert 0 <= pause <= ceiling


async def test_a_permanent_refusal_is_raised_at_once() -> None:
    model = Moody(AuthRefused("no"))

    with pytest.raises(AuthRefused):
        await ask(model.patient())

    assert len(model.asked_at) == 1


async def test_nothing_is_asked_before_the_pause_of_the_server_is_over() -> None:
    model = Moody(RateLimited("slow", retry_after_s=20), "Hello")

    await ask(model.patient())

    assert 20 <= model.asked_at[1] <= 21


async def test_a_pause_of_more_than_thirty_seconds_is_the_callers_to_decide() -> None:
    model = Moody(RateLimited("slow", retry_after_s=32))

    with pytest.raises(RateLimited):
        await ask(model.patient())

    assert len(model.asked_at) == 1


async def test_patience_ends_with_its_time() -> None:
    model = Moody(ModelTimeout("late"))
    model.takes_s = 59.9

    with pytest.raises(ModelTimeout):
        await ask(model.patient())

    assert len(model.asked_at) <= 2


async def test_after_visible_text_a_retry_tells_the_caller_to_start_over() -> None:
    model = Moody(BrokenAnswer("cut"), "Hello", streams=True)
    pieces = Pieces()

    await model.patient().answer(request(), on_text=pieces)

    assert (pieces, pieces.restarts) == (["Hello"], 1)


async def test_a_retry_before_any_text_is_not_told() -> None:
    pieces = Pieces()

    await Moody(BrokenAnswer("cut"), "Hello").patient().answer(request(), on_text=pieces)

    assert pieces.restarts == 0


async def test_without_a_way_to_start_over_visible_text_is_never_sent_twice() -> None:
    model = Moody(BrokenAnswer("cut"), "Hello", streams=True)
    shown: list[str] = []

    with pytest.raises(BrokenAnswer):
        await model.patient().answer(request(), on_text=shown.append)

    assert shown == ["Hel"]


async def test_five_errors_in_a_row_open_the_breaker_for_a_minute() -> None:
    model = Moody(Overloaded("busy"))
    patient = model.patient()
    await fail(patient, 2)
    assert len(model.asked_at) == 5

    with pytest.raises(Overloaded, match="moody failed 5 times") as caught:
        await ask(patient)

    assert len(model.asked_at) == 5
    assert caught.value.retry_after_s is not None
    assert 50 < caught.value.retry_after_s <= 60


async def test_after_a_minute_one_call_tries_once_and_a_failure_opens_it_again() -> None:
    model = Moody(Overloaded("busy"))
    patient = model.patient()
    await fail(patient, 2)
    model.clock.passed += 60

    await fail(patient, 2)

    assert len(model.asked_at) == 6


async def test_a_trial_that_works_closes_the_breaker() -> None:
    model = Moody(*[Overloaded("busy")] * 5, "Hello")
    patient = model.patient()
    await fail(patient, 2)
    model.clock.passed += 60

    answers = [await ask(patient), await ask(patient)]

    assert [answer.text for answer, _ in answers] == ["Hello", "Hello"]


async def test_a_cancelled_trial_lets_another_one_try() -> None:
    model = Moody(*[Overloaded("busy")] * 5, "Hello")
    patient = model.patient()
    await fail(patient, 2)
    model.clock.passed += 60

    def cancelled(_: str) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await patient.answer(request(), on_text=cancelled)
    answer, _ = await ask(patient)

    assert answer.text == "Hello"


async def test_errors_with_a_success_between_them_do_not_open_it() -> None:
    outcomes: list[Outcome] = [Overloaded("busy"), "Hello"]
    model = Moody(*outcomes * 6)
    patient = model.patient()

    for _ in range(6):
        await ask(patient)

    assert len(model.asked_at) == 12


class Crowded:
    """Fails every request that began before a moment's trouble was over, and then answers."""

    name = "crowded"
    traits = ModelTraits()

    def __init__(self, at_once: int) -> None:
        self.gathered = asyncio.Barrier(at_once)
        self.is_over = False
        self.asked = 0

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        self.asked += 1
        if self.is_over:
            return Answered(text="Hello")
        await self.gathered.wait()
        self.is_over = True
        raise Overloaded("the connection was lost")


async def test_a_moments_trouble_with_eight_in_flight_leaves_none_unanswered() -> None:
    model = Crowded(8)
    patient = ModelChain([model], clock=QuickClock(), chance=Random(7))

    answers = await asyncio.gather(*(ask(patient) for _ in range(8)))

    assert [answer.text for answer, _ in answers] == ["Hello"] * 8
    assert model.asked == 16


async def test_failures_of_calls_in_flight_together_do_not_add_up_over_their_retries() -> None:
    model = Moody(*[Overloaded("busy")] * 16, "Hello")
    patient = model.patient()

    answers = await asyncio.gather(*(ask(patient) for _ in range(8)))

    assert [answer.text for answer, _ in answers] == ["Hello"] * 8


@pytest.mark.parametrize("refusal", [AuthRefused("wrong key"), BillingRefused("no credit")])
async def test_a_refused_key_or_account_is_asked_once_a_minute(refusal: AssistantError) -> None:
    model = Moody(refusal)
    patient = model.patient()

    for minute in range(3):
        for _ in range(20):
            with pytest.raises(type(refusal), match=str(refusal)):
                await ask(patient)
        assert len(model.asked_at) == 2 + minute
        model.clock.passed += 60


async def test_while_one_call_tries_a_refused_key_the_others_are_told_at_once() -> None:
    asked = asyncio.Event()
    go_on = asyncio.Event()

    class Slow(Moody):
        async def answer(
            self, request: ModelRequest, *, on_text: Callable[[str], None]
        ) -> Answered:
            if len(self.asked_at) == 2:
                asked.set()
                await go_on.wait()
            return await super().answer(request, on_text=on_text)

    model = Slow(AuthRefused("wrong key"), AuthRefused("wrong key"), "Hello")
    patient = model.patient()
    await fail(patient, 2)
    model.clock.passed += 60
    trial = asyncio.ensure_future(ask(patient))
    await asked.wait()

    with pytest.raises(AuthRefused):
        await ask(patient)
    go_on.set()

    assert (await trial)[0].text == "Hello"
    assert (await ask(patient))[0].text == "Hello"


async def test_the_owner_is_told_of_a_refusal_once_and_once_that_it_works_again() -> None:
    model = Moody(*[BillingRefused("no credit")] * 3, "Hello")
    health = ModelHealth(model=model)
    breaker = health.breaker
    patient = ModelChain([health], clock=model.clock, chance=Random(7))
    told = []
    for _ in range(5):
        with suppress(BillingRefused):
            await ask(patient)
        told.append((breaker.take_refusal(), breaker.take_mended()))
        model.clock.passed += 60

    assert told == [("no credit", False), ("", False), ("", False), ("", True), ("", False)]


class Stopped:
    """The time of the event loop, as after a SIGSTOP: it passed while nothing ran."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        time = loop.time
        self._passed = 0.0
        monkeypatch.setattr(loop, "time", lambda: time() + self._passed)

    def stands_still(self, seconds: float) -> None:
        self._passed += seconds


async def test_a_process_that_stood_still_reads_the_answer_that_came_meanwhile(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Stopped(monkeypatch)
    pieces: list[str] = []

    async def script(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        first, *others = events(delta(content="Hel"), delta(content="lo"), delta("stop"))
        await response.write(first)
        while not pieces:
            await asyncio.sleep(0.001)
        stopped.stands_still(180)
        for other in others:
            await response.write(other)
        return response

    server.scripts.append(script)
    async with OpenAICompatible("m", api_base=server.api_base) as model:
        answer = await model.answer(request(), on_text=pieces.append)

    assert answer.text == "Hello"
    assert len(server.asked) == 1


async def test_patience_does_not_end_by_time_in_which_the_process_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = Stopped(monkeypatch)
    model = Moody(BrokenAnswer("the server hung up"), "Hello")
    model.takes_s = 180

    class Still(Moody):
        async def answer(
            self, request: ModelRequest, *, on_text: Callable[[str], None]
        ) -> Answered:
            if not model.asked_at:
                stopped.stands_still(180)
            return await model.answer(request, on_text=on_text)

    patient = ModelChain([Still("unused")], clock=model.clock, chance=Random(7))

    assert (await ask(patient))[0].text == "Hello"


@pytest.mark.case("CO-05")
@pytest.mark.parametrize("trouble", ["429", "500", "stall", "cut"])
async def test_the_server_counts_no_more_requests_than_documented(
    server: ModelServer, trouble: str
) -> None:
    if trouble == "429":
        server.replies(429, "{}", {"Retry-After": "1"})
    elif trouble == "500":
        server.replies(500, "{}")
    else:
        server.says(delta(content="Hel"), done=False, then="hang" if trouble == "stall" else "end")
    clock = QuickClock()
    limits = CallLimits(timeout_s=0.2, stall_timeout_s=0.05) if trouble == "stall" else CallLimits()

    async with OpenAICompatible("m", api_base=server.api_base, limits=limits) as model:
        with pytest.raises(AssistantError):
            await ask(ModelChain([model], clock=clock, chance=Random(1)))

    assert len(server.asked) == 4
    assert len(clock.pauses) == 3
    if trouble == "429":
        assert min(clock.pauses) >= 1


@pytest.mark.case("CO-05")
async def test_a_refused_connection_is_given_up_in_time() -> None:
    clock = QuickClock()

    async with OpenAICompatible("m", api_base="http://127.0.0.1:9/v1") as model:
        with pytest.raises(Overloaded):
            await ask(ModelChain([model], clock=clock, chance=Random(1)))

    assert clock.passed <= 60
