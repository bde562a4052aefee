"""Tells what Telegram's answer, or the lack of one, means for a message on its way.

Only a fault of the message or its chat ends it; all else is tried again (SPEC §2.7). If nobody can
know whether the message arrived, the next copy says so. The rules were read off the Bot
API's own server, tdlib/telegram-bot-api of 2026-05-07 (`Client.cpp`: fail_query_with_error,
get_closing_error, on_closed; `ClientManager.cpp`: send; `HttpConnection.cpp`), and TDLib behind it
(`FileManager.cpp`, `NetQueryDelayer.cpp`, 2026-07-17). docs/reliability.md has them as a table.
"""

from __future__ import annotations

import re
from typing import Any

import httpx
from telegram.error import (
    BadRequest,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from bot.channels.base import DeliveryRefused, InDoubt, NotSent
from bot.channels.wire import read_json

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
    """Whether the request cannot have reached Telegram: no connection was made."""
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
