"""Switches that people set: models of chats, tools of MCP servers, playbooks and skills."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from memory.database.connection import Database
from memory.database.rows import storable, to_row
from memory.records.messages import PersonId
from memory.records.rows import ApprovedTool, SkillRecord, StoredPlaybook

_ALL = "select lane, model from chosen_models"
_PUT = """
insert into chosen_models (lane, model, person_id, set_ms) values (?, ?, ?, ?)
on conflict (lane) do update set
    model = excluded.model, person_id = excluded.person_id, set_ms = excluded.set_ms
"""
_REMOVE = "delete from chosen_models where lane = ?"


class SqliteChosenModels:
    """Which model was chosen for a chat. Raises StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> Mapping[str, str]:
        """The name of the model by address; those that have none of their own are not there."""
        return dict(await self._database.rows(_ALL))

    async def put(self, lane: str, model: str, *, by: PersonId) -> None:
        """Stores or replaces the choice of an address."""
        await self._database.execute(_PUT, (lane, storable(model), by, self._database.now_ms()))

    async def remove(self, lane: str) -> None:
        """Go back to the usual one."""
        await self._database.execute(_REMOVE, (lane,))


# --- mcp tools ----------------------------------------------------------------------------------
#
# Which tools of MCP servers were approved: the `ToolApprovals` of `agent.mcp`.

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
        approved = {}
        for tool, digest, kept in rows:
            before, mark, after = kept.rpartition(_PARAMETERS)
            description, parameters = (before, after) if mark else (kept, "")
            approved[tool] = ApprovedTool(
                tool=tool, digest=digest, description=description, parameters=parameters
            )
        return approved

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


# --- playbooks ----------------------------------------------------------------------------------
#
# Stored playbooks, and what the owner decided about skills: the `SkillRecords` of the core.

_PLAYBOOKS = """
select name, description, keywords, text, priority, required_tools, updated_ms
from playbooks order by name
"""
_HAS_PLAYBOOK = "select 1 from playbooks where name = :name"
_PUT_PLAYBOOK = """
insert into playbooks (name, description, keywords, text, priority, required_tools, updated_ms)
values (:name, :description, :keywords, :text, :priority, :required_tools, :now_ms)
on conflict (name) do update set
    description = excluded.description, keywords = excluded.keywords, text = excluded.text,
    priority = excluded.priority, required_tools = excluded.required_tools,
    updated_ms = excluded.updated_ms
"""
_REMOVE_PLAYBOOK = "delete from playbooks where name = ?"
_RECORDS = "select name, digest, approved, enabled, origin from skill_records order by name"
_PUT_RECORD = """
insert into skill_records (name, digest, approved, enabled, origin, updated_ms)
values (:name, :digest, :approved, :enabled, :origin, :now_ms)
on conflict (name) do update set
    digest = excluded.digest, approved = excluded.approved, enabled = excluded.enabled,
    origin = excluded.origin, updated_ms = excluded.updated_ms
"""
_REMOVE_RECORD = "delete from skill_records where name = ?"


class SqliteSkillRecords:
    """Implements `memory.records.ports.SkillRecords`. Any text is taken; limits are the
    caller's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def playbooks(self) -> Sequence[StoredPlaybook]:
        """All of them, by name."""
        return await self._database.records(StoredPlaybook, _PLAYBOOKS)

    async def put_playbook(self, playbook: StoredPlaybook) -> bool:
        """Stores or replaces one; True when its name was new. `updated_ms` is set anew."""
        values = {**to_row(playbook), "now_ms": self._database.now_ms()}

        def work(connection: sqlite3.Connection) -> bool:
            is_new = connection.execute(_HAS_PLAYBOOK, values).fetchone() is None
            connection.execute(_PUT_PLAYBOOK, values)
            return is_new

        return await self._database.write(work)

    async def remove_playbook(self, name: str) -> bool:
        """False when there is none of this name."""
        return await self._database.execute(_REMOVE_PLAYBOOK, (storable(name),)) > 0

    async def records(self) -> Sequence[SkillRecord]:
        """All decisions, by name."""
        return await self._database.records(SkillRecord, _RECORDS)

    async def put_record(self, record: SkillRecord) -> None:
        """Stores or replaces a decision."""
        values = {**to_row(record), "now_ms": self._database.now_ms()}
        await self._database.execute(_PUT_RECORD, values)

    async def remove_record(self, name: str) -> bool:
        """Forgets a decision; False when there was none."""
        return await self._database.execute(_REMOVE_RECORD, (storable(name),)) > 0
