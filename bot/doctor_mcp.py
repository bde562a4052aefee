"""Checks of MCP servers: each is started, asked for its tools and ended. Changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from shutil import which

from agent.mcp.quarters import misplaced
from agent.mcp.servers import Home, McpServers, ServerState
from agent.mcp.values import ApprovedTool, Health, ServerOptions, ToolApprovals
from bot.doctor import Check, Finding, fail, ok, warn
from bot.mcp_words import tools_words

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
    home: Home,
    approvals: ToolApprovals | None = None,
    *,
    offline: bool = False,
) -> Iterator[Check]:
    """One for each server. `approvals` None: what waits for approval is not known."""
    if not servers:
        yield Check(name="MCP", look=_none)
    for options in servers:
        yield _check(options, home, _OnlyRead(approvals), offline=offline)


def _check(options: ServerOptions, home: Home, approvals: _OnlyRead, *, offline: bool) -> Check:
    async def look() -> Sequence[Finding]:
        found = await asyncio.to_thread(_misplaced, options, home)
        missing = _missing(options, home)
        if missing is not None:
            return [*found, missing]
        if offline:
            return [*found, ok("not started, as --offline was said")]
        return [*found, *await _tried(options, home, approvals)]

    return Check(name=f"MCP {options.name}", look=look, limit_s=START_S + ENDING_S)


async def _none() -> Sequence[Finding]:
    return [ok("no server is set up")]


def _missing(options: ServerOptions, home: Home) -> Finding | None:
    path = options.env.get("PATH", home.env.get("PATH"))
    if options.command and which(options.command, path=path) is None:
        return fail(
            f"the command {options.command} was not found",
            f"Install it, or correct mcp.{options.name}.command.",
        )
    return None


def _misplaced(options: ServerOptions, home: Home) -> Sequence[Finding]:
    return [warn(problem, fix) for problem, fix in misplaced(options, home.workspace)]


async def _tried(options: ServerOptions, home: Home, approvals: _OnlyRead) -> Sequence[Finding]:
    started = time.monotonic()
    async with McpServers([options], approvals, home) as servers:
        servers.wake()
        await servers.settled(limit_s=START_S)
        took_s = time.monotonic() - started
        (state,) = servers.states()
    return list(_findings(state, took_s))


def _findings(state: ServerState, took_s: float) -> Iterator[Finding]:
    name = state.options.name
    offered = sum(tool.is_offered for tool in state.tools)
    if state.health.health is not Health.UP:
        trouble = state.health.trouble or f"it did not start within {START_S:g} s"
        yield fail(f"it does not work: {trouble}", _fix(state.options))
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


def _fix(options: ServerOptions) -> str:
    if options.command:
        return f"Run its command by hand to see more; it stands in [mcp.{options.name}]."
    return f"Check mcp.{options.name}.url and its headers, and whether that server runs."
