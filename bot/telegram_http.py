"""The requests of Telegram's library, in a fifth of the time: by aiohttp, once it is there.

Loading aiohttp takes 70 ms and 9 MB, and the client of the models does it at the first message. So
a bot that starts, and one that nobody writes to, does with what the library itself brings. That
is httpx, which also keeps the uploads and every way through a proxy. Used by `bot.telegram_web`.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

import httpx
from telegram.error import NetworkError, TimedOut
from telegram.request import HTTPXRequest, RequestData

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 10.0
IDLE_S = 5.0
"""How long an idle connection is kept, as httpx does: a server may drop it without a word."""

_HEADERS = {
    "User-Agent": HTTPXRequest.USER_AGENT,
    "Content-Type": "application/x-www-form-urlencoded",
}


def _is_loaded() -> bool:
    # Not while another thread is at it: to import it here then would be to wait for it.
    return hasattr(sys.modules.get("aiohttp"), "ClientSession")


class Request(HTTPXRequest):
    """Requests to one server, over so many connections at once. Times in seconds.

    What fails has httpx's or aiohttp's own error as its cause.
    """

    def __init__(
        self,
        read_s: float,
        *,
        connections: int,
        tls: ssl.SSLContext,
        is_loaded: Callable[[], bool] = _is_loaded,
    ) -> None:
        """`read_s` is also what sending and waiting for a free connection may take; `is_loaded`
        says whether aiohttp is there."""
        super().__init__(
            connection_pool_size=connections,
            read_timeout=read_s,
            write_timeout=read_s,
            connect_timeout=CONNECT_S,
            pool_timeout=read_s,
            httpx_kwargs={"trust_env": True, "verify": tls},
        )
        self._read_s = read_s
        self._connections = connections
        self._tls = tls
        self._is_loaded = is_loaded
        self._session: aiohttp.ClientSession | None = None
        self._is_direct = not getproxies()

    async def shutdown(self) -> None:
        """Gives its connections up; `initialize` makes it ready again."""
        session, self._session = self._session, None
        try:
            if session is not None:
                await session.close()
        finally:
            await super().shutdown()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = HTTPXRequest.DEFAULT_NONE,
        *more: Any,
        **limits: Any,
    ) -> tuple[int, bytes]:
        """See `BaseRequest.do_request`; without aiohttp, and for uploads, it is the library's."""
        has_files = request_data is not None and request_data.contains_files
        if has_files or not self._is_direct or not self._is_loaded() or self._client.is_closed:
            return await super().do_request(
                url, method, request_data, read_timeout, *more, **limits
            )
        read_s = read_timeout if isinstance(read_timeout, int | float) else self._read_s
        body = request_data.url_encoded_parameters() if request_data is not None else ""
        return await self._quickly(url, method, body, read_s=read_s)

    async def _quickly(
        self, url: str, method: str, body: str, *, read_s: float
    ) -> tuple[int, bytes]:
        import aiohttp
        from yarl import URL

        timeout = aiohttp.ClientTimeout(
            total=None, connect=self._read_s, sock_connect=CONNECT_S, sock_read=read_s
        )
        try:
            async with self._opened().request(
                method,
                URL(url, encoded=True),
                data=body.encode(),
                headers=_HEADERS,
                timeout=timeout,
                allow_redirects=False,  # the address holds the token
            ) as response:
                return response.status, await response.read()
        except aiohttp.ServerTimeoutError as error:
            raise TimedOut from error
        except aiohttp.ClientError as error:
            # The error's own words may hold the address.
            reason = error.strerror if isinstance(error, OSError) else ""
            raise NetworkError(f"{type(error).__name__}: {reason or 'no reason given'}") from error

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._connections, ssl=self._tls, keepalive_timeout=IDLE_S
            )
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


def is_unconnected_by(cause: BaseException | None) -> bool:
    """Whether a request failed because no connection could be made."""
    return isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout) or (
        _is_loaded() and _is_unconnected(cause)
    )


def was_surely_not_sent(cause: BaseException | None) -> bool:
    """Whether a request failed before any of it was sent."""
    return isinstance(cause, httpx.PoolTimeout) or is_unconnected_by(cause)


def _is_unconnected(cause: BaseException | None) -> bool:
    import aiohttp

    return isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
