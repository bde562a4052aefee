"""Stored playbooks, and what the owner decided about skills: the `SkillRecords` of the core."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from agent.stored import SkillRecord, StoredPlaybook
from memory.database import Database
from memory.stored_text import dump, storable

_PLAYBOOKS = """
select name, description, keywords, text, priority, required_tools, updated_ms
from playbooks order by name
"""
_HAS_PLAYBOOK = "select 1 from playbooks where name = ?"
_PUT_PLAYBOOK = """
insert into playbooks (name, description, keywords, text, priority, required_tools, updated_ms)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (name) do update set
    description = excluded.description, keywords = excluded.keywords, text = excluded.text,
    priority = excluded.priority, required_tools = excluded.required_tools,
    updated_ms = excluded.updated_ms
"""
_REMOVE_PLAYBOOK = "delete from playbooks where name = ?"
_RECORDS = "select name, digest, approved, enabled, origin from skill_records order by name"
_PUT_RECORD = """
insert into skill_records (name, digest, approved, enabled, origin, updated_ms)
values (?, ?, ?, ?, ?, ?)
on conflict (name) do update set
    digest = excluded.digest, approved = excluded.approved, enabled = excluded.enabled,
    origin = excluded.origin, updated_ms = excluded.updated_ms
"""
_REMOVE_RECORD = "delete from skill_records where name = ?"


class SqliteSkillRecords:
    """Implements `agent.ports.SkillRecords`. Any text is taken; limits are the caller's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def playbooks(self) -> Sequence[StoredPlaybook]:
        """All of them, by name."""
        rows = await self._database.read(lambda c: c.execute(_PLAYBOOKS).fetchall())
        return [_playbook(row) for row in rows]

    async def put_playbook(self, playbook: StoredPlaybook) -> bool:
        """Stores or replaces one; True when its name was new. `updated_ms` is set anew."""
        name = storable(playbook.name)
        values = (
            name,
            storable(playbook.description),
            dump(playbook.keywords),
            storable(playbook.text),
            playbook.priority,
            dump(playbook.required_tools),
            self._database.now_ms(),
        )

        def work(connection: sqlite3.Connection) -> bool:
            is_new = connection.execute(_HAS_PLAYBOOK, (name,)).fetchone() is None
            connection.execute(_PUT_PLAYBOOK, values)
            return is_new

        return await self._database.write(work)

    async def remove_playbook(self, name: str) -> bool:
        """False when there is none of this name."""
        return await self._remove(_REMOVE_PLAYBOOK, name)

    async def records(self) -> Sequence[SkillRecord]:
        """All decisions, by name."""
        rows = await self._database.read(lambda c: c.execute(_RECORDS).fetchall())
        return [_record(row) for row in rows]

    async def put_record(self, record: SkillRecord) -> None:
        """Stores or replaces a decision."""
        values = (
            storable(record.name),
            storable(record.digest),
            int(record.approved),
            int(record.enabled),
            storable(record.origin),
            self._database.now_ms(),
        )

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_PUT_RECORD, values)

        await self._database.write(work)

    async def remove_record(self, name: str) -> bool:
        """Forgets a decision; False when there was none."""
        return await self._remove(_REMOVE_RECORD, name)

    async def _remove(self, sql: str, name: str) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute(sql, (storable(name),)).rowcount > 0

        return await self._database.write(work)


def _playbook(row: tuple[Any, ...]) -> StoredPlaybook:
    name, description, keywords, text, priority, required_tools, updated_ms = row
    return StoredPlaybook(
        name=name,
        description=description,
        keywords=tuple(json.loads(keywords)),
        text=text,
        priority=priority,
        required_tools=tuple(json.loads(required_tools)),
        updated_ms=updated_ms,
    )


def _record(row: tuple[Any, ...]) -> SkillRecord:
    name, digest, approved, enabled, origin = row
    return SkillRecord(
        name=name, digest=digest, approved=bool(approved), enabled=bool(enabled), origin=origin
    )
