"""The guarded client: every fetch of what a person, a model or a page named goes through it.

A name is looked up once, every address it has is checked, and the connection is made to exactly
those; each redirect begins anew. Nothing of the environment (proxies, .netrc, cookies) is used, and
bytes, time and hops have bounds. Used by the web tools, search services and downloads.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
import zlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from agent.version import VERSION
from agent.web.addresses import (
    AddressRefused,
    AllowedHosts,
    IPAddress,
    UrlRefused,
    WebUrl,
    is_public,
    joined,
    kind_of,
    parse_url,
)
from memory.records.errors import AssistantError, Permanent, Temporary

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver
    from aiohttp.connector import AddrInfoType

USER_AGENT = f"Mozilla/5.0 (compatible; Hearthbot/{VERSION})"
ADDRESSES_MAX = 16
"""Addresses of one name that are looked at; a name with more is cut, after all were checked."""
ERROR_BYTES_MAX = 65_536
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK_BYTES = 65_536


class NotReached(Temporary):
    """Nothing, or nothing whole, came from there within the time."""


class AnswerRefused(Permanent):
    """What came is too much, or cannot be used."""


class OtherKind(AnswerRefused):
    """It is of another content type than was asked for; `content_type` is what it says."""

    def __init__(self, message: str, *, content_type: str) -> None:
        super().__init__(message)
        self.content_type = content_type


Resolve = Callable[[str], Awaitable[Sequence[IPAddress]]]
"""Looks up all addresses of a name, which may be others each time. Raises OSError when it has
none."""


async def system_addresses(host: str) -> Sequence[IPAddress]:
    """Look a name up as this machine does: hosts file and DNS."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ipaddress.ip_address(each[4][0]) for each in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """`allowed` are private places that may be reached. Seconds: of a whole fetch with all its
    redirects, of one connection, and between two pieces of an answer."""

    allowed: AllowedHosts = field(default_factory=AllowedHosts)
    redirects_max: int = 5
    body_bytes_max: int = 10_000_000
    total_s: float = 30.0
    connect_s: float = 10.0
    idle_s: float = 15.0
    user_agent: str = USER_AGENT


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """One fetch. `types` are patterns of the content types that are wanted (none: all), such as
    `image/*`; the body of another is not read. `secrets` are headers that no other host may see:
    with them, a redirect elsewhere is refused. `also` adds to the places that may be reached, for
    a service that the owner named."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = None
    types: tuple[str, ...] = ()
    also: AllowedHosts = field(default_factory=AllowedHosts)
    bytes_max: int | None = None
    total_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer, whatever its status. `url` is where it came from in the end; `content_type` is in
    small letters, without parameters. Of an error (from 400 on) the body may be cut."""

    url: WebUrl
    status: int
    content_type: str
    charset: str
    body: bytes
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Redirect:
    location: str
    status: int


class WebClient:
    """Fetches within bounds, from public places and those that are allowed. Keeps nothing from one
    fetch to the next, and may be used for many at once."""

    def __init__(
        self,
        options: ClientOptions,
        *,
        resolve: Resolve = system_addresses,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._options = options
        self._resolve = resolve
        self._tls = tls

    async def fetch(self, request: WebRequest) -> Fetched:
        """The answer, decompressed. Raises UrlRefused, AddressRefused, NotReached, AnswerRefused;
        their sentences hold nothing that the other side wrote."""
        url = parse_url(request.url)
        total_s = request.total_s or self._options.total_s
        try:
            async with asyncio.timeout(total_s):
                return await self._followed(url, request)
        except TimeoutError as error:
            raise NotReached(f"{url.host} did not answer in full within {total_s:g} s.") from error

    def refuse(self, url: WebUrl, also: AllowedHosts | None = None) -> None:
        """Raises AddressRefused where that is plain without a look-up: numbers, and this machine
        by its usual name. For whoever wants to know before a person is asked."""
        if url.host == "localhost" or url.host.endswith(".localhost"):
            self._check(url, [ipaddress.IPv4Address("127.0.0.1")], also or AllowedHosts())
        elif (literal := _literal(url.host)) is not None:
            self._check(url, [literal], also or AllowedHosts())

    async def addresses(self, url: WebUrl, also: AllowedHosts | None = None) -> list[IPAddress]:
        """Where to connect to for this host, every one checked. Raises AddressRefused,
        NotReached. For whoever needs a client of its own: connect to these and to no others."""
        literal = _literal(url.host)
        if literal is not None:
            found: Sequence[IPAddress] = [literal]
        else:
            try:
                found = await self._resolve(url.host)
            except (OSError, UnicodeError) as error:
                raise NotReached(f"{url.host} was not found; check how it is written.") from error
        if not found:
            raise NotReached(f"{url.host} has no address.")
        self._check(url, found, also or AllowedHosts())
        return list(found[:ADDRESSES_MAX])

    def _check(self, url: WebUrl, found: Sequence[IPAddress], also: AllowedHosts) -> None:
        """All of them: with one private address among public ones, chance would decide."""
        allowed = self._options.allowed | also
        for address in found:
            if not is_public(address) and not allowed.allow(url.host, url.port, address):
                raise AddressRefused(
                    f"{url.host} leads to {kind_of(address)}, which is not fetched. If that is "
                    "wanted, the owner can add it to web.allowed_hosts."
                )

    async def _followed(self, asked: WebUrl, request: WebRequest) -> Fetched:
        url = asked
        for _ in range(self._options.redirects_max + 1):
            try:
                answer = await self._asked(url, request)
                if isinstance(answer, Fetched):
                    return answer
                url = _next(url, answer, request)
            except AssistantError as error:
                # Its name is words of the other side, which a sentence of ours must not hold.
                words = str(error).replace(url.host, named(url, asked))
                error.args = (words, *error.args[1:])
                raise
        raise AnswerRefused(
            f"The address redirects more than {self._options.redirects_max} times; nothing was "
            "read."
        )

    async def _asked(self, url: WebUrl, request: WebRequest) -> Fetched | _Redirect:
        """One hop, on a connection of its own."""
        import aiohttp

        pinned = await self.addresses(url, request.also)
        try:
            async with self._session(pinned) as session:
                return await self._exchange(session, url, request)
        except TimeoutError as error:
            raise NotReached(f"{url.host} took too long to answer.") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotReached(f"{url.host} could not be read: {_trouble(error)}.") from error

    def _session(self, pinned: Sequence[IPAddress]) -> aiohttp.ClientSession:
        import aiohttp

        options = self._options
        connector = aiohttp.TCPConnector(
            resolver=_pinned_resolver(pinned),
            use_dns_cache=False,
            force_close=True,
            ssl=self._tls or True,
            socket_factory=_only(pinned),
        )
        return aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=options.connect_s, sock_read=options.idle_s
            ),
        )

    async def _exchange(
        self, session: aiohttp.ClientSession, url: WebUrl, request: WebRequest
    ) -> Fetched | _Redirect:
        from yarl import URL

        headers = {
            "User-Agent": self._options.user_agent,
            "Accept": "*/*",
            "Accept-Encoding": "gzip, deflate",
            **request.headers,
            **request.secrets,
        }
        async with session.request(
            request.method,
            URL(str(url), encoded=True),
            headers=headers,
            data=request.body,
            allow_redirects=False,
        ) as response:
            location = response.headers.get("Location")
            if response.status in _REDIRECTS and location is not None:
                return _Redirect(location=location, status=response.status)
            return await self._read(response, url, request)

    async def _read(
        self, response: aiohttp.ClientResponse, url: WebUrl, request: WebRequest
    ) -> Fetched:
        content_type, charset = _content_type(response.headers.get("Content-Type", ""))
        failed = response.status >= 400
        wanted = not request.types or any(fnmatchcase(content_type, t) for t in request.types)
        # An answer that says nothing of its type is let pass: many small servers do not.
        if content_type and not wanted and not failed:
            raise OtherKind(
                f"{url.host} sent a file of another kind than was wanted.",
                content_type=content_type,
            )
        bytes_max = request.bytes_max or self._options.body_bytes_max
        if failed:
            bytes_max = min(bytes_max, ERROR_BYTES_MAX)
        elif (response.content_length or 0) > bytes_max:
            raise _too_large(url, bytes_max)
        encoding = response.headers.get("Content-Encoding", "")
        pause = response.headers.get("Retry-After", "").strip()
        body = bytearray()
        async with aclosing(_inflated(response.content.iter_any(), encoding, url)) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > bytes_max:
                    break
        if len(body) > bytes_max and not failed:
            raise _too_large(url, bytes_max)
        return Fetched(
            url=url,
            status=response.status,
            content_type=content_type,
            charset=charset,
            body=bytes(body[:bytes_max]),
            retry_after_s=float(pause) if re.fullmatch(r"[0-9]{1,6}", pause) else None,
        )


# --- connections to checked addresses ----------------------------------------------------------


def _literal(host: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _pinned_resolver(pinned: Sequence[IPAddress]) -> AbstractResolver:
    """Gives the checked addresses for whatever is looked up; it knows no others."""
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Pinned(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            return [
                ResolveResult(
                    hostname=host,
                    host=str(address),
                    port=port,
                    family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                    proto=0,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
                for address in pinned
            ]

        async def close(self) -> None:
            pass

    return Pinned()


def _only(pinned: Sequence[IPAddress]) -> Any:
    """Makes sockets for checked addresses alone: the last word, whatever a library looked up."""
    allowed = frozenset(pinned)

    def make(info: AddrInfoType) -> socket.socket:
        family, kind, proto, _, where = info
        if ipaddress.ip_address(where[0]) not in allowed:
            raise OSError("the address is not the one that was checked")
        made = socket.socket(family=family, type=kind, proto=proto)
        made.setblocking(False)
        return made

    return make


# --- redirects ---------------------------------------------------------------------------------


def named(url: WebUrl, asked: WebUrl) -> str:
    """A host for a sentence of ours: one to which others lead is named by who was asked for."""
    return url.host if url.host == asked.host else f"a place that {asked.host} redirects to"


def _next(url: WebUrl, moved: _Redirect, request: WebRequest) -> WebUrl:
    """Where to go on. What is asked with a body is not asked again elsewhere."""
    if request.method not in {"GET", "HEAD"}:
        raise AnswerRefused(f"{url.host} redirects what was sent to it; nothing was sent on.")
    try:
        target = joined(url, moved.location)
    except UrlRefused as error:
        raise AddressRefused(
            f"{url.host} redirects to what is no usable web address; nothing was read from there."
        ) from error
    if request.secrets and target.origin != url.origin:
        raise AddressRefused(
            f"{url.host} redirects to another place, which may not see the key; nothing was sent "
            "there."
        )
    return target


# --- what comes back ---------------------------------------------------------------------------

_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)


def _content_type(header: str) -> tuple[str, str]:
    """Type and charset of a Content-Type header; empty where it has none."""
    kind = header.partition(";")[0].strip().lower()
    charset = _CHARSET.search(header)
    return (
        kind if len(kind) <= 100 and _TYPE.fullmatch(kind) else "",
        charset[1].lower() if charset else "",
    )


def _too_large(url: WebUrl, bytes_max: int) -> AnswerRefused:
    return AnswerRefused(
        f"What {url.host} sends is larger than {bytes_max / 1_000_000:g} MB; it was not read."
    )


def _trouble(error: Exception) -> str:
    """In words of ours: a library's message can hold what the other side wrote."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not valid for it"
        case aiohttp.ClientSSLError():
            return "no encrypted connection could be made"
        case aiohttp.ClientConnectorError():
            return "no connection could be made"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "its answer broke off or is garbled"
        case _:
            return "its answer is not proper HTTP"


# --- decompression within bounds ---------------------------------------------------------------


async def _inflated(
    pieces: AsyncIterator[bytes], encoding: str, url: WebUrl
) -> AsyncGenerator[bytes, None]:
    """The pieces of a body, decompressed into pieces of at most 64 KB, so that the caller can stop
    a bomb early. Raises AnswerRefused."""
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        async for piece in pieces:
            yield piece
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise AnswerRefused(f"{url.host} sent its answer in a compression that was not asked for.")
    inflater = _Inflater(gzip=encoding != "deflate")
    try:
        async for piece in pieces:
            for part in inflater.feed(piece):
                yield part
    except zlib.error as error:
        raise AnswerRefused(f"What {url.host} sent cannot be decompressed.") from error
    if not inflater.whole:
        raise NotReached(f"The answer of {url.host} broke off.")


class _Inflater:
    """gzip of several members, and both meanings that "deflate" has in the wild."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._stream: Any = zlib.decompressobj(16 + zlib.MAX_WBITS) if gzip else None
        self._fed = False

    @property
    def whole(self) -> bool:
        """Return whether the end was reached; an answer without a byte is whole too."""
        return not self._fed or self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what a piece gives. A generator, so that no more is made than is taken."""
        if not data:
            return
        if self._stream is None:
            raw = (data[0] & 0x0F) != 8
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
        self._fed = True
        more = True
        while data or more:
            if self._stream.eof:
                if not self._gzip or not data.startswith(b"\x1f\x8b"):
                    return  # padding behind the end
                self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
            part = self._stream.decompress(data, _CHUNK_BYTES)
            yield part
            ended = self._stream.eof
            data = self._stream.unused_data if ended else self._stream.unconsumed_tail
            more = len(part) == _CHUNK_BYTES and not ended  # some may be left inside
