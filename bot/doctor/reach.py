"""Checks that ask others: the model, Telegram, Slack. Each asks once and changes nothing there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import which
from urllib.parse import urlsplit

from agent.mcp.process import misplaced_paths
from agent.mcp.servers import McpServers, ServerFolders, ServerState
from agent.mcp.values import Health, ServerOptions, ToolApprovals
from agent.models.choose import beside, choose
from agent.models.service import ask_once
from bot.commands.mcp import tools_words
from bot.doctor.base import DoctorCheck, Finding, fail, ok, warn
from bot.doctor.live import with_version
from bot.doctor.live_slack import scopes_missing, socket_address, wanted_scopes, workspace
from bot.doctor.live_telegram import account, is_polled_elsewhere, webhook
from bot.doctor.stored import waiting
from bot.settings.schema.settings import Settings
from memory.records.errors import AssistantError, ModelTimeout
from memory.records.rows import ApprovedTool

MODEL_S = 20.0
VERSION_S = 10.0
"""A second address is tried for so long."""

SLOW_S = 10.0
CONFLICT_S = 6
"""Another copy comes back after about five seconds when a poll of ours has ended its own."""

WAITING_MAX = 50


async def model(settings: Settings, env: Mapping[str, str], name: str = "") -> list[Finding]:
    """Return whether a model answers: the main one, or another by its name. Raises
    AssistantError."""
    wanted = settings.llm
    wanted = beside(wanted, name) if name else wanted
    try:
        choice = await choose(wanted, env=env)
        trial = await ask_once(choice, limit_s=MODEL_S)
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
    # Many local models are slow at their first question alone; so it is no failure.
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
    """Return whether messages come in the way that the settings say. Raises SettingsWrong,
    Unreachable."""
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
    """Return whether another copy takes the messages. Raises SettingsWrong, Unreachable."""
    # A poll of ours would be refused, whoever else may be polling.
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
    """Return whether a socket could be opened. Raises SettingsWrong, Unreachable."""
    await socket_address(settings.slack.base_url, settings.slack.app_token.get_secret_value())
    return [ok("Slack would open a socket")]


async def channels(settings: Settings) -> list[Finding]:
    """Return whether anybody can reach the bot from outside."""
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
    """Return whom to ask for the time, as (address, name): somebody who is asked anyway. Empty:
    nobody."""
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


# --- doctor mcp ---------------------------------------------------------------------------------
#
# Checks of MCP servers: each is started, asked for its tools and ended. Changes nothing.

START_S = 30.0
"""A server that is fetched at its first start takes its time."""

ENDING_S = 10.0


class _OnlyRead:
    """Implements ToolApprovals: what was approved is read, and nothing is written."""

    def __init__(self, approvals: ToolApprovals | None) -> None:
        self._approvals = approvals
        self._now: dict[str, dict[str, ApprovedTool]] = {}

    async def approved(self, server: str) -> Mapping[str, ApprovedTool] | None:
        stored = await self._approvals.approved(server) if self._approvals is not None else None
        return self._now.get(server) if stored is None else stored

    async def approve(self, server: str, tools: Sequence[ApprovedTool]) -> None:
        self._now[server] = {one.tool: one for one in tools}


def checks(
    servers: Sequence[ServerOptions],
    home: ServerFolders,
    approvals: ToolApprovals | None = None,
    *,
    offline: bool = False,
) -> Iterator[DoctorCheck]:
    """One for each server. `approvals` None: what waits for approval is not known."""
    if not servers:

        async def none() -> Sequence[Finding]:
            return [ok("no server is set up")]

        yield DoctorCheck(name="MCP", look=none)
    for options in servers:
        yield DoctorCheck(
            name=f"MCP {options.name}",
            look=partial(_server, options, home, _OnlyRead(approvals), offline=offline),
            limit_s=START_S + ENDING_S,
        )


async def _server(
    options: ServerOptions, home: ServerFolders, approvals: _OnlyRead, *, offline: bool
) -> Sequence[Finding]:
    problems = await asyncio.to_thread(misplaced_paths, options, home.workspace)
    found = [warn(problem, fix) for problem, fix in problems]
    path = options.env.get("PATH", home.env.get("PATH"))
    if options.command and which(options.command, path=path) is None:
        fix = f"Install it, or correct mcp.{options.name}.command."
        return [*found, fail(f"the command {options.command} was not found", fix)]
    if offline:
        return [*found, ok("not started, as --offline was said")]
    started = time.monotonic()
    async with McpServers([options], approvals, home) as servers:
        servers.wake()
        await servers.settled(limit_s=START_S)
        took_s = time.monotonic() - started
        (state,) = servers.states()
    return [*found, *_findings(state, took_s)]


def _findings(state: ServerState, took_s: float) -> Iterator[Finding]:
    name = state.options.name
    offered = sum(tool.is_offered for tool in state.tools)
    if state.health.health is not Health.UP:
        trouble = state.health.trouble or f"it did not start within {START_S:g} s"
        fix = f"Check mcp.{name}.url and its headers, and whether that server runs."
        if state.options.command:
            fix = f"Run its command by hand to see more; it stands in [mcp.{name}]."
        yield fail(f"it does not work: {trouble}", fix)
        return
    if state.waiting:
        yield warn(
            f"{tools_words(len(state.waiting))} off until approved: "
            + ", ".join(tool.name for tool in state.waiting),
            f"hearthbot mcp approve {name}",
        )
    if not state.tools:
        yield warn("it has no tools", f"Take [mcp.{name}] out, if that is how it is meant.")
    elif not offered and not state.waiting:
        yield warn("none of its tools is wanted", f"Correct mcp.{name}.tools.")
    else:
        about = f"{state.health.server}, " if state.health.server else ""
        yield ok(f"{about}{tools_words(offered)}, after {took_s:.1f} s")
