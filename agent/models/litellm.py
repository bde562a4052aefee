"""Every provider that has a language of its own (Anthropic, Gemini, Bedrock …), through litellm.

`bot.app` builds it, `agent.turn.loop` calls it through the port. The only module that knows
litellm. The library takes seconds and 200 MB to load, so it is loaded on first use, in a thread. It
translates; limits, errors and the end of an answer are checked here as `OpenAICompatible` checks
them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from agent.models import chat_request
from agent.models.chat_request import mark, takes_marks
from agent.models.deadline import CallDeadline, CallLimits
from agent.models.errors import UNREADABLE, CallProgress, ServerLabel, broken, failure
from agent.models.wire import Assembly
from memory.records.errors import BrokenAnswer, Overloaded, SettingsWrong
from memory.records.request import ModelRequest, ModelTraits, ToolSpec
from memory.records.transcript import Answered, Entry

if TYPE_CHECKING:
    import httpx
    import openai

T = TypeVar("T")

_HERE = ("127.0.0.1", "::1", "localhost")
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_CHATTY = ("openai", "httpx", "httpcore")

# With a client of ours they follow no redirection and try nothing twice. All others (Azure, and
# whoever is spoken to by OpenAI's own library) use clients that litellm keeps for all.
_TAKE_OUR_CLIENT = frozenset(
    {
        "anthropic",
        "azure_ai",
        "bedrock",
        "cloudflare",
        "databricks",
        "deepseek",
        "fireworks_ai",
        "gemini",
        "groq",
        "hosted_vllm",
        "huggingface",
        "minimax",
        "mistral",
        "ollama_chat",
        "openrouter",
        "vertex_ai",
        "watsonx",
        "xai",
    }
)

# How providers say that an answer is over. In the text of an answer the quotes are escaped.
_END = re.compile(
    rb'"(?:finish_?[rR]eason|stop_reason|stopReason)"\s*:\s*"'
    rb'|"type"\s*:\s*"(?:message_stop|message-end)"|"done"\s*:\s*true|(?m:^data:\s*\[DONE\])'
)
_END_BYTES_MAX = 40
_DATA = b"data:"


class LiteLLM:
    """One model by its litellm name. Enter it, or call `aclose`, to give its connections back."""

    def __init__(
        self,
        name: str,
        *,
        api_base: str = "",
        api_key: str = "",
        traits: ModelTraits | None = None,
        limits: CallLimits | None = None,
        output_tokens_max: int = 0,
    ) -> None:
        """`name` is like "anthropic/claude-haiku-4-5". An empty `api_base` is the provider's own,
        an empty `api_key` is left to the library, which knows each provider's variable.
        `output_tokens_max` is the model's own limit, 0 where it is not known.

        Raises SettingsWrong when `api_base` or `api_key` cannot be one.
        """
        self._name = name
        self._provider = name.partition("/")[0]
        self._api_base = _address(api_base, self._provider)
        self._api_key = _key(api_key)
        self._traits = traits or ModelTraits()
        self._limits = limits or CallLimits()
        self._output_tokens_max = output_tokens_max
        server = self._api_base or f"https://{self._provider}"
        self._server = ServerLabel(api_base=server, secrets=(self._api_key,))
        self._opening = asyncio.Lock()
        self._library: _Library | None = None
        self._running: set[_LibraryCall] = set()
        self._closed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def traits(self) -> ModelTraits:
        return self._traits

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections, also those of running calls. May be called twice."""
        self._closed = True
        for call in self._running:
            call.deadline.end()
        async with self._opening:
            library, self._library = self._library, None
        if library is not None:
            await library.aclose()

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        """See `memory.records.ports.Model`. One request, never more."""
        # Loading the library takes seconds, of which the provider is not to blame for one.
        library = await self._open()
        call = _LibraryCall(
            asked=CallProgress(server=self._server, name=self._name),
            deadline=CallDeadline(self._limits, host=self._server.host),
            assembly=Assembly(on_text, tokens_max=self._tokens(request)),
        )
        self._running.add(call)
        try:
            async with call.deadline.running():
                client = library.new_client(call.assembly)
                arguments = self._arguments(request, library, client)
                return await call.run(library, arguments, client)
        except TimeoutError as error:
            raise (self._gone() if self._closed else call.deadline.late()) from error
        finally:
            self._running.discard(call)

    async def _open(self) -> _Library:
        async with self._opening:
            if self._library is None and not self._closed:
                self._library = await asyncio.to_thread(self._load)
            if self._library is None or self._closed:
                raise self._gone()
            return self._library

    def _load(self) -> _Library:
        return _load(self._provider, self._api_base, self._api_key, self._limits)

    def _gone(self) -> Overloaded:
        return Overloaded(f"The connection to {self._server.host} is closed")

    def _arguments(self, request: ModelRequest, library: _Library, client: Any) -> dict[str, Any]:
        """What litellm is called with; what a provider does not take is dropped by it."""
        arguments: dict[str, Any] = {
            "model": self._name,
            "messages": chat_request.messages(
                request.system,
                request.entries,
                tools=self._traits.tools,
                pictures=request.pictures if self._traits.vision else None,
            ),
            "max_tokens": self._tokens(request),
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "timeout": library.timeout,
            "max_retries": 0,
            "num_retries": 0,
            **{key: request.extra[key] for key in sorted(request.extra)},
        }
        if request.tools and self._traits.tools:
            arguments["tools"] = [_tool(spec) for spec in request.tools]
        if takes_marks(self._name):
            if "tools" not in arguments and any(map(_calls, request.entries)):
                arguments["tool_choice"] = "none"  # else it may call the tool that litellm makes up
            mark(arguments, request.entries)
            if "reasoning_effort" in request.extra:
                del arguments["temperature"]  # while it thinks, Claude takes no other than 1
        if self._api_base:
            arguments["api_base"] = self._api_base
        if self._api_key:
            arguments["api_key"] = self._api_key
        if client is not None:
            arguments["client"] = client
        return arguments

    def _tokens(self, request: ModelRequest) -> int:
        return min(request.max_output_tokens, self._output_tokens_max or request.max_output_tokens)


def _calls(entry: Entry) -> bool:
    return isinstance(entry, Answered) and bool(entry.calls)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
    }
    return {"type": "function", "function": function}


# --- one call ----------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True, eq=False)
class _LibraryCall:
    """One request and its answer, with what is needed to say how it went wrong."""

    asked: CallProgress
    deadline: CallDeadline
    assembly: Assembly
    usage: Any = None

    async def run(self, library: _Library, arguments: dict[str, Any], client: Any) -> Answered:
        stream = await self._asked(library.complete(**arguments))
        self.asked.streams = True
        try:
            while (chunk := await self._asked(anext(stream, None))) is not None:
                self.asked.begun = True
                self.deadline.wind_up()
                self.usage = getattr(chunk, "usage", None) or self.usage
                self.assembly.take(_chunk(chunk))
                if self.assembly.is_full:
                    break  # it may go on for ever
        finally:
            await stream.aclose()
        if self.assembly.is_full:
            return self._answer()
        ended = getattr(client, "ended", None)
        return self._finished(
            stream, bool(stream.received_finish_reason) if ended is None else ended
        )

    def _finished(self, stream: Any, ended: bool) -> Answered:
        """The library makes up an end, and a count of tokens, where a provider sent none."""
        if not ended:
            raise broken(self.asked.server, "the answer ended before it was complete")
        if self.usage is not None and any(getattr(one, "usage", None) for one in stream.chunks):
            self.assembly.take({"usage": self.usage.model_dump()})
        return self._answer()

    def _answer(self) -> Answered:
        try:
            return self.assembly.answer(self.asked.name, done=True)
        except BrokenAnswer as error:
            raise broken(self.asked.server, f"{error}") from error

    async def _asked(self, asked: Awaitable[T]) -> T:
        """Whatever the library raises, as one of our errors."""
        try:
            return await asked
        except Exception as error:  # it raises whatever the libraries below it raise
            raise failure(error, self.asked) from error


def _chunk(chunk: Any) -> dict[str, Any]:
    """A chunk of litellm's as `Assembly` takes it: it is OpenAI's form already, as objects."""
    if not chunk.choices:
        return {}
    choice = chunk.choices[0]
    delta = choice.delta
    calls = [
        {
            "index": call.index,
            "id": call.id,
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in delta.tool_calls or ()
    ]
    named = ("content", "refusal", "reasoning_content")
    said = {name: getattr(delta, name, None) for name in named}
    return {
        "choices": [{"delta": {**said, "tool_calls": calls}, "finish_reason": choice.finish_reason}]
    }


# --- the library -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Library:
    """litellm, loaded and quietened, and one model's connections."""

    complete: Callable[..., Awaitable[Any]]
    timeout: Any
    new_client: Callable[[Assembly], Any]
    """What one call is made with; with `ended`, it knows whether the provider ended the answer."""
    connections: httpx.AsyncClient | None
    close_shared: Callable[[], Awaitable[None]]

    async def aclose(self) -> None:
        if self.connections is not None:
            await self.connections.aclose()
        else:
            await self.close_shared()


def load_transcription() -> Callable[..., Awaitable[Any]]:
    """What turns speech into text, for `agent.models.speech`. Takes seconds: it is for a thread."""
    call: Callable[..., Awaitable[Any]] = _imported().atranscription
    return call


def _imported() -> Any:
    """The library, on the first call of all; takes seconds, so it runs in a thread.

    Without these variables it would fetch a list of prices and one of headers from the network,
    read an `.env` file of the folder that the bot was started in, and log to the terminal.
    """
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LITELLM_LOG"] = "CRITICAL"
    import litellm

    _quieten(litellm)
    return litellm


def _load(provider: str, api_base: str, api_key: str, limits: CallLimits) -> _Library:
    import httpx

    litellm = _imported()
    timeout = httpx.Timeout(limits.timeout_s, connect=limits.connect_timeout_s)
    new_client: Callable[[Assembly], Any] = _none
    connections = None
    if provider == "openai" or provider in _TAKE_OUR_CLIENT:
        here = urlsplit(api_base).hostname in _HERE
        connections = httpx.AsyncClient(
            headers={"Accept-Encoding": "identity"},  # else the end could not be looked for
            timeout=timeout,
            trust_env=not here,
            follow_redirects=False,
        )
        new_client = (
            _openai(api_base, api_key, connections)
            if provider == "openai"
            else partial(_handler(), connections)
        )
    return _Library(
        complete=litellm.acompletion,
        timeout=timeout if connections is not None else limits.timeout_s,
        new_client=new_client,
        connections=connections,
        close_shared=partial(_close_shared, litellm),
    )


def _none(_: Assembly) -> None:
    """The library takes a client of its own."""


async def _close_shared(litellm: Any) -> None:
    """Closes what the library keeps for all; whoever asks later gets new ones."""
    from openai import AsyncOpenAI

    kept = list(litellm.in_memory_llm_clients_cache.cache_dict.values())
    litellm.in_memory_llm_clients_cache.flush_cache()
    for client in kept:
        if client is litellm.module_level_aclient:
            continue  # some providers are asked by it without looking whether it is open
        if isinstance(client, AsyncOpenAI):
            await client.close()
        elif hasattr(client, "client"):
            await client.client.aclose()


def _quieten(litellm: Any) -> None:
    """No telemetry, no callbacks, no advice on standard output, no line of its own in our logs."""
    litellm.telemetry = False
    # For some names it would fetch a tokenizer from the network, holding up everybody meanwhile.
    litellm.disable_hf_tokenizer_download = True
    litellm.suppress_debug_info = True
    litellm.disable_streaming_logging = True
    litellm.turn_off_message_logging = True
    litellm.drop_params = True
    litellm.modify_params = True
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize  # a table of zeros is an answer too
    for name in ("callbacks", "success_callback", "failure_callback", "_async_success_callback"):
        setattr(litellm, name, [])
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.CRITICAL)
    for name in _CHATTY:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))


def _openai(
    api_base: str, api_key: str, connections: httpx.AsyncClient
) -> Callable[[Assembly], openai.AsyncOpenAI]:
    from openai import APIStatusError, AsyncOpenAI, UnprocessableEntityError

    class LeanClient(AsyncOpenAI):
        """Without the name by which litellm knows a refusal that it answers by asking again."""

        def _make_status_error(
            self, err_msg: str, *, body: object, response: httpx.Response
        ) -> APIStatusError:
            error = super()._make_status_error(err_msg, body=body, response=response)
            if isinstance(error, UnprocessableEntityError):
                return APIStatusError(err_msg, response=response, body=error.body)
            return error

    client = LeanClient(
        api_key=api_key or os.environ.get("OPENAI_API_KEY") or "none",
        base_url=api_base or "https://api.openai.com/v1",
        http_client=connections,
        max_retries=0,
    )
    return lambda _: client


def _handler() -> Callable[[httpx.AsyncClient, Assembly], Any]:
    from httpx import AsyncByteStream, AsyncClient, ConnectError, RemoteProtocolError, Response
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    class Handler(AsyncHTTPHandler):
        """One call on our connections, without the second try that it makes on new ones."""

        def __init__(self, connections: AsyncClient, assembly: Assembly) -> None:
            self.timeout = None
            self.event_hooks = None
            self.client = connections
            self.client_alias = None
            self.ended = False
            self.assembly = assembly

        def create_client(self, *_: Any, **__: Any) -> AsyncClient:
            raise ConnectError("not tried again here")

        async def post(self, *args: Any, **named: Any) -> Response:
            response: Response = await super().post(*args, **named)
            if response.is_stream_consumed or "content-encoding" in response.headers:
                self.ended = True
            else:
                response.stream = WatchedStream(response.stream, self)
            return response

        def __del__(self) -> None:
            """Whoever made the connections closes them."""

    class WatchedStream(AsyncByteStream):
        """Looks for the end of an answer in what passes."""

        def __init__(self, stream: Any, handler: Handler) -> None:
            self._stream = stream
            self._handler = handler

        async def __aiter__(self) -> AsyncIterator[bytes]:
            tail = b"\n"
            line = b""
            async for piece in self._stream:
                self._handler.assembly.passes(piece)
                if self._handler.assembly.is_full:
                    return  # what the library has of it is the answer
                seen = tail + piece
                tail = seen[-_END_BYTES_MAX:]
                if not self._handler.ended and _END.search(seen):
                    self._handler.ended = True
                *whole, line = (line + piece).split(b"\n")
                self._check(whole)
                if not line.startswith(_DATA):
                    line = line[: len(_DATA)]  # Bedrock sends no lines: do not gather its answer
                yield piece
            self._check([line])  # its last words may stand in the line that was cut

        def _check(self, lines: Iterable[bytes]) -> None:
            """Left to itself the library drops what it cannot read, and a hole in the answer would
            pass for the whole of it."""
            if not all(map(_can_be_read, lines)):
                raise RemoteProtocolError(UNREADABLE)

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Handler


def _can_be_read(line: bytes) -> bool:
    """Whether a line of a stream is JSON where it has to be."""
    if not line.startswith(_DATA):
        return True
    value = line.removeprefix(_DATA).strip()
    if not value or value == b"[DONE]":
        return True
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


# --- the settings, checked ---------------------------------------------------------------------


def _address(api_base: str, provider: str) -> str:
    """Ours end in /v1 (SPEC §18); for Anthropic the library adds that itself."""
    api_base = api_base.strip().rstrip("/")
    try:
        parts = urlsplit(api_base)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if api_base and (not known or not api_base.isprintable() or " " in api_base):
        raise SettingsWrong("llm.api_base must be a web address such as https://api.anthropic.com")
    return api_base.removesuffix("/v1") if provider == "anthropic" else api_base


def _key(api_key: str) -> str:
    api_key = api_key.strip()
    if not all("!" <= character <= "~" for character in api_key):
        raise SettingsWrong("llm.api_key holds a character that no key has: copy it again")
    return api_key
