"""Which tools of MCP servers were approved: kept by server, replaced by name."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.database.connection import Database
from memory.database.stored_text import storable
from memory.records.rows import ApprovedTool
from memory.stores.switches import SqliteToolApprovals
from tests.memory.kit import opened

MAIL = ApprovedTool(tool="mail", digest="d1", description="Does mail.", parameters="{}")


async def test_a_server_that_was_never_seen_is_told_apart_from_one_without_tools(
    database: Database,
) -> None:
    approvals = SqliteToolApprovals(database)

    assert await approvals.approved("odd") is None
    await approvals.approve("odd", [])

    assert await approvals.approved("odd") == {}
    assert await approvals.approved("other") is None


async def test_a_later_approval_takes_the_place_of_the_former(database: Database) -> None:
    approvals = SqliteToolApprovals(database)
    changed = ApprovedTool(tool="mail", digest="d2", description="Does more.")
    log = ApprovedTool(tool="log", digest="d3")

    await approvals.approve("odd", [MAIL, log])
    await approvals.approve("odd", [changed])
    await approvals.approve("other", [MAIL])

    assert await approvals.approved("odd") == {"mail": changed, "log": log}
    assert await approvals.approved("other") == {"mail": MAIL}


async def test_approvals_outlast_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path / "bot.db") as database:
        await SqliteToolApprovals(database).approve("odd", [MAIL])

    async with opened(tmp_path / "bot.db") as database:
        assert await SqliteToolApprovals(database).approved("odd") == {"mail": MAIL}


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


any_text = st.text(st.characters() | st.sampled_from("\x00\x1f\ud83d\u2028'\"\\"), max_size=20)


@given(server=any_text, tool=any_text, description=any_text)
def test_any_text_is_taken(
    tmp_path_factory: pytest.TempPathFactory, server: str, tool: str, description: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any_text_of_mcp.db"
    approved = ApprovedTool(tool=tool, digest="d", description=description)

    found = asyncio.run(kept(path, server, approved))

    assert found[storable(tool)].description == storable(description)


async def kept(path: Path, server: str, approved: ApprovedTool) -> Mapping[str, ApprovedTool]:
    async with opened(path) as database:
        approvals = SqliteToolApprovals(database)
        await approvals.approve(server, [approved])
        found = await approvals.approved(server)
    assert found is not None
    return found
