"""Which tools of MCP servers were approved: kept by server, replaced by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from memory.database.connection import Database
from memory.records.rows import ApprovedTool
from memory.stores.switches import SqliteToolApprovals
from tests.memory.kit import opened


async def test_a_server_that_was_never_seen_is_told_apart_from_one_without_tools(
    database: Database,
) -> None:
    approvals = SqliteToolApprovals(database)

    assert await approvals.approved("odd") is None
    await approvals.approve("odd", [])

    assert await approvals.approved("odd") == {}
    assert await approvals.approved("other") is None


async def test_what_an_earlier_version_approved_is_read_without_parameters(
    database: Database,
) -> None:
    def by_an_earlier_version(connection: sqlite3.Connection) -> None:
        connection.execute("insert into mcp_servers (name, seen_ms) values ('odd', 1)")
        connection.execute(
            "insert into mcp_tools (server, tool, digest, description, approved_ms)"
            " values ('odd', 'mail', 'd1', 'Does mail.', 1)"
        )

    await database.write(by_an_earlier_version)

    found = await SqliteToolApprovals(database).approved("odd")

    assert found == {"mail": ApprovedTool(tool="mail", digest="d1", description="Does mail.")}


async def kept(path: Path, server: str, approved: ApprovedTool) -> Mapping[str, ApprovedTool]:
    async with opened(path) as database:
        approvals = SqliteToolApprovals(database)
        await approvals.approve(server, [approved])
        found = await approvals.approved(server)
    assert found is not None
    return found
