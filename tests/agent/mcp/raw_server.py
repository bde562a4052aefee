"""An MCP server without an SDK, of the protocol of 2025: it lists whatever ODD_TOOLS holds, raw,
and answers each call with its arguments; a call of `change` lists other tools. RAW_RESULT is the
result of a call, where it is set, and RAW_JUNK a line before each answer. RAW_NOISE are lines
before the answer to a call, RAW_MEGABYTES is how long its text is, and with RAW_ENDLESS it is a
line that never ends. With RAW_RESTLESS, a file that gets a letter for each list, it says at each
that the next one is another."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def result_of(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "odd", "version": "1.2"},
            }
        case "tools/list":
            if "RAW_RESTLESS" in os.environ:
                with Path(os.environ["RAW_RESTLESS"]).open("a") as reads:
                    reads.write("x")
                send({"method": "notifications/tools/list_changed"})
            return {"tools": json.loads(Path(os.environ["ODD_TOOLS"]).read_text())}
        case "tools/call":
            if "RAW_ENDLESS" in os.environ:
                while True:
                    sys.stdout.write("x" * 65_536)
            for _ in range(int(os.environ.get("RAW_NOISE", "0"))):
                sys.stdout.write("noise noise noise\n")
            if "RAW_MEGABYTES" in os.environ:
                text = "y" * (int(os.environ["RAW_MEGABYTES"]) * 1_000_000)
                return {"content": [{"type": "text", "text": text}]}
            if "RAW_RESULT" in os.environ:
                return json.loads(os.environ["RAW_RESULT"])
            if params["name"] == "change":
                Path(os.environ["ODD_TOOLS"]).write_text(json.dumps(params["arguments"]["tools"]))
                send({"method": "notifications/tools/list_changed"})
            said = json.dumps(params.get("arguments"))
            return {"content": [{"type": "text", "text": said}]}
        case _:
            return None


def send(message: dict[str, Any]) -> None:
    if "RAW_JUNK" in os.environ:
        print(os.environ["RAW_JUNK"], flush=True)
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = result_of(request["method"], request.get("params") or {})
    if result is None:
        send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
    else:
        send({"id": request["id"], "result": result})
