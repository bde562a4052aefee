"""A thin streaming client for every server that speaks OpenAI's chat completions.

OpenAI, OpenRouter, Groq, vLLM, Ollama, LM Studio, the embedded model. `bot.app` builds it,
`agent.loop` calls it through the port. Retries are `agent.models.retry`'s business.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from agent.errors import AssistantError, BrokenAnswer, ModelTimeout, Overloaded, SettingsWrong
from agent.models import wire
from agent.models.assembly import Assembly
from agent.models.refusals import Server, refused, refused_in_stream
from agent.models.sse import EVENT_BYTES_MAX, EventReader, EventTooLarge
from agent.models.wire import Dialect
from agent.request import ModelRequest, ModelTraits
from agent.transcript import Answered

_ERROR_BYTES_MAX = 64 * 1024
IDLE_S = 2.0
"""How long an idle connection is kept: the rounds of one turn share it, and a server that drops
it meanwhile is noticed. llama.cpp and its like (the plain dialect) drop it in between."""

_LINGER_S = 0.05
_SECRET = re.compile(r"key|token|auth|secret|cookie", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long one call may take: in all, to connect, and between two pieces of an answer."""

    timeout_s: float = 120
    connect_timeout_s: float = 10
    stall_timeout_s: float = 60


class OpenAICompatible:
    """One model at one server. Enter it, or call `aclose`, to give its connections back."""

    def __init__(
        self,
        name: str,
        *,
        api_base: str,
        api_key: str = "",
        traits: ModelTraits | None = None,
        dialect: Dialect | None = None,
        limits: Limits | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        """Raises SettingsWrong when `api_base` or `api_key` cannot be one.

        A given `client` stays open.
        """
        api_key = _key(api_key)
        self._name = name
        self._url = _url(api_base)
        self._traits = traits or ModelTraits()
        self._dialect = dialect or Dialect()
        self._limits = limits or Limits()
        hidden = (v for name, v in self._dialect.headers.items() if _SECRET.search(name))
        self._server = Server(api_base=api_base, secrets=(api_key, *hidden))
        self._headers = _headers(api_key, self._dialect)
        self._given = client
        self._client = client
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
        client, self._client = self._client, None
        if client is not None and client is not self._given:
            await client.aclose()

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        """See `agent.ports.Model`. One request, never more."""
        loop = asyncio.get_running_loop()
        call = _Call(
            server=self._server,
            name=self._name,
            deadline=loop.time() + self._limits.timeout_s,
            stall_s=self._limits.stall_timeout_s,
            assembly=Assembly(on_text),
        )
        content = wire.body(self._name, request, traits=self._traits, dialect=self._dialect)
        try:
            async with asyncio.timeout_at(call.deadline) as call.watch:
                return await call.run(self._open(), self._request(content))
        except TimeoutError as error:
            raise call.late() from error
        except httpx.RequestError as error:
            raise call.unreachable(error) from error

    def _request(self, content: bytes) -> httpx.Request:
        timeout = httpx.Timeout(None, connect=self._limits.connect_timeout_s)
        return self._open().build_request(
            "POST", self._url, content=content, headers=self._headers, timeout=timeout
        )

    def _open(self) -> httpx.AsyncClient:
        """The client is made on first use: reading the CA certificates takes 20 to 50 ms."""
        if self._closed:
            raise Overloaded(f"The connection to {self._server.host} is closed")
        if self._client is None:
            self._client = new_client(self._url, idle_s=0 if self._dialect.plain else IDLE_S)
        return self._client


@dataclass(slots=True, kw_only=True)
class _Call:
    """One request and its answer, with what is needed to say how it went wrong."""

    server: Server
    name: str
    deadline: float
    stall_s: float
    assembly: Assembly
    watch: asyncio.Timeout | None = None
    begun: bool = False

    async def run(self, client: httpx.AsyncClient, request: httpx.Request) -> Answered:
        response = await client.send(request, stream=True)
        try:
            if response.status_code != 200:
                text = (await self._read(response, _ERROR_BYTES_MAX)).decode("utf-8", "replace")
                raise refused(self.server, response.status_code, text, response.headers)
            self.begun = True
            if "json" in response.headers.get("content-type", ""):
                return await self._whole(response)
            return await self._stream(response)
        finally:
            await response.aclose()

    async def _whole(self, response: httpx.Response) -> Answered:
        """Some servers answer in one piece whatever was asked."""
        self._take((await self._read(response, EVENT_BYTES_MAX)).decode("utf-8", "replace"))
        return self._finished(done=True)

    async def _stream(self, response: httpx.Response) -> Answered:
        done = False
        try:
            async with aclosing(self._pieces(response)) as pieces:
                done = await self._events(pieces)
                if done:
                    await _linger(pieces)
        except httpx.RequestError:
            if not self.assembly.finished:
                raise
        except EventTooLarge as error:
            raise self._broken(str(error)) from error
        return self._finished(done=done)

    async def _events(self, pieces: AsyncGenerator[bytes, None]) -> bool:
        reader = EventReader()
        async for piece in pieces:
            if self._take_all(reader.feed(piece)):
                return True
        return self._take_all(reader.end())

    async def _pieces(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """The bytes as they come; each one winds up the watch for a stall again."""
        loop = asyncio.get_running_loop()
        async for piece in response.aiter_bytes():
            if self.watch is not None:
                self.watch.reschedule(min(self.deadline, loop.time() + self.stall_s))
            yield piece

    async def _read(self, response: httpx.Response, bytes_max: int) -> bytes:
        read = bytearray()
        async for piece in self._pieces(response):
            read += piece
            if len(read) > bytes_max:
                break
        return bytes(read[:bytes_max])

    def _take_all(self, events: list[str]) -> bool:
        """True at [DONE]; what follows it does not matter."""
        for data in events:
            if data.strip() == "[DONE]":
                return True
            self._take(data)
        return False

    def _take(self, data: str) -> None:
        for document in self._documents(data):
            if not isinstance(document, dict):
                raise self._broken("a chunk that is no JSON object")
            if document.get("error"):
                raise refused_in_stream(self.server, document)
            self.assembly.take(document)

    def _documents(self, data: str) -> list[Any]:
        """One JSON value; or one a line, from servers that forget the blank line between."""
        try:
            return [json.loads(data)]
        except ValueError as error:
            failed = error
        try:
            return [json.loads(line) for line in data.splitlines() if line.strip()]
        except ValueError:
            raise self._broken(f"{failed}") from failed

    def _finished(self, *, done: bool) -> Answered:
        try:
            return self.assembly.answer(self.name, done=done)
        except BrokenAnswer as error:
            raise self._broken(f"{error}") from error

    def _broken(self, why: str) -> BrokenAnswer:
        return BrokenAnswer(f"The answer of {self.server.host} cannot be read: {why}")

    def late(self) -> ModelTimeout:
        now = asyncio.get_running_loop().time()
        if now < self.deadline:
            return ModelTimeout(f"{self.server.host} stopped in the middle of its answer")
        return ModelTimeout(f"{self.server.host} did not finish its answer in time")

    def unreachable(self, error: httpx.RequestError) -> AssistantError:
        host, said = self.server.host, self.server.quote(f"{error}").replace("it said", "reason")
        if isinstance(error, httpx.TimeoutException):
            return ModelTimeout(f"{host} did not answer in time{said}")
        if self.begun:
            return BrokenAnswer(f"The connection to {host} broke during the answer{said}")
        return Overloaded(
            f"{host} cannot be reached: is it running, and is the address right{said}"
        )


async def _linger(pieces: AsyncGenerator[bytes, None]) -> None:
    """Reads what comes after [DONE] (the end of the body), so that the connection can be kept."""
    with suppress(TimeoutError, httpx.RequestError):
        async with asyncio.timeout(_LINGER_S):
            async for _ in pieces:
                pass


def _url(api_base: str) -> str:
    try:
        url = httpx.URL(api_base.strip())
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise SettingsWrong(
            "llm.api_base must be a web address such as https://api.openai.com/v1, or "
            "http://127.0.0.1:11434/v1"
        )
    return f"{api_base.strip().rstrip('/')}/chat/completions"


def _key(api_key: str) -> str:
    """Else the library would fail at each call, and name the key in its error."""
    api_key = api_key.strip()
    if not all("!" <= character <= "~" for character in api_key):
        raise SettingsWrong("llm.api_key holds a character that no key has: copy it again")
    return api_key


def _headers(api_key: str, dialect: Dialect) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    return {**headers, **dialect.headers}


def new_client(url: str, *, idle_s: float = 0) -> httpx.AsyncClient:
    """A client for one address, whose idle connections are kept `idle_s` seconds.

    Without TLS no certificates are read; a context without any trusts nobody, so it is safe.
    """
    parts = urlsplit(url)
    plain = parts.scheme == "http"
    here = parts.hostname in ("127.0.0.1", "::1", "localhost")
    return httpx.AsyncClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        trust_env=not here,
        limits=httpx.Limits(
            max_connections=None,
            max_keepalive_connections=50 if idle_s else 0,
            keepalive_expiry=idle_s,
        ),
    )
