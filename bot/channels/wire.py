"""What comes to the channels by HTTP: JSON that cannot stop its reader, files, and posted events.

A file is fetched within bounds, whole or not at all. A redirect is never followed: the token that
opens a file is for its host alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import structlog

from agent.files.values import FileUnavailable
from memory.records.errors import SettingsWrong, Temporary

if TYPE_CHECKING:
    import httpx
    from aiohttp import web


DEPTH_MAX = 64
"""Levels of nesting that are kept of JSON which is too deep to be read as a whole. A message
that replies to another one has about ten."""

DIGITS_MAX = 400

_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def read_json(text: str) -> Any:
    """As json.loads; what is nested too deeply becomes null, and absurdly long numbers 0.

    Raises ValueError for what is not JSON, and nothing else.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError):
        return json.loads(
            _cut_deep(text),
            parse_int=lambda digits: int(digits) if len(digits) <= DIGITS_MAX else 0,
        )


def _cut_deep(text: str) -> str:
    kept: list[str] = []
    depth = start = 0
    for found in _MARKS.finditer(text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            if depth == DEPTH_MAX + 1:
                kept.append(text[start : found.start()])
        elif mark in "]}":
            if depth == DEPTH_MAX + 1:
                kept.append("null")
                start = found.end()
            depth -= 1
    if depth > DEPTH_MAX:
        return ""  # it never ends, so it is not JSON
    kept.append(text[start:])
    return "".join(kept)


# --- what strangers write -----------------------------------------------------------------------

_LINK = re.compile(r"/link(?:@[A-Za-z0-9_]{1,64})?[ \t]{1,9}([A-Za-z0-9]{8})[ \t\n]{0,9}", re.ASCII)


def link_code(text: object) -> str:
    """Return the code of a message that is `/link CODE` and nothing else; empty for any other.

    This is all that is ever read of a stranger's words, and it is kept nowhere.
    """
    found = _LINK.fullmatch(text) if isinstance(text, str) else None
    return found[1].upper() if found else ""


# --- single fields ------------------------------------------------------------------------------

Json = Mapping[str, Any]

TEXT_CHARS_MAX = 200_000
"""Slack cuts a message at 40,000; whatever is much longer did not come from there."""

ID = re.compile(r"[A-Z][A-Z0-9]{1,30}")
_TS = re.compile(r"[0-9]{1,16}\.[0-9]{1,12}")
WORD = re.compile(r"[A-Za-z0-9._:-]{1,120}")


def is_direct(channel: str) -> bool:
    """Return whether a conversation is a direct message: only these have an id that begins with
    D."""
    return channel.startswith("D")


def text_of(holder: Json, name: str) -> str:
    """A text, empty where there is none; half characters become marks that can be stored."""
    value = holder.get(name)
    if not isinstance(value, str):
        return ""
    value = value[:TEXT_CHARS_MAX]
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def needed_id(holder: Json, name: str) -> str:
    """An id as Slack makes them. Raises ValueError."""
    return needed(holder, name, ID)


def needed_direct(holder: Json, name: str) -> str:
    """The id of a direct message. Raises ValueError."""
    channel = needed_id(holder, name)
    if not is_direct(channel):
        raise ValueError(f"{name} is no direct message")
    return channel


def needed_ts(holder: Json, name: str) -> str:
    """A message's time, which is its id. Raises ValueError."""
    return needed(holder, name, _TS)


def needed(holder: Json, name: str, form: re.Pattern[str]) -> str:
    """A text of this form. Raises ValueError."""
    value = holder.get(name)
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise ValueError(f"no {name}")
    return value


def part(holder: Json, name: str) -> Json:
    """An object within it. Raises ValueError."""
    value = holder.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"no {name}")
    return value


# --- files ----------------------------------------------------------------------------------------

log = structlog.get_logger()

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
                read = bytearray()
                async for piece in response.aiter_bytes():
                    read += piece
                    if len(read) > bytes_max:
                        raise too_large(bytes_max)
                return bytes(read)
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


# --- what a platform posts ------------------------------------------------------------------------
#
# A route of our own, not the libraries': python-telegram-bot's compares the secret with `!=`, logs
# wrong ones and needs tornado; Bolt reads a body before it looks at the signature, and logs what it
# refuses (DESIGN §2). The answer is 200 only after the event is stored.

BODY_BYTES_MAX = 1_048_576

REFUSED_TOLD_EVERY_S = 60.0
"""Whoever tries secrets does not fill the log."""


class RefusalLog:
    """Tells of refused requests, once a minute at most."""

    def __init__(self, event: str, why: str) -> None:
        self._event = event
        self._why = why
        self._told_at = -REFUSED_TOLD_EVERY_S

    def tell(self) -> None:
        """Tell of one, unless another was told just now."""
        now = asyncio.get_running_loop().time()
        if now - self._told_at >= REFUSED_TOLD_EVERY_S:
            self._told_at = now
            log.warning(self._event, why=self._why)


@asynccontextmanager
async def listening(
    receive: Callable[[web.Request], Awaitable[web.Response]],
    *,
    path: str,
    listen: str,
    setting: str,
) -> AsyncIterator[None]:
    """Serve the route while the block runs. Raise SettingsWrong where nothing can listen, with the
    name of the setting that says where."""
    from aiohttp import web  # where nothing is posted, nobody waits for it

    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_post(path, receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        host, _, port = listen.rpartition(":")
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        except OSError as error:
            raise SettingsWrong(
                f"Cannot listen on {listen} ({os.strerror(error.errno or 0)}). Close what uses "
                f"that port, or choose another in {setting}."
            ) from error
        yield
    finally:
        await runner.cleanup()
