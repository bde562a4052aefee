"""Fetches one file by HTTP, within bounds: whole or not at all. Used by the channels' own files.

A redirect is never followed: the token that opens a file is for its host alone.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING

from agent.files.values import FileUnavailable
from memory.records.errors import Temporary

if TYPE_CHECKING:
    import httpx

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class Downloads:
    """Downloads of one channel. `silence_s` is how long a server may say nothing; how long all of
    it may take is for the caller to bound. `host` is how it is called in sentences."""

    host: str
    silence_s: float = 20.0
    _trusted: ssl.SSLContext | None = field(default=None, init=False)

    async def get(
        self, url: str, *, bytes_max: int, headers: Mapping[str, str] = _NO_HEADERS
    ) -> bytes:
        """All of it. Raises FileUnavailable, also for more than `bytes_max`, and Temporary."""
        import httpx  # with the first file: it takes a while

        verify = await self._authorities(url)
        try:
            async with (
                httpx.AsyncClient(
                    timeout=self.silence_s, verify=verify, follow_redirects=False
                ) as client,
                client.stream("GET", url, headers=dict(headers)) as response,
            ):
                self._check(response, bytes_max)
                return await _read(response, bytes_max)
        except (httpx.HTTPError, httpx.StreamError) as error:
            # Without its words: they may quote the address, which holds a token.
            raise Temporary(f"{self.host} broke off: {type(error).__name__}") from error
        except httpx.InvalidURL as error:
            raise FileUnavailable(f"{self.host} gave an address that is none") from error

    def _check(self, response: httpx.Response, bytes_max: int) -> None:
        status = response.status_code
        if status == HTTPStatus.OK:
            length = response.headers.get("content-length", "")
            if length.isdigit() and int(length) > bytes_max:
                raise too_large(bytes_max)
            return
        if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
            raise FileUnavailable(f"it is no longer at {self.host}")
        if response.is_redirect:
            raise FileUnavailable(f"{self.host} sends elsewhere for it, where I do not go")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            after = response.headers.get("retry-after", "")
            raise Temporary(
                f"{self.host} asks for a pause",
                retry_after_s=float(after) if after.isdigit() else None,
            )
        if response.is_server_error:
            raise Temporary(f"{self.host} answered with HTTP status {status}")
        raise FileUnavailable(f"{self.host} refuses it, with HTTP status {status}")

    async def _authorities(self, url: str) -> ssl.SSLContext:
        """Read once, and in a thread, as that takes a while; none where there is no TLS."""
        if not url.startswith("https:"):
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self._trusted is None:
            import httpx

            self._trusted = await asyncio.to_thread(httpx.create_ssl_context)
        return self._trusted


def too_large(bytes_max: int) -> FileUnavailable:
    """For what is found to be larger than it was said to be."""
    return FileUnavailable(f"it is too large (at most {bytes_max / 1e6:,.0f} MB are fetched)")


async def _read(response: httpx.Response, bytes_max: int) -> bytes:
    read = bytearray()
    async for piece in response.aiter_bytes():
        read += piece
        if len(read) > bytes_max:
            raise too_large(bytes_max)
    return bytes(read)
