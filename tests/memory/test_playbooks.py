"""Playbooks and decisions about skills: kept as given, replaced by name, gone when removed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.database.connection import Database
from memory.database.stored_text import storable
from memory.records.ports import SkillRecords
from memory.records.rows import SkillRecord, StoredPlaybook
from memory.stores.switches import SqliteSkillRecords
from tests.memory.kit import START_MS, StillClock, opened

TRAVEL = StoredPlaybook(
    name="travel",
    description="Plans a trip",
    keywords=("flight", "book a hotel", "c++"),
    text="# Travel\n\n1. Ask for the dates.\n",
    priority=-3,
    required_tools=("web_search", "calendar"),
)
APPROVED = SkillRecord(name="travel", digest="d1", enabled=True, origin="installed from a zip")

any_text = st.text(st.characters() | st.sampled_from("\x00\ud83d\u2028'\"\\"), max_size=40)
any_playbook = st.builds(
    StoredPlaybook,
    name=any_text,
    description=any_text,
    keywords=st.lists(any_text, max_size=4).map(tuple),
    text=any_text,
    priority=st.integers(-(2**63), 2**63 - 1),
    required_tools=st.lists(any_text, max_size=4).map(tuple),
)
any_record = st.builds(
    SkillRecord,
    name=any_text,
    digest=any_text,
    approved=st.booleans(),
    enabled=st.booleans(),
    origin=any_text,
)


@pytest.fixture
def records(database: Database) -> SkillRecords:
    return SqliteSkillRecords(database)


async def test_at_first_there_is_nothing(records: SkillRecords) -> None:
    assert await records.playbooks() == []
    assert await records.records() == []
    assert not await records.remove_playbook("travel")
    assert not await records.remove_record("travel")


async def test_a_playbook_reads_back_equal_but_for_its_time(records: SkillRecords) -> None:
    was_new = await records.put_playbook(replace(TRAVEL, updated_ms=7))

    assert was_new
    assert await records.playbooks() == [replace(TRAVEL, updated_ms=START_MS)]


async def test_a_playbook_is_replaced_whole_and_its_time_moves(
    records: SkillRecords, clock: StillClock
) -> None:
    await records.put_playbook(TRAVEL)
    clock.move(60)
    anew = StoredPlaybook(name="travel", description="Trips", keywords=(), text="Go.")

    was_new = await records.put_playbook(anew)

    assert not was_new
    assert await records.playbooks() == [replace(anew, updated_ms=START_MS + 60_000)]


async def test_playbooks_and_records_are_ordered_by_name(records: SkillRecords) -> None:
    for name in ("b", "a-2", "c", "a"):
        await records.put_playbook(replace(TRAVEL, name=name))
        await records.put_record(replace(APPROVED, name=name))

    assert [one.name for one in await records.playbooks()] == ["a", "a-2", "b", "c"]
    assert [one.name for one in await records.records()] == ["a", "a-2", "b", "c"]


async def test_a_removed_playbook_leaves_the_others_and_the_decision(
    records: SkillRecords,
) -> None:
    await records.put_playbook(TRAVEL)
    await records.put_playbook(replace(TRAVEL, name="work"))
    await records.put_record(APPROVED)

    assert await records.remove_playbook("travel")
    assert not await records.remove_playbook("travel")

    assert [one.name for one in await records.playbooks()] == ["work"]
    assert await records.records() == [APPROVED]
    assert await records.put_playbook(TRAVEL)


async def test_a_decision_is_replaced_and_forgotten(records: SkillRecords) -> None:
    await records.put_record(APPROVED)
    refused = SkillRecord(name="travel", digest="d2", approved=False, origin="written here")
    await records.put_record(refused)
    assert await records.records() == [refused]

    assert await records.remove_record("travel")

    assert await records.records() == []


async def test_of_two_that_put_one_name_at_once_only_one_finds_it_new(
    records: SkillRecords,
) -> None:
    came = await asyncio.gather(*(records.put_playbook(TRAVEL) for _ in range(5)))

    assert sorted(came) == [False] * 4 + [True]


async def test_what_was_decided_outlives_the_process(path: Path) -> None:
    async with opened(path) as database:
        await SqliteSkillRecords(database).put_playbook(TRAVEL)
        await SqliteSkillRecords(database).put_record(APPROVED)

    async with opened(path) as database:
        records = SqliteSkillRecords(database)
        assert await records.playbooks() == [replace(TRAVEL, updated_ms=START_MS)]
        assert await records.records() == [APPROVED]


@settings(max_examples=150, deadline=None)
@given(playbook=any_playbook, record=any_record)
def test_any_text_is_kept(
    tmp_path_factory: pytest.TempPathFactory, playbook: StoredPlaybook, record: SkillRecord
) -> None:
    path = tmp_path_factory.getbasetemp() / "any_text.db"

    found = asyncio.run(kept_and_removed(path, playbook, record))

    assert found == (
        replace(
            playbook,
            name=storable(playbook.name),
            description=storable(playbook.description),
            text=storable(playbook.text),
            updated_ms=START_MS,
        ),
        replace(
            record,
            name=storable(record.name),
            digest=storable(record.digest),
            origin=storable(record.origin),
        ),
    )


async def kept_and_removed(
    path: Path, playbook: StoredPlaybook, record: SkillRecord
) -> tuple[StoredPlaybook, SkillRecord]:
    """What is read back. Whatever name it was put under, it goes by that name too."""
    async with opened(path) as database:
        records = SqliteSkillRecords(database)
        await records.put_playbook(playbook)
        await records.put_record(record)
        (stored,), (decided,) = await records.playbooks(), await records.records()
        assert await records.remove_playbook(playbook.name)
        assert await records.remove_record(record.name)
    return stored, decided
