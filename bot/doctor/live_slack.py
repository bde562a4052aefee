"""Slack asked directly: whose tokens these are, what they may do, and who wrote just now.

Called by `hearthbot init` and `hearthbot doctor`. No event is acknowledged here, so Slack brings it
to the bot again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from bot.channels.slack.api import Limited, NoAnswer, SaidNo, SlackAnswer, SlackWeb
from bot.channels.slack.wire import EventKind, sketch
from bot.doctor.live import ASK_S, Unreachable, host_of, shown_name
from bot.doctor.live_telegram import Newcomer
from memory.records.errors import SettingsWrong

MANIFEST = "slack-manifest.yaml"

_BOT_SCOPES = re.compile(
    r"^[ ]*scopes:[ ]*\n(?:[ ]*#.*\n)*[ ]*bot:[ ]*\n((?:[ ]*(?:-|#).*\n?)+)", re.M
)

_REFUSED = {
    "invalid_auth": "it is cut, or of another app",
    "not_authed": "it is empty",
    "token_revoked": "it was revoked: install the app again and copy the new one",
    "token_expired": "it has expired: install the app again and copy the new one",
    "account_inactive": "the app was removed from the workspace: install it again",
    "not_allowed_token_type": "it is a token of another kind",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackTeam:
    """Whose bot token it is, and what it may do."""

    team: str
    team_id: str
    bot: str
    url: str
    scopes: frozenset[str]


async def workspace(base_url: str, bot_token: str) -> SlackTeam:
    """Whose token this is. Raises SettingsWrong for one that is refused, Unreachable."""
    found = await _call(base_url, "auth.test", bot_token, what="the bot token (xoxb-…)")
    body, granted = found.data, found.headers.get("x-oauth-scopes", "")
    return SlackTeam(
        team=shown_name(body.get("team")),
        team_id=shown_name(body.get("team_id")),
        bot=shown_name(body.get("user")),
        url=shown_name(body.get("url")),
        scopes=frozenset(scope.strip() for scope in granted.split(",") if scope.strip()),
    )


async def socket_address(base_url: str, app_token: str) -> str:
    """Where a socket may be opened, which proves the app-level token. Raises SettingsWrong,
    Unreachable."""
    what = "the app-level token (xapp-…)"
    found = await _call(base_url, "apps.connections.open", app_token, what=what)
    return str(found.data.get("url", ""))


def wanted_scopes(manifest: Path) -> frozenset[str]:
    """The bot scopes that our manifest asks for; empty where it cannot be read.

    It is a file of ours in a form that we know, so its list is read as text.
    """
    try:
        text = manifest.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return frozenset()
    found = _BOT_SCOPES.search(text)
    return (
        frozenset(re.findall(r"^[ ]*-[ ]+\"?([\w.:]+)", found[1], re.M)) if found else frozenset()
    )


def scopes_missing(missing: Collection[str]) -> str:
    """Return what to do about scopes that the installed app lacks."""
    return (
        f"The app lacks the scope{'s' if len(missing) > 1 else ''} {', '.join(sorted(missing))}. "
        "At api.slack.com/apps open your app, App Manifest, paste slack-manifest.yaml anew and "
        "save; then Install App, Reinstall to Workspace."
    )


async def first_message(
    base_url: str, *, bot_token: str, app_token: str, but: Collection[str] = ()
) -> Newcomer:
    """Waits until somebody writes to the bot in private. Of the message, nothing is kept.

    Raises SettingsWrong, Unreachable.
    """
    import aiohttp

    url = await socket_address(base_url, app_token)
    try:
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
            async for frame in socket:
                found = _writer(frame.data) if frame.type is aiohttp.WSMsgType.TEXT else None
                if found is not None and found.address not in but:
                    # With the person's name, where Slack tells it.
                    user = found.address.rpartition(":")[2]
                    try:
                        asked = await _call(
                            base_url, "users.info", bot_token, what="the bot token", user=user
                        )
                        about = asked.data["user"]
                        name = shown_name(about.get("real_name") or about.get("name"))
                    except (SettingsWrong, Unreachable, KeyError, TypeError, AttributeError):
                        return found
                    return Newcomer(address=found.address, name=name or found.name, first_name=name)
    except (aiohttp.ClientError, OSError):
        pass
    raise Unreachable("Slack closed the connection. Try again.")


def _writer(frame: str) -> Newcomer | None:
    try:
        payload = json.loads(frame).get("payload") or {}
        found = sketch(payload)
    except (ValueError, AttributeError, RecursionError):
        return None
    if (
        found is None
        or found.payload.kind is not EventKind.POST
        or found.is_group
        or found.payload.home != found.payload.team
    ):
        return None  # whoever sets the bot up is of its own workspace
    return Newcomer(address=found.person, name=shown_name(found.sender))


async def _call(
    base_url: str, method: str, token: str, *, what: str, **arguments: str
) -> SlackAnswer:
    """Ask by the channel's own client, once. Raises SettingsWrong, Unreachable."""
    try:
        async with SlackWeb(token, base_url=base_url, timeout_s=ASK_S) as web:
            return await web.call(method, **arguments)
    except Limited:
        raise Unreachable("Slack asks for a pause. Try again in a minute.") from None
    except NoAnswer as error:
        raise Unreachable(
            f"Slack cannot be reached at {host_of(base_url)} ({error}). Check the network, a proxy "
            "or firewall in between, and slack.base_url."
        ) from None
    except SaidNo as error:
        if error.error == "missing_scope":
            needs = str(error).partition(". ")[0]
            raise SettingsWrong(
                f"{what} lacks a scope: {needs}. Make one that has it: app-level tokens under "
                "Basic Information; for the bot's own, reinstall the app."
            ) from None
        why = _REFUSED.get(error.error, f"it said {error.error}")
        raise SettingsWrong(f"Slack does not accept {what}: {why}.") from None
