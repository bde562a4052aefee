"""How updates come from Telegram: asked for by polls, or posted to a webhook.

The library's own Updater confirms an update about 10 ms after it arrives, while handlers still
run (DESIGN §2); here an update is in the inbox before the next offset confirms it. Every trouble
is waited out. Called by `bot.channels.telegram.channel`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog
from telegram.error import (
    BadRequest,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
    TimedOut,
)

from bot.channels.base import ChannelTrouble, Outage
from bot.channels.telegram.api import TelegramRefused, TelegramWeb, is_unconnected, wait, why
from bot.channels.telegram.wire import ALLOWED_UPDATES, last_id
from bot.channels.tokens import PlatformToken
from memory.records.errors import SettingsWrong, StorageError, Temporary
from memory.records.ports import Clock

log = structlog.get_logger()

CONFLICT_PAUSES_S = (5.0, 15.0, 30.0, 60.0)

STORAGE_PAUSES_S = (1.0, 2.0, 5.0)
"""Pause while nothing can be stored: whoever gives a command is told so at the next poll."""

NOT_ACCEPTED = (
    "Telegram does not accept the token (telegram.token). Ask @BotFather for the right one with "
    "/token, and put it into config.toml or `HEARTHBOT_TELEGRAM__TOKEN`. Nothing stored is lost."
)

Take = Callable[[Sequence[Any]], Awaitable[None]]
"""Stores updates, then acts on them. Raises StorageError before anything is confirmed."""


class TelegramUpdates:
    """The ways by which updates come: what was confirmed, and the troubles that are waited out."""

    def __init__(
        self, web: TelegramWeb, token: PlatformToken, *, clock: Clock, stall_s: float
    ) -> None:
        """So long without an answer to a poll, and its connections are made anew."""
        self._web = web
        self._token = token
        self._clock = clock
        self._stall_s = stall_s
        self._network = Outage("telegram.trouble", clock)
        self._conflict = Outage("telegram.conflict", clock, pauses_s=CONFLICT_PAUSES_S)
        self._unreachable = Outage("telegram.unreachable", clock)
        self._webhook_not_set = Outage("telegram.webhook_not_set", clock)
        self._had_webhook = False
        self._storage = Outage("telegram.not_stored", clock, pauses_s=STORAGE_PAUSES_S)
        self._webhook = Outage("telegram.webhook_removed", clock, pauses_s=CONFLICT_PAUSES_S)
        self._offset: int | None = None
        self._timeouts = 0
        self._heard_at = self._renewed_at = clock.monotonic()

    @property
    def trouble(self) -> ChannelTrouble | None:
        """None: all is well, or nothing was tried yet."""
        outages = (
            self._token,
            self._unreachable,
            self._webhook_not_set,
            self._conflict,
            self._network,
        )
        return next((one.trouble for one in outages if one.trouble is not None), None)

    async def who_we_are(self) -> str:
        """The bot's @name without the @, asked for as long as it takes. Raises TelegramRefused."""
        outage = self._unreachable
        while True:
            try:
                me = await self._web.call("getMe")
            except (InvalidToken, Forbidden) as error:
                await refused(self._token, error)
                continue
            except TelegramError as error:
                await wait(outage, error)
                continue
            if isinstance(me, dict):
                outage.forget()
                self._heard_at = self._renewed_at = self._clock.monotonic()
                await self._token.taken()
                return str(me.get("username") or "")
            await wait(outage, NetworkError("getMe answered with something else"))

    async def fetch_waiting(self, take: Take) -> None:
        """Takes in what waits at Telegram now, and confirms it; for `run --once`.

        Raises Temporary when Telegram does not give it now.
        """
        offset: int | None = None
        while True:
            try:
                updates = await self._web.get_updates(offset, timeout_s=0)
            except Conflict as error:
                raise Temporary(
                    "Telegram gives its messages to another copy of this bot, or to the webhook "
                    "that is set. Stop that copy, or let `hearthbot run` remove the webhook."
                ) from error
            except (TelegramError, TimeoutError) as error:
                raise Temporary(f"Telegram cannot be asked now: {why(error)}") from error
            if not updates:
                return
            await take(updates)
            last = last_id(updates)
            if last is None:
                return
            offset = last + 1

    async def keep_webhook(self, url: str, *, secret: str) -> None:
        """Set the webhook again, until cancelled, whenever a call was refused because of the token:
        nothing else would show that updates have stopped coming in."""
        while True:
            await self._web.doubted.wait()
            await self.set_webhook(url, secret=secret)

    async def set_webhook(self, url: str, *, secret: str) -> None:
        """Have Telegram post updates to `url`, trying as long as it takes. Raises SettingsWrong
        at the start."""
        outage = self._webhook_not_set
        wanted = {"url": url, "secret_token": secret, "allowed_updates": list(ALLOWED_UPDATES)}
        while True:
            try:
                await self._web.call("setWebhook", **wanted)
                outage.over()
                await self._token.taken()
                self._web.doubted.clear()
                self._had_webhook = True
                return
            except BadRequest as error:
                if self._had_webhook:
                    await wait(outage, error)
                    continue
                raise SettingsWrong(
                    f"Telegram refuses the address in telegram.webhook_url: {error}"
                ) from error
            except (InvalidToken, Forbidden) as error:
                await refused(self._token, error)
            except TelegramError as error:
                await wait(outage, error)

    # --- polls ----------------------------------------------------------------------------------

    async def polled(self) -> Sequence[Any]:
        """Return what one poll brings, and nothing after trouble, once it was waited out."""
        try:
            updates = await self._web.get_updates(self._offset)
        except (InvalidToken, Forbidden) as error:
            await refused(self._token, error)
        except Conflict as error:
            await self._in_conflict(error)
        except (TimedOut, TimeoutError) as error:
            # One alone is no outage: a connection that was idle for long may just be dead. After
            # many of them it may be our own connections that no longer work, so they are made
            # anew.
            self._timeouts += 1
            now = self._clock.monotonic()
            since = max(self._heard_at, self._renewed_at)
            if now - since >= self._stall_s and not is_unconnected(error):
                tell = log.warning if since == self._heard_at else log.debug
                tell("telegram.polling_restarted", silent_s=round(now - self._heard_at))
                await self._web.renew_polling()
                self._renewed_at = now
            if self._timeouts > 1:
                await wait(self._network, error)
        except TelegramError as error:
            await wait(self._network, error)
        else:
            self._timeouts = 0
            self._heard_at = self._renewed_at = self._clock.monotonic()
            for outage in (self._network, self._conflict, self._webhook):
                outage.over()
            await self._token.taken()
            return updates
        return ()

    async def not_stored(self, trouble: StorageError) -> None:
        """Wait for storage: what is not confirmed Telegram keeps for us."""
        await wait(self._storage, trouble)

    async def confirm(self, updates: Sequence[Any]) -> None:
        """Have the next poll confirm these updates, which are stored."""
        self._storage.over()
        last = last_id(updates)
        if last is None:
            await wait(self._network, NetworkError("no update has an id"))
        else:
            self._offset = last + 1

    async def _in_conflict(self, error: Conflict) -> None:
        if "webhook" not in str(error).lower():
            await wait(
                self._conflict,
                error,
                meaning="another copy of this bot is running with the same token",
                fix="stop the other copy, or give this one a token of its own",
            )
            return
        again = self._webhook.tries > 0
        try:
            # Polling needs that none is set; waiting updates are kept.
            await self._web.call("deleteWebhook", drop_pending_updates=False)
        except TelegramError as trouble:
            await wait(self._network, trouble)
            return
        if again:  # somebody sets it as often as we remove it
            await wait(self._webhook, error)
        else:
            self._webhook.tries = 1
            log.warning("telegram.webhook_removed", why="polling is set, so the webhook goes")


async def refused(token: PlatformToken, error: TelegramError) -> None:
    """Wait until the token may be tried again. Raises TelegramRefused at the start."""
    log.debug("telegram.refused", why=why(error))
    await token.refused("Telegram does not accept my token", TelegramRefused(NOT_ACCEPTED))
