"""llmock (PyPI, MIT) grades both model clients as the bot uses them: behind `fallback.ModelChain`.

It sees each attempt and its time: whether a pause that was asked for was kept, whether a client
asks again where that is hopeless, too often or without a pause, and whether it takes half an
answer for a whole one. Its warnings count as failures here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock

from agent.models.client import CallLimits
from agent.models.fallback import ModelChain
from agent.models.litellm import LiteLLM
from agent.models.openai_compatible import OpenAICompatible
from memory.records.errors import (
    AuthRefused,
    BrokenAnswer,
    ContextTooLong,
    ModelRefused,
    ModelTimeout,
    Overloaded,
    Permanent,
    RateLimited,
    Temporary,
)
from memory.records.ports import Model
from memory.records.transcript import Answered
from tests.agent.models.asking import ask

pytestmark = [
    # litellm's own, in what it does with each chunk that holds usage.
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

LIMITS = CallLimits(timeout_s=5, stall_timeout_s=0.5)
SAID = "The kettle sings, the cat listens, and the evening comes in by the open window."


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """A client, and the part of llmock that speaks its provider's language."""

    name: str
    speaks: str
    path: str = ""

    def opened(self, llmock: LLMock, limits: CallLimits) -> AbstractAsyncContextManager[Model]:
        address = f"{llmock.base_url(self.speaks)}{self.path}"
        if self.name == "direct":
            return OpenAICompatible("graded", api_base=address, api_key="sk-graded", limits=limits)
        return LiteLLM(self.name, api_base=address, api_key="sk-graded", limits=limits)


GRADED = [
    Graded(name="direct", speaks="openai"),
    Graded(name="openai/graded", speaks="openai"),
]
PROVIDERS = [
    Graded(name="anthropic/claude-haiku-4-5", speaks="anthropic"),
    Graded(name="gemini/gemini-2.5-flash", speaks="gemini", path="/v1beta"),
    Graded(name="mistral/mistral-small", speaks="mistral"),
    Graded(name="groq/openai/gpt-oss-120b", speaks="groq"),
    Graded(name="xai/grok-4", speaks="xai"),
]


Fault = Callable[[LLMock], Any]

PASSING: dict[str, tuple[Fault, int]] = {
    "two rate limits": (lambda one: one.rate_limit(times=2, retry_after=0.3), 3),
    "a rate limit": (lambda one: one.rate_limit(retry_after=0.4), 2),
    "overloaded": (lambda one: one.fail(503), 2),
    "500 twice": (lambda one: one.fail(500, times=2), 3),
    "529": (lambda one: one.fail(529), 2),
    "408": (lambda one: one.fail(408), 2),
    "disconnected": (lambda one: one.disconnect(after_chunks=6), 2),
    "disconnected at once": (lambda one: one.disconnect(after_chunks=0), 2),
    "cut short": (lambda one: one.truncate(after_chunks=6), 2),
    "cut short at once": (lambda one: one.truncate(after_chunks=0), 2),
    # Slow enough that the judge can see who stops reading.
    "malformed": (lambda one: one.pace(15).corrupt(after_chunks=6), 2),
    "stalled": (lambda one: one.stall(after_chunks=6, seconds=30), 2),
    "a slow first word": (lambda one: one.slow_first_token(0.8), 1),
}
"""Faults that pass, and how many requests the answer then costs."""

AT_PROVIDERS = (
    "two rate limits",
    "overloaded",
    "disconnected",
    "cut short",
    "malformed",
    "stalled",
)

LASTING: dict[str, tuple[Fault, type[Exception], int]] = {
    "400": (lambda one: one.fail(400), ModelRefused, 1),
    "401": (lambda one: one.fail(401), AuthRefused, 1),
    "403": (lambda one: one.fail(403), AuthRefused, 1),
    "404": (lambda one: one.fail(404), ModelRefused, 1),
    "422": (lambda one: one.fail(422), ModelRefused, 1),
    "too long": (lambda one: one.context_overflow(), ContextTooLong, 1),
    "an outage": (lambda one: one.outage(status=500), Overloaded, 4),
    "a pause of minutes": (lambda one: one.rate_limit(retry_after=120), RateLimited, 1),
}
"""Faults that do not pass, what they are called, and how many requests that costs."""


class SteadyChance(Random):
    """Jitter that is always the same part of its range: llmock takes one that happens to shrink
    from pause to pause for a missing backoff."""

    def uniform(self, a: float, b: float) -> float:
        return a + (b - a) * 0.6


class RealClock:
    """The real time, for the judge looks at it. Pauses that no server asked for may be shorter."""

    def __init__(self, hurry: float = 1) -> None:
        self._hurry = hurry

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._hurry)


async def asked(
    graded: Graded, llmock: LLMock, *, limits: CallLimits = LIMITS, hurry: float = 1
) -> Answered:
    """One answer, as the bot would get it."""
    async with graded.opened(llmock, limits) as model:
        patient = ModelChain([model], clock=RealClock(hurry), chance=SteadyChance())
        answer, pieces = await ask(patient)
    assert "".join(pieces) == answer.text
    return answer


@pytest.fixture(autouse=True)
async def warmed(llmock: LLMock) -> None:
    """litellm takes seconds to load, which no call here has: one goes before."""
    async with Graded(name="openai/graded", speaks="openai").opened(llmock, CallLimits()) as model:
        await ask(model)
    llmock.reset().reply(SAID)


def name_of(graded: Graded) -> str:
    return graded.name


def table(clients: list[Graded], faults: Iterable[str]) -> pytest.MarkDecorator:
    """Each client with each fault."""
    return pytest.mark.parametrize(
        ("graded", "fault"),
        [
            pytest.param(graded, fault, id=f"{graded.name}-{fault}")
            for graded in clients
            for fault in faults
        ],
    )


@table(GRADED, PASSING)
async def test_a_fault_that_passes_costs_no_more_than_it_must(
    llmock: LLMock, graded: Graded, fault: str
) -> None:
    act, requests = PASSING[fault]
    act(llmock)

    answer = await asked(graded, llmock)

    assert answer.text.strip()
    assert answer.finish == "stop"
    llmock.assert_resilient(strict=True)
    assert len(llmock.requests) == requests


@table(PROVIDERS, AT_PROVIDERS)
async def test_a_fault_that_passes_is_as_cheap_in_the_language_of_a_provider(
    llmock: LLMock, graded: Graded, fault: str
) -> None:
    act, requests = PASSING[fault]
    act(llmock)

    answer = await asked(graded, llmock)

    assert answer.text.strip()
    llmock.assert_resilient(strict=True)
    assert len(llmock.requests) == requests


@table(GRADED, LASTING)
async def test_a_fault_that_lasts_is_given_up_as_what_it_is(
    llmock: LLMock, graded: Graded, fault: str
) -> None:
    act, kind, requests = LASTING[fault]
    act(llmock)

    with pytest.raises(kind) as caught:
        await asked(graded, llmock, hurry=5)

    assert isinstance(caught.value, Temporary if requests > 1 else Temporary | Permanent)
    llmock.assert_resilient()
    assert len(llmock.requests) == requests


@pytest.mark.parametrize("graded", GRADED, ids=name_of)
async def test_a_stream_that_stalls_for_ever_is_left_within_the_limit(
    llmock: LLMock, graded: Graded
) -> None:
    llmock.stall(after_chunks=4, seconds=30, times=None)
    limits = CallLimits(timeout_s=2, stall_timeout_s=0.3)

    with pytest.raises(ModelTimeout):
        await asked(graded, llmock, limits=limits, hurry=5)

    llmock.assert_resilient(strict=True)
    assert len(llmock.requests) == 4
    assert max(one.stall_waited or 0 for one in llmock.requests) < 1


async def test_the_judge_itself_sees_what_a_careless_client_does(llmock: LLMock) -> None:
    """Else a good grade would mean nothing."""
    llmock.truncate(after_chunks=3)
    graded = Graded(name="direct", speaks="openai")

    with pytest.raises(BrokenAnswer):
        async with graded.opened(llmock, LIMITS) as bare:
            await ask(bare)

    with pytest.raises(AssertionError, match="truncated_stream_accepted"):
        llmock.assert_resilient()
