"""The MCP servers of a home as its owner sees them: `hearthbot mcp` and the lines of `/status`.

Built by `bot.app`; its operations are served on the private socket, which is the owner's alone.
Answers are JSON objects; what each holds stands at the method that makes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.mcp.values import Decision, Health, ServerHealth
from agent.tools.tool import Effect
from bot.rpc import Emit, Operation
from memory.records.errors import Permanent

if TYPE_CHECKING:
    from agent.mcp.servers import McpServers, ServerState, ToolState


DECISIONS = {
    Decision.APPROVED: "offered",
    Decision.NEW: "off: new since the server was first seen",
    Decision.CHANGED: "off: changed since it was approved",
    Decision.NOT_WANTED: "left out by mcp.NAME.tools",
}


def health_words(health: ServerHealth) -> str:
    """`up`, or what is wrong and when it is tried again."""
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
    """One server for /status."""
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
    """Whether it is offered, and what a call may do."""
    decision = DECISIONS[tool.decision].replace("NAME", server)
    effect = "only reads" if tool.effect is Effect.NONE else "acts outside"
    return f"{decision}, {effect}"


APPROVING = (
    "Approving means: the assistant is offered these tools, exactly as they are described here. "
    "The model reads the descriptions, those of parameters too, so look for orders in them. After "
    "any change a tool waits again."
)


Json = dict[str, Any]

PARAMETERS_BYTES_MAX = 2_000_000
"""What one answer holds of parameters at most: it is one line on the socket, which is bounded."""

SETTLED_S = 30.0
"""How long somebody who asks waits for servers that are just starting."""


class NoServers(Permanent):
    """No server is set up."""


def server_lines(servers: McpServers | None) -> list[str]:
    """One line for each server, for the owner's `/status`."""
    return [server_line(one) for one in (servers.states() if servers else ())]


def are_quoted(servers: McpServers | None) -> bool:
    """Whether such a line tells what a server said last."""
    return any(one.health.health is Health.DOWN for one in (servers.states() if servers else ()))


def mcp_operations(servers: McpServers | None) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs. None: no server
    is set up, and nothing of them is loaded."""

    async def ready() -> Sequence[ServerState]:
        """All servers, after what was not started yet is."""
        if servers is None:
            return ()
        servers.wake()
        await servers.settled(limit_s=SETTLED_S)
        return servers.states()

    async def listed(request: Json, emit: Emit) -> Json:
        """`servers` by name, each with its `tools`, and `waiting`: how many need approval."""
        states = await ready()
        return {
            "servers": [_server_row(one) for one in states],
            "waiting": sum(len(one.waiting) for one in states),
        }

    async def waiting(request: Json, emit: Emit) -> Json:
        """`tools` that an approval would let in, and what it means (`approving`)."""
        server, tool = str(request["server"]), str(request["tool"])
        found = [
            one
            for state in await ready()
            for one in state.waiting
            if state.options.name == server and (not tool or tool in {one.tool, one.name})
        ]
        return {"server": server, "tools": _whole_rows(found, server), "approving": APPROVING}

    async def approve(request: Json, emit: Emit) -> Json:
        """`tools` that were approved, and `text`."""
        server, tool = str(request["server"]), str(request["tool"])
        await ready()
        if servers is None:
            raise NoServers(f"There is no MCP server {server[:64]!r}: none is set up.")
        names = await servers.approve(server, tool, digests=request.get("digests"))
        if names:
            text = f"{tools_words(len(names))} of {server} approved: {', '.join(names)}"
        elif tool:
            text = f"{tool} needs no approval."
        else:
            text = f"Nothing of {server} waits for approval."
        return {"server": server, "tools": list(names), "text": text}

    return {"mcp.list": listed, "mcp.waiting": waiting, "mcp.approve": approve}


def _whole_rows(tools: Sequence[ToolState], server: str) -> list[Json]:
    """Each has the `parameters` that the model reads and the `former_parameters`, None where they
    were not kept; `is_whole` is false where both would be too much for one answer: ask for that
    tool alone."""
    rows = []
    left = PARAMETERS_BYTES_MAX
    for one in tools:
        whole = {"parameters": one.parameters, "former_parameters": one.former_parameters}
        left -= len(json.dumps(whole))
        more = {"is_whole": True, **whole} if left >= 0 else {"is_whole": False}
        rows.append({**_tool_row(one, server), **more})
    return rows


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


def _host(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
