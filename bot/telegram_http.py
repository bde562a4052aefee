"""The way to Telegram's server, and what can become of a request on it.

`bot.telegram` opens connections here; `bot.telegram_connections` makes them, loaded when they are
opened, for its library takes a while to import.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from agent.errors import SettingsWrong

if TYPE_CHECKING:
    from bot.telegram_connections import Connections


class Unsent(Exception):
    """There was no connection, so nothing of the request was sent. `late`: none came in time."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late


class Unanswered(Exception):
    """Something of the request was sent, perhaps all, and the answer did not come whole."""


class Late(Unanswered):
    """The same, because it took too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds of silence, None for no limit: until a place among the connections is free, until
    that one is made, between two pieces of an upload, and between two of the answer."""

    wait_s: float | None
    connect_s: float | None
    write_s: float | None
    read_s: float | None


class Route:
    """The proxy of the environment, and the certificates to check a server with.

    One for all connections, as reading the certificates takes a while.
    """

    def __init__(self, url: str) -> None:
        """Raises SettingsWrong for a proxy that cannot be used."""
        self._proxy = _proxy(urlsplit(url))
        self._by_tls = any(one.startswith("https:") for one in (url, self._proxy or ""))
        self._trusted: ssl.SSLContext | None = None

    async def open(self, limit: int) -> Connections:
        """So many connections at most. Raises SettingsWrong where certificates cannot be read."""
        await asyncio.to_thread(self._load)
        from bot.telegram_connections import Connections

        return Connections(trusted=self._trusted, proxy=self._proxy, limit=limit)

    def _load(self) -> None:
        """Takes up to 150 ms, so it is done in a thread, and others are served meanwhile."""
        import bot.telegram_connections  # noqa: F401 - so that the event loop need not wait for it

        if self._by_tls and self._trusted is None:
            self._trusted = _trusted()


def _trusted() -> ssl.SSLContext:
    """SSL_CERT_FILE and SSL_CERT_DIR name other authorities than those that httpx brings along."""
    import httpx  # loaded in any case: python-telegram-bot does so

    try:
        trusted = httpx.create_ssl_context()
    except OSError as error:
        raise SettingsWrong(
            f"The certificates to check Telegram's server with cannot be read ({error}): correct "
            "SSL_CERT_FILE or SSL_CERT_DIR in the environment"
        ) from error
    trusted.set_alpn_protocols(["http/1.1"])
    return trusted


def _proxy(address: SplitResult) -> str | None:
    """The proxy of the environment. aiohttp would look it up in a thread at each request."""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or _is_direct(address, proxies.get("no", "")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise SettingsWrong(
            f"The environment names a proxy of kind {proxy.partition(':')[0]} for Telegram; only "
            "http and https proxies can be used: correct it, or name Telegram's server in NO_PROXY"
        )
    return proxy


def _is_direct(address: SplitResult, exceptions: str) -> bool:
    if "*" in (one.strip() for one in exceptions.split(",")):
        return True
    host = address.hostname or ""
    return bool(proxy_bypass(address.netloc.rpartition("@")[2]) or proxy_bypass(host))
