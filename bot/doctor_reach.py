"""Checks that ask others: the model, Telegram, Slack. Each asks once and changes nothing there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from agent.errors import AssistantError, ModelTimeout
from agent.models.choose import beside, choose
from bot.config import Settings
from bot.doctor import Finding, fail, ok, warn
from bot.doctor_stored import waiting
from bot.live_model import try_model, with_version
from bot.live_slack import scopes_missing, socket_address, wanted_scopes, workspace
from bot.live_telegram import account, is_polled_elsewhere, webhook
from bot.options import wanted_of

MODEL_S = 20.0
VERSION_S = 10.0
"""A second address is tried for so long."""

SLOW_S = 10.0
CONFLICT_S = 6
"""Another copy comes back after about five seconds when a poll of ours has ended its own."""

WAITING_MAX = 50


async def model(settings: Settings, env: Mapping[str, str], name: str = "") -> list[Finding]:
    """Whether a model answers: the main one, or another by its name. Raises AssistantError."""
    wanted = wanted_of(settings)
    wanted = beside(wanted, name) if name else wanted
    try:
        choice = await choose(wanted, env=env)
        trial = await try_model(choice, limit_s=MODEL_S)
    except ModelTimeout:
        raise
    except AssistantError as error:
        better = await with_version(wanted, env=env, limit_s=VERSION_S)
        if not better:
            raise
        what = str(error).partition(". ")[0]
        return [fail(f"{what}; {better} does answer", f'Set api_base = "{better}" below [llm].')]
    text = f"{choice.model} answered after {trial.seconds:.1f} s"
    if choice.traits.demo:
        return [
            warn(
                f"{text}; it is the small demo model, which invents things and has no tools",
                "hearthbot init, or set llm.model",
            )
        ]
    if trial.seconds > SLOW_S:
        return [warn(f"{text}, which is slow", "Try a smaller model, or another provider.")]
    return [ok(text)]


def other_models(settings: Settings) -> list[str]:
    """The models that stand in or work behind the scenes, each once."""
    llm = settings.llm
    agents = settings.agents.by_name.values()
    own = [name for agent in agents for name in (agent.model, *agent.fallbacks)]
    names = dict.fromkeys([*llm.fallbacks, llm.cheap_model, *own])
    return [name for name in names if name and name != llm.model]


async def telegram_token(settings: Settings) -> list[Finding]:
    """Whose token it is. Raises SettingsWrong, Unreachable."""
    found = await account(_telegram(settings), _token(settings))
    return [ok(f"the token is of @{found.username}, {found.link}")]


async def telegram_webhook(settings: Settings) -> list[Finding]:
    """Whether messages come in the way that the settings say. Raises SettingsWrong, Unreachable."""
    found = await webhook(_telegram(settings), _token(settings))
    findings = []
    is_wanted = settings.telegram.mode == "webhook"
    if found.url and not is_wanted:
        host = urlsplit(found.url).hostname or "somewhere"
        findings.append(
            warn(
                f"a webhook at {host} is set, though telegram.mode is polling",
                "hearthbot run removes it. If another program wants it, give this bot a token of "
                "its own.",
            )
        )
    elif is_wanted and found.url != settings.telegram.webhook_url:
        now = "another address is" if found.url else "none is"
        findings.append(
            warn(f"{now} set as webhook at Telegram", "hearthbot run sets telegram.webhook_url.")
        )
    if is_wanted and found.trouble:
        findings.append(
            fail(
                f"Telegram could not deliver to the webhook: {found.trouble}",
                "Check that telegram.webhook_url can be reached from outside, by https.",
            )
        )
    if found.waiting > WAITING_MAX:
        findings.append(
            warn(f"{waiting(found.waiting)} at Telegram", "hearthbot run takes them in.")
        )
    there = waiting(found.waiting) if found.waiting else "nothing waits"
    return findings or [ok(f"{settings.telegram.mode}; {there} at Telegram")]


async def telegram_conflict(settings: Settings) -> list[Finding]:
    """Whether another copy takes the messages. Raises SettingsWrong, Unreachable."""
    if (await webhook(_telegram(settings), _token(settings))).url:
        return [ok("not looked for while a webhook is set")]
    if await is_polled_elsewhere(_telegram(settings), _token(settings), seconds=CONFLICT_S):
        return [
            fail(
                "another copy of this bot is running with the same token (409)",
                "Stop that copy, or give this one a token of its own: @BotFather, /newbot.",
            )
        ]
    return [ok("no other copy was seen")]


async def slack_bot(settings: Settings, manifest: Path) -> list[Finding]:
    """Whose bot token it is, and whether it may do what is needed. Raises SettingsWrong,
    Unreachable."""
    found = await workspace(settings.slack.base_url, settings.slack.bot_token.get_secret_value())
    missing = wanted_scopes(manifest) - found.scopes
    if missing:
        what, _, fix = scopes_missing(missing).partition(". ")
        return [fail(what, fix)]
    return [ok(f"the bot token is of @{found.bot} in {found.team}, with all scopes")]


async def slack_socket(settings: Settings) -> list[Finding]:
    """Whether a socket could be opened. Raises SettingsWrong, Unreachable."""
    await socket_address(settings.slack.base_url, settings.slack.app_token.get_secret_value())
    return [ok("Slack would open a socket")]


async def channels(settings: Settings) -> list[Finding]:
    """Whether anybody can reach the bot from outside."""
    served = [
        name
        for name, token in (
            ("Telegram", settings.telegram.token),
            ("Slack", settings.slack.bot_token),
        )
        if token.get_secret_value()
    ]
    if not served:
        return [warn("none is set up: only this terminal reaches the bot", "hearthbot init")]
    return [ok(" and ".join(served))]


def clock_source(settings: Settings) -> Sequence[str]:
    """Whom to ask for the time, as (address, name): somebody who is asked anyway. Empty: nobody."""
    if settings.telegram.token.get_secret_value():
        return _telegram(settings), "Telegram"
    if settings.slack.bot_token.get_secret_value():
        return f"{settings.slack.base_url.rstrip('/')}/api.test", "Slack"
    if settings.llm.api_base:
        return f"{settings.llm.api_base.rstrip('/')}/models", "the model's server"
    return ()


def _telegram(settings: Settings) -> str:
    return settings.telegram.base_url.rstrip("/")


def _token(settings: Settings) -> str:
    return settings.telegram.token.get_secret_value()
