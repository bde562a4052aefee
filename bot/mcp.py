"""The MCP servers of a home as its owner sees them: `hearthbot mcp` and the lines of `/status`.

Built by `bot.app`; its operations are served on the private socket, which is the owner's alone.
Answers are JSON objects; what each holds stands at the method that makes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.errors import Permanent
from agent.mcp.values import Health
from bot.control import Emit, Operation
from bot.mcp_words import APPROVING, health_words, server_line, tool_words, tools_words

if TYPE_CHECKING:
    from agent.mcp.servers import McpServers, ServerState, ToolState

Json = dict[str, Any]

PARAMETERS_BYTES_MAX = 2_000_000
"""What one answer holds of parameters at most: it is one line on the socket, which is bounded."""

SETTLED_S = 30.0
"""How long somebody who asks waits for servers that are just starting."""


class NoServers(Permanent):
    """No server is set up."""


class McpDesk:
    """Answers what the owner asks about MCP servers, and does what the owner decides."""

    def __init__(self, servers: McpServers | None) -> None:
        """None: there are none, and nothing of them is loaded."""
        self._servers = servers

    def _states(self) -> Sequence[ServerState]:
        return () if self._servers is None else self._servers.states()

    async def listed(self) -> Json:
        """`servers` by name, each with its `tools`, and `waiting`: how many need approval. Starts
        what was not started yet."""
        await self._ready()
        states = self._states()
        return {
            "servers": [_server_row(one) for one in states],
            "waiting": sum(len(one.waiting) for one in states),
        }

    async def waiting(self, server: str, tool: str) -> Json:
        """`tools` that an approval would let in, and what it means (`approving`).

        Each has the `parameters` that the model reads and the `former_parameters`, None where they
        were not kept; `is_whole` is false where both would be too much for one answer: ask for
        that tool alone.
        """
        await self._ready()
        found = [
            (one, _tool_row(one, state.options.name))
            for state in self._states()
            for one in state.waiting
            if state.options.name == server and (not tool or tool in {one.tool, one.name})
        ]
        left = PARAMETERS_BYTES_MAX
        for state, row in found:
            whole = {"parameters": state.parameters, "former_parameters": state.former_parameters}
            left -= len(json.dumps(whole))
            row["is_whole"] = left >= 0
            row.update(whole if row["is_whole"] else {})
        return {"server": server, "tools": [row for _, row in found], "approving": APPROVING}

    async def approve(self, server: str, tool: str, digests: Mapping[str, str] | None) -> Json:
        """`tools` that were approved, and `text`. Raises McpRefused, StorageError."""
        await self._ready()
        if self._servers is None:
            raise NoServers(f"There is no MCP server {server[:64]!r}: none is set up.")
        names = await self._servers.approve(server, tool, digests=digests)
        if names:
            text = f"{tools_words(len(names))} of {server} approved: {', '.join(names)}"
        elif tool:
            text = f"{tool} needs no approval."
        else:
            text = f"Nothing of {server} waits for approval."
        return {"server": server, "tools": list(names), "text": text}

    def lines(self) -> list[str]:
        """One line for each server, for the owner's `/status`."""
        return [server_line(one) for one in self._states()]

    def are_quoted(self) -> bool:
        """Whether such a line tells what a server said last."""
        return any(one.health.health is Health.DOWN for one in self._states())

    async def _ready(self) -> None:
        if self._servers is None:
            return
        self._servers.wake()
        await self._servers.settled(limit_s=SETTLED_S)


def mcp_operations(desk: McpDesk) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs."""

    async def listed(request: Json, emit: Emit) -> Json:
        return await desk.listed()

    async def waiting(request: Json, emit: Emit) -> Json:
        return await desk.waiting(str(request["server"]), str(request["tool"]))

    async def approve(request: Json, emit: Emit) -> Json:
        return await desk.approve(
            str(request["server"]), str(request["tool"]), request.get("digests")
        )

    return {"mcp.list": listed, "mcp.waiting": waiting, "mcp.approve": approve}


def _server_row(state: ServerState) -> Json:
    options, health = state.options, state.health
    return {
        "name": options.name,
        "by": "command" if options.command else "url",
        "where": options.command or _host(options.url),
        "about": options.about,
        "health": health.health.value,
        "state": health_words(health),
        "trouble": health.trouble,
        "retry_s": health.retry_s,
        "server": health.server,
        "trust": options.trust.value,
        "tools": _tool_rows(state.tools, options.name),
        "waiting": len(state.waiting),
    }


def _tool_rows(tools: Sequence[ToolState], server: str) -> list[Json]:
    return [_tool_row(one, server) for one in tools]


def _tool_row(tool: ToolState, server: str) -> Json:
    return {
        "name": tool.name,
        "tool": tool.tool,
        "decision": tool.decision.value,
        "state": tool_words(tool, server),
        "effect": tool.effect.value,
        "digest": tool.digest,
        "description": tool.description,
        "former": tool.former,
    }


def _host(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
