"""Telegram's Bot API by python-telegram-bot: calls, each within a limit, and what an answer means.

Calls are raw, by the method's name: the library's request layer and errors, without making objects
that nobody reads. Only a fault of the message or its chat ends a message on its way; all else is
tried again (SPEC §2.7). If nobody can know whether it arrived, the next copy says so. The rules
were read off the Bot API's own server, tdlib/telegram-bot-api of 2026-05-07 (`Client.cpp`:
fail_query_with_error, get_closing_error, on_closed; `ClientManager.cpp`: send;
`HttpConnection.cpp`), and TDLib behind it (`FileManager.cpp`, `NetQueryDelayer.cpp`, 2026-07-17).
docs/reliability.md has them as a table.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import structlog
import telegram
from telegram.error import (
    BadRequest,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest
from telegram.warnings import PTBUserWarning

from agent.files.values import FileUnavailable
from bot.channels.base import PAUSE_MAX_S, DeliveryRefused, InDoubt, NotSent, Outage
from bot.channels.telegram.wire import ALLOWED_UPDATES, is_id
from bot.channels.tokens import TokenRefused
from bot.channels.wire import Downloads, read_json, too_large

# Telegram answers 400 to much that is not about the message: every inner error without a code of
# its own becomes one. Letters may be of either case.

BOT_REFUSED = (
    *("logged out", "already been closed", "frozen_method_invalid", "bot_method_invalid"),
    *("api_id_invalid", "user_deactivated", "auth_key_", "session_"),
)
"""400: about the bot. `logOut` or `close` was called, or Telegram froze or shut its account."""

NOT_NOW = (
    *("too many requests", "flood_", "peer_flood", "slowmode_", "failed to upload file"),
    *("message send failed", "file generation failed", "file_part", "md5_checksum_invalid"),
    *("file_reference_", "photo_save_file_invalid", "temporarily unavailable"),
    *("msg_wait_", "balance_too_low"),
)
"""400: an upload failed or met a limit, or a part of Telegram was not ready."""

NOT_FINISHED = (
    *("timeout", "timed out", "request aborted", "bad gateway", "dispatchttlerror"),
    *("no such dc", "lost promise"),
)
"""400: parts of Telegram did not answer each other; what they did is not known."""

BEFORE_THE_METHOD = frozenset({501, 503, 505, 511, 521, 522, 523, 525, 526})
"""Statuses of 500 and above by which a gateway says that it passed nothing on: not implemented,
unavailable, a network's log-in page (RFC 9110 §15.6, RFC 6585 §6), and those of a content network
that did not reach the server (Cloudflare's 5xx pages). Telegram's own server says 500 in the middle
of a send too, and a 502 or 504 hides what became of the request."""

SENT_AND_DELETED = "immediately deleted"
"""500: somebody in the chat deletes what the bot writes there, and would delete each copy."""


_RETRY_AFTER = re.compile(r"retry after (\d{1,6})")


class ServerFailed(NetworkError):
    """An HTTP status of 500 and above. The library would only keep a text, and log the page."""

    def __init__(self, status: int, description: str = "") -> None:
        said = f": {description}" if description else ""
        super().__init__(f"Telegram answered with HTTP status {status}{said}")
        self.status = status


class NotTelegram(NetworkError):
    """A refusal or redirect not in the Bot API's form: from a proxy or a log-in page."""

    def __init__(self, status: int) -> None:
        super().__init__(f"something between here and Telegram answered with HTTP status {status}")
        self.status = status


def check(status: int, payload: bytes) -> None:
    """Tell Telegram's own refusals, which the library reads, from answers of others on the way.

    Raise ServerFailed, NotTelegram; BadRequest for what is too large.
    """
    if status < 300:
        return
    try:
        answer: Any = read_json(payload.decode("utf-8", "replace"))
    except ValueError:
        answer = None
    said = None
    if isinstance(answer, dict) and answer.get("ok") is False:
        said = " ".join(str(answer.get("description") or "").split())[:200]
    if status >= 500:
        raise ServerFailed(status, said or "")
    if status == 413:  # a gateway before Telegram says it by a page; the library sees no refusal
        raise BadRequest("Request Entity Too Large")
    if said is None:
        raise NotTelegram(status)


def meaning(error: TelegramError) -> NotSent | InDoubt | DeliveryRefused:
    """Return whether a failed call was not done, may have been, or never can be."""
    reason, said = why(error), str(error).lower()
    match error:
        case RetryAfter():
            wait_s = seconds(error.retry_after)
            return NotSent(reason="Telegram asks for a pause", retry_after_s=wait_s)
        case InvalidToken():  # 401; 404, as it says for a token of an odd form
            return NotSent(reason=f"Telegram does not accept the token ({reason})", is_ours=True)
        case BadRequest() if any(words in said for words in BOT_REFUSED):
            return NotSent(reason=reason, is_ours=True)
        case BadRequest() if any(words in said for words in NOT_NOW):
            # Telegram names a pause only in words when an upload met a limit.
            pause = _RETRY_AFTER.search(said)
            return NotSent(reason=reason, retry_after_s=float(pause[1]) if pause else None)
        case BadRequest() if any(words in said for words in NOT_FINISHED):
            return InDoubt(reason=reason)
        case BadRequest() | Forbidden():
            return DeliveryRefused(reason=reason)
        case ServerFailed() if SENT_AND_DELETED in said:
            return DeliveryRefused(reason=reason)
        case ServerFailed():
            is_before = error.status in BEFORE_THE_METHOD
            return NotSent(reason=reason) if is_before else InDoubt(reason=reason)
        case NetworkError() if error.__cause__ is not None:
            return NotSent(reason=reason) if never_left(error) else InDoubt(reason=reason)
        case NetworkError() | Conflict():  # any other status below 500: nothing was done
            return NotSent(reason=reason)
        case _:  # an answer that cannot be read
            return InDoubt(reason=reason)


def never_left(error: Exception) -> bool:
    """Return whether the request cannot have reached Telegram: no connection was made."""
    unmade = httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError
    return isinstance(error.__cause__, unmade)


def seconds(retry_after: Any) -> float:
    """Return seconds, from a number or, in later versions of the library, a time span."""
    return float(
        retry_after.total_seconds() if hasattr(retry_after, "total_seconds") else retry_after
    )


def why(error: Exception) -> str:
    """Describe an error in one line, without the request's URL, which holds the token."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


# --- api ------------------------------------------------------------------------------------------

log = structlog.get_logger()

POLL_SLACK_S = 5.0
"""What the answer to a long poll may be late before the connection counts as dead. With the
poll's own 30 s this is well inside the watchdog's 120 s (SPEC §3)."""

CALL_LIMITS = 3
"""A call may take so many times `timeout_s` in all: the library's limit is one of silence."""


class TelegramRefused(TokenRefused):
    """Telegram does not accept the token."""


class TelegramWeb:
    """The Bot API for one bot. Times in seconds."""

    def __init__(
        self,
        token: str,
        *,
        base_url: str,
        timeout_s: float,
        poll_s: int,
        dated: Callable[[str | None], None] | None = None,
    ) -> None:
        """`poll_s`: how long a poll waits for news. `dated` gets the `Date` of each answer."""
        self._timeout_s = timeout_s
        self._poll_s = poll_s
        # One for both clients, as reading the certificates takes a while; without TLS, none are.
        is_plain = base_url.startswith("http:")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else httpx.create_ssl_context()
        self.doubted = asyncio.Event()
        """Set when a call was refused because of the token; who asked Telegram since clears it."""
        self._polling = _request(poll_s + POLL_SLACK_S, connections=1, tls=tls, dated=dated)
        self.bot = telegram.Bot(
            token,
            base_url=f"{base_url}/bot",
            base_file_url=f"{base_url}/file/bot",
            request=_request(timeout_s, connections=64, tls=tls, dated=dated),
            get_updates_request=self._polling,
        )
        # The library would have every raw call made by its named method; the raw one is the point.
        warnings.filterwarnings("ignore", message="Please use 'Bot.", category=PTBUserWarning)
        # Times come as numbers or as spans (`seconds`); which of them it is need not be told.
        warnings.filterwarnings("ignore", message=".*datetime.timedelta", category=PTBUserWarning)

    async def open(self) -> None:
        """Makes its connections ready; asks nothing yet."""
        for request in self.bot._request:  # Bot.initialize also calls getMe, which may fail
            await request.initialize()

    async def close(self) -> None:
        """Gives its connections up."""
        for request in self.bot._request:
            await request.shutdown()

    @property
    def call_s(self) -> float:
        """Return what a usual call may take in all."""
        return CALL_LIMITS * self._timeout_s

    async def call(self, method: str, **arguments: Any) -> Any:
        """The result as it came. Raises TelegramError."""
        return await self.call_within(self.call_s, method, arguments)

    async def call_within(self, limit_s: float, method: str, arguments: dict[str, Any]) -> Any:
        """A call that may take longer than others. Raises TelegramError."""
        try:
            async with asyncio.timeout(limit_s):
                return await self.bot.do_api_request(method, api_kwargs=arguments)
        except TimeoutError as error:
            raise TimedOut from error
        except InvalidToken:
            self.doubted.set()
            raise

    async def get_updates(self, offset: int | None, *, timeout_s: int | None = None) -> list[Any]:
        """One long poll of `poll_s`, unless another time is given.

        Raises TelegramError, or TimeoutError when nothing at all was heard.
        """
        timeout_s = self._poll_s if timeout_s is None else timeout_s
        arguments: dict[str, Any] = {"timeout": timeout_s, "allowed_updates": list(ALLOWED_UPDATES)}
        if offset is not None:
            arguments["offset"] = offset
        async with asyncio.timeout(timeout_s + 2 * POLL_SLACK_S):
            updates = await self.bot.do_api_request(
                "getUpdates", api_kwargs=arguments, read_timeout=timeout_s + POLL_SLACK_S
            )
        if not isinstance(updates, list):
            raise NetworkError(f"getUpdates answered with {type(updates).__name__}, not a list")
        return updates

    async def renew_polling(self) -> None:
        """Gives the connections of the polls up, and has the next one make its own."""
        try:
            async with asyncio.timeout(POLL_SLACK_S):
                await self._polling.shutdown()
        except TimeoutError:
            log.debug("telegram.connection_left")
        await self._polling.initialize()


class _Request(HTTPXRequest):
    """The library's HTTP client, with Telegram's answers told from others', and careful reading."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """The library's own would log what it cannot read, people's messages included."""
        try:
            answer = read_json(payload.decode("utf-8", "replace"))
        except ValueError:
            raise TelegramError("the answer could not be read") from None
        if not isinstance(answer, dict):
            raise TelegramError("the answer is not an object")
        # The library trusts these as they come, and would end in an error of its own.
        # What Telegram adds to a refusal, as far as it can be: a pause in seconds, a group's id.
        given = answer.get("parameters")
        given = given if isinstance(given, dict) else {}
        kept: dict[str, int | float] = {}
        pause, moved_to = given.get("retry_after"), given.get("migrate_to_chat_id")
        if isinstance(pause, int | float) and pause > 0:  # NaN is not
            kept["retry_after"] = min(pause, PAUSE_MAX_S)
        if is_id(moved_to):
            kept["migrate_to_chat_id"] = moved_to
        answer["parameters"] = kept
        return {"result": None, **answer, "description": str(answer.get("description") or "")}

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*args, **kwargs)
        check(status, payload)
        return status, payload


def _request(
    read_timeout_s: float,
    *,
    connections: int,
    tls: ssl.SSLContext,
    dated: Callable[[str | None], None] | None,
) -> HTTPXRequest:
    async def heard(response: httpx.Response) -> None:
        if dated is not None:
            dated(response.headers.get("date"))

    return _Request(
        connection_pool_size=connections,
        read_timeout=read_timeout_s,
        write_timeout=read_timeout_s,
        connect_timeout=10.0,
        pool_timeout=read_timeout_s,
        httpx_kwargs={"trust_env": True, "verify": tls, "event_hooks": {"response": [heard]}},
    )


async def wait(outage: Outage, error: Exception, **facts: str) -> None:
    """Waits out a trouble, for as long as Telegram wishes where it says so."""
    wished_s = seconds(error.retry_after) if isinstance(error, RetryAfter) else None
    await outage.wait(why(error), wished_s=wished_s, facts=facts)


def is_unconnected(error: Exception) -> bool:
    """Return whether there is no way to Telegram at all: no connection that could be made anew."""
    return isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout)


# --- telegram files -----------------------------------------------------------------------------
#
# Files that people sent in Telegram: where one lies, and how it is fetched.
#
# Called by `bot.channels.telegram.channel`, which knows the library; the Bot API gives files of 20
# MB at most.

HOST = "Telegram"

_PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_. -]*(?:/[A-Za-z0-9_-][A-Za-z0-9_. -]*)*")
"""Relative, and without steps upwards. A Bot API server of one's own may name a place on its disk
instead: that is not gone to."""


class TelegramFiles:
    """The files of one bot."""

    def __init__(self, root: str, *, silence_s: float) -> None:
        """`root` is the address that ends in the bot's token."""
        self._root = root
        self._downloads = Downloads(host=HOST, silence_s=silence_s)

    async def fetch(self, about: Any, *, bytes_max: int) -> bytes:
        """The file that an answer of getFile is about. Raises FileUnavailable, Temporary."""
        path = about.get("file_path") if isinstance(about, dict) else None
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise FileUnavailable("Telegram does not say where it lies")
        size = about.get("file_size")
        if isinstance(size, int) and size > bytes_max:
            raise too_large(bytes_max)
        return await self._downloads.get(f"{self._root}/{quote(path)}", bytes_max=bytes_max)


def why_not(said: str) -> str:
    """Return what Telegram says to getFile, as the end of a sentence."""
    lowered = said.lower()
    if "too big" in lowered:
        return "it is too large: Telegram gives a bot files of 20 MB at most"
    if "file_id" in lowered or "temporarily unavailable" in lowered or "not found" in lowered:
        return "Telegram does not have it any more"
    return "Telegram refuses it"


# --- menus of commands ---------------------------------------------------------------------------

Menu = tuple[tuple[str, str], ...]
"""Names and descriptions, which Telegram shows as plain text."""

Menus = Mapping[str, Menu]
"""By the id of a private chat; that of everybody else is under EVERYBODY."""

EVERYBODY = ""


class CommandMenus:
    """Registers what has changed. Without a menu the bot works all the same: what fails is told in
    the log, and not tried again before the next start."""

    def __init__(self, web: TelegramWeb, wanted: Callable[[], Menus]) -> None:
        self._web = web
        self._wanted = wanted
        self._due = asyncio.Event()

    def look(self) -> None:
        """People may have come, gone, or been given another role. Returns at once."""
        self._due.set()

    async def keep(self) -> None:
        """Has the menus as they are wanted, until cancelled."""
        told: Menus = {}
        while True:
            self._due.clear()
            now = dict(self._wanted())
            for chat in dict.fromkeys((*now, *told)):
                menu = now.get(chat, ())  # an empty one: the chat has that of everybody again
                if menu == told.get(chat, ()):
                    continue
                scope = {"type": "chat", "chat_id": int(chat)} if chat else {"type": "default"}
                commands = [{"command": name, "description": text} for name, text in menu]
                try:
                    if menu:
                        await self._web.call("setMyCommands", commands=commands, scope=scope)
                    else:
                        await self._web.call("deleteMyCommands", scope=scope)
                except TelegramError as error:
                    # Somebody who was let in and has never opened the chat has none.
                    tell = log.warning if chat == EVERYBODY else log.info
                    tell("telegram.no_menu", chat=chat, why=why(error))
            told = now
            await self._due.wait()
