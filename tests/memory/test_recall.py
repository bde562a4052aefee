"""What is known of a person reaches a prompt where that person is alone, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.database.connection import Database
from memory.facts.insights import Insights, SqliteInsights
from memory.facts.profile import SqliteProfiles, profile_text
from memory.facts.recall import SqliteRecall
from memory.facts.store import SqliteFacts
from memory.records.facts import (
    CATEGORIES,
    Category,
    Coming,
    NewFact,
    Recalled,
    RecallWanted,
    Whose,
)
from memory.records.messages import ConversationId, PersonId, Role
from memory.records.ports import Recall
from memory.records.rows import Person
from memory.search.archive import SqliteArchive
from memory.search.documents import SqliteDocuments
from memory.stores.conversations import SqliteConversations
from memory.stores.people import AboutPeople, SqlitePeople
from tests.memory.facts_kit import EMBEDDING, GROUP, WORDS_ALONE, fact, facts_in
from tests.memory.kit import START
from tests.thorough import rounds

ADA = Person(
    id=PersonId("p1"),
    role=Role.OWNER,
    name="Ada",
    addresses=("telegram:5",),
    time_zone="Europe/Vienna",
    language="de",
)
BOB = Person(id=PersonId("p2"), role=Role.GUEST, addresses=("telegram:6",))


@pytest.fixture
def recall(database: Database, facts: SqliteFacts) -> SqliteRecall:
    return SqliteRecall(about=AboutPeople(database), facts=facts, facts_max=2)


@pytest.fixture
def facts(database: Database) -> SqliteFacts:
    return facts_in(database, embedding=WORDS_ALONE)


def wanted(
    person: Person, *, scope: str = "", text: str = "what is my name?", memory_off: bool = False
) -> RecallWanted:
    return RecallWanted(
        person_id=person.id,
        role=person.role,
        conversation=ConversationId("c_1"),
        text=text,
        now=START,
        scope=scope,
        memory_off=memory_off,
    )


def said(
    person: Person, text: str, *, scope: str = "", category: Category = "background"
) -> NewFact:
    of = Whose(person_id=person.id, scope=scope)
    return replace(fact(text, of, category=category), speaker=person.name)


async def test_people_of_one_name_are_told_apart_and_a_change_is_seen_at_once(
    recall: Recall, people: SqlitePeople, database: Database
) -> None:
    await people.add_person(ADA)
    await people.add_person(replace(BOB, name="Ada", time_zone="Asia/Tokyo"))

    hers, the_others = [await recall.recall(wanted(one)) for one in (ADA, BOB)]
    await database.write(lambda c: c.execute("update people set role = 'member', name = 'Bo'"))
    changed = await recall.recall(wanted(BOB))

    assert hers == Recalled(
        profile="Name: Ada\nLanguage: German\nTime zone: Europe/Vienna\nRole: owner"
    )
    assert the_others.profile == "Name: Ada\nTime zone: Asia/Tokyo\nRole: guest"
    assert changed.profile == "Name: Bo\nTime zone: Asia/Tokyo\nRole: member"


@settings(max_examples=60)
@given(name=st.text(max_size=300))
def test_whatever_the_name_a_profile_keeps_its_lines(name: str) -> None:
    lines = profile_text(replace(ADA, name=name), {}).splitlines()

    assert lines[-3:] == ["Language: German", "Time zone: Europe/Vienna", "Role: owner"]
    assert len(lines) <= 4


# --- facts ----------------------------------------------------------------------------------


async def test_in_a_group_facts_name_who_said_them(recall: Recall, facts: SqliteFacts) -> None:
    ben = replace(BOB, name="Ben")
    await facts.store(said(ADA, "Ada sees Dr K about the party."))
    await facts.store(said(ADA, "Ada brings the cake to the party.", scope=GROUP))
    await facts.store(said(ben, "Ben brings drinks to the party.", scope=GROUP))
    await facts.store(said(ben, "Ben brings his dog to the party.", scope="telegram:-200"))

    found = await recall.recall(wanted(ben, scope=GROUP, text="Who brings what to the party?"))

    assert {(one.speaker, one.text) for one in found.facts} == {
        ("Ada", "Ada brings the cake to the party."),
        ("Ben", "Ben brings drinks to the party."),
    }


# --- all parts --------------------------------------------------------------------------------


@pytest.fixture
async def everything(
    database: Database, people: SqlitePeople, facts: SqliteFacts, conversations: SqliteConversations
) -> SqliteRecall:
    """Something of Ada's own in each part, and a document of the group."""
    await people.add_person(ADA)
    await facts.store(said(ADA, "Ada plays the violin."))
    profiles = SqliteProfiles(database)
    for where in ("preferences.canary", "persona.system_prompt"):
        await profiles.update(ADA.id, where, "CANARY", reason="x")
    conversation = await conversations.current("telegram:5")
    insights = SqliteInsights(database)
    now_ms = int(START.timestamp() * 1000)
    notes = Insights(pins=("no violin today",), recommendations=("violin: ask",), updated_ms=now_ms)
    await insights.put(conversation, notes)
    documents = SqliteDocuments(database, embedding=WORDS_ALONE)
    for scope in ("", GROUP):
        await documents.save(
            Whose(person_id=ADA.id, scope=scope),
            name="book",
            kind="txt",
            source="",
            text=f"A violin has four strings {scope}.",
        )

    async def coming(_: RecallWanted) -> Sequence[Coming]:
        return [Coming(id="1", when=START, text="dentist")]

    return SqliteRecall(
        about=AboutPeople(database),
        facts=facts,
        insights=insights,
        coming=coming,
        archive=SqliteArchive(database),
        documents=documents,
    )


async def in_talk(conversations: SqliteConversations, **more: Any) -> RecallWanted:
    asked = wanted(ADA, **{"text": "the violin", **more})
    return replace(asked, conversation=await conversations.current("telegram:5"))


async def test_every_part_is_told(
    everything: SqliteRecall, conversations: SqliteConversations
) -> None:
    found = await everything.recall(await in_talk(conversations))

    assert found.profile.startswith("Name: Ada\n")
    assert "CANARY" in found.profile
    assert found.persona_prompt == "CANARY"
    assert [one.text for one in found.facts] == ["Ada plays the violin."]
    assert (found.pins, found.recommendations) == (("no violin today",), ("violin: ask",))
    assert [one.text for one in found.coming] == ["dentist"]
    assert [one.text for one in found.chunks] == ["A violin has four strings ."]


@pytest.mark.case("ME-07")
async def test_a_group_is_not_told_what_is_private_nor_is_another_person(
    everything: SqliteRecall, conversations: SqliteConversations
) -> None:
    found = await everything.recall(await in_talk(conversations, scope=GROUP))

    others = await everything.recall(wanted(BOB, text="the violin"))

    assert found == Recalled(chunks=found.chunks)
    assert others == Recalled(coming=others.coming)
    assert [one.text for one in found.chunks] == [f"A violin has four strings {GROUP}."]


async def test_where_memory_is_off_nothing_is_known(
    everything: SqliteRecall, conversations: SqliteConversations
) -> None:
    assert await everything.recall(await in_talk(conversations, memory_off=True)) == Recalled()


@pytest.mark.parametrize("text", ["thanks a lot", ""])
async def test_for_a_greeting_nothing_is_searched(
    everything: SqliteRecall, conversations: SqliteConversations, text: str
) -> None:
    found = await everything.recall(await in_talk(conversations, text=text))

    assert found.profile
    assert (found.facts, found.exchanges, found.chunks) == ((), (), ())


# --- what is of one person never reaches another ------------------------------------------------

SECRETS = ("Ada's salary is 81000.", "Ada's therapist is Dr K.")
QUESTION = "what salary and therapist do I have?"


@pytest.mark.case("ME-07")
@pytest.mark.parametrize(
    ("other", "scope"),
    [
        (BOB, ""),
        (ADA, GROUP),
        (replace(BOB, name="Ada"), GROUP),
        (replace(BOB, addresses=("slack:5",), name="Ada"), "slack:5"),
    ],
    ids=[
        "two private chats",
        "the same in a group",
        "one name in a group",
        "a group that is numbered like the chat",
    ],
)
async def test_what_one_says_in_private_is_nowhere_else(
    database: Database, people: SqlitePeople, other: Person, scope: str
) -> None:
    facts = facts_in(database, embedding=EMBEDDING)
    await people.add_person(ADA)
    if other.id != ADA.id:
        await people.add_person(other)
    for text in SECRETS:
        await facts.store(said(ADA, text))
    recall = SqliteRecall(about=AboutPeople(database), facts=facts)

    hers = await recall.recall(wanted(ADA, text=QUESTION))
    theirs = await recall.recall(wanted(other, scope=scope, text=QUESTION))

    assert {one.text for one in hers.facts} == set(SECRETS)
    assert theirs.facts == ()
    assert not any(word in repr(theirs) for word in ("81000", "Dr K", "salary", "therapist"))


MARKER = "xanthium"
SAID = "violin garden project Atlas plays likes lives Oslo cake party me my know remember"
WORDS = SAID.split()


async def test_no_marker_of_one_person_is_recalled_for_another(database: Database) -> None:
    """A canary in every field of one person's facts, and random questions of everybody else."""
    chance = random.Random(7)
    facts = facts_in(database, embedding=WORDS_ALONE)
    recall = SqliteRecall(about=AboutPeople(database), facts=facts)
    eve = Person(id=PersonId("p3"), role=Role.MEMBER, name="Ada")
    secret_group = "slack:C9"
    for number, category in enumerate(CATEGORIES):
        for scope in ("", secret_group):
            new = replace(
                said(ADA, f"{MARKER} {number} {chance.choice(WORDS)} lives", scope=scope),
                category=category,
                quote=MARKER,
                speaker=MARKER,
            )
            stored = (await facts.store(new)).fact
            assert stored is not None
            await facts.store(replace(new, text=f"{MARKER} {number} moved", replaces=stored.id))
    for person in (BOB, eve):
        for scope in ("", GROUP):
            for word in WORDS:
                await facts.store(said(person, f"Somebody {word} the {word}.", scope=scope))
    found = 0

    for _ in range(rounds(150, 3000)):
        person = chance.choice([BOB, eve])
        scope = chance.choice(["", GROUP, "slack:C8"])
        text = " ".join(chance.sample([*WORDS, MARKER], k=chance.randint(1, 5)))
        recalled = await recall.recall(wanted(person, scope=scope, text=text))
        of = Whose(person_id=person.id, scope=scope)
        shown = [
            *recalled.facts,
            *await facts.search(of, text, k=9),
            *await facts.list(of, at=START),
        ]
        found += len(recalled.facts)

        assert MARKER not in repr((recalled, shown))

    assert found > 0
    assert MARKER in repr(await recall.recall(wanted(ADA, text=MARKER)))
