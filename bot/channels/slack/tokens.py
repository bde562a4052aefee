"""Slack's two tokens put to use: who we are, what we may do, and where a socket opens.

Called by `bot.channels.slack.channel`. What is temporary is waited out, or told at once; a token
that Slack does not accept is told with what to do.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from bot.channels.health import ChannelTrouble, Outage
from bot.channels.slack.api import (
    APP_SCOPES,
    BOT_SCOPES,
    Limited,
    SaidNo,
    SlackAnswer,
    SlackTrouble,
    SlackWeb,
)
from bot.channels.tokens import PlatformToken, TokenNotices, TokenRefused
from memory.records.errors import Temporary
from memory.records.ports import Clock

log = structlog.get_logger()

_FIX_BOT = (
    "Copy the bot token (xoxb-…) from OAuth & Permissions of your Slack app into slack.bot_token, "
    "or `HEARTHBOT_SLACK__BOT_TOKEN`. Nothing stored is lost."
)


_FIX_APP = (
    "Make an app-level token (xapp-…) with the scope "
    f"{APP_SCOPES[0]} under Basic Information of your Slack app, and put it into slack.app_token, "
    "or `HEARTHBOT_SLACK__APP_TOKEN`. Nothing stored is lost."
)


class SlackRefused(TokenRefused):
    """Slack does not accept a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Us:
    """The bot as Slack knows it; blank until it was asked."""

    user_id: str = ""
    name: str = ""


class SlackTokens:
    """The bot's token, with which `web` calls, and the app's, which opens sockets."""

    def __init__(
        self, web: SlackWeb, app_token: str, *, clock: Clock, notices: TokenNotices | None = None
    ) -> None:
        """`notices` tell of a refused token."""
        self._web = web
        self._app_token = app_token
        self._bots = PlatformToken("slack", clock=clock, notices=notices)
        self._apps = PlatformToken("slack", clock=clock, notices=notices)
        self._unreachable = Outage("slack.unreachable", clock)
        self._no_socket = Outage("slack.no_socket", clock)

    @property
    def trouble(self) -> ChannelTrouble | None:
        """What is waited out just now."""
        parts = (self._bots, self._apps, self._unreachable, self._no_socket)
        return next((one.trouble for one in parts if one.trouble is not None), None)

    async def who_we_are(self) -> Us:
        """Asks for it, and what we may do, as long as it takes. Raises SlackRefused."""
        found = await self._patiently(self._bots, self._unreachable, "auth.test", _FIX_BOT)
        self._web.doubted.clear()
        return _known(found)

    async def who_we_are_now(self) -> Us:
        """The same, asked once. Raises SlackRefused, Temporary."""
        return _known(await self._at_once("auth.test", _FIX_BOT))

    async def socket_address(self) -> str:
        """A fresh address for one socket, as long as it takes. Raises SlackRefused."""
        found = await self._patiently(
            self._apps, self._no_socket, "apps.connections.open", _FIX_APP, token=self._app_token
        )
        return str(found.data.get("url") or "")

    async def socket_address_now(self) -> str:
        """The same, asked once. Raises SlackRefused, Temporary."""
        found = await self._at_once("apps.connections.open", _FIX_APP, token=self._app_token)
        return str(found.data.get("url") or "")

    async def _at_once(self, method: str, fix: str, **token: str) -> SlackAnswer:
        try:
            return await self._web.call(method, **token)
        except SaidNo as error:
            raise SlackRefused(f"{error}. {fix}") from error
        except SlackTrouble as error:
            raise Temporary(f"Slack cannot be asked now: {error}") from error

    async def _patiently(
        self, ours: PlatformToken, outage: Outage, method: str, fix: str, **token: str
    ) -> SlackAnswer:
        """Ask until Slack answers. Raises SlackRefused if it keeps refusing at the start."""
        while True:
            try:
                found = await self._web.call(method, **token)
            except Limited as error:
                await outage.wait(str(error), at_least_s=error.seconds)
            except SaidNo as error:
                if error.is_about_us:
                    await ours.refused(str(error), SlackRefused(f"{error}. {fix}"))
                else:
                    await outage.wait(str(error))
            except SlackTrouble as error:
                await outage.wait(str(error))
            else:
                outage.over()
                await ours.taken()
                return found


def _known(found: SlackAnswer) -> Us:
    us = Us(user_id=str(found.data.get("user_id") or ""), name=str(found.data.get("user") or ""))
    log.info("slack.known", bot=us.name, team=str(found.data.get("team") or ""))
    granted = {scope.strip() for scope in found.headers.get("x-oauth-scopes", "").split(",")}
    missing = sorted(BOT_SCOPES - granted) if any(granted) else []
    if missing:
        log.error(
            "slack.missing_scopes",
            scopes=missing,
            fix="add them in your Slack app under OAuth & Permissions, Bot Token Scopes (or "
            "paste slack-manifest.yaml anew), and reinstall the app",
        )
    return us
