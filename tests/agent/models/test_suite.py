"""What every Model promises, run over each implementation: the client, patient, and the real
embedded model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from agent.models.embedded import Embedded
from agent.models.fallback import ModelChain
from agent.models.openai_compatible import OpenAICompatible
from memory.records.ports import Model
from memory.records.request import ModelTraits
from tests.agent.models.asking import Pieces, ask, request
from tests.agent.models.clock import QuickClock
from tests.agent.models.server import ModelServer, delta


@pytest.fixture(params=["direct", "patient", "embedded"])
async def any_model(
    request: pytest.FixtureRequest, server: ModelServer, model: OpenAICompatible
) -> AsyncIterator[Model]:
    if request.param == "embedded":
        pytest.importorskip("xllamacpp")
        async with Embedded() as embedded:
            yield embedded
        return
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    server.says(delta(content="Hel"), delta(content="lo."), delta("stop"), usage)
    yield (
        model
        if request.param == "direct"
        else ModelChain([model], clock=QuickClock(), chance=Random(1))
    )


async def test_it_has_a_name_and_traits(any_model: Model) -> None:
    assert any_model.name
    assert isinstance(any_model.traits, ModelTraits)


async def test_hello_is_answered_with_text_under_its_name(any_model: Model) -> None:
    answer, _ = await ask(any_model, max_output_tokens=40)

    assert answer.text.strip()
    assert answer.model == any_model.name
    assert answer.finish in ("stop", "length")
    assert not answer.calls
    assert answer.usage.prompt > 0
    assert answer.usage.completion > 0


async def test_the_pieces_join_to_the_whole(any_model: Model) -> None:
    answer, pieces = await ask(any_model, max_output_tokens=40)

    assert "".join(pieces) == answer.text
    assert all(pieces)
    assert len(pieces) > 1


async def test_many_calls_at_once_are_all_answered(any_model: Model) -> None:
    answers = await asyncio.gather(*(ask(any_model, max_output_tokens=8) for _ in range(3)))

    assert all(answer.text for answer, _ in answers)


async def test_a_cancelled_call_ends_as_cancelled_and_the_next_one_works(any_model: Model) -> None:
    begun = asyncio.Event()

    def stop_at(_: str) -> None:
        begun.set()
        task.cancel()

    task = asyncio.ensure_future(any_model.answer(request("Tell me a story"), on_text=stop_at))
    with pytest.raises(asyncio.CancelledError):
        await task
    answer, _ = await ask(any_model, max_output_tokens=8)

    assert begun.is_set()
    assert answer.text


async def test_two_equal_requests_are_two_answers(any_model: Model) -> None:
    pieces = Pieces()

    first = await any_model.answer(request(max_output_tokens=8), on_text=pieces)
    second = await any_model.answer(request(max_output_tokens=8), on_text=pieces)

    assert "".join(pieces) == first.text + second.text
