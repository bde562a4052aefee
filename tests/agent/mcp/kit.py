"""What the tests of MCP share: servers that are opened on real processes and a real database."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.mcp.servers import McpServers, ServerFolders, ServerState
from agent.mcp.values import Health, ServerOptions, ServerStart, Timing
from agent.tools.tool import Tool
from memory.records.transcript import ToolResult
from memory.stores.switches import SqliteToolApprovals
from tests.agent.tools.given import OWNER, call, run_tool
from tests.checkout import ROOT
from tests.memory.kit import opened

ODD = Path(__file__).parent / "odd_server.py"
QUICK = Timing(connect_s=30, list_s=1, backoff_s=0.2, steady_s=60, reread_s=0.05)
WAIT_S = 30.0

Raw = dict[str, Any]


def odd(name: str = "odd", **env: str) -> ServerOptions:
    """Our own server, by its standard streams."""
    return ServerOptions(
        name=name, command=sys.executable, args=(str(ODD),), env=env, start=ServerStart.EAGER
    )


def by_node(name: str, program: Path, *args: str, **changes: Any) -> ServerOptions:
    options = ServerOptions(
        name=name, command="node", args=(str(program), *args), start=ServerStart.EAGER
    )
    return replace(options, **changes)


def lists(path: Path, *tools: Raw) -> str:
    """A file by which the odd server lists these tools."""
    path.write_text(json.dumps(tools))
    return str(path)


def tool(name: str, schema: Any = None, **more: Any) -> Raw:
    """A tool as it stands on the wire."""
    about = {"description": f"Does {name}.", **more}
    return {"name": name, "inputSchema": {"type": "object"} if schema is None else schema, **about}


def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir(exist_ok=True)
    return folder


@asynccontextmanager
async def running(
    tmp_path: Path,
    *servers: ServerOptions,
    timing: Timing = QUICK,
    env: Mapping[str, str] | None = None,
    reserved: tuple[str, ...] = (),
    wait: bool = True,
) -> AsyncIterator[McpServers]:
    """Servers that have come up, or failed once."""
    home = ServerFolders(workspace=workspace(tmp_path), env=os.environ if env is None else env)
    async with (
        opened(tmp_path / "bot.db") as database,
        McpServers(
            servers, SqliteToolApprovals(database), home, reserved=reserved, timing=timing
        ) as all_of_them,
    ):
        if wait:
            await all_of_them.settled(limit_s=WAIT_S)
        yield all_of_them


def found(servers: McpServers, name: str) -> Tool:
    (one,) = [tool for tool in servers.tools() if tool.card.name == name]
    return one


def names(servers: McpServers) -> list[str]:
    return [tool.card.name for tool in servers.tools()]


def state(servers: McpServers, name: str = "odd") -> ServerState:
    (one,) = [state for state in servers.states() if state.options.name == name]
    return one


async def called(servers: McpServers, name: str, **arguments: Any) -> ToolResult:
    """A call as the loop makes it."""
    return await run_tool(found(servers, name), call(name, arguments), OWNER)


async def until(is_so: Callable[[], bool]) -> None:
    """Waits for something that happens by itself."""
    async with asyncio.timeout(WAIT_S):
        while not is_so():
            await asyncio.sleep(0.02)


async def up(servers: McpServers, name: str = "odd") -> None:
    await until(lambda: state(servers, name).health.health is Health.UP)


def pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@asynccontextmanager
async def by_http(port: int, **env: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A server of the SDK on loopback."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.agent.mcp.http_server", str(port)),
        env={**os.environ, **env},
        cwd=ROOT,
    )
    try:
        await until(lambda: _listens(port))
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
