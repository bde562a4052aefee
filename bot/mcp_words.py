"""What is said about MCP servers in plain words: by `/status`, `hearthbot mcp` and the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.mcp.values import Decision, Health, ServerHealth
from agent.tools.tool import Effect

if TYPE_CHECKING:
    from agent.mcp.servers import ServerState, ToolState

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
