"""litellm as a client: what only it can reach. See also test_clients."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.models.chat_request import MARK
from agent.models.client import CallLimits
from agent.models.litellm import LiteLLM
from memory.records.errors import (
    AuthRefused,
    BillingRefused,
    BrokenAnswer,
    ContextTooLong,
    ModelRefused,
    Overloaded,
    RateLimited,
)
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    ModelRequest,
    Note,
    Said,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from tests.agent.models.asking import Pieces, ask
from tests.agent.models.conftest import KEY
from tests.agent.models.server import ModelServer, delta
from tests.agent.web.sites import site

pytestmark = pytest.mark.filterwarnings(
    # The library's own, in what it does with each chunk that holds usage.
    "ignore:Accessing the 'model_:DeprecationWarning"
)

LIMITS = CallLimits(timeout_s=20, stall_timeout_s=10)
CLAUDE, GEMINI = "anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash"
LOOK = ToolSpec(
    name="look",
    description="Looks.",
    parameters={"type": "object", "properties": {"at": {"type": "integer"}}},
)
ASKED = (
    Said(text="What is there?"),
    Context(text="It is Monday."),
    Answered(text="I look.", calls=(ToolCall(id="c1", name="look", arguments='{"at":1}'),)),
    ToolResult(call_id="c1", content="a cat"),
)


# --- a provider with a language of its own -----------------------------------------------------


class Provider:
    """Answers every path with what a test sets, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.paths: list[str] = []
        self.pieces: list[bytes] = []
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.breaks = False
        self.address = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(json.loads(await request.read()))
        self.headers.append(request.headers)
        self.paths.append(request.path)
        if self.refusal:
            return web.json_response(self.refusal[1], status=self.refusal[0])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in self.pieces:
            await response.write(piece)
        if self.breaks and request.transport is not None:
            request.transport.abort()
        return response


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    served = Provider()
    async with site(served.handle) as running:
        served.address = running.url
        yield served


@asynccontextmanager
async def opened(name: str, provider: Provider, **more: Any) -> AsyncIterator[LiteLLM]:
    async with LiteLLM(
        name, api_base=provider.address, api_key=KEY, limits=LIMITS, **more
    ) as client:
        yield client


async def asked(
    name: str, provider: Provider, *entries: Entry, tools: bool = True, **fields: Any
) -> Answered:
    request = ModelRequest(
        system="You are Hearthbot.",
        entries=entries or ASKED,
        tools=(LOOK,) if tools else (),
        **fields,
    )
    async with opened(name, provider) as model:
        return await model.answer(request, on_text=Pieces())


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def claude(*, stop: str = "end_turn", text: str = "Hello", call: bool = False) -> list[bytes]:
    """An answer as Anthropic streams it."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 1}
    usage["cache_creation_input_tokens"] = 20
    start = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "claude"}
    pieces = [
        event("message_start", message={**start, "stop_reason": None, "usage": usage}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": half})
            for half in (text[:3], text[3:])
        ),
        event("content_block_stop", index=0),
    ]
    if call:
        block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
        pieces.append(event("content_block_start", index=1, content_block=block))
        for half in ('{"at":', "2}"):
            part = {"type": "input_json_delta", "partial_json": half}
            pieces.append(event("content_block_delta", index=1, delta=part))
        pieces.append(event("content_block_stop", index=1))
    end = {"stop_reason": stop, "stop_sequence": None}
    pieces.append(event("message_delta", delta=end, usage={"output_tokens": 7}))
    return [*pieces, event("message_stop")]


def gemini(text: str, **more: str) -> bytes:
    candidate = {**more, "content": {"role": "model", "parts": [{"text": text}]}}
    return f"data: {json.dumps({'candidates': [candidate]})}\r\n\r\n".encode()


async def test_claude_is_asked_in_its_own_language_with_marks_for_its_cache(
    provider: Provider,
) -> None:
    provider.pieces = claude()

    await asked(CLAUDE, provider)

    sent = provider.asked[0]
    assert provider.paths == ["/v1/messages"]
    assert provider.headers[0]["x-api-key"] == KEY
    assert sent["stream"] is True
    assert sent["system"] == [{"type": "text", "text": "You are Hearthbot.", "cache_control": MARK}]
    assert [one["role"] for one in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "a cat", "cache_control": MARK}
    ]
    tool = sent["tools"][0]
    assert (tool["name"], tool["description"]) == ("look", "Looks.")
    assert tool["input_schema"]["properties"] == {"at": {"type": "integer"}}
    assert tool["cache_control"] == MARK
    assert json.dumps(sent).count("cache_control") == 3


@pytest.mark.parametrize("end", ["/", "/v1/"])
async def test_an_address_may_end_as_all_others_do(provider: Provider, end: str) -> None:
    provider.pieces = claude()
    name, base = "anthropic/claude-haiku-4-5", f"{provider.address}{end}"

    async with LiteLLM(name, api_base=base, api_key=KEY, limits=LIMITS) as model:
        await ask(model)

    assert provider.paths == ["/v1/messages"]


async def test_the_answer_of_claude_is_read_with_calls_and_what_its_cache_spared(
    provider: Provider,
) -> None:
    provider.pieces = claude(stop="tool_use", call=True)

    answer = await asked(CLAUDE, provider)

    assert answer == Answered(
        text="Hello",
        calls=(ToolCall(id="toolu_1", name="look", arguments='{"at":2}'),),
        finish="tool_calls",
        model="anthropic/claude-haiku-4-5",
        usage=Usage(prompt=130, completion=7, cached=100),
    )


@pytest.mark.parametrize(
    ("entries", "marked"),
    [
        ((Said(text="a"), Context(text="b")), (0, 1)),
        ((Said(text="a"), Answered(text="b"), Said(text="c"), Note(text="d")), (2, 0)),
        ((Said(text="a"), Answered(text="b"), Note(text="c"), Note(text="d")), (1, 0)),
        ((*ASKED, Note(text="only now")), (2, 0)),
    ],
)
async def test_the_newest_part_that_is_sent_again_bears_the_mark(
    provider: Provider, entries: tuple[Entry, ...], marked: tuple[int, int]
) -> None:
    provider.pieces = claude()

    await asked(CLAUDE, provider, *entries)

    messages = provider.asked[0]["messages"]
    found = [
        (n, k)
        for n, message in enumerate(messages)
        for k, part in enumerate(message["content"])
        if "cache_control" in part
    ]
    assert found == [marked]


async def test_a_request_without_tools_after_calls_is_taken_and_nothing_can_be_called(
    provider: Provider,
) -> None:
    provider.pieces = claude()

    answer = await asked(CLAUDE, provider, tools=False)

    assert answer.text == "Hello"
    assert provider.asked[0]["tools"]  # Anthropic wants some, as the history holds calls
    assert provider.asked[0]["tool_choice"] == {"type": "none"}


async def test_effort_becomes_thinking_and_no_temperature_goes_with_it(provider: Provider) -> None:
    provider.pieces = claude()
    extra = {"reasoning_effort": "low"}

    await asked("anthropic/claude-sonnet-4-5", provider, Said(text="Why?"), extra=extra)
    await asked("anthropic/claude-3-haiku-20240307", provider, Said(text="Why?"), extra=extra)

    assert provider.asked[0]["thinking"]["type"] == "enabled"
    assert "temperature" not in provider.asked[0]
    assert "thinking" not in provider.asked[1]


async def test_no_more_output_is_asked_for_than_the_model_gives(provider: Provider) -> None:
    provider.pieces = claude()

    async with opened("anthropic/claude-3-haiku", provider, output_tokens_max=4_096) as model:
        await ask(model)

    assert provider.asked[0]["max_tokens"] == 4_096


@pytest.mark.parametrize(
    ("stop", "finish"),
    [("end_turn", "stop"), ("max_tokens", "length"), ("refusal", "filter")],
)
async def test_finish_reasons_of_claude_are_ours(
    provider: Provider, stop: str, finish: str
) -> None:
    provider.pieces = claude(stop=stop)

    answer = await asked(CLAUDE, provider)

    assert answer.finish == finish


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        pytest.param(CLAUDE, [], id="nothing"),
        pytest.param(CLAUDE, [b"<html>Sign in</html>"], id="a page"),
        pytest.param(CLAUDE, claude()[:3], id="cut"),
        pytest.param(CLAUDE, claude(text='"stop_reason": "end_turn" [DONE]')[:4], id="says end"),
        pytest.param(GEMINI, [], id="nothing of Gemini's"),
        pytest.param(GEMINI, [gemini("Hel")], id="Gemini's cut"),
    ],
)
async def test_an_answer_without_its_end_is_broken_and_not_empty(
    provider: Provider, name: str, pieces: list[bytes]
) -> None:
    provider.pieces = pieces

    with pytest.raises(BrokenAnswer, match=r"127\.0\.0\.1"):
        await asked(name, provider)


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        pytest.param(
            "anthropic/claude-haiku-4-5",
            [*claude()[:2], b'data: {"type": "content_bl\n\n', *claude()[2:]],
            id="a hole in Claude's",
        ),
        pytest.param(
            "gemini/gemini-2.5-flash",
            [gemini("Hel"), b'data: {"candid', b"\n\n", gemini("lo", finishReason="STOP")],
            id="a hole in Gemini's",
        ),
        pytest.param(
            "gemini/gemini-2.5-flash",
            [gemini("Hel"), gemini("lo and more", finishReason="STOP")[:70]],
            id="cut in the line that says it ends",
        ),
    ],
)
async def test_an_answer_with_a_hole_is_broken_though_its_end_came(
    provider: Provider, name: str, pieces: list[bytes]
) -> None:
    provider.pieces = pieces

    with pytest.raises(BrokenAnswer, match="no JSON"):
        await asked(name, provider)


async def test_a_chunk_may_come_in_any_pieces(provider: Provider) -> None:
    whole = gemini("Hel") + gemini("lo", finishReason="STOP")
    provider.pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]

    answer = await asked(GEMINI, provider)

    assert (answer.text, answer.finish) == ("Hello", "stop")


@pytest.mark.parametrize("name", [CLAUDE, GEMINI])
async def test_a_connection_that_breaks_before_the_first_word_broke_an_answer(
    provider: Provider, name: str
) -> None:
    provider.breaks = True

    with pytest.raises(BrokenAnswer, match="broke during the answer"):
        await asked(name, provider)


async def test_an_overload_in_the_middle_of_a_stream_is_told_as_such(provider: Provider) -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    provider.pieces = [*claude()[:3], event("error", error=error)]

    with pytest.raises(Overloaded, match="Overloaded"):
        await asked(CLAUDE, provider)


def google(code: int, message: str, status: str, **detail: str) -> tuple[int, dict[str, Any]]:
    error = {"code": code, "message": message, "status": status, "details": [detail]}
    return code, {"error": error}


def anthropic(code: int, kind: str, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"type": "error", "error": {"type": kind, "message": message}}


QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("name", "refusal", "kind"),
    [
        ("anthropic/claude-x", anthropic(401, "authentication_error", "invalid key"), AuthRefused),
        ("anthropic/claude-x", anthropic(529, "overloaded_error", "Overloaded"), Overloaded),
        (
            "anthropic/claude-x",
            anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000"),
            ContextTooLong,
        ),
        (
            "anthropic/claude-x",
            anthropic(400, "invalid_request_error", "Your credit balance is too low"),
            BillingRefused,
        ),
        (
            "gemini/gemini-x",
            google(400, "API key not valid.", "INVALID_ARGUMENT", reason="API_KEY_INVALID"),
            AuthRefused,
        ),
        (
            "gemini/gemini-x",
            google(
                400,
                "The input token count (1200000) exceeds the maximum number of tokens allowed "
                "(1048576).",
                "INVALID_ARGUMENT",
            ),
            ContextTooLong,
        ),
        ("gemini/gemini-x", google(429, QUOTA, "RESOURCE_EXHAUSTED"), BillingRefused),
        ("azure/deployed", (401, {"error": {"message": "Access denied"}}), AuthRefused),
        ("perplexity/sonar", (429, {"error": {"message": "slow down"}}), RateLimited),
    ],
)
async def test_each_provider_refuses_in_its_own_words_and_is_asked_once(
    provider: Provider, name: str, refusal: tuple[int, dict[str, Any]], kind: type[Exception]
) -> None:
    provider.refusal = refusal

    with pytest.raises(kind, match=rf"127\.0\.0\.1:\d+ \(HTTP {refusal[0]}\)") as caught:
        await asked(name, provider)

    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    assert len(provider.asked) == 1


async def test_a_pause_that_gemini_words_like_an_empty_account_is_a_pause(
    provider: Provider,
) -> None:
    provider.refusal = google(429, QUOTA, "RESOURCE_EXHAUSTED", retryDelay="34s")

    with pytest.raises(RateLimited) as caught:
        await asked(GEMINI, provider)

    assert caught.value.retry_after_s == 34


async def test_gemini_is_asked_and_read_without_marks(provider: Provider) -> None:
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 5, "cachedContentTokenCount": 4}
    call = {"functionCall": {"name": "look", "args": {"at": 1}}}
    first = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}}]}
    last = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "lo"}, call]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {**usage, "totalTokenCount": 17},
    }
    provider.pieces = [f"data: {json.dumps(one)}\r\n\r\n".encode() for one in (first, last)]

    answer = await asked(GEMINI, provider)

    assert (answer.text, answer.finish) == ("Hello", "tool_calls")
    assert [json.loads(one.arguments) for one in answer.calls] == [{"at": 1}]
    assert answer.usage == Usage(prompt=12, completion=5, cached=4)
    assert "cache" not in json.dumps(provider.asked[0]).lower()
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "boto3"),
        ("vertex_ai/gemini-x", "google"),
    ],
)
async def test_a_provider_whose_library_is_missing_is_refused_with_its_name(
    provider: Provider, name: str, missing: str
) -> None:
    with pytest.raises(ModelRefused, match=f"not installed \\({missing}"):
        await asked(name, provider)


async def test_a_name_that_the_library_does_not_know_is_refused(provider: Provider) -> None:
    with pytest.raises(ModelRefused, match=r"check llm\.model"):
        await asked("nosuch/model", provider)


async def test_models_that_think_get_their_own_limits(server: ModelServer) -> None:
    server.says(delta("stop", content="x"))

    async with LiteLLM("openai/gpt-5-mini", api_base=server.api_base, api_key=KEY) as model:
        await ask(model, extra={"reasoning_effort": "low"})

    assert server.asked[0]["max_completion_tokens"] == 8_192
    assert server.asked[0]["reasoning_effort"] == "low"
    assert "temperature" not in server.asked[0]


# --- the library itself ------------------------------------------------------------------------


def test_loading_and_asking_needs_no_network_reads_no_env_file_and_prints_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("STRAY=read\n")
    program = textwrap.dedent(
        """
        import asyncio, logging, os, socket, sys
        looked_up = []
        real = socket.getaddrinfo

        def watched(host, *args, **named):
            looked_up.append(host)
            return real(host, *args, **named)

        socket.getaddrinfo = watched
        logging.basicConfig(level=logging.DEBUG)
        logging.getLogger("asyncio").setLevel(logging.WARNING)
        from memory.records.errors import Overloaded
        from agent.models.litellm import LiteLLM
        print("litellm" in sys.modules)
        from memory.records.transcript import ModelRequest
        from memory.records.transcript import Said

        async def main():
            for name in ("anthropic/claude-haiku-4-5", "openai/m", "gemini/gemini-2.5-flash"):
                async with LiteLLM(name, api_base="http://127.0.0.1:9", api_key="sk-hidden") as m:
                    try:
                        request = ModelRequest(system="", entries=(Said(text="private words"),))
                        await m.answer(request, on_text=print)
                    except Overloaded:
                        print("overloaded")

        asyncio.run(main())
        print("STRAY" in os.environ, set(looked_up) - {"127.0.0.1"})
        """
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "LITELLM_LOG": "DEBUG"}

    shown = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=env,
        cwd=tmp_path,
    )

    assert shown.stdout.splitlines() == ["False", *["overloaded"] * 3, "False set()"]
    assert "sk-hidden" not in shown.stderr
    assert "private words" not in shown.stderr


async def test_its_loggers_are_quiet(server: ModelServer) -> None:
    server.says(delta("stop", content="x"))

    async with LiteLLM("openai/test-model", api_base=server.api_base, api_key=KEY) as model:
        await ask(model)

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        assert not logging.getLogger(name).handlers
        assert not logging.getLogger(name).isEnabledFor(logging.ERROR)
