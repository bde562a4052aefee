"""What a prompt says about a person is of this person, and stays out of groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.database.connection import Database
from memory.facts.profile import SqliteProfiles
from memory.facts.recall import SqliteRecall
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
