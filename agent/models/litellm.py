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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agent.models import chat_request
from agent.models.chat_request import mark, takes_marks
from agent.models.client import (
    CallDeadline,
    CallLimits,
    ModelClient,
    checked_address,
    checked_key,
    is_here,
)
from agent.models.errors import UNREADABLE, CallProgress, ServerLabel, failure
from agent.models.wire import Assembly
from memory.records.errors import BrokenAnswer, ModelTimeout
from memory.records.transcript import Answered, ModelRequest, ModelTraits

if TYPE_CHECKING:
    import httpx
    import openai

T = TypeVar("T")

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


class LiteLLM(ModelClient):
    """A model by its litellm name."""

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
        self._provider = name.partition("/")[0]
        self._api_base = api_base.strip().rstrip("/")
        if self._api_base:
            checked_address(self._api_base, "https://api.anthropic.com")
        if self._provider == "anthropic":
            # Ours end in /v1 (SPEC §18); here the library adds that itself.
            self._api_base = self._api_base.removesuffix("/v1")
        self._api_key = checked_key(api_key)
        self._output_tokens_max = output_tokens_max
        server = self._api_base or f"https://{self._provider}"
        label = ServerLabel(api_base=server, secrets=(self._api_key,))
        super().__init__(name, server=label, traits=traits, limits=limits)
        self._library: _Library | None = None

    async def _disconnect(self) -> None:
        library, self._library = self._library, None
        if library is not None and library.connections is not None:
            await library.connections.aclose()
        elif library is not None:
            await _close_shared()

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        """See `memory.records.ports.Model`. One request, never more."""
        # Loading the library takes seconds, of which the provider is not to blame for one.
        async with self._opening:
            if self._library is None and not self._closed:
                self._library = await asyncio.to_thread(
                    _load, self._provider, self._api_base, self._api_key, self._limits
                )
            library = self._library
            if library is None or self._closed:
                raise self._gone()
        tokens_max = min(
            request.max_output_tokens, self._output_tokens_max or request.max_output_tokens
        )
        async with self._deadline() as deadline:
            call = _LibraryCall(
                server=self._server,
                name=self.name,
                deadline=deadline,
                assembly=Assembly(on_text, tokens_max=tokens_max),
            )
            client = library.new_client(call.assembly)
            # What a provider does not take is dropped by the library.
            arguments = chat_request.fields(
                self.name,
                request,
                traits=self.traits,
                max_tokens=tokens_max,
                temperature=request.temperature,
                timeout=library.timeout,
                max_retries=0,
                num_retries=0,
            )
            if takes_marks(self.name):
                if "tools" not in arguments and any(
                    isinstance(entry, Answered) and entry.calls for entry in request.entries
                ):
                    # Else it may call the tool that litellm makes up.
                    arguments["tool_choice"] = "none"
                mark(arguments, request.entries)
                if "reasoning_effort" in request.extra:
                    del arguments["temperature"]  # while it thinks, Claude takes no other than 1
            own = {"api_base": self._api_base, "api_key": self._api_key, "client": client}
            arguments |= {key: value for key, value in own.items() if value}
            return await call.run(library, arguments, client)


# --- one call ----------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True, eq=False)
class _LibraryCall(CallProgress):
    """One request and its answer, with what is needed to say how it went wrong."""

    deadline: CallDeadline
    assembly: Assembly
    usage: Any = None

    async def run(self, library: _Library, arguments: Mapping[str, Any], client: Any) -> Answered:
        stream = await self._asked(library.complete(**arguments))
        self.streams = True
        try:
            while (chunk := await self._asked(anext(stream, None))) is not None:
                self.begun = True
                self.deadline.wind_up()
                self.usage = getattr(chunk, "usage", None) or self.usage
                self.assembly.take(_chunk(chunk))
                if self.assembly.is_full:
                    break  # it may go on for ever
        finally:
            await stream.aclose()
        # The library makes up an end, and a count of tokens, where a provider sent none.
        ended = getattr(client, "ended", stream.received_finish_reason)
        if not ended and not self.assembly.is_full:
            raise self.broken("the answer ended before it was complete")
        if self.usage is not None and any(getattr(one, "usage", None) for one in stream.chunks):
            self.assembly.take({"usage": self.usage.model_dump()})
        try:
            return self.assembly.answer(self.name, done=True)
        except BrokenAnswer as error:
            raise self.broken(f"{error}") from error

    async def _asked(self, asked: Awaitable[T]) -> T:
        """Whatever the library raises, as one of our errors."""
        try:
            return await asked
        except Exception as error:  # it raises whatever the libraries below it raise
            raise failure(error, self) from error


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
    connections: httpx.AsyncClient | None = None


def _imported() -> Any:
    """The library, on the first call of all; takes seconds, so it runs in a thread.

    Without these variables it would fetch a list of prices and one of headers from the network,
    read an `.env` file of the folder that the bot was started in, and log to the terminal.
    """
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LITELLM_LOG"] = "CRITICAL"
    import litellm as library

    litellm: Any = library
    # No telemetry, no callbacks, no advice on standard output, no line of its own in our logs.
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
    return litellm


def _load(provider: str, api_base: str, api_key: str, limits: CallLimits) -> _Library:
    import httpx

    complete = _imported().acompletion
    if provider != "openai" and provider not in _TAKE_OUR_CLIENT:
        return _Library(complete=complete, timeout=limits.timeout_s, new_client=lambda _: None)
    timeout = httpx.Timeout(limits.timeout_s, connect=limits.connect_timeout_s)
    connections = httpx.AsyncClient(
        headers={"Accept-Encoding": "identity"},  # else the end could not be looked for
        timeout=timeout,
        trust_env=not is_here(api_base),
        follow_redirects=False,
    )
    new_client = (
        _openai(api_base, api_key, connections)
        if provider == "openai"
        else partial(_handler(), connections)
    )
    return _Library(
        complete=complete, timeout=timeout, new_client=new_client, connections=connections
    )


async def _close_shared() -> None:
    """Closes what the library keeps for all; whoever asks later gets new ones."""
    from openai import AsyncOpenAI

    litellm = _imported()
    kept = list(litellm.in_memory_llm_clients_cache.cache_dict.values())
    litellm.in_memory_llm_clients_cache.flush_cache()
    for client in kept:
        if client is litellm.module_level_aclient:
            continue  # some providers are asked by it without looking whether it is open
        if isinstance(client, AsyncOpenAI):
            await client.close()
        elif hasattr(client, "client"):
            await client.client.aclose()


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
                response.stream = WatchedStream(self.watched(response.stream), response.stream)
            return response

        async def watched(self, stream: Any) -> AsyncIterator[bytes]:
            """Look for the end of an answer in what passes.

            Left to itself the library drops what it cannot read, and a hole in the answer would
            pass for the whole of it.
            """
            tail = b"\n"
            line = b""
            async for piece in stream:
                self.assembly.passes(piece)
                if self.assembly.is_full:
                    return  # what the library has of it is the answer
                seen = tail + piece
                tail = seen[-_END_BYTES_MAX:]
                self.ended = self.ended or bool(_END.search(seen))
                *whole, line = (line + piece).split(b"\n")
                if not all(map(_can_be_read, whole)):
                    raise RemoteProtocolError(UNREADABLE)
                if not line.startswith(_DATA):
                    line = line[: len(_DATA)]  # Bedrock sends no lines: do not gather its answer
                yield piece
            # Its last words may stand in the line that was cut.
            if not _can_be_read(line):
                raise RemoteProtocolError(UNREADABLE)

        def __del__(self) -> None:
            """Whoever made the connections closes them."""

    class WatchedStream(AsyncByteStream):
        """What passes, and the stream that it comes from, which is closed with it."""

        def __init__(self, pieces: AsyncIterator[bytes], stream: Any) -> None:
            self._pieces = pieces
            self._stream = stream

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self._pieces

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Handler


def _can_be_read(line: bytes) -> bool:
    """Return whether a line of a stream is JSON where it has to be."""
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


# --- speech to text -----------------------------------------------------------------------------

TEXT_CHARS_MAX = 100_000
"""An hour of speech has some 50,000."""


class Speech:
    """One model by its litellm name, such as `whisper-1` or `groq/whisper-large-v3`."""

    def __init__(
        self, name: str, *, api_base: str = "", api_key: str = "", timeout_s: float = 120.0
    ) -> None:
        """An empty `api_base` is the provider's own, an empty `api_key` is left to the library,
        which knows each provider's variable."""
        # Without a provider the library would look for one by the name alone.
        self.name = name if "/" in name else f"openai/{name}"
        self._api_base = api_base
        self._api_key = api_key
        self._timeout_s = timeout_s
        host = api_base or f"https://{self.name.partition('/')[0]}"
        self._server = ServerLabel(api_base=host, secrets=(api_key,))

    async def text(self, name: str, content: bytes) -> str:
        """Return what is said in a recording of this name, whose ending tells its form. Raises the
        model errors of `memory.records.errors`."""
        arguments: dict[str, Any] = {
            "model": self.name,
            "file": (name, content),
            "timeout": self._timeout_s,
            "max_retries": 0,
        }
        if self._api_base:
            arguments["api_base"] = self._api_base
        if self._api_key:
            arguments["api_key"] = self._api_key
        try:
            async with asyncio.timeout(self._timeout_s):
                library = await asyncio.to_thread(_imported)
                heard = await library.atranscription(**arguments)
        except TimeoutError as error:
            raise ModelTimeout(f"{self._server.host} did not answer in time") from error
        except Exception as error:  # it raises whatever the libraries below it raise
            raise failure(error, CallProgress(server=self._server, name=self.name)) from error
        text = getattr(heard, "text", None)
        if not isinstance(text, str):
            raise BrokenAnswer(f"The answer of {self._server.host} has no text")
        return text[:TEXT_CHARS_MAX]
