"""A thin streaming client for every server that speaks OpenAI's chat completions.

OpenAI, OpenRouter, Groq, vLLM, Ollama, LM Studio, the embedded model. `bot.app` builds it,
`agent.turn.loop` calls it through the port. Retries are the business of `agent.models.fallback`.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from agent.models import chat_request
from agent.models.chat_request import Dialect
from agent.models.deadline import CallDeadline, CallLimits
from agent.models.errors import ServerLabel, refused, refused_in_stream
from agent.models.wire import EVENT_BYTES_MAX, Assembly, EventReader, EventTooLarge
from memory.records.errors import (
    AssistantError,
    BrokenAnswer,
    ModelRefused,
    ModelTimeout,
    Overloaded,
    SettingsWrong,
)
from memory.records.request import ModelRequest, ModelTraits
from memory.records.transcript import Answered

if TYPE_CHECKING:
    import ssl

    import aiohttp

_ERROR_BYTES_MAX = 64 * 1024
_HEADER_BYTES_MAX = 64 * 1024
IDLE_S = 2.0
"""How long an idle connection is kept: the rounds of one turn share it, and a server that drops
it meanwhile is noticed. llama.cpp and its like (the plain dialect) drop it in between."""

_LINGER_S = 0.05
_HERE = ("127.0.0.1", "::1", "localhost")
_SECRET = re.compile(r"key|token|auth|secret|cookie", re.IGNORECASE)


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
        limits: CallLimits | None = None,
    ) -> None:
        """Raises SettingsWrong when `api_base` or `api_key` cannot be one."""
        api_key = _key(api_key)
        address = _address(api_base)
        self._name = name
        self._url = _url(api_base, address)
        self._traits = traits or ModelTraits()
        self._dialect = dialect or Dialect()
        self._limits = limits or CallLimits()
        hidden = (v for name, v in self._dialect.headers.items() if _SECRET.search(name))
        self._server = ServerLabel(api_base=api_base, secrets=(api_key, *hidden))
        self._headers = _headers(api_key, address, self._dialect)
        self._opening = asyncio.Lock()
        self._route: _Route | None = None
        self._running: set[_HttpCall] = set()
        self._lingering: set[aiohttp.ClientResponse] = set()
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
        for response in list(self._lingering):
            self._hang_up(response)
        route, self._route = self._route, None
        if route is not None:
            await route.connector.close()

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        """See `memory.records.ports.Model`. One request, never more."""
        call = _HttpCall(
            server=self._server,
            name=self._name,
            deadline=CallDeadline(self._limits, host=self._server.host),
            assembly=Assembly(on_text, tokens_max=request.max_output_tokens),
        )
        content = chat_request.body(self._name, request, traits=self._traits, dialect=self._dialect)
        self._running.add(call)
        try:
            async with call.deadline.running():
                route = await self._open()
                async with route.session() as session:
                    with call.errors_told():
                        response = await session.post(
                            self._url,
                            data=content,
                            headers=self._headers,
                            allow_redirects=False,  # the key is for this server alone
                        )
                        answer = await call.read(response)
        except TimeoutError as error:
            raise (self._gone() if self._closed else call.deadline.late()) from error
        finally:
            self._running.discard(call)
        if response.connection is not None:
            # The end of the body comes a moment after the answer: then the connection can be
            # kept. A server that does not end it is hung up on.
            self._lingering.add(response)
            asyncio.get_running_loop().call_later(_LINGER_S, self._hang_up, response)
        return answer

    async def _open(self) -> _Route:
        """Made on first use: the library takes 100 ms to import, and reading the CA certificates
        20 to 50 ms. A thread does both, so that others are served meanwhile."""
        async with self._opening:
            if self._route is None and not self._closed:
                found = await asyncio.to_thread(_find, self._url)
                self._route = _Route(found, self._limits, keep=not self._dialect.plain)
            if self._route is None or self._closed:
                raise self._gone()
            return self._route

    def _hang_up(self, response: aiohttp.ClientResponse) -> None:
        self._lingering.discard(response)
        response.close()

    def _gone(self) -> Overloaded:
        return Overloaded(f"The connection to {self._server.host} is closed")


@dataclass(slots=True, kw_only=True, eq=False)
class _HttpCall:
    """One request and its answer, with what is needed to say how it went wrong."""

    server: ServerLabel
    name: str
    deadline: CallDeadline
    assembly: Assembly
    begun: bool = False

    @contextmanager
    def errors_told(self) -> Iterator[None]:
        """What the library raises inside is raised as an error of ours."""
        import aiohttp

        try:
            yield
        except aiohttp.ClientError as error:
            raise self.unreachable(error) from error

    async def read(self, response: aiohttp.ClientResponse) -> Answered:
        """The answer of a response, whose body need not have ended."""
        try:
            with _told_when_lost(response):
                return await self._answer(response)
        except BaseException:
            response.close()
            raise

    async def _answer(self, response: aiohttp.ClientResponse) -> Answered:
        if response.status != 200:
            text = (await self._read(response, _ERROR_BYTES_MAX)).decode("utf-8", "replace")
            raise refused(self.server, response.status, text, response.headers)
        self.begun = True
        if "json" in response.headers.get("content-type", ""):
            # Some servers answer in one piece whatever was asked.
            self._take((await self._read(response, EVENT_BYTES_MAX)).decode("utf-8", "replace"))
            return self._finished(done=True)
        return await self._stream(response)

    async def _stream(self, response: aiohttp.ClientResponse) -> Answered:
        import aiohttp

        done = False
        try:
            done = await self._events(response)
        except aiohttp.ClientError:
            if not self.assembly.finished:
                raise
        except EventTooLarge as error:
            raise self._broken(str(error)) from error
        if self.assembly.is_full:
            response.close()  # it may go on for ever
        return self._finished(done=done)

    async def _events(self, response: aiohttp.ClientResponse) -> bool:
        reader = EventReader()
        while piece := await self._piece(response):
            self.assembly.passes(piece)
            if self._take_all(reader.feed(piece)) or self.assembly.is_full:
                return True
        return self._take_all(reader.end())

    async def _piece(self, response: aiohttp.ClientResponse) -> bytes:
        """The next bytes, empty at the end; they wind up the watch for a stall again."""
        import aiohttp

        try:
            piece = await response.content.readany()
        except RuntimeError as error:  # its reader began to wait when the connection was gone
            raise aiohttp.ClientPayloadError("the connection was lost") from error
        self.deadline.wind_up()
        return piece

    async def _read(self, response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
        read = bytearray()
        while len(read) <= bytes_max and (piece := await self._piece(response)):
            read += piece
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

    def unreachable(self, error: aiohttp.ClientError) -> AssistantError:
        host = self.server.host
        if isinstance(error, TimeoutError):
            return ModelTimeout(f"{host} did not answer in time")
        said = self.server.quote(_reason(error)).replace("it said", "reason")
        if self.begun:
            return BrokenAnswer(f"The connection to {host} broke during the answer{said}")
        return Overloaded(
            f"{host} cannot be reached: is it running, and is the address right{said}"
        )


@contextmanager
def _told_when_lost(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Ends reading when the connection is lost. The library does so by itself, except where the
    server breaks the protocol in the middle of a body: there its reader would wait for ever."""
    import aiohttp

    content = response.content
    protocol = response.connection.protocol if response.connection is not None else None
    closed = protocol.closed if protocol is not None else None

    def lost(_: object) -> None:
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("it broke the protocol"))

    if closed is None:
        lost(None)
        yield
        return
    # Once for each connection, which may serve many calls: nobody else asks why it was lost.
    closed.remove_done_callback(_asked_why)
    closed.add_done_callback(_asked_why)
    closed.add_done_callback(lost)
    try:
        yield
    finally:
        closed.remove_done_callback(lost)


def _asked_why(closed: asyncio.Future[None]) -> None:
    if not closed.cancelled():
        closed.exception()


def _reason(error: aiohttp.ClientError) -> str:
    """What went wrong, without the address: it may hold a secret."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorError():
            return error.os_error.strerror or f"{error.os_error}"
        case aiohttp.ClientResponseError():
            return error.message
        case aiohttp.InvalidURL():
            return "no such address"
        case _:
            return f"{error}"


# --- the settings, checked ---------------------------------------------------------------------


def _address(api_base: str) -> SplitResult:
    try:
        parts = urlsplit(api_base.strip())
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        known = False
    if not known or any(one.isspace() or not one.isprintable() for one in api_base.strip()):
        raise SettingsWrong(
            "llm.api_base must be a web address such as https://api.openai.com/v1, or "
            "http://127.0.0.1:11434/v1"
        )
    return parts


def _url(api_base: str, address: SplitResult) -> str:
    """Without user and password: they are sent as a header."""
    base = api_base.strip()
    user, at, host = address.netloc.rpartition("@")
    if at:
        base = base.replace(f"{user}@{host}", host, 1)
    return f"{base.rstrip('/')}/chat/completions"


def _key(api_key: str) -> str:
    """Else the library would fail at each call, and name the key in its error."""
    api_key = api_key.strip()
    if not all("!" <= character <= "~" for character in api_key):
        raise SettingsWrong("llm.api_key holds a character that no key has: copy it again")
    return api_key


def _headers(api_key: str, address: SplitResult, dialect: Dialect) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    if address.username or address.password:
        user = f"{unquote(address.username or '')}:{unquote(address.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    return {**headers, **dialect.headers}


# --- the connection ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerRoute:
    """How a server is reached. `trusted` is None where there is no TLS."""

    trusted: ssl.SSLContext | None
    proxy: str | None


class _Route:
    """The connections to one server. Idle ones are kept for a moment, if `keep` says so.

    Knows no headers: those of a session would be sent to the proxy too, the key among them.
    """

    def __init__(self, found: _ServerRoute, limits: CallLimits, *, keep: bool) -> None:
        import aiohttp

        trusted = found.trusted or True
        self.connector = (
            aiohttp.TCPConnector(limit=0, ssl=trusted, keepalive_timeout=IDLE_S)
            if keep
            else aiohttp.TCPConnector(limit=0, ssl=trusted, force_close=True)
        )
        self._cookies = aiohttp.CookieJar()
        self._proxy = found.proxy
        # How long an answer may take is watched by the call itself.
        self._timeout = aiohttp.ClientTimeout(total=None, connect=limits.connect_timeout_s)

    def session(self) -> aiohttp.ClientSession:
        """One for each call, as it costs nothing: so none is left behind open."""
        import aiohttp

        return aiohttp.ClientSession(
            connector=self.connector,
            connector_owner=False,
            cookie_jar=self._cookies,
            proxy=self._proxy,
            timeout=self._timeout,
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
        )


def _find(url: str) -> _ServerRoute:
    """Also loads the library. May take a while, so it runs in a thread."""
    import aiohttp  # noqa: F401 - so that the event loop need not wait for it

    address = urlsplit(url)
    here = address.hostname in _HERE
    return _ServerRoute(
        trusted=_trusted(trust_env=not here) if address.scheme == "https" else None,
        proxy=None if here else _proxy(address),
    )


def _trusted(*, trust_env: bool) -> ssl.SSLContext:
    """The same authorities as Telegram's client has; SSL_CERT_FILE and SSL_CERT_DIR name others."""
    import httpx

    try:
        trusted = httpx.create_ssl_context(trust_env=trust_env)
    except OSError as error:
        raise ModelRefused(
            f"The certificates to check the model server with cannot be read ({error}): correct "
            "SSL_CERT_FILE or SSL_CERT_DIR in the environment"
        ) from error
    trusted.set_alpn_protocols(["http/1.1"])
    return trusted


def _proxy(address: SplitResult) -> str | None:
    """The proxy of the environment. The library would look it up in a thread at each request."""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise ModelRefused(
            f"The environment names a proxy of kind {proxy.partition(':')[0]} for the model "
            "server; only http and https proxies can be used: correct it, or name the server in "
            "NO_PROXY"
        )
    return proxy
