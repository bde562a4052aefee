"""Telegram asked directly: whose token this is, what a webhook does, and who wrote just now.

Called by `hearthbot init` and `hearthbot doctor`. Nothing here confirms an update: whatever waits
at Telegram still waits for the bot afterwards.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.doctor.live import ASK_S, Unreachable, ask, shown_name
from memory.records.errors import SettingsWrong, Temporary

TOKEN_FORM = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")
POLL_S = 10
LOOK_AGAIN_S = 1.0
UPDATES_MAX = 100


class PollConflict(Temporary):
    """Somebody else takes this bot's messages: another copy, or a webhook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotAccount:
    """Whose token it is."""

    username: str
    name: str

    @property
    def link(self) -> str:
        return f"https://t.me/{self.username}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookInfo:
    """Where Telegram posts updates; `url` is empty where it does not. `waiting` counts updates."""

    url: str
    waiting: int
    trouble: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """Somebody who wrote. The name is what they call themselves, and proves nothing."""

    address: str
    name: str
    first_name: str = ""


async def account(base_url: str, token: str) -> BotAccount:
    """Whose token this is. Raises SettingsWrong for one that is refused, Unreachable."""
    found = await _call(base_url, token, "getMe")
    if not isinstance(found, Mapping) or not found.get("username"):
        raise Unreachable("What answers as Telegram is not Telegram: check telegram.base_url.")
    return BotAccount(
        username=shown_name(found["username"]), name=shown_name(found.get("first_name"))
    )


async def webhook(base_url: str, token: str) -> WebhookInfo:
    """Return what is set as a webhook. Raises SettingsWrong, Unreachable."""
    found = await _call(base_url, token, "getWebhookInfo")
    if not isinstance(found, Mapping):
        return WebhookInfo(url="", waiting=0, trouble="")
    waiting = found.get("pending_update_count")
    return WebhookInfo(
        url=shown_name(found.get("url")),
        waiting=waiting if isinstance(waiting, int) else 0,
        trouble=shown_name(found.get("last_error_message")),
    )


async def is_polled_elsewhere(base_url: str, token: str, *, seconds: int) -> bool:
    """Return whether another copy asks for this bot's messages. Takes so long, unless messages
    wait.

    Raises SettingsWrong, Unreachable.
    """
    try:
        await _updates(base_url, token, wait_s=seconds)
    except PollConflict:
        return True
    return False


async def first_message(base_url: str, token: str, *, but: Collection[str] = ()) -> Newcomer:
    """Waits until somebody writes to the bot in private; the newest first. Of the message, nothing
    is kept. `but` are addresses to pass over.

    Raises Taken when another copy or a webhook gets the messages, SettingsWrong, Unreachable.
    """
    while True:
        updates = await _updates(base_url, token, wait_s=POLL_S)
        for newcomer in _writers(updates):
            if newcomer.address not in but:
                return newcomer
        if len(updates) >= UPDATES_MAX:
            raise PollConflict(
                f"More than {UPDATES_MAX} messages wait for this bot, so a new one cannot be seen. "
                "Start the bot, write to it, and approve the code that it gives you."
            )
        if updates:  # they stay unconfirmed, so the next poll would come back at once
            await asyncio.sleep(LOOK_AGAIN_S)


async def _updates(base_url: str, token: str, *, wait_s: int) -> list[Any]:
    # Neither an offset, which would confirm, nor allowed_updates, which Telegram would remember.
    form = {"timeout": wait_s, "limit": UPDATES_MAX}
    found = await _call(base_url, token, "getUpdates", form=form, limit_s=wait_s + ASK_S)
    return found if isinstance(found, list) else []


def _writers(updates: list[Any]) -> Iterator[Newcomer]:
    for update in reversed(updates):
        message = update.get("message") if isinstance(update, Mapping) else None
        if not isinstance(message, Mapping):
            continue
        chat, sender = message.get("chat"), message.get("from")
        if not isinstance(chat, Mapping) or not isinstance(sender, Mapping):
            continue
        number = sender.get("id")
        if chat.get("type") == "private" and type(number) is int and not sender.get("is_bot"):
            username = sender.get("username")
            at = f"(@{username})" if username else ""
            yield Newcomer(
                address=f"telegram:{number}",
                name=shown_name(sender.get("first_name"), sender.get("last_name"), at),
                first_name=shown_name(sender.get("first_name")),
            )


async def _call(
    base_url: str,
    token: str,
    method: str,
    *,
    form: Mapping[str, str | int] | None = None,
    limit_s: float = ASK_S,
) -> Any:
    if not TOKEN_FORM.fullmatch(token):
        raise SettingsWrong(
            "That is no token of Telegram: one looks like 123456:ABC-DEF. @BotFather shows it "
            "after /newbot, and again after /token."
        )
    found = await ask(
        f"{base_url.rstrip('/')}/bot{token}/{method}",
        who="Telegram",
        form={} if form is None else form,
        limit_s=limit_s,
    )
    # 404 too: the token is part of the path, so a wrong one is no such address.
    if found.status in {401, 403, 404}:
        raise SettingsWrong(
            "Telegram does not accept the token. Ask @BotFather for the right one with /token, and "
            "copy all of it: the number, the colon and what follows."
        )
    if found.status == 409:
        by_webhook = "webhook" in str(found.body.get("description", "")).lower()
        raise PollConflict(
            "A webhook is set for this bot, so its messages go there. `hearthbot run` removes it "
            "when telegram.mode is polling."
            if by_webhook
            else "Another copy of this bot is running with the same token and takes its messages. "
            "Stop that copy, or give this one a token of its own."
        )
    if found.status != 200 or found.body.get("ok") is not True:
        raise Unreachable(
            f"Telegram refused the question with HTTP status {found.status}. Try again in a minute."
        )
    return found.body.get("result")
