"""Which model answers when one is in trouble: what is tried again, when, and how often at most; who
stands in; and what is shown meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agent.models.fallback import ASKED_PAUSE_MAX_S, ModelChain
from agent.models.health import REFUSALS_MAX, RESTS_S, ModelHealth
from agent.models.openai_compatible import OpenAICompatible
from memory.records.errors import (
    AccountRefused,
    AssistantError,
    AuthRefused,
    BillingRefused,
    BrokenAnswer,
    ContentFiltered,
    ContextTooLong,
    ModelRefused,
    ModelTimeout,
    Overloaded,
    RateLimited,
)
from memory.records.transcript import Answered, ModelRequest, ModelTraits, Said
from tests.agent.models.asking import Pieces, ask, request
from tests.agent.models.clock import QuickClock
from tests.agent.models.server import ModelServer, delta, events, serving

Outcome = AssistantError | str | None

MINUTE = 60.0
HOUR = 3_600.0


class Moody:
    """Answers (text), fails (an error), or hangs (None), in order; the last one for ever. Says
    `says` before it fails, and takes `takes_s`."""

    def __init__(
        self, name: str, *outcomes: Outcome, traits: ModelTraits | None = None, says: str = ""
    ) -> None:
        self.name = name
        self.traits = traits or ModelTraits()
        self.outcomes = list(outcomes)
        self.says = says
        self.clock = QuickClock()
        self.takes_s = 0.0
        self.asked: list[ModelRequest] = []
        self.asked_at: list[float] = []
        self.cancelled = 0

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        self.asked.append(request)
        self.asked_at.append(self.clock.passed)
        self.clock.passed += self.takes_s
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, str):
            on_text(outcome)
            return Answered(text=outcome, model=self.name)
        if self.says:
            on_text(self.says)
        if outcome is not None:
            raise outcome
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise AssertionError("it hangs for ever")

    def patient(self, **settings: Any) -> ModelChain:
        """Asked alone."""
        return ModelChain([self], clock=self.clock, chance=Random(1), **settings)


def alone(*outcomes: Outcome, says: str = "") -> Moody:
    return Moody("moody", *outcomes, says=says)


class Bench:
    """Models behind one ModelChain, with a clock of their own."""

    def __init__(self, *models: Moody, first_after_s: float = 20.0) -> None:
        self.models = models
        self.clock = QuickClock()
        self.fallback = ModelChain(
            models, clock=self.clock, chance=Random(1), first_after_s=first_after_s
        )

    async def ask(self) -> str:
        """The name of the model that answered."""
        answer, _ = await ask(self.fallback)
        return answer.model

    def counts(self) -> list[int]:
        return [len(model.asked) for model in self.models]


async def fail(model: ModelChain, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(AssistantError):
            await ask(model)


TROUBLES = [
    RateLimited("slow down"),
    Overloaded("busy"),
    ModelTimeout("late"),
    BrokenAnswer("cut"),
    AuthRefused("wrong key"),
    BillingRefused("no credit"),
]


# --- one model ----------------------------------------------------------------------------------


async def test_a_passing_trouble_is_not_seen() -> None:
    model = alone(Overloaded("busy"), BrokenAnswer("cut"), "Hello")

    answer, pieces = await ask(model.patient())

    assert (answer.text, pieces) == ("Hello", ["Hello"])
    assert isinstance(pieces, Pieces)
    assert pieces.restarts == 0
    assert len(model.asked_at) == 3


async def test_the_last_error_is_raised_after_four_attempts() -> None:
    model = alone(Overloaded("one"), Overloaded("two"), Overloaded("three"), Overloaded("four"))

    with pytest.raises(Overloaded, match="four"):
        await ask(model.patient())

    assert len(model.asked_at) == 4


async def test_pauses_grow_at_most_to_their_ceiling() -> None:
    for seed in range(50):
        model = alone(Overloaded("busy"))
        with pytest.raises(Overloaded):
            await ask(ModelChain([model], clock=model.clock, chance=Random(seed)))

        for pause, ceiling in zip(model.clock.pauses, (0.5, 1.0, 2.0), strict=True):
            assert 0 <= pause <= ceiling


async def test_nothing_is_asked_before_the_pause_of_the_server_is_over() -> None:
    model = alone(RateLimited("slow", retry_after_s=20), "Hello")

    await ask(model.patient())

    assert 20 <= model.asked_at[1] <= 21


async def test_a_pause_of_more_than_thirty_seconds_is_the_callers_to_decide() -> None:
    model = alone(RateLimited("slow", retry_after_s=32))

    with pytest.raises(RateLimited):
        await ask(model.patient())

    assert len(model.asked_at) == 1


async def test_patience_ends_with_its_time() -> None:
    model = alone(ModelTimeout("late"))
    model.takes_s = 59.9

    with pytest.raises(ModelTimeout):
        await ask(model.patient())

    assert len(model.asked_at) <= 2


async def test_five_errors_in_a_row_open_the_breaker_for_a_minute() -> None:
    model = alone(Overloaded("busy"))
    patient = model.patient()
    await fail(patient, 2)
    assert len(model.asked_at) == 5

    with pytest.raises(Overloaded, match="moody failed 5 times") as caught:
        await ask(patient)

    assert len(model.asked_at) == 5
    assert caught.value.retry_after_s is not None
    assert 50 < caught.value.retry_after_s <= 60


async def test_after_a_minute_one_call_tries_once_and_a_failure_opens_it_again() -> None:
    model = alone(Overloaded("busy"))
    patient = model.patient()
    await fail(patient, 2)
    model.clock.passed += 60

    await fail(patient, 2)

    assert len(model.asked_at) == 6


async def test_a_cancelled_trial_lets_another_one_try() -> None:
    model = alone(*[Overloaded("busy")] * 5, "Hello")
    patient = model.patient()
    await fail(patient, 2)
    model.clock.passed += 60

    def cancelled(_: str) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await patient.answer(request(), on_text=cancelled)
    answers = [await ask(patient), await ask(patient)]

    assert [answer.text for answer, _ in answers] == ["Hello", "Hello"], "which closes it"


async def test_errors_with_a_success_between_them_do_not_open_it() -> None:
    outcomes: list[Outcome] = [Overloaded("busy"), "Hello"]
    model = alone(*outcomes * 6)
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
    patient = ModelChain([model], clock=QuickClock(), chance=Random(1))

    answers = await asyncio.gather(*(ask(patient) for _ in range(8)))

    assert [answer.text for answer, _ in answers] == ["Hello"] * 8
    assert model.asked == 16


async def test_failures_of_calls_in_flight_together_do_not_add_up_over_their_retries() -> None:
    model = alone(*[Overloaded("busy")] * 16, "Hello")
    patient = model.patient()

    answers = await asyncio.gather(*(ask(patient) for _ in range(8)))

    assert [answer.text for answer, _ in answers] == ["Hello"] * 8


@pytest.mark.parametrize("refusal", [AuthRefused("wrong key"), BillingRefused("no credit")])
async def test_a_refused_key_or_account_is_asked_once_a_minute(refusal: AssistantError) -> None:
    model = alone(refusal)
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

    model = Slow("slow", AuthRefused("wrong key"), AuthRefused("wrong key"), "Hello")
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
    model = alone(*[BillingRefused("no credit")] * 3, "Hello")
    health = ModelHealth(model=model)
    breaker = health.breaker
    patient = ModelChain([health], clock=model.clock, chance=Random(1))
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
    model = alone(BrokenAnswer("the server hung up"), "Hello")
    model.takes_s = 180

    class Still(Moody):
        async def answer(
            self, request: ModelRequest, *, on_text: Callable[[str], None]
        ) -> Answered:
            if not model.asked_at:
                stopped.stands_still(180)
            return await model.answer(request, on_text=on_text)

    patient = ModelChain([Still("still", "unused")], clock=model.clock, chance=Random(1))

    assert (await ask(patient))[0].text == "Hello"


# --- several ------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda error: type(error).__name__)
async def test_the_next_model_answers_when_one_is_in_trouble(trouble: AssistantError) -> None:
    bench = Bench(Moody("main", trouble), Moody("spare", "Hi"))

    answered = await bench.ask()

    assert answered == "spare"
    assert bench.clock.passed <= 20
    assert [one.name for one in bench.fallback.resting()] == ["main"]
    assert bench.fallback.resting()[0].why == str(trouble)
    if isinstance(trouble, AccountRefused):
        assert (bench.counts(), bench.clock.passed) == ([1, 1], 0), "not tried again before"


@pytest.mark.parametrize("refusal", [ContentFiltered("no"), ModelRefused("malformed")])
async def test_a_request_that_no_model_would_take_is_raised_at_once(
    refusal: AssistantError,
) -> None:
    bench = Bench(Moody("main", refusal), Moody("spare", "Hi"))

    with pytest.raises(type(refusal)):
        await bench.ask()

    assert bench.counts() == [1, 0]
    assert bench.fallback.resting() == []


async def test_a_request_that_is_too_long_goes_to_a_larger_window_alone() -> None:
    small, same, large = (ModelTraits(window=size) for size in (10_000, 10_000, 50_000))
    bench = Bench(
        Moody("main", ContextTooLong("too long"), traits=small),
        Moody("same", "Hi", traits=same),
        Moody("large", "Hello", traits=large),
    )

    assert await bench.ask() == "large"
    assert bench.counts() == [1, 0, 1]
    assert bench.fallback.resting() == []
    without = Bench(*bench.models[:2])
    with pytest.raises(ContextTooLong, match="too long"):
        await without.ask()


async def test_a_model_is_never_sent_more_than_its_window_takes() -> None:
    tiny = ModelTraits(window=2_000)
    bench = Bench(Moody("main", Overloaded("busy")), Moody("tiny", "Hi", traits=tiny))
    long = ModelRequest(system="", entries=(Said(text="many words " * 1_000),))
    short = ModelRequest(system="", entries=(Said(text="few words"),))

    with pytest.raises(Overloaded):
        await bench.fallback.answer(long, on_text=Pieces())
    bench.clock.passed += HOUR
    answer = await bench.fallback.answer(short, on_text=Pieces())

    assert answer.model == "tiny"
    assert [one.max_output_tokens for one in bench.models[1].asked] == [500]


async def test_effort_is_asked_only_of_models_that_have_it() -> None:
    bench = Bench(
        Moody("main", AuthRefused("no"), traits=ModelTraits(effort=True)), Moody("spare", "Hi")
    )
    extra = {"reasoning_effort": "low", "seed": 1}

    await bench.fallback.answer(
        ModelRequest(system="", entries=(Said(text="Hi"),), extra=extra), on_text=Pieces()
    )

    assert bench.models[0].asked[0].extra == extra
    assert bench.models[1].asked[0].extra == {"seed": 1}


@pytest.mark.parametrize("trouble", [RateLimited("slow down"), AuthRefused("wrong key")])
async def test_when_all_fail_the_error_of_the_first_is_raised(trouble: AssistantError) -> None:
    bench = Bench(Moody("main", trouble), Moody("spare", Overloaded("busy too")))

    with pytest.raises(type(trouble), match=str(trouble)):
        await bench.ask()


# --- rest, and trial -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trouble", "rests"),
    [
        (Overloaded("busy"), [1 * MINUTE, 5 * MINUTE, 25 * MINUTE, 60 * MINUTE, 60 * MINUTE]),
        (AuthRefused("wrong key"), [1 * MINUTE, 5 * MINUTE, 25 * MINUTE, 60 * MINUTE]),
        (BillingRefused("no credit"), [5 * HOUR, 10 * HOUR, 20 * HOUR, 24 * HOUR, 24 * HOUR]),
    ],
)
async def test_a_model_rests_longer_each_time_it_fails(
    trouble: AssistantError, rests: list[float]
) -> None:
    main, spare = Moody("main", trouble), Moody("spare", "Hi")
    bench = Bench(main, spare)

    for rest in rests:
        await bench.ask()
        left = bench.fallback.resting()[0].seconds
        asked = len(main.asked)
        bench.clock.passed += left - 0.5
        await bench.ask()
        assert len(main.asked) == asked
        assert rest - 1 <= left <= rest + 0.01
        bench.clock.passed += 1


async def test_a_model_that_works_again_is_the_first_again_and_starts_anew() -> None:
    bench = Bench(Moody("main", AuthRefused("a"), AuthRefused("b"), "Hello", AuthRefused("c")))
    bench = Bench(*bench.models, Moody("spare", "Hi"))

    answered = []
    for _ in range(4):
        answered.append(await bench.ask())
        bench.clock.passed += RESTS_S[1] + 1

    assert answered == ["spare", "spare", "main", "spare"]
    assert bench.fallback.resting() == []
    await bench.ask()
    assert bench.fallback.resting()[0].seconds <= RESTS_S[1]


async def test_after_its_rest_one_call_tries_a_model_and_the_others_pass_it_by() -> None:
    main = Moody("main", AuthRefused("no"), None)
    bench = Bench(main, Moody("spare", "Hi"))
    await bench.ask()
    bench.clock.passed += RESTS_S[0] + 1

    trying = asyncio.ensure_future(bench.ask())
    await asyncio.sleep(0)
    others = [await bench.ask() for _ in range(3)]
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    main.outcomes = ["Hello"]

    assert others == ["spare"] * 3
    assert len(main.asked) == 2
    assert main.cancelled == 1
    assert await bench.ask() == "main"


async def test_calls_that_fail_side_by_side_are_one_failure() -> None:
    bench = Bench(Moody("main", AuthRefused("no")), Moody("spare", "Hi"))

    answered = await asyncio.gather(*(bench.ask() for _ in range(5)))

    assert answered == ["spare"] * 5
    assert bench.fallback.resting()[0].seconds == RESTS_S[0]


async def test_where_all_rest_the_first_to_be_back_is_asked() -> None:
    main = Moody("main", BillingRefused("no credit"))
    spare = Moody("spare", AuthRefused("wrong key"), "Hi")
    bench = Bench(main, spare)
    with pytest.raises(BillingRefused):
        await bench.ask()

    answered = await bench.ask()

    assert answered == "spare"
    assert bench.counts() == [1, 2]


async def test_where_all_are_refused_each_is_asked_once_a_minute() -> None:
    bench = Bench(
        Moody("main", AuthRefused("wrong key")), Moody("spare", BillingRefused("none left"))
    )

    for minute in range(3):
        for _ in range(10):
            with pytest.raises((AuthRefused, BillingRefused)):
                await bench.ask()
        assert bench.counts() == [2 + minute] * 2
        bench.clock.passed += MINUTE

    bench.models[0].outcomes = ["Hello"]
    assert await bench.ask() == "main"


@pytest.mark.case("CO-05")
async def test_nobody_is_asked_before_the_pause_of_its_server_is_over() -> None:
    main = Moody("main", RateLimited("slow", retry_after_s=300))
    spare = Moody("spare", RateLimited("slower", retry_after_s=900))
    bench = Bench(main, spare)
    with pytest.raises(RateLimited, match="slow"):
        await bench.ask()

    for _ in range(5):
        with pytest.raises(Overloaded, match="main is the first to be back: slow") as caught:
            await bench.ask()
    bench.clock.passed += 301
    main.outcomes = ["Hello"]

    assert bench.counts() == [1, 1]
    assert caught.value.retry_after_s == 300
    assert await bench.ask() == "main"


@pytest.mark.parametrize(("pause_s", "waits"), [(5.0, True), (30.0, True), (31.5, False)])
async def test_a_short_pause_that_all_servers_asked_for_is_waited_for(
    pause_s: float, waits: bool
) -> None:
    slow = RateLimited("slow", retry_after_s=100.0)
    bench = Bench(Moody("main", slow, "Hello"), Moody("spare", slow, "Hi"))
    with pytest.raises(RateLimited):
        await bench.ask()
    bench.clock.passed += 100.0 - pause_s

    if waits:
        assert await bench.ask() == "main"
    else:
        with pytest.raises(Overloaded):
            await bench.ask()

    assert bench.counts() == ([2, 1] if waits else [1, 1])


async def test_chains_with_a_model_in_common_know_the_same_of_it() -> None:
    shared = ModelHealth(model=Moody("main", Overloaded("busy")))
    clock = QuickClock()
    one, other = (
        ModelChain([shared, Moody(name, "Hi")], clock=clock, chance=Random(1))
        for name in ("first", "second")
    )
    await ask(one)
    asked = len(shared.model.asked)  # type: ignore[attr-defined]

    answer, _ = await ask(other)

    assert answer.model == "second"
    assert len(shared.model.asked) == asked  # type: ignore[attr-defined]
    assert [state.name for state in other.resting()] == ["main"]


@given(
    script=st.lists(
        st.tuples(
            st.sampled_from(["ok", "busy", "billing", "pause"]),
            st.sampled_from(["ok", "busy", "billing", "pause"]),
            st.floats(0, 2 * HOUR),
        ),
        max_size=15,
    )
)
async def test_whatever_happens_a_well_model_answers_and_pauses_are_kept(
    script: list[tuple[str, str, float]],
) -> None:
    main, spare = Moody("main", "Hello"), Moody("spare", "Hi")
    bench = Bench(main, spare)
    pauses = {"main": 0.0, "spare": 0.0}
    refusals = dict.fromkeys(pauses, 0)
    outcomes: dict[str, Outcome] = {
        "ok": "fine",
        "busy": Overloaded("busy"),
        "billing": BillingRefused("no credit"),
        "pause": RateLimited("slow", retry_after_s=1_000),
    }

    for moods in script:
        for model, mood in zip((main, spare), moods[:2], strict=True):
            model.outcomes = [outcomes[mood]]
        before, asked_at = bench.counts(), bench.clock.passed
        try:
            answered = await bench.ask()
        except AssistantError:
            answered = ""
        for model, mood, count in zip((main, spare), moods[:2], before, strict=True):
            if len(model.asked) > count:
                assert bench.clock.passed >= pauses[model.name]
                assert len(model.asked) - count <= 4
                if mood == "ok":
                    assert answered == model.name
                if mood == "pause":
                    pauses[model.name] = asked_at + 1_000
                refusals[model.name] += mood == "billing"
                if refusals[model.name] >= REFUSALS_MAX and mood in {"billing", "busy"}:
                    pauses[model.name] = asked_at + MINUTE
                if mood == "ok":
                    refusals[model.name] = 0
        ends = (at + ASKED_PAUSE_MAX_S for at in pauses.values())
        assert bench.counts() != before or all(bench.clock.passed < at for at in ends)
        bench.clock.passed += moods[2]


# --- what is seen meanwhile ----------------------------------------------------------------------


async def test_what_a_failed_model_said_is_taken_back_before_the_next_one_speaks() -> None:
    bench = Bench(Moody("main", BrokenAnswer("cut"), says="Hel"), Moody("spare", "Hi"))

    answer, pieces = await ask(bench.fallback)

    assert (answer.text, pieces) == ("Hi", ["Hi"])
    assert isinstance(pieces, Pieces)
    assert pieces.restarts == len(bench.models[0].asked)


async def test_what_cannot_be_taken_back_is_not_followed_by_another_answer() -> None:
    bench = Bench(Moody("main", BrokenAnswer("cut"), says="Hel"), Moody("spare", "Hi"))
    shown: list[str] = []

    with pytest.raises(BrokenAnswer):
        await bench.fallback.answer(
            ModelRequest(system="", entries=(Said(text="Hi"),)), on_text=shown.append
        )

    assert shown == ["Hel"]
    assert bench.counts() == [1, 0]


async def test_a_model_that_hangs_after_its_first_trouble_is_left_for_the_next() -> None:
    main = Moody("main", Overloaded("busy"), None)
    bench = Bench(main, Moody("spare", "Hi"), first_after_s=0.1)

    answered = await asyncio.wait_for(bench.ask(), 10)

    assert answered == "spare"
    assert main.cancelled == 1
    assert bench.fallback.resting()[0].why == "busy"


async def test_the_last_model_is_not_left_when_it_is_slow() -> None:
    slow = Moody("slow", Overloaded("busy"), None)
    bench = Bench(slow, first_after_s=0.05)

    task = asyncio.ensure_future(bench.ask())
    await asyncio.sleep(0.3)
    alive = not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert alive


async def test_cancelling_is_passed_on_and_makes_no_model_rest() -> None:
    main = Moody("main", None)
    bench = Bench(main, Moody("spare", "Hi"))

    task = asyncio.ensure_future(bench.ask())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert main.cancelled == 1
    assert bench.counts() == [1, 0]
    assert bench.fallback.resting() == []


@pytest.mark.case("CO-05")
@pytest.mark.parametrize("trouble", ["429", "500", "reset", "refused"])
async def test_requests_at_the_servers_are_counted(server: ModelServer, trouble: str) -> None:
    match trouble:
        case "429":
            server.replies(429, {"error": {"message": "slow"}}, {"Retry-After": "25"})
        case "500":
            server.replies(500, {"error": {"message": "broken"}})
        case "reset":
            server.says(delta(content="Hel"), done=False, then="reset")
    base = "http://127.0.0.1:9/v1" if trouble == "refused" else server.api_base
    async with serving() as well:
        well.says(delta(content="Hi"), delta("stop"))
        async with (
            OpenAICompatible("main", api_base=base) as main,
            OpenAICompatible("spare", api_base=well.api_base) as spare,
        ):
            fallback = ModelChain([main, spare], clock=QuickClock(), chance=Random(1))

            answers = [await ask(fallback) for _ in range(5)]

    assert [answer.model for answer, _ in answers] == ["spare"] * 5
    assert all("".join(pieces) == "Hi" for _, pieces in answers)
    assert len(well.asked) == 5
    assert len(server.asked) <= (1 if trouble == "429" else 4)


@pytest.mark.case("CO-05")
async def test_a_refused_connection_is_given_up_in_time() -> None:
    clock = QuickClock()

    async with OpenAICompatible("m", api_base="http://127.0.0.1:9/v1") as model:
        with pytest.raises(Overloaded):
            await ask(ModelChain([model], clock=clock, chance=Random(1)))

    assert clock.passed <= 60
