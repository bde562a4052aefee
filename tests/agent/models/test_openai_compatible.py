"""The direct client against a loopback server: answers in all their shapes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agent.models.chat_request import Dialect
from agent.models.client import CallLimits
from agent.models.openai_compatible import OpenAICompatible
from memory.records.errors import (
    BrokenAnswer,
    ContextTooLong,
    ModelRefused,
    ModelTimeout,
    Overloaded,
    RateLimited,
    SettingsWrong,
    Temporary,
)
from memory.records.transcript import ToolCall, Usage
from tests.agent.models.asking import Pieces, ask, request
from tests.agent.models.server import ModelServer, call, delta, events

SLOW = 5.0


async def calls_of(
    server: ModelServer,
    model: OpenAICompatible,
    *pieces: list[dict[str, Any]],
    finish: str = "stop",
) -> tuple[ToolCall, ...]:
    server.says(*(delta(tool_calls=piece) for piece in pieces), delta(finish))
    answer, _ = await ask(model)
    assert answer.finish == "tool_calls"
    return answer.calls


# --- text ------------------------------------------------------------------------------------


async def test_pieces_come_in_order_with_usage(
    server: ModelServer, model: OpenAICompatible
) -> None:
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    server.says(
        delta(role="assistant", content=""),
        delta(content="Good "),
        delta(content="morning"),
        delta("stop"),
        {"choices": [], "usage": usage},
    )

    answer, pieces = await ask(model)

    assert pieces == ["Good ", "morning"]
    assert answer.text == "Good morning"
    assert answer.finish == "stop"
    assert answer.usage == Usage(prompt=12, completion=3, cached=8)


async def test_a_piece_is_passed_on_before_the_answer_is_whole(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says(delta(content="now"), then="hang", done=False)
    came = asyncio.Event()

    task = asyncio.ensure_future(model.answer(request(), on_text=lambda _: came.set()))
    await asyncio.wait_for(came.wait(), SLOW)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_is_asked_streams_with_usage_and_carries_the_key(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says(delta("stop", content="x"))

    await ask(model)

    assert server.asked[0]["stream"] is True
    assert server.asked[0]["stream_options"] == {"include_usage": True}
    assert server.headers[0]["Authorization"].startswith("Bearer sk-")


async def test_usage_may_be_missing(server: ModelServer, model: OpenAICompatible) -> None:
    server.says(delta("stop", content="x"))

    answer, _ = await ask(model)

    assert answer.usage == Usage()


async def test_a_whole_json_answer_to_a_stream_request_is_taken(
    server: ModelServer, model: OpenAICompatible
) -> None:
    pieces = [call(None, id="a", name="f", args="{}"), call(None, name="f", args={"x": 1})]
    message = {"role": "assistant", "content": "Hi", "tool_calls": pieces}
    server.replies(200, {"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    answer, shown = await ask(model)

    assert (answer.text, shown, answer.finish) == ("Hi", ["Hi"], "tool_calls")
    assert [one.arguments for one in answer.calls] == ["{}", '{"x":1}']


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
@pytest.mark.parametrize("whole", [True, False])
async def test_an_empty_answer_is_returned_as_it_is_and_reasoning_is_no_text(
    server: ModelServer, model: OpenAICompatible, fields: dict[str, Any], whole: bool
) -> None:
    if whole:
        server.replies(200, {"choices": [{"message": fields, "finish_reason": "stop"}]})
    else:
        server.says(delta(**fields), delta("stop"))

    answer, pieces = await ask(model)

    assert answer.text.strip() == ""
    assert "".join(pieces) == answer.text
    assert (answer.finish, answer.calls) == ("stop", ())


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("tool_calls", "stop"),  # said so, but there are none
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "filter"),
    ],
)
async def test_finish_reasons_are_four(
    server: ModelServer, model: OpenAICompatible, said: str, finish: str
) -> None:
    server.says(delta(said, content="x"))

    answer, _ = await ask(model)

    assert answer.finish == finish


async def test_done_without_a_finish_reason_is_an_end(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says(delta(content="x"))

    answer, _ = await ask(model)

    assert answer.finish == "stop"


async def test_a_finish_reason_without_done_is_an_end_also_when_the_connection_breaks(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says(delta("stop", content="x"), done=False, then="reset")

    answer, _ = await ask(model)

    assert answer.text == "x"


async def test_a_server_that_lingers_after_done_does_not_hold_the_answer(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says(delta("stop", content="x"), then="hang")

    answer, _ = await asyncio.wait_for(ask(model), SLOW)

    assert answer.text == "x"


async def test_chunks_without_a_blank_line_between_them_are_read(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.streams(b"".join(events(delta(content="a"), delta("stop"))).replace(b"\n\n", b"\n", 1))

    answer, _ = await ask(model)

    assert answer.text == "a"


# --- tool calls ------------------------------------------------------------------------------


async def test_a_call_in_pieces_is_put_together(
    server: ModelServer, model: OpenAICompatible
) -> None:
    calls = await calls_of(
        server,
        model,
        [call(id="c1", name="look", args="")],
        [call(args='{"at":')],
        [call(args=' "é"}')],
        finish="tool_calls",
    )

    assert calls == (ToolCall(id="c1", name="look", arguments='{"at": "é"}'),)


async def test_parallel_calls_may_come_interleaved(
    server: ModelServer, model: OpenAICompatible
) -> None:
    calls = await calls_of(
        server,
        model,
        [call(0, id="a", name="f"), call(1, id="b", name="g")],
        [call(1, args='{"b":')],
        [call(0, args="{}")],
        [call(1, args="1}")],
    )

    assert [(one.id, one.name, one.arguments) for one in calls] == [
        ("a", "f", "{}"),
        ("b", "g", '{"b":1}'),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [[call(0, id="a", name="f", args="{}"), call(0, id="b", name="f", args="{}")]],
            id="all numbered 0",
        ),
        pytest.param(
            [[call(None, id="a", name="f", args="{}")], [call(None, id="b", name="f", args="{}")]],
            id="no number",
        ),
        pytest.param(
            [
                [call(None, id="a", name="f", args="{")],
                [call(None, id="a", args="}")],
                [call(None, id="b", name="f")],
                [call(None, args="{}")],
            ],
            id="no number, in pieces",
        ),
        pytest.param(
            [
                [call(0, id="a", name="f", args="{")],
                [call(0, id="a", name="f", args="}")],
                [call(1, id="b", name="f", args="{}")],
            ],
            id="name repeated",
        ),
        pytest.param(
            [[call(0, id="a", name="f", args={}), call(1, id="b", name="f", args={})]],
            id="arguments as an object",
        ),
    ],
)
async def test_the_ways_of_sending_two_calls_are_all_read(
    server: ModelServer, model: OpenAICompatible, pieces: list[list[dict[str, Any]]]
) -> None:
    calls = await calls_of(server, model, *pieces)

    assert calls == (
        ToolCall(id="a", name="f", arguments="{}"),
        ToolCall(id="b", name="f", arguments="{}"),
    )


async def test_a_missing_id_is_made_from_the_place_of_the_call(
    server: ModelServer, model: OpenAICompatible
) -> None:
    calls = await calls_of(
        server,
        model,
        [call(None, name="f", args={"x": 1}), call(None, name="f", args={"x": 2})],
    )

    assert [(one.id, one.arguments) for one in calls] == [
        ("call_1", '{"x":1}'),
        ("call_2", '{"x":2}'),
    ]


async def test_a_doubled_id_is_told_apart(server: ModelServer, model: OpenAICompatible) -> None:
    calls = await calls_of(
        server,
        model,
        [call(0, id="same", name="f", args="{}"), call(1, id="same", name="g", args="{}")],
        [call(2, id="same_2", name="h", args="{}")],
    )

    assert [one.name for one in calls] == ["f", "g", "h"]
    assert len({one.id for one in calls}) == 3
    assert calls[0].id == "same"


@pytest.mark.case("AG-01")
async def test_a_call_cut_by_the_output_limit_is_told_as_such(
    server: ModelServer, model: OpenAICompatible
) -> None:
    cut = '{"path": "notes.md", "content": "line 1\\nline 2'
    server.says(delta(content="", tool_calls=[call(id="c1", name="write_file", args=cut)]))
    server.scripts.clear()
    server.says(
        delta(content="", tool_calls=[call(id="c1", name="write_file", args=cut)]), delta("length")
    )

    answer, _ = await ask(model)

    assert answer.finish == "length"
    assert answer.calls == (ToolCall(id="c1", name="write_file", arguments=cut),)


# --- broken answers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([delta(content="Hel")], id="cut"),
        pytest.param([], id="nothing"),
        pytest.param([delta(content="Hel"), '{"choices": [{"del'], id="malformed JSON"),
        pytest.param(['"a string"'], id="no object"),
        pytest.param([delta("error", content="Hel")], id="broken off by the provider"),
    ],
)
async def test_what_cannot_be_read_is_a_broken_answer(
    server: ModelServer, model: OpenAICompatible, chunks: list[dict[str, Any] | str]
) -> None:
    server.says(*chunks, done=False)

    with pytest.raises(BrokenAnswer, match=r"127\.0\.0\.1"):
        await ask(model)


async def test_done_without_any_chunk_is_a_broken_answer(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says()

    with pytest.raises(BrokenAnswer):
        await ask(model)


@pytest.mark.parametrize("body", ["<html>Sign in</html>", "{}", '{"choices": []}', "not json"])
async def test_a_page_that_is_no_answer_is_a_broken_answer(
    server: ModelServer, model: OpenAICompatible, body: str
) -> None:
    server.replies(200, body)

    with pytest.raises(BrokenAnswer):
        await ask(model)


async def test_a_reset_in_the_stream_is_a_broken_answer_after_what_was_streamed(
    server: ModelServer, model: OpenAICompatible
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
        ({"code": 502, "message": "upstream"}, Overloaded),
        ({"type": "overloaded_error", "message": "busy"}, Overloaded),
        ({"message": "The server had an error"}, Overloaded),
        ({"code": "context_length_exceeded", "message": "too long"}, ContextTooLong),
        ("something went wrong", Overloaded),
    ],
)
async def test_an_error_inside_the_stream_has_its_class(
    server: ModelServer, model: OpenAICompatible, error: Any, kind: type[Exception]
) -> None:
    server.says(delta(content="Hel"), {"error": error}, done=False)

    with pytest.raises(kind, match=r"127\.0\.0\.1"):
        await ask(model)


# --- limits, and the connection --------------------------------------------------------------


@pytest.mark.parametrize("pieces", [[], [delta(content="Hel")]])
async def test_a_stall_is_a_timeout(server: ModelServer, pieces: list[dict[str, Any]]) -> None:
    server.says(*pieces, then="hang", done=False)
    limits = CallLimits(stall_timeout_s=0.05, timeout_s=0.2)

    async with OpenAICompatible("m", api_base=server.api_base, limits=limits) as model:
        with pytest.raises(ModelTimeout, match=r"127\.0\.0\.1"):
            await ask(model)

    await asyncio.wait_for(server.left.wait(), SLOW)


async def test_a_stream_that_never_ends_meets_the_limit_of_the_call(server: ModelServer) -> None:
    chunks = [b": ping\n\n"] * 3
    server.streams(*chunks, then="hang")
    limits = CallLimits(stall_timeout_s=60, timeout_s=0.1)

    async with OpenAICompatible("m", api_base=server.api_base, limits=limits) as model:
        with pytest.raises(ModelTimeout, match="in time"):
            await ask(model)


async def test_cancelling_closes_the_connection(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says(delta(content="Hel"), then="hang", done=False)
    came = asyncio.Event()
    task = asyncio.ensure_future(model.answer(request(), on_text=lambda _: came.set()))
    await asyncio.wait_for(came.wait(), SLOW)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await asyncio.wait_for(server.left.wait(), SLOW)


async def test_closing_the_model_ends_a_running_call_with_a_model_error(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says(delta(content="Hel"), then="hang", done=False)
    came = asyncio.Event()
    task = asyncio.ensure_future(model.answer(request(), on_text=lambda _: came.set()))
    await asyncio.wait_for(came.wait(), SLOW)

    await model.aclose()

    with pytest.raises(Temporary):
        await asyncio.wait_for(task, SLOW)
    with pytest.raises(Overloaded):
        await ask(model)


async def test_a_refused_connection_is_overloaded_and_says_what_to_check() -> None:
    async with OpenAICompatible("m", api_base="http://127.0.0.1:9/v1") as model:
        with pytest.raises(Overloaded, match=r"127\.0\.0\.1:9 cannot be reached"):
            await ask(model)


@pytest.mark.parametrize(
    "api_base",
    [
        "",
        "api.openai.com/v1",
        "ftp://x/v1",
        "unix:///run/model.sock",
        "http:///v1",
        "http://x:port/v1",
        "http://x:99999/v1",
        "http://[::1/v1",
        "http://a b/v1",
        "http://x\n/v1",
        "http://é..x/v1",
    ],
)
def test_an_address_that_is_none_is_refused_at_once(api_base: str) -> None:
    with pytest.raises(SettingsWrong, match="api_base"):
        OpenAICompatible("m", api_base=api_base)


async def test_equal_requests_are_equal_bytes(server: ModelServer, model: OpenAICompatible) -> None:
    server.says(delta("stop", content="x"))

    await ask(model)
    await ask(model)

    assert server.bodies[0] == server.bodies[1]
    assert json.loads(server.bodies[0])["model"] == "test-model"


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "sk-…"])
def test_a_key_that_cannot_be_one_is_refused_without_naming_it(key: str) -> None:
    with pytest.raises(SettingsWrong, match="api_key") as caught:
        OpenAICompatible("m", api_base="https://m.test/v1", api_key=key)

    assert key not in str(caught.value)


async def test_blanks_around_a_key_do_no_harm(server: ModelServer) -> None:
    server.says(delta("stop", content="x"))

    async with OpenAICompatible("m", api_base=server.api_base, api_key=" sk-a\n") as model:
        await ask(model)

    assert server.headers[0]["Authorization"] == "Bearer sk-a"


async def test_headers_of_a_dialect_are_sent_and_secret_ones_are_never_quoted(
    server: ModelServer,
) -> None:
    server.replies(400, {"error": {"message": "no such key: hidden-9"}})
    dialect = Dialect(headers={"X-Api-Key": "hidden-9", "X-Title": "Hearthbot"})

    async with OpenAICompatible("m", api_base=server.api_base, dialect=dialect) as model:
        with pytest.raises(ModelRefused) as caught:
            await ask(model)

    assert server.headers[0]["X-Title"] == "Hearthbot"
    assert "hidden-9" not in str(caught.value)
