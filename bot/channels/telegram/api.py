"""Telegram's Bot API by python-telegram-bot: calls, each within a limit. Called by
`bot.channels.telegram.channel` and its neighbours.

Calls are raw, by the method's name: the library's request layer and errors, without making objects
that nobody reads.
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
from telegram.error import InvalidToken, NetworkError, RetryAfter, TelegramError, TimedOut
from telegram.request import HTTPXRequest
from telegram.warnings import PTBUserWarning

from agent.files.values import FileUnavailable
from bot.channels.base import PAUSE_MAX_S, Outage
from bot.channels.http import Downloads, too_large
from bot.channels.telegram.answers import check, seconds, why
from bot.channels.telegram.wire import ALLOWED_UPDATES, is_id
from bot.channels.tokens import TokenRefused
from bot.channels.wire import read_json

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
        """What a usual call may take in all."""
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
    """Whether there is no way to Telegram at all: no connection that could be made anew."""
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
    """What Telegram says to getFile, as the end of a sentence."""
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
