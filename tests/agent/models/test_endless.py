"""A server whose answer never ends: it is hung up on, and what came is an answer that was cut."""

from __future__ import annotations

import asyncio
import itertools
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from agent.models.client import CallLimits
from agent.models.litellm import LiteLLM
from agent.models.openai_compatible import OpenAICompatible
from agent.models.wire import BYTES_A_TOKEN, RAW_BYTES_A_TOKEN
from memory.records.errors import BrokenAnswer
from memory.records.ports import Model
from tests.agent.models.asking import ask
from tests.agent.models.server import ModelServer, call, delta, events

pytestmark = pytest.mark.filterwarnings(
    # litellm's own, in what it does with each chunk that holds usage.
    "ignore:Accessing the 'model_:DeprecationWarning"
)

LIMITS = CallLimits(timeout_s=60, stall_timeout_s=60)
TOKENS = 200
KEPT = TOKENS * BYTES_A_TOKEN

Chunk = Callable[[int], dict[str, Any]]

ENDLESS: dict[str, Chunk] = {
    "text": lambda n: delta(content=f"word {n} "),
    "thought": lambda n: delta(reasoning_content=f"thinking {n} "),
    "arguments": lambda n: delta(
        tool_calls=[call(0, id="c", name="look" * (n == 0), args="[" * 9)]
    ),
    "calls": lambda n: delta(tool_calls=[call(n, id=f"c{n}", name="look", args="{}")]),
}


@pytest.fixture(params=["direct", "litellm"])
async def client(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[Model]:
    direct = request.param == "direct"
    made = (
        OpenAICompatible("m", api_base=server.api_base, limits=LIMITS)
        if direct
        else LiteLLM("openai/m", api_base=server.api_base, api_key="a-key", limits=LIMITS)
    )
    async with made as opened:
        yield opened


def never_ends(server: ModelServer, piece: Callable[[int], bytes]) -> list[int]:
    """Sends pieces until it is hung up on; the last number is how many bytes went out."""
    sent = [0]

    async def script(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            for n in itertools.count():
                one = piece(n)
                await response.write(one)
                sent[0] += len(one)
                await asyncio.sleep(0)
        finally:
            server.left.set()
        return response

    server.scripts.append(script)
    return sent


@pytest.mark.parametrize("kind", ENDLESS)
async def test_an_answer_that_never_ends_is_closed_and_kept_as_one_that_was_cut(
    server: ModelServer, client: Model, kind: str
) -> None:
    never_ends(server, lambda n: events(ENDLESS[kind](n), done=False)[0])

    answer, pieces = await ask(client, max_output_tokens=TOKENS)
    await asyncio.wait_for(server.left.wait(), 60)

    assert answer.finish == "length"
    assert "".join(pieces) == answer.text
    kept = answer.text + "".join(f"{one.id}{one.name}{one.arguments}" for one in answer.calls)
    assert len(kept) <= KEPT
    assert bool(answer.text) == (kind == "text")
    assert bool(answer.calls) == (kind in {"arguments", "calls"})
    assert len(server.asked) == 1


async def test_a_stream_without_words_is_hung_up_on(server: ModelServer) -> None:
    sent = never_ends(server, lambda n: b": still at it" + b"." * 5_000 + b"\n\n")

    async with OpenAICompatible("m", api_base=server.api_base, limits=LIMITS) as direct:
        with pytest.raises(BrokenAnswer):
            await ask(direct, max_output_tokens=TOKENS)
    await asyncio.wait_for(server.left.wait(), 60)

    assert sent[0] < 30 * TOKENS * RAW_BYTES_A_TOKEN, "what the sockets held is left over"


async def test_one_event_with_more_than_was_asked_for_is_cut(server: ModelServer) -> None:
    server.says(delta(content="ä" * 100_000), delta("stop"))

    async with OpenAICompatible("m", api_base=server.api_base, limits=LIMITS) as direct:
        answer, _ = await ask(direct, max_output_tokens=TOKENS)

    assert answer.text == "ä" * (KEPT // 2)
    assert answer.finish == "length"


async def test_a_whole_answer_with_more_than_was_asked_for_is_cut(server: ModelServer) -> None:
    message = {"role": "assistant", "content": "x" * 1_000_000}
    server.replies(200, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}))

    async with OpenAICompatible("m", api_base=server.api_base, limits=LIMITS) as direct:
        answer, _ = await ask(direct, max_output_tokens=TOKENS)

    assert (len(answer.text), answer.finish) == (KEPT, "length")


async def test_what_is_held_of_an_endless_thought_does_not_grow(server: ModelServer) -> None:
    never_ends(server, lambda n: events(delta(reasoning_content="hm " * 1_000), done=False)[0])

    async with OpenAICompatible("m", api_base=server.api_base, limits=LIMITS) as direct:
        tracemalloc.start()
        answer, _ = await ask(direct, max_output_tokens=TOKENS)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert (answer.text, answer.finish) == ("", "length")
    assert peak < 10_000_000
