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
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from agent.models import chat_request
from agent.models.chat_request import Dialect
from agent.models.client import (
    CallDeadline,
    CallLimits,
    ModelClient,
    checked_address,
    checked_key,
    is_here,
)
from agent.models.errors import CallProgress, ServerLabel, refused, refused_in_stream
from agent.models.wire import EVENT_BYTES_MAX, Assembly, EventReader, EventTooLarge
from memory.records.errors import AssistantError, BrokenAnswer, ModelRefused, ModelTimeout
from memory.records.transcript import Answered, ModelRequest, ModelTraits

if TYPE_CHECKING:
    import ssl

    import aiohttp

_ERROR_BYTES_MAX = 64 * 1024
_HEADER_BYTES_MAX = 64 * 1024
IDLE_S = 2.0
"""How long an idle connection is kept: the rounds of one turn share it, and a server that drops
it meanwhile is noticed. llama.cpp and its like (the plain dialect) drop it in between."""

_LINGER_S = 0.05
_SECRET = re.compile(r"key|token|auth|secret|cookie", re.IGNORECASE)


class OpenAICompatible(ModelClient):
    """A model at a server that speaks OpenAI's language."""

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
        api_key = checked_key(api_key)
        address = checked_address(
            api_base, "https://api.openai.com/v1, or http://127.0.0.1:11434/v1"
        )
        self._dialect = dialect or Dialect()
        hidden = (v for name, v in self._dialect.headers.items() if _SECRET.search(name))
        server = ServerLabel(api_base=api_base, secrets=(api_key, *hidden))
        super().__init__(name, server=server, traits=traits, limits=limits)
        # Without user and password: they are sent as a header.
        user, at, host = address.netloc.rpartition("@")
        base = api_base.strip().replace(f"{user}{at}{host}", host, 1).rstrip("/")
        self._url = f"{base}/chat/completions"
        self._headers = _headers(api_key, address, self._dialect)
        self._connector: aiohttp.TCPConnector | None = None
        self._cookies: aiohttp.CookieJar | None = None
        self._proxy: str | None = None
        self._lingering: set[aiohttp.ClientResponse] = set()

    async def _disconnect(self) -> None:
        for response in list(self._lingering):
            self._hang_up(response)
        connector, self._connector = self._connector, None
        if connector is not None:
            await connector.close()

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        """See `memory.records.ports.Model`. One request, never more."""
        content = chat_request.body(self.name, request, traits=self.traits, dialect=self._dialect)
        async with self._deadline() as deadline:
            call = _HttpCall(
                server=self._server,
                name=self.name,
                deadline=deadline,
                assembly=Assembly(on_text, tokens_max=request.max_output_tokens),
            )
            async with await self._open() as session:
                with call.errors_told():
                    response = await session.post(
                        self._url,
                        data=content,
                        # Here and not in the session: its headers would be sent to a proxy too,
                        # the key among them.
                        headers=self._headers,
                        allow_redirects=False,  # the key is for this server alone
                    )
                    answer = await call.read(response)
        if response.connection is not None:
            # The end of the body comes a moment after the answer: then the connection can be
            # kept. A server that does not end it is hung up on.
            self._lingering.add(response)
            asyncio.get_running_loop().call_later(_LINGER_S, self._hang_up, response)
        return answer

    async def _open(self) -> aiohttp.ClientSession:
        """A session on the connections to the server; one for each call, as it costs nothing: so
        none is left behind open.

        The library takes 100 ms to import, and reading the CA certificates 20 to 50 ms. A thread
        does both at the first call, so that others are served meanwhile.
        """
        async with self._opening:
            if self._connector is None and not self._closed:
                trusted, self._proxy = await asyncio.to_thread(_find, self._url)
                import aiohttp

                self._cookies = aiohttp.CookieJar()
                self._connector = (
                    aiohttp.TCPConnector(limit=0, ssl=trusted, force_close=True)
                    if self._dialect.plain
                    else aiohttp.TCPConnector(limit=0, ssl=trusted, keepalive_timeout=IDLE_S)
                )
            if self._connector is None or self._closed:
                raise self._gone()
        import aiohttp

        return aiohttp.ClientSession(
            connector=self._connector,
            connector_owner=False,
            cookie_jar=self._cookies,
            proxy=self._proxy,
            # How long an answer may take is watched by the call itself.
            timeout=aiohttp.ClientTimeout(total=None, connect=self._limits.connect_timeout_s),
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
        )

    def _hang_up(self, response: aiohttp.ClientResponse) -> None:
        self._lingering.discard(response)
        response.close()


@dataclass(slots=True, kw_only=True, eq=False)
class _HttpCall(CallProgress):
    """One request and its answer, with what is needed to say how it went wrong."""

    deadline: CallDeadline
    assembly: Assembly

    @contextmanager
    def errors_told(self) -> Iterator[None]:
        """What the library raises inside is raised as an error of ours."""
        import aiohttp

        try:
            yield
        except aiohttp.ClientError as error:
            raise self._lost(error) from error

    async def read(self, response: aiohttp.ClientResponse) -> Answered:
        """The answer of a response, whose body need not have ended."""
        try:
            with _told_when_lost(response):
                if response.status != 200:
                    text = (await self._read(response, _ERROR_BYTES_MAX)).decode("utf-8", "replace")
                    raise refused(self.server, response.status, text, response.headers)
                self.begun = True
                if "json" not in response.headers.get("content-type", ""):
                    return await self._stream(response)
                # Some servers answer in one piece whatever was asked.
                whole = await self._read(response, EVENT_BYTES_MAX)
                self._take(whole.decode("utf-8", "replace"))
                return self._finished(done=True)
        except BaseException:
            response.close()
            raise

    async def _stream(self, response: aiohttp.ClientResponse) -> Answered:
        import aiohttp

        reader = EventReader()
        done = False
        try:
            while not done and not self.assembly.is_full:
                piece = await self._piece(response)
                self.assembly.passes(piece)
                done = self._take_all(reader.feed(piece) if piece else reader.end())
                if not piece:
                    break
        except aiohttp.ClientError:
            if not self.assembly.finished:
                raise
        except EventTooLarge as error:
            raise self.broken(str(error)) from error
        if self.assembly.is_full:
            response.close()  # it may go on for ever
        return self._finished(done=done)

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
        try:
            documents = [json.loads(data)]
        except ValueError as failed:
            # One a line, from servers that forget the blank line between.
            try:
                documents = [json.loads(line) for line in data.splitlines() if line.strip()]
            except ValueError:
                raise self.broken(f"{failed}") from failed
        for document in documents:
            if not isinstance(document, dict):
                raise self.broken("a chunk that is no JSON object")
            if document.get("error"):
                raise refused_in_stream(self.server, document)
            self.assembly.take(document)

    def _finished(self, *, done: bool) -> Answered:
        try:
            return self.assembly.answer(self.name, done=done)
        except BrokenAnswer as error:
            raise self.broken(f"{error}") from error

    def _lost(self, error: aiohttp.ClientError) -> AssistantError:
        """Say what went wrong without the address: it may hold a secret."""
        import aiohttp

        match error:
            case TimeoutError():
                return ModelTimeout(f"{self.server.host} did not answer in time")
            case aiohttp.ClientConnectorError():
                return self.unreached(error.os_error.strerror or f"{error.os_error}")
            case aiohttp.ClientResponseError():
                return self.unreached(error.message)
            case aiohttp.InvalidURL():
                return self.unreached("no such address")
            case _:
                return self.unreached(f"{error}")


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


def _headers(api_key: str, address: SplitResult, dialect: Dialect) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    if address.username or address.password:
        user = f"{unquote(address.username or '')}:{unquote(address.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    return {**headers, **dialect.headers}


def _find(url: str) -> tuple[ssl.SSLContext | bool, str | None]:
    """Return whom to trust and which proxy leads to a server. Also loads the library, and may take
    a while, so it runs in a thread.

    The authorities are those of Telegram's client; SSL_CERT_FILE and SSL_CERT_DIR name others. The
    proxy is that of the environment, which the library would look up at each request.
    """
    import aiohttp  # noqa: F401 - so that the event loop need not wait for it
    import httpx

    address, here = urlsplit(url), is_here(url)
    trusted: ssl.SSLContext | bool = True
    if address.scheme == "https":
        try:
            trusted = httpx.create_ssl_context(trust_env=not here)
        except OSError as error:
            raise ModelRefused(
                f"The certificates to check the model server with cannot be read ({error}): "
                "correct SSL_CERT_FILE or SSL_CERT_DIR in the environment"
            ) from error
        trusted.set_alpn_protocols(["http/1.1"])
    proxies = {} if here else getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.netloc.rpartition("@")[2]):
        return trusted, None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise ModelRefused(
            f"The environment names a proxy of kind {proxy.partition(':')[0]} for the model "
            "server; only http and https proxies can be used: correct it, or name the server in "
            "NO_PROXY"
        )
    return trusted, proxy
