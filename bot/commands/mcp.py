"""The MCP servers of a home as its owner sees them: `hearthbot mcp` and the lines of `/status`.

Built by `bot.app`; the command line calls it, through the private socket if a bot runs.
Answers are JSON objects; what each holds stands at the method that makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.mcp.values import Decision, Health, ServerHealth
from agent.tools.tool import Effect
from memory.records.errors import Permanent

if TYPE_CHECKING:
    from agent.mcp.servers import McpServers, ServerState, ToolState


# --- mcp words ----------------------------------------------------------------------------------
#
# What is said about MCP servers in plain words: by `/status`, `hearthbot mcp` and the doctor.

DECISIONS = {
    Decision.APPROVED: "offered",
    Decision.NEW: "off: new since the server was first seen",
    Decision.CHANGED: "off: changed since it was approved",
    Decision.NOT_WANTED: "left out by mcp.NAME.tools",
}


def health_words(health: ServerHealth) -> str:
    """Return `up`, or what is wrong and when it is tried again."""
    match health.health:
        case Health.UP:
            return "up"
        case Health.STARTING:
            return "starting"
        case Health.IDLE:
            return "not started yet: it is when a message comes"
        case Health.DOWN:
            again = f", tried again in {health.retry_s:.0f} s" if health.retry_s else ""
            return f"down: {health.trouble}{again}"


def server_line(state: ServerState) -> str:
    """Return one server for /status."""
    offered = sum(tool.is_offered for tool in state.tools)
    waiting = len(state.waiting)
    words = [health_words(state.health)]
    if state.health.health is not Health.IDLE or offered:
        words.append(tools_words(offered))
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        words.append(f"{waiting} {verb} for approval (hearthbot mcp approve {state.options.name})")
    return f"MCP {state.options.name}: {', '.join(words)}"


def tools_words(count: int) -> str:
    return f"{count} tool" if count == 1 else f"{count} tools"


def tool_words(tool: ToolState, server: str) -> str:
    """Return whether it is offered, and what a call may do."""
    decision = DECISIONS[tool.decision].replace("NAME", server)
    effect = "only reads" if tool.effect is Effect.NONE else "acts outside"
    return f"{decision}, {effect}"


APPROVING = (
    "Approving means: the assistant is offered these tools, exactly as they are described here. "
    "The model reads the descriptions, those of parameters too, so look for orders in them. After "
    "any change a tool waits again."
)


Json = dict[str, Any]

SETTLED_S = 30.0
"""How long somebody who asks waits for servers that are just starting."""


class NoServers(Permanent):
    """No server is set up."""


class McpService:
    """Answers what the owner asks about MCP servers, and does what the owner decides."""

    def __init__(self, servers: McpServers | None) -> None:
        """None: there are none, and nothing of them is loaded."""
        self._servers = servers

    def _states(self) -> Sequence[ServerState]:
        return () if self._servers is None else self._servers.states()

    async def listed(self) -> Json:
        """Return `servers` by name, each with its `tools`, and `waiting`: how many need approval.
        Start what was not started yet."""
        await self._ready()
        states = self._states()
        return {
            "servers": [_server_row(one) for one in states],
            "waiting": sum(len(one.waiting) for one in states),
        }

    async def waiting(self, server: str, tool: str) -> Json:
        """Return `tools` that an approval would let in, and what it means (`approving`).

        Each has the `parameters` that the model reads and the `former_parameters`, None where they
        were not kept.
        """
        await self._ready()
        rows = [
            {
                **_tool_row(one, state.options.name),
                "parameters": one.parameters,
                "former_parameters": one.former_parameters,
            }
            for state in self._states()
            for one in state.waiting
            if state.options.name == server and (not tool or tool in {one.tool, one.name})
        ]
        return {"server": server, "tools": rows, "approving": APPROVING}

    async def approve(self, server: str, tool: str, digests: Mapping[str, str] | None) -> Json:
        """Return `tools` that were approved, and `text`. Raise McpRefused, StorageError."""
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
        """Return one line for each server, for the owner's `/status`."""
        return [server_line(one) for one in self._states()]

    def are_quoted(self) -> bool:
        """Return whether such a line tells what a server said last."""
        return any(one.health.health is Health.DOWN for one in self._states())

    async def _ready(self) -> None:
        if self._servers is None:
            return
        self._servers.wake()
        await self._servers.settled(limit_s=SETTLED_S)


def _server_row(state: ServerState) -> Json:
    options, health = state.options, state.health
    # Of an address nothing is shown that may be secret.
    url = urlsplit(options.url)
    host = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
    return {
        "name": options.name,
        "by": "command" if options.command else "url",
        "where": options.command or host,
        "about": options.about,
        "health": health.health.value,
        "state": health_words(health),
        "trouble": health.trouble,
        "retry_s": health.retry_s,
        "server": health.server,
        "trust": options.trust.value,
        "tools": [_tool_row(one, options.name) for one in state.tools],
        "waiting": len(state.waiting),
    }


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
