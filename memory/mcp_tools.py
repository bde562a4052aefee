"""Which tools of MCP servers were approved: the `ToolApprovals` of `agent.mcp`."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from agent.mcp.values import ApprovedTool
from memory.database import Database
from memory.stored_text import storable

_IS_SEEN = "select 1 from mcp_servers where name = ?"
_APPROVED = "select tool, digest, description from mcp_tools where server = ? order by tool"
_SEE = "insert into mcp_servers (name, seen_ms) values (?, ?) on conflict (name) do nothing"
_APPROVE = """
insert into mcp_tools (server, tool, digest, description, approved_ms) values (?, ?, ?, ?, ?)
on conflict (server, tool) do update set
    digest = excluded.digest, description = excluded.description,
    approved_ms = excluded.approved_ms
"""
_PARAMETERS = "\x1f"
"""Parts what a row keeps of a tool: its description, and its parameters, of which earlier versions
kept nothing. JSON does not hold it, so that it is found from the end."""


class SqliteToolApprovals:
    """Implements `agent.mcp.values.ToolApprovals`. Any text is taken."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def approved(self, server: str) -> Mapping[str, ApprovedTool] | None:
        """By tool; None for a server that was never seen."""
        name = storable(server)

        def work(connection: sqlite3.Connection) -> list[tuple[str, str, str]] | None:
            if connection.execute(_IS_SEEN, (name,)).fetchone() is None:
                return None
            return connection.execute(_APPROVED, (name,)).fetchall()

        rows = await self._database.read(work)
        if rows is None:
            return None
        return {tool: _approved(tool, digest, kept) for tool, digest, kept in rows}

    async def approve(self, server: str, tools: Sequence[ApprovedTool]) -> None:
        """Adds or replaces; from now on the server was seen, also with no tools."""
        name, now = storable(server), self._database.now_ms()
        rows = [
            (
                name,
                storable(one.tool),
                one.digest,
                storable(f"{one.description}{_PARAMETERS}{one.parameters}"),
                now,
            )
            for one in tools
        ]

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SEE, (name, now))
            connection.executemany(_APPROVE, rows)

        await self._database.write(work)


def _approved(tool: str, digest: str, kept: str) -> ApprovedTool:
    description, mark, parameters = kept.rpartition(_PARAMETERS)
    if not mark:
        description, parameters = kept, ""
    return ApprovedTool(tool=tool, digest=digest, description=description, parameters=parameters)
