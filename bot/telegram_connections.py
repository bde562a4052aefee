"""The connections to Telegram's server, by aiohttp: one request, and what surely became of it.

Opened by `bot.telegram_http`, which loads this file when it is needed.
Nothing that is raised here holds the address, for the address holds the token.
"""

from __future__ import annotations

import asyncio
import os
import select
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import aiohttp

from bot.telegram_http import Late, Limits, Unanswered, Unsent
from bot.telegram_upload import Upload

IDLE_S = 5.0
"""How long an idle connection is kept: a server that drops it later is not met."""
_HEADER_BYTES_MAX = 64 * 1024


class Connections:
    """Made inside the event loop. Raises nothing but what is named here."""

    def __init__(self, *, trusted: ssl.SSLContext | None, proxy: str | None, limit: int) -> None:
        """`trusted` is None where nothing is reached by TLS."""
        self._proxy = proxy
        self._session = aiohttp.ClientSession(
            connector=_Connector(limit=limit, trusted=trusted),
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
        )

    async def close(self) -> None:
        """Closes all, also those in use. May be called twice."""
        await self._session.close()

    async def ask(
        self,
        method: str,
        url: str,
        *,
        body: bytes | Upload | None,
        headers: dict[str, str],
        limits: Limits,
    ) -> tuple[int, bytes]:
        """Status and body of the answer; of a redirection too. Raises Unsent, Unanswered."""
        if self._session.closed:
            raise Unsent("the connections are closed")
        try:
            if isinstance(body, Upload):
                return await self._upload(method, url, body, headers=headers, limits=limits)
            return await self._exchange(method, url, body, headers=headers, limits=limits)
        # Not chained: the library's own errors name the address, the token in it included.
        except _NotMade as error:
            raise Unsent(error.reason, late=error.late) from None
        except TimeoutError:
            raise Late("no answer in time") from None
        except aiohttp.InvalidURL:
            raise Unsent("no such address") from None
        except aiohttp.ClientError as error:
            raise Unanswered(_reason(error)) from None

    async def _upload(
        self, method: str, url: str, upload: Upload, *, headers: dict[str, str], limits: Limits
    ) -> tuple[int, bytes]:
        """The library watches how long an answer takes, but not how long a server takes nothing."""
        headers = {**headers, "Content-Type": upload.content_type}
        if upload.length is not None:
            headers["Content-Length"] = str(upload.length)
        async with asyncio.timeout(None) as watch:
            pieces = upload.pieces(_wound_up(watch, limits))
            return await self._exchange(method, url, pieces, headers=headers, limits=limits)

    async def _exchange(
        self, method: str, url: str, data: Any, *, headers: dict[str, str], limits: Limits
    ) -> tuple[int, bytes]:
        async with self._session.request(
            method,
            url,
            data=data,
            headers=headers,  # not the session's, which a proxy would be told too
            proxy=self._proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                total=None,
                connect=_sum(limits.wait_s, limits.connect_s),
                sock_connect=limits.connect_s,
                sock_read=limits.read_s,
            ),
        ) as response:
            return response.status, await _whole(response)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _wound_up(watch: asyncio.Timeout, limits: Limits) -> Callable[[], None]:
    """To be called at each piece that went out; behind the last one the answer is waited for."""
    write_s, read_s = limits.write_s, limits.read_s
    if write_s is None or read_s is None:
        return lambda: None
    loop, longest_s = asyncio.get_running_loop(), max(write_s, read_s)
    return lambda: watch.reschedule(loop.time() + longest_s)


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    if response.content.is_eof():  # mostly it came in one piece with the head
        return await response.read()
    with _told_when_lost(response):
        try:
            return await response.read()
        except RuntimeError as error:  # it began to wait when the connection was gone
            raise aiohttp.ClientPayloadError from error


@contextmanager
def _told_when_lost(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Ends reading when the connection is lost. The library does so by itself, except where the
    server breaks the protocol in the middle of a body: there its reader would wait for ever."""
    content = response.content
    protocol = response.connection.protocol if response.connection is not None else None
    closed = protocol.closed if protocol is not None else None

    def lost(_: object) -> None:
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError())

    if closed is None:
        lost(None)
        yield
        return
    closed.remove_done_callback(_looked_at)  # once a connection, however many answers it brings
    closed.add_done_callback(_looked_at)
    closed.add_done_callback(lost)
    try:
        yield
    finally:
        closed.remove_done_callback(lost)


def _looked_at(closed: asyncio.Future[None]) -> None:
    """Else the loop would complain that nobody asked why the connection was lost."""
    if not closed.cancelled():
        closed.exception()


def _reason(error: aiohttp.ClientError) -> str:
    """What went wrong, in words of our own: the library's quote the address, or the answer."""
    match error:
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before the answer"
        case aiohttp.ClientPayloadError():
            return "the answer broke off"
        case aiohttp.ClientResponseError():
            return "the answer is not HTTP"
        case OSError(errno=int() as number):
            return os.strerror(number)
        case _:
            return type(error).__name__


# --- before there is a connection --------------------------------------------------------------


class _NotMade(aiohttp.ClientError):
    """Whatever went wrong before there was a connection."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.late = late


class _Connector(aiohttp.TCPConnector):
    """Tells trouble before the first byte of a request from all later one, and gives out no
    connection on which the server has already hung up."""

    def __init__(self, *, limit: int, trusted: ssl.SSLContext | None) -> None:
        super().__init__(limit=limit, ssl=trusted or True, keepalive_timeout=IDLE_S)
        self._used: WeakSet[Any] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> Any:
        try:
            while True:
                connection = await super().connect(req, traces, timeout)
                if not self._is_stale(connection):
                    return connection
                connection.close()
        except TimeoutError:
            raise _NotMade("no connection in time", late=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _NotMade(_why_none(error)) from None

    def _is_stale(self, connection: Any) -> bool:
        """A server says nothing unasked: what can be read on an idle connection is its end, which
        the event loop has not seen yet. A new connection is never stale, so the search ends."""
        if connection.protocol not in self._used:
            self._used.add(connection.protocol)
            return False
        waiting = select.poll()
        waiting.register(connection.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(waiting.poll(0))


def _why_none(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            found = error.certificate_error
            return f"its certificate is not trusted ({getattr(found, 'verify_message', found)})"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered with HTTP status {error.status}"
        case aiohttp.ClientConnectorError():
            return error.os_error.strerror or str(error.os_error)
        case aiohttp.ClientError():
            return _reason(error)
        case _:
            return type(error).__name__
