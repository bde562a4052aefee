"""Slack's Web API: calls that say what became of them, and the two tokens put to use. Called by
the other files of Slack.

The library would send a message again by itself when a connection breaks, and takes its proxy from
the environment whatever NO_PROXY says; neither is wanted here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError, SlackRequestError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.channels.base import PAUSE_MAX_S, ChannelTrouble, Outage
from bot.channels.tokens import PlatformToken, TokenNotices, TokenRefused
from memory.records.errors import Temporary
from memory.records.ports import Clock

log = structlog.get_logger()

METHODS: Mapping[str, tuple[str, ...]] = {
    "apps.connections.open": (),
    "assistant.threads.setStatus": ("assistant:write",),
    "assistant.threads.setSuggestedPrompts": ("assistant:write",),
    "assistant.threads.setTitle": ("assistant:write",),
    "auth.test": (),
    "chat.delete": ("chat:write",),
    "chat.postEphemeral": ("chat:write",),
    "chat.postMessage": ("chat:write",),
    "chat.update": ("chat:write",),
    "conversations.history": ("channels:history", "groups:history", "im:history", "mpim:history"),
    "conversations.replies": (
        "channels:history",
        "groups:history",
        "im:history",
        "mpim:history",
    ),
    "files.completeUploadExternal": ("files:write",),
    "files.getUploadURLExternal": ("files:write",),
    "files.info": ("files:read",),
    "reactions.add": ("reactions:write",),
    "users.info": ("users:read",),
    "views.open": (),
    "views.publish": (),
}
"""Every method in use, with the scopes that it needs of the bot token."""

EVENTS: Mapping[str, tuple[str, ...]] = {
    "app_home_opened": (),
    "app_mention": ("app_mentions:read",),
    "assistant_thread_context_changed": ("assistant:write",),
    "assistant_thread_started": ("assistant:write",),
    "message.channels": ("channels:history",),
    "message.groups": ("groups:history",),
    "message.im": ("im:history",),
    "message.mpim": ("mpim:history",),
}
"""Every event in the manifest, with its scopes. The two of assistant threads come with the
assistant's pane: when one opens, texts are offered there; the other is acknowledged only."""

COMMAND_SCOPES = ("commands",)

BOT_SCOPES = frozenset(COMMAND_SCOPES).union(*METHODS.values(), *EVENTS.values())
"""What the bot token needs; slack-manifest.yaml asks for exactly these."""

APP_SCOPES = ("connections:write",)

BAD_TOKEN = frozenset(
    {
        "account_inactive",
        "invalid_auth",
        "not_allowed_token_type",
        "not_authed",
        "token_expired",
        "token_revoked",
    }
)

_AS_JSON = frozenset(
    {
        "assistant.threads.setStatus",
        "assistant.threads.setSuggestedPrompts",
        "assistant.threads.setTitle",
        "chat.postEphemeral",
        "chat.postMessage",
        "chat.update",
        "views.open",
        "views.publish",
    }
)
"""The methods that read take forms alone."""

_NOT_KNOWN = frozenset(
    {
        *("fatal_error", "internal_error", "request_timeout", "service_unavailable"),
        *("file_update_failed", "unable_to_share_files"),
    }
)
"""Errors after which part of the call may have been done all the same. Slack's pages say so of the
first two (errors that all methods share, copy of 2026-05-26)."""

ANSWERING = "response_url"
"""Stands for a method where a command is answered at the address that came with it."""

_WORD = re.compile(r'(?:\A|"error" *: *")([a-z_]{2,60})(?:\Z|")')

RETRY_AFTER_S = 30.0
"""Where Slack asks for a pause and does not say for how long."""

CALL_LIMITS = 3
"""A call may take so many times its limit of silence in all."""


class SlackTrouble(Exception):
    """A call that did not go well."""


class Limited(SlackTrouble):
    """Slack asks for a pause."""

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(f"Slack asks for a pause of {seconds:g} s ({method})")
        self.seconds = seconds


class SaidNo(SlackTrouble):
    """Slack refuses, by one of its own words; nothing was done."""

    def __init__(self, method: str, error: str, *, needed: str = "") -> None:
        super().__init__(_sentence(method, error, needed))
        self.error = error

    @property
    def is_about_us(self) -> bool:
        """Return whether it is the token or its scopes: the owner can mend that, and nothing is
        lost."""
        return self.error in BAD_TOKEN or self.error == "missing_scope"


class NoAnswer(SlackTrouble):
    """Nothing was heard, or nothing that says what was done; `surely_not` when nothing can be."""

    def __init__(self, why: str, *, surely_not: bool = False) -> None:
        super().__init__(why)
        self.surely_not = surely_not


def _sentence(method: str, error: str, needed: str) -> str:
    match error:
        case "missing_scope":
            scope = f" the scope {needed}" if needed else " a scope"
            return (
                f"{method} needs{scope}. Add it in your Slack app under OAuth & Permissions, Bot "
                "Token Scopes, and reinstall the app"
            )
        case "not_in_channel" | "channel_not_found":
            return f"the bot is not in this conversation; invite it there ({method}: {error})"
        case _ if error in BAD_TOKEN:
            return f"Slack does not accept the token ({method}: {error})"
    return f"{method}: {error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAnswer:
    """An answer that says ok."""

    data: Mapping[str, Any]
    headers: Mapping[str, str]


class SlackWeb:
    """Calls with one token, over connections that are kept. An async context manager."""

    def __init__(
        self,
        token: str,
        *,
        base_url: str,
        timeout_s: float,
        dated: Callable[[str | None], None] | None = None,
    ) -> None:
        """`dated` gets the `Date` of each answer."""
        self._dated = dated
        self._timeout_s = timeout_s
        self._base_url = base_url
        self._token = token
        self._client: AsyncWebClient | None = None
        self._session: aiohttp.ClientSession | None = None
        self.doubted = asyncio.Event()
        """Set when a call was refused because of the bot token; `auth.test` clears it."""

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(
            total=CALL_LIMITS * self._timeout_s, sock_connect=10.0, sock_read=self._timeout_s
        )
        self._session = aiohttp.ClientSession(timeout=timeout, trust_env=True)
        self._client = AsyncWebClient(
            self._token, base_url=self._base_url, session=self._session, retry_handlers=[]
        )
        self._client.proxy = None  # the session knows it, and NO_PROXY too
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections, for sockets too."""
        assert self._session is not None, "used outside of its context"
        return self._session

    @property
    def client(self) -> AsyncWebClient:
        """The library's client, for Bolt."""
        assert self._client is not None, "used outside of its context"
        return self._client

    async def call(self, method: str, *, token: str | None = None, **arguments: Any) -> SlackAnswer:
        """One call, once. Raises Limited, SaidNo, NoAnswer."""
        assert method in METHODS, f"{method} is in no manifest"
        authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
        form: dict[str, Any] = {"json": arguments} if method in _AS_JSON else {"data": arguments}
        try:
            answer = await self.client.api_call(method, headers=authorization, **form)
        except SlackApiError as error:
            refusal = _refusal(method, error)
            if token is None and isinstance(refusal, SaidNo) and refusal.error in BAD_TOKEN:
                self.doubted.set()
            raise refusal from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NoAnswer(_why(error), surely_not=True) from error
        except (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise NoAnswer(_why(error)) from error
        except (AttributeError, SlackRequestError, TypeError, ValueError) as error:
            raise NoAnswer("Slack's answer could not be read") from error
        if not isinstance(answer.data, dict):
            raise NoAnswer("Slack's answer could not be read")
        headers = {str(name).lower(): str(value) for name, value in answer.headers.items()}
        if self._dated is not None:
            self._dated(headers.get("date"))
        return SlackAnswer(data=answer.data, headers=headers)

    async def respond(self, url: str, **said: Any) -> None:
        """Answers at an address that Slack gave for it, once. Raises Limited, SaidNo, NoAnswer."""
        webhook = AsyncWebhookClient(url, session=self.session, retry_handlers=[])
        webhook.proxy = None  # the session knows it, and NO_PROXY too
        try:
            answer = await webhook.send_dict(said)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NoAnswer(_why(error), surely_not=True) from error
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise NoAnswer(_why(error)) from error
        if answer.status_code == 429:
            raise Limited(ANSWERING, _seconds(answer.headers.get("Retry-After")))
        if answer.status_code >= 500:
            raise NoAnswer(f"Slack answered with HTTP status {answer.status_code}")
        if answer.status_code != 200:
            # Slack's word comes alone or within JSON.
            found = _WORD.search(answer.body) if isinstance(answer.body, str) else None
            raise SaidNo(ANSWERING, found[1] if found is not None else "refused")


def _refusal(method: str, error: SlackApiError) -> SlackTrouble:
    response = error.response
    if not isinstance(response, AsyncSlackResponse):
        return NoAnswer("Slack's answer could not be read")
    data = response.data if isinstance(response.data, dict) else {}
    word = data.get("error")
    if response.status_code == 429 or word in {"ratelimited", "rate_limited"}:
        return Limited(method, _seconds(response.headers.get("Retry-After")))
    if not isinstance(word, str) or not word or response.status_code >= 500:
        # Below 500 and not in Slack's form: a proxy on the way passed nothing on.
        is_refused = 300 <= response.status_code < 500
        why = f"Slack answered {method} with HTTP status {response.status_code}"
        return NoAnswer(why, surely_not=is_refused)
    if word in _NOT_KNOWN:
        return NoAnswer(f"Slack had trouble of its own ({method}: {word[:60]})")
    needed = data.get("needed")
    return SaidNo(method, word[:60], needed=needed[:200] if isinstance(needed, str) else "")


def _seconds(value: object) -> float:
    try:
        return min(max(1.0, float(str(value))), PAUSE_MAX_S)
    except ValueError:
        return RETRY_AFTER_S


def _why(error: BaseException) -> str:
    """One line; the library's errors may quote addresses, but no token stands in ours."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


# --- tokens -------------------------------------------------------------------------------------

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
        """Return what is waited out just now."""
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
