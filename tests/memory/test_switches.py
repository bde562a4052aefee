"""Playbooks, and which tools of MCP servers were approved."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from memory.database.connection import Database
from memory.records.ports import SkillRecords
from memory.records.rows import ApprovedTool, StoredPlaybook
from memory.stores.switches import SqliteSkillRecords, SqliteToolApprovals
from tests.memory.kit import START_MS, StillClock

# --- playbooks -----------------------------------------------------------------------------------


TRAVEL = StoredPlaybook(
    name="travel",
    description="Plans a trip",
    keywords=("flight", "book a hotel", "c++"),
    text="# Travel\n\n1. Ask for the dates.\n",
    priority=-3,
    required_tools=("web_search", "calendar"),
)


@pytest.fixture
def records(database: Database) -> SkillRecords:
    return SqliteSkillRecords(database)


async def test_a_playbook_is_replaced_whole_and_its_time_moves(
    records: SkillRecords, clock: StillClock
) -> None:
    await records.put_playbook(TRAVEL)
    clock.move(60)
    anew = StoredPlaybook(name="travel", description="Trips", keywords=(), text="Go.")

    was_new = await records.put_playbook(anew)

    assert not was_new
    assert await records.playbooks() == [replace(anew, updated_ms=START_MS + 60_000)]


# --- mcp tools -----------------------------------------------------------------------------------


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
