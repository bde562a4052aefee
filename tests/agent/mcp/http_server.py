"""An MCP server by the SDK, which speaks the newest protocol by HTTP on loopback: run as a process
by tests, with its port as argument. It lists what the JSON file that ODD_TOOLS names holds.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import CallToolResult, ImageContent, ListToolsResult, TextContent, Tool

from tests.agent.mcp.odd_server import IMAGE

PLAIN = [{"name": name, "inputSchema": {"type": "object"}} for name in ("fails", "image", "echo")]

bus = InMemorySubscriptionBus()


async def on_list(context: Any, params: Any) -> ListToolsResult:
    source = os.environ.get("ODD_TOOLS")
    rows = json.loads(Path(source).read_text()) if source else PLAIN
    return ListToolsResult(tools=[Tool.model_validate(one) for one in rows])


async def on_call(context: Any, params: Any) -> CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "fails":
            words = TextContent(type="text", text="no such row")
            return CallToolResult(content=[words], is_error=True)
        case "image":
            data = base64.b64encode(IMAGE).decode()
            image = ImageContent(type="image", data=data, mime_type="image/png")
            return CallToolResult(content=[image])
        case "change":
            Path(os.environ["ODD_TOOLS"]).write_text(json.dumps(arguments["tools"]))
            await bus.publish(ToolsListChanged())
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(arguments))])


if __name__ == "__main__":
    server: Server[Any] = Server(
        "odd",
        version="1.2",
        on_list_tools=on_list,
        on_call_tool=on_call,
        on_subscriptions_listen=ListenHandler(bus),
    )
    app = server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
