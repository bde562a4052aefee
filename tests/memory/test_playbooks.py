"""Playbooks and decisions about skills: kept as given, replaced by name, gone when removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.database.connection import Database
from memory.records.ports import SkillRecords
from memory.records.rows import StoredPlaybook
from memory.stores.switches import SqliteSkillRecords
from tests.memory.kit import START_MS, StillClock

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
