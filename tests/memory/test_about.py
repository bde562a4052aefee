"""What a prompt says about a person is of this person, and stays out of groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.database.connection import Database
from memory.facts.profile import SqliteProfiles
from memory.facts.recall import About, SqliteRecall
from memory.records.facts import RecallWanted, Whose
from memory.records.messages import ConversationId, PersonId, Role
from memory.records.rows import Person
from memory.search.documents import SqliteDocuments
from memory.search.vectors import Embedding
from memory.stores.people import AboutPeople, SqlitePeople
from tests.memory.kit import START

ANA, BEN = PersonId("ana"), PersonId("ben")


def wanted(person: PersonId = ANA, text: str = "what is my rent", scope: str = "") -> RecallWanted:
    return RecallWanted(
        person_id=person,
        role=Role.MEMBER,
        conversation=ConversationId("c1"),
        text=text,
        now=START,
        scope=scope,
    )


@pytest.fixture
async def profiles(database: Database, people: SqlitePeople) -> SqliteProfiles:
    for person_id in (ANA, BEN):
        await people.add_person(Person(id=person_id, role=Role.MEMBER, name=f"@{person_id}"))
    return SqliteProfiles(database)


async def test_row_and_profile_are_told_together(
    database: Database, profiles: SqliteProfiles
) -> None:
    await profiles.update(ANA, "preferences.units", "metric", reason="x")
    await profiles.update(ANA, "persona.system_prompt", "You are Iris.", reason="x")

    about = await AboutPeople(database)(wanted())

    assert about == About(
        profile="Name: @ana\nRole: member\nPrefers units: metric", persona_prompt="You are Iris."
    )


async def test_of_somebody_unknown_nothing_is_told(
    database: Database, profiles: SqliteProfiles
) -> None:
    assert await AboutPeople(database)(wanted(PersonId("nobody"))) == About()


@pytest.mark.case("ME-07")
async def test_profile_and_documents_of_one_are_in_nothing_for_another_or_a_group(
    database: Database, profiles: SqliteProfiles
) -> None:
    documents = SqliteDocuments(database, embedding=Embedding(enabled=False))
    recall = SqliteRecall(about=AboutPeople(database), documents=documents)
    await profiles.update(ANA, "preferences.canary", "CANARY", reason="x")
    await profiles.update(ANA, "persona.system_prompt", "CANARY", reason="x")
    await documents.save(
        Whose(person_id=ANA),
        name="CANARY.txt",
        kind="txt",
        source="",
        text="My rent is CANARY-81000.",
    )

    for_ana = await recall.recall(wanted())
    others = [
        await recall.recall(wanted(BEN)),
        await recall.recall(wanted(scope="telegram:-100")),
        await recall.recall(wanted(BEN, scope="telegram:-100")),
        await recall.recall(replace(wanted(), memory_off=True)),
    ]

    assert "CANARY" in for_ana.profile
    assert for_ana.persona_prompt == "CANARY"
    assert [chunk.text for chunk in for_ana.chunks] == ["My rent is CANARY-81000."]
    assert "CANARY" not in str(others)
