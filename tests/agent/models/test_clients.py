"""What every client of a model server promises, whatever library is below it: the direct one and
that through litellm, against a loopback server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

import pytest

from agent.models.client import CallLimits
from agent.models.fallback import ModelChain
from agent.models.litellm import LiteLLM
from agent.models.openai_compatible import OpenAICompatible
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
from memory.records.transcript import (
    Answered,
    ModelRequest,
    Note,
    Said,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.agent.models.asking import Pieces, ask, request
from tests.agent.models.clock import QuickClock
from tests.agent.models.conftest import KEY
from tests.agent.models.server import ModelServer, call, delta, serving

pytestmark = pytest.mark.filterwarnings(
    # litellm's own, in what it does with each chunk that holds usage.
    "ignore:Accessing the 'model_:DeprecationWarning"
)

LIMITS = CallLimits(timeout_s=20, stall_timeout_s=10)
SLOW = 5.0
AT = '{"at": "é"}'
OpenModel = Callable[..., AbstractAsyncContextManager[Model]]


@pytest.fixture(params=["direct", "litellm"])
def open_model(request: pytest.FixtureRequest) -> OpenModel:
    def opened(*, api_base: str, api_key: str = KEY, limits: CallLimits = LIMITS) -> Any:
        if request.param == "direct":
            return OpenAICompatible("test-model", api_base=api_base, api_key=api_key, limits=limits)
        return LiteLLM("openai/test-model", api_base=api_base, api_key=api_key, limits=limits)

    return opened


@pytest.fixture
async def model(server: ModelServer, open_model: OpenModel) -> AsyncIterator[Model]:
    async with open_model(api_base=server.api_base) as client:
        yield client


async def begun(model: Model) -> asyncio.Task[Answered]:
    """A call of which the first piece has come."""
    came = asyncio.Event()
    task = asyncio.ensure_future(model.answer(request(), on_text=lambda _: came.set()))
    await asyncio.wait_for(came.wait(), SLOW)
    return task


# --- answers ---------------------------------------------------------------------------------


async def test_pieces_come_in_order_with_usage_and_equal_requests_are_equal_bytes(
    server: ModelServer, model: Model
) -> None:
    cached = {"prompt_tokens_details": {"cached_tokens": 8}}
    server.says(
        delta(role="assistant", content=""),
        delta(content="Good "),
        delta(content="morning"),
        delta("stop"),
        {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, **cached}},
    )

    answer, pieces = await ask(model)
    await ask(model)

    assert pieces == ["Good ", "morning"]
    assert (answer.text, answer.finish) == ("Good morning", "stop")
    assert answer.usage == Usage(prompt=12, completion=3, cached=8)
    assert server.asked[0]["stream"] is True
    assert server.asked[0]["stream_options"] == {"include_usage": True}
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert server.bodies[0] == server.bodies[1]


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("stop", "stop"),
        ("tool_calls", "stop"),  # said so, but there are none
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "filter"),
    ],
)
async def test_finish_reasons_are_four_and_usage_may_be_missing(
    server: ModelServer, model: Model, said: str, finish: str
) -> None:
    server.says(delta(said, content="x"))

    answer, _ = await ask(model)

    assert (answer.finish, answer.usage) == (finish, Usage())


@pytest.mark.parametrize(("done", "then"), [(False, "reset"), (True, "hang")])
async def test_an_answer_is_over_with_its_end_whatever_the_connection_does(
    server: ModelServer, model: Model, done: bool, then: str
) -> None:
    server.says(delta("stop", content="x"), done=done, then=then)

    answer, _ = await asyncio.wait_for(ask(model), SLOW)

    assert answer.text == "x"


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
async def test_an_empty_answer_is_returned_as_it_is_and_reasoning_is_no_text(
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


async def test_many_answers_at_once_do_not_mix(server: ModelServer, model: Model) -> None:
    server.says(delta(content="a"), delta(content="b"), delta("stop"))

    answers = await asyncio.gather(*(ask(model) for _ in range(10)))

    assert [(answer.text, pieces) for answer, pieces in answers] == [("ab", ["a", "b"])] * 10


# --- tool calls ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        [[call(0, id="a", name="f", args=AT), call(0, id="b", name="f", args="{}")]],
        [
            [call(0, id="a", name="f", args='{"at":')],
            [call(0, id="a", name="f", args=' "é"}')],
            [call(1, id="b", name="f", args="{}")],
        ],
        [
            [call(0, id="a", name="f"), call(1, id="b", name="f", args="")],
            [call(1, args="{}"), call(0, args='{"at":')],
            [call(0, args=' "é"}')],
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
    assert answer.calls == (
        ToolCall(id="a", name="f", arguments=AT),
        ToolCall(id="b", name="f", arguments="{}"),
    )


async def test_a_doubled_id_is_told_apart(server: ModelServer, model: Model) -> None:
    same = [call(0, id="same", name="f", args="{}"), call(1, id="same", name="g", args="{}")]
    third = [call(2, id="same_2", name="h", args="{}")]
    server.says(delta(tool_calls=same), delta(tool_calls=third), delta("tool_calls"))

    answer, _ = await ask(model)

    assert [one.name for one in answer.calls] == ["f", "g", "h"]
    assert len({one.id for one in answer.calls}) == 3
    assert answer.calls[0].id == "same"


@pytest.mark.case("AG-01")
async def test_a_call_cut_by_the_output_limit_is_told_as_such(
    server: ModelServer, model: Model
) -> None:
    cut = '{"path": "notes.md", "content": "line 1\\nline 2'
    piece = call(id="c1", name="write_file", args=cut)
    server.says(delta(content="", tool_calls=[piece]), delta("length"))

    answer, _ = await ask(model)

    assert answer.finish == "length"
    assert answer.calls == (ToolCall(id="c1", name="write_file", arguments=cut),)


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


# --- broken answers and refusals --------------------------------------------------------------


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([delta(content="Hel")], id="cut"),
        pytest.param([], id="nothing"),
        pytest.param(["[DONE]"], id="an end alone"),
        pytest.param([delta(content="Hel"), f'{{"choices": [{{"{KEY}'], id="malformed JSON"),
        pytest.param(['"a string"'], id="no object"),
        pytest.param([delta("error", content="Hel")], id="broken off by the provider"),
    ],
)
async def test_what_cannot_be_read_is_a_broken_answer_that_names_no_key(
    server: ModelServer, model: Model, chunks: list[dict[str, Any] | str]
) -> None:
    server.says(*chunks, done=False)

    with pytest.raises(BrokenAnswer, match=r"127\.0\.0\.1") as caught:
        await ask(model)

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("body", ["<html>Sign in</html>", '{"choices": []}'])
async def test_a_page_that_is_no_answer_is_a_broken_answer(
    server: ModelServer, model: Model, body: str
) -> None:
    server.replies(200, body)

    with pytest.raises(BrokenAnswer):
        await ask(model)


async def test_a_reset_in_the_stream_is_a_broken_answer_after_what_was_streamed(
    server: ModelServer, model: Model
) -> None:
    server.says(delta(content="Hel"), done=False, then="reset")
    pieces = Pieces()

    with pytest.raises(BrokenAnswer):
        await model.answer(request(), on_text=pieces)

    assert pieces == ["Hel"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "slow down"}, RateLimited),
        ({"type": "overloaded_error", "message": "busy"}, Overloaded),
        ({"message": "The server had an error"}, Overloaded),
        ({"code": "context_length_exceeded", "message": "too long"}, ContextTooLong),
        ("something went wrong", Overloaded),
    ],
)
async def test_an_error_inside_the_stream_has_its_class(
    server: ModelServer, model: Model, error: Any, kind: type[Exception]
) -> None:
    server.says(delta(content="Hel"), {"error": error}, done=False)

    with pytest.raises(kind, match=r"127\.0\.0\.1"):
        await ask(model)


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "too long", "context_length_exceeded", ContextTooLong),
        (413, "Payload too large", None, ContextTooLong),
        (400, "The response was filtered", "content_filter", ContentFiltered),
        (400, "Unknown parameter", "unknown_parameter", ModelRefused),
        (401, "Incorrect API key provided", "invalid_api_key", AuthRefused),
        (402, "This request requires more credits", 402, BillingRefused),
        (404, "The model `x` does not exist", "model_not_found", ModelRefused),
        (408, "Request timed out", None, ModelTimeout),
        (429, "Rate limit reached", "rate_limit_exceeded", RateLimited),
        (429, "You exceeded your current quota", "insufficient_quota", BillingRefused),
        (500, "The server had an error", None, Overloaded),
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
    assert "[key]" in str(caught.value)
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


async def test_a_redirection_is_not_followed_so_that_the_key_stays_here(
    server: ModelServer, model: Model
) -> None:
    async with serving() as elsewhere:
        elsewhere.says(delta("stop", content="stolen"))
        server.replies(307, "", {"Location": f"{elsewhere.api_base}/chat/completions"})

        with pytest.raises(ModelRefused, match="points to another address"):
            await ask(model)

        assert elsewhere.asked == []


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


# --- limits, and the connection --------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "limits", "words"),
    [
        ([], CallLimits(stall_timeout_s=0.2, timeout_s=0.5), "in time"),
        ([delta(content="Hel")], CallLimits(stall_timeout_s=0.2, timeout_s=20), "in the middle"),
        ([delta(content="Hel")], CallLimits(stall_timeout_s=60, timeout_s=0.5), "in time"),
    ],
)
async def test_silence_is_a_timeout_and_the_connection_is_closed(
    server: ModelServer,
    open_model: OpenModel,
    pieces: list[dict[str, Any]],
    limits: CallLimits,
    words: str,
) -> None:
    server.says(*pieces, then="hang", done=False)

    async with open_model(api_base=server.api_base, limits=limits) as model:
        with pytest.raises(ModelTimeout, match=rf"127\.0\.0\.1.*{words}"):
            await ask(model)

        await asyncio.wait_for(server.left.wait(), SLOW)


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


async def test_cancelling_closes_the_connection(server: ModelServer, model: Model) -> None:
    server.says(delta(content="Hel"), then="hang", done=False)
    task = await begun(model)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await asyncio.wait_for(server.left.wait(), SLOW)


async def test_closing_the_model_ends_a_running_call_and_it_answers_no_more(
    server: ModelServer, open_model: OpenModel
) -> None:
    server.says(delta(content="Hel"), then="hang", done=False)
    async with open_model(api_base=server.api_base) as model:
        task = await begun(model)

    with pytest.raises(Temporary):
        await asyncio.wait_for(task, SLOW)
    with pytest.raises(Overloaded, match="closed"):
        await ask(model)
    server.scripts.clear()
    server.says(delta("stop", content="x"))
    async with open_model(api_base=server.api_base) as other:
        assert (await ask(other))[0].text == "x"


@pytest.mark.parametrize("api_base", ["api.openai.com/v1", "ftp://x/v1", "http:///v1"])
def test_an_address_that_cannot_be_one_is_refused_at_once(
    open_model: OpenModel, api_base: str
) -> None:
    with pytest.raises(SettingsWrong, match="api_base"):
        open_model(api_base=api_base)


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "sk-…"])
def test_a_key_that_no_server_would_take_is_refused_without_naming_it(
    open_model: OpenModel, key: str
) -> None:
    with pytest.raises(SettingsWrong, match="api_key") as caught:
        open_model(api_base="http://m.test/v1", api_key=key)

    assert key not in str(caught.value)
