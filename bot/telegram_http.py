"""Requests to Telegram in a fifth of the time: by aiohttp, once it is there.

Loading aiohttp takes 70 ms and 9 MB, and the client of the models does it at the first message. So
a bot that starts, and one that nobody writes to, does with what python-telegram-bot itself brings:
httpx, which also keeps the uploads and every way through a proxy. Used by `bot.telegram_web`.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.request import getproxies

import httpx

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 10.0
IDLE_S = 5.0
"""How long an idle connection is kept, as httpx does: a server may drop it without a word."""


def is_loaded() -> bool:
    """Whether aiohttp is there."""
    # Not while another thread is at it: to import it here then would be to wait for it.
    return hasattr(sys.modules.get("aiohttp"), "ClientSession")


class Posts:
    """Requests over so many connections at once. Times in seconds."""

    def __init__(
        self,
        wait_s: float,
        *,
        connections: int,
        tls: ssl.SSLContext,
        headers: dict[str, str],
        loaded: Callable[[], bool] = is_loaded,
    ) -> None:
        """`wait_s` is what waiting for a free connection may take."""
        self._wait_s = wait_s
        self._connections = connections
        self._tls = tls
        self._headers = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        self._loaded = loaded
        self._is_direct = not getproxies()
        self._session: aiohttp.ClientSession | None = None

    @property
    def can_be_made(self) -> bool:
        """Whether aiohttp is there, and no proxy is to be asked."""
        return self._is_direct and self._loaded()

    @property
    def is_open(self) -> bool:
        """Whether there may be connections."""
        return self._session is not None

    async def make(self, method: str, url: str, *, body: str, read_s: float) -> tuple[int, bytes]:
        """Status and body of the answer. Raises TimeoutError, Unanswered; the cause of either is
        the library's own error."""
        import aiohttp
        from yarl import URL

        timeout = aiohttp.ClientTimeout(
            total=None, connect=self._wait_s, sock_connect=CONNECT_S, sock_read=read_s
        )
        try:
            async with self._opened().request(
                method,
                URL(url, encoded=True),
                data=body.encode(),
                headers=self._headers,
                timeout=timeout,
                allow_redirects=False,  # the address holds the token
            ) as response:
                return response.status, await response.read()
        except aiohttp.ServerTimeoutError as error:
            raise TimeoutError from error
        except aiohttp.ClientError as error:
            # The error's own words may hold the address.
            reason = error.strerror if isinstance(error, OSError) else ""
            raise Unanswered(f"{type(error).__name__}: {reason or 'no reason given'}") from error

    async def close(self) -> None:
        """Gives the connections up; the next request makes new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

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


class Unanswered(Exception):
    """A request failed; its words hold no address."""


def is_unconnected_by(cause: BaseException | None) -> bool:
    """Whether a request failed because no connection could be made."""
    return isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout) or (
        is_loaded() and _is_unconnected(cause)
    )


def was_surely_not_sent(cause: BaseException | None) -> bool:
    """Whether a request failed before any of it was sent."""
    return isinstance(cause, httpx.PoolTimeout) or is_unconnected_by(cause)


def _is_unconnected(cause: BaseException | None) -> bool:
    import aiohttp

    return isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
