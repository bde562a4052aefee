"""What every client of a model server promises, whatever library is below it.

Not collected by itself: a test module that imports these tests says by its fixture `open_model`
over which clients they run. The tests of the direct client that hold for all are among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

import pytest

from agent.models.client import CallLimits
from agent.models.fallback import ModelChain
from memory.records.errors import (
    AuthRefused,
    BillingRefused,
    BrokenAnswer,
    ContentFiltered,
    ContextTooLong,
    ModelRefused,
    ModelTimeout,
    Overloaded,
    RateLimited,
    SettingsWrong,
    Temporary,
)
from memory.records.ports import Model
from memory.records.request import ModelRequest
from memory.records.transcript import Answered, Note, Said, ToolCall, ToolResult
from tests.agent.models.asking import Pieces, ask
from tests.agent.models.clock import QuickClock
from tests.agent.models.conftest import KEY
from tests.agent.models.server import ModelServer, call, delta

# These are the same for all.
from tests.agent.models.test_openai_compatible import (  # noqa: F401
    SLOW,
    test_a_call_cut_by_the_output_limit_is_told_as_such,
    test_a_call_in_pieces_is_put_together,
    test_a_doubled_id_is_told_apart,
    test_a_finish_reason_without_done_is_an_end_also_when_the_connection_breaks,
    test_a_page_that_is_no_answer_is_a_broken_answer,
    test_a_piece_is_passed_on_before_the_answer_is_whole,
    test_a_reset_in_the_stream_is_a_broken_answer_after_what_was_streamed,
    test_a_server_that_lingers_after_done_does_not_hold_the_answer,
    test_an_error_inside_the_stream_has_its_class,
    test_cancelling_closes_the_connection,
    test_closing_the_model_ends_a_running_call_with_a_model_error,
    test_done_without_any_chunk_is_a_broken_answer,
    test_equal_requests_are_equal_bytes,
    test_finish_reasons_are_four,
    test_parallel_calls_may_come_interleaved,
    test_pieces_come_in_order_with_usage,
    test_usage_may_be_missing,
    test_what_cannot_be_read_is_a_broken_answer,
    test_what_is_asked_streams_with_usage_and_carries_the_key,
)

OpenModel = Callable[..., AbstractAsyncContextManager[Model]]
"""Called with `api_base`, and `api_key` and `limits` where a test has some of its own."""


@pytest.mark.case("AG-05")
@pytest.mark.parametrize(
    "fields",
    [
        {"content": ""},
        {"content": None},
        {"content": "   \n"},
        {"content": None, "reasoning_content": "thinking..."},
        {"content": None, "reasoning": "thinking..."},
    ],
)
async def test_an_answer_that_is_empty_and_ends_is_returned_as_it_is(
    server: ModelServer, model: Model, fields: dict[str, Any]
) -> None:
    server.says(delta(**fields), delta("stop"))

    answer, pieces = await ask(model)

    assert answer.text.strip() == ""
    assert "".join(pieces) == answer.text
    assert (answer.finish, answer.calls) == ("stop", ())


async def test_an_answer_may_repeat_itself(server: ModelServer, model: Model) -> None:
    server.says(*(delta(content=" 0.0") for _ in range(300)), delta("stop"))

    answer, _ = await ask(model)

    assert answer.text == " 0.0" * 300


@pytest.mark.parametrize(
    "pieces",
    [
        [[call(0, id="a", name="f", args="{}"), call(0, id="b", name="f", args="{}")]],
        [
            [call(0, id="a", name="f", args="{")],
            [call(0, id="a", name="f", args="}")],
            [call(1, id="b", name="f", args="{}")],
        ],
        [
            [call(0, id="a", name="f")],
            [call(1, id="b", name="f")],
            [call(1, args="{}"), call(0, args="{}")],
        ],
    ],
    ids=["all numbered 0", "name repeated", "interleaved"],
)
async def test_two_calls_are_read_however_they_come(
    server: ModelServer, model: Model, pieces: list[list[dict[str, Any]]]
) -> None:
    server.says(*(delta(tool_calls=piece) for piece in pieces), delta("tool_calls"))

    answer, _ = await ask(model)

    assert answer.finish == "tool_calls"
    assert [(one.id, one.name, one.arguments) for one in answer.calls] == [
        ("a", "f", "{}"),
        ("b", "f", "{}"),
    ]


async def test_a_history_with_calls_is_sent_in_order(server: ModelServer, model: Model) -> None:
    server.says(delta("stop", content="x"))
    entries = (
        Said(text="What is in notes.md?"),
        Answered(text="", calls=(ToolCall(id="c1", name="read_file", arguments='{"path":"n"}'),)),
        ToolResult(call_id="c1", content="- milk"),
        Note(text="The person edited the message"),
    )

    await model.answer(ModelRequest(system="You are kind.", entries=entries), on_text=Pieces())

    sent = server.asked[0]["messages"]
    assert [one["role"] for one in sent] == ["system", "user", "assistant", "tool", "user"]
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == '{"path":"n"}'
    assert sent[3] == {"role": "tool", "tool_call_id": "c1", "content": "- milk"}


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "too long", "context_length_exceeded", ContextTooLong),
        (400, "This model's maximum context length is 8192 tokens.", None, ContextTooLong),
        (413, "Payload too large", None, ContextTooLong),
        (400, "The response was filtered", "content_filter", ContentFiltered),
        (400, "Unknown parameter", "unknown_parameter", ModelRefused),
        (401, "Incorrect API key provided", "invalid_api_key", AuthRefused),
        (402, "This request requires more credits", 402, BillingRefused),
        (403, "forbidden", None, AuthRefused),
        (404, "The model `x` does not exist", "model_not_found", ModelRefused),
        (408, "Request timed out", None, ModelTimeout),
        (429, "Rate limit reached", "rate_limit_exceeded", RateLimited),
        (429, "You exceeded your current quota", "insufficient_quota", BillingRefused),
        (500, "The server had an error", None, Overloaded),
        (502, "Bad gateway", None, Overloaded),
        (503, "overloaded", None, Overloaded),
        (529, "Overloaded", "overloaded_error", Overloaded),
    ],
)
async def test_a_refusal_has_its_class_and_costs_one_request(
    server: ModelServer,
    model: Model,
    status: int,
    message: str,
    code: Any,
    kind: type[Exception],
) -> None:
    server.replies(status, {"error": {"message": f"{message} ({KEY})", "code": code}})

    with pytest.raises(kind, match=rf"127\.0\.0\.1:\d+ \(HTTP {status}\)") as caught:
        await ask(model)

    assert type(caught.value) is kind
    assert message in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.asked) == 1


async def test_a_page_instead_of_an_error_is_quoted_as_text(
    server: ModelServer, model: Model
) -> None:
    server.replies(502, "<html><h1>Bad gateway</h1></html>")

    with pytest.raises(Overloaded, match='"Bad gateway"'):
        await ask(model)


@pytest.mark.parametrize(
    ("headers", "message", "pause"),
    [
        ({"Retry-After": "7"}, "slow down", 7.0),
        ({"retry-after-ms": "1500"}, "slow down", 1.5),
        ({}, "Please try again in 2m3.5s.", 123.5),
        ({}, "slow down", None),
    ],
)
async def test_the_pause_that_a_server_asks_for_is_known(
    server: ModelServer, model: Model, headers: dict[str, str], message: str, pause: float | None
) -> None:
    server.replies(429, {"error": {"message": message, "code": "rate_limit_exceeded"}}, headers)

    with pytest.raises(RateLimited) as caught:
        await ask(model)

    assert caught.value.retry_after_s == pause


async def test_a_redirection_is_not_followed(server: ModelServer, model: Model) -> None:
    server.replies(307, "", {"Location": "/v1/chat/completions?again"})

    with pytest.raises(ModelRefused, match="points to another address"):
        await ask(model)

    assert len(server.asked) == 1


# --- limits, and the connection --------------------------------------------------------------


@pytest.mark.parametrize("pieces", [[], [delta(content="Hel")]])
async def test_silence_is_a_timeout_and_the_connection_is_closed(
    server: ModelServer, open_model: OpenModel, pieces: list[dict[str, Any]]
) -> None:
    server.says(*pieces, then="hang", done=False)
    limits = CallLimits(stall_timeout_s=0.2, timeout_s=1.0)

    async with open_model(api_base=server.api_base, limits=limits) as model:
        with pytest.raises(ModelTimeout, match=r"127\.0\.0\.1"):
            await ask(model)

        await asyncio.wait_for(server.left.wait(), SLOW)


async def test_no_call_is_longer_than_its_limit(server: ModelServer, open_model: OpenModel) -> None:
    server.says(delta(content="Hel"), then="hang", done=False)
    limits = CallLimits(stall_timeout_s=60, timeout_s=0.3)

    async with open_model(api_base=server.api_base, limits=limits) as model:
        with pytest.raises(ModelTimeout, match="in time"):
            await ask(model)


async def test_a_server_that_is_not_there_cannot_be_reached(open_model: OpenModel) -> None:
    async with open_model(api_base="http://127.0.0.1:9/v1") as model:
        with pytest.raises(Overloaded, match=r"127\.0\.0\.1:9 cannot be reached"):
            await ask(model)


async def test_a_connection_that_breaks_before_the_answer_is_temporary(
    server: ModelServer, model: Model
) -> None:
    server.streams(then="reset")

    with pytest.raises(Temporary):
        await ask(model)

    assert len(server.asked) == 1


async def test_many_answers_at_once_do_not_mix(server: ModelServer, model: Model) -> None:
    for _ in range(10):
        server.says(delta(content="a"), delta(content="b"), delta("stop"))

    answers = await asyncio.gather(*(ask(model) for _ in range(10)))

    assert [(answer.text, pieces) for answer, pieces in answers] == [("ab", ["a", "b"])] * 10


async def test_a_closed_model_may_be_closed_again_and_answers_no_more(
    server: ModelServer, open_model: OpenModel
) -> None:
    server.says(delta("stop", content="x"))

    async with open_model(api_base=server.api_base) as model:
        await ask(model)
    async with open_model(api_base=server.api_base) as other:
        answer, _ = await ask(other)

    assert answer.text == "x"
    with pytest.raises(Overloaded, match="closed"):
        await ask(model)


@pytest.mark.case("CO-05")
@pytest.mark.parametrize("status", [429, 500])
async def test_only_the_layer_for_retries_tries_again(
    server: ModelServer, model: Model, status: int
) -> None:
    server.replies(status, {"error": {"message": "no"}}, {"Retry-After": "20"})
    clock = QuickClock()

    with pytest.raises(Temporary):
        await ask(ModelChain([model], clock=clock, chance=Random(1), attempts_max=3))

    assert len(server.asked) <= 3
    assert all(pause >= 20 for pause in clock.pauses)


# --- settings --------------------------------------------------------------------------------


@pytest.mark.parametrize("api_base", ["api.openai.com/v1", "ftp://x/v1", "http:///v1"])
async def test_an_address_that_cannot_be_one_is_refused_at_once(
    open_model: OpenModel, api_base: str
) -> None:
    with pytest.raises(SettingsWrong, match="api_base"):
        open_model(api_base=api_base)


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "sk-…"])
async def test_a_key_that_no_server_would_take_is_refused_without_naming_it(
    open_model: OpenModel, key: str
) -> None:
    with pytest.raises(SettingsWrong, match="api_key") as caught:
        open_model(api_base="http://m.test/v1", api_key=key)

    assert key not in str(caught.value)


async def test_a_broken_answer_names_the_server_and_no_key(
    server: ModelServer, model: Model
) -> None:
    server.says(delta(content="Hel"), f'{{"choices": [{{"{KEY}', done=False)

    with pytest.raises(BrokenAnswer) as caught:
        await ask(model)

    assert KEY not in str(caught.value)
