"""Indexes follow the table, never outrank it, and take no more room than they may."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.database.connection import Database
from memory.facts.rows import holding, owned_by, seen_by
from memory.facts.store import SqliteFacts
from memory.records.facts import Whose
from memory.records.messages import PersonId, RunId
from memory.search.indexes import Indexes
from tests.memory.facts_kit import (
    ADA,
    ADA_IN_GROUP,
    BEN,
    EMBEDDING,
    WORDS_ALONE,
    fact,
    told,
)
from tests.memory.kit import opened
from tests.thorough import rounds


@pytest.fixture
def indexes(database: Database) -> Indexes:
    return Indexes(database, embedding=EMBEDDING)


@pytest.fixture
def facts(database: Database, indexes: Indexes) -> SqliteFacts:
    return SqliteFacts(database, indexes)


async def found(indexes: Indexes, query: str, of: Whose = ADA, k: int = 5) -> list[str]:
    return [fact.text for fact in await indexes.search(of, query, k=k)]


async def test_a_row_that_others_erased_or_gave_away_is_never_served(
    database: Database, facts: SqliteFacts, indexes: Indexes
) -> None:
    await told(facts, "Ada plays the violin.", "Ada plays chess.", "Ada plays tennis.")
    await found(indexes, "plays")

    await database.write(lambda c: c.execute("delete from facts where id = 1"))
    await database.write(
        lambda c: c.execute("update facts set person_id = ? where id = 2", (BEN.person_id,))
    )

    assert await found(indexes, "violin chess") == ["Ada plays tennis."]


async def test_the_least_recently_used_goes_first(database: Database) -> None:
    indexes = Indexes(database, embedding=WORDS_ALONE, items_max=5)
    facts = SqliteFacts(database, indexes)
    people = [Whose(person_id=PersonId(f"p{number}")) for number in range(3)]
    for of in people:
        await told(facts, "Plays the violin.", "Has a cat named Miso.", of=of)

    for of in people:
        await found(indexes, "violin", of)

    assert indexes.size == 4
    assert indexes.is_empty(people[0])
    assert not indexes.is_empty(people[2])
    assert await found(indexes, "violin", people[0]) == ["Plays the violin."]


@pytest.mark.parametrize(("of", "index"), [(ADA, "facts_person"), (ADA_IN_GROUP, "facts_scope")])
async def test_no_search_reads_the_whole_table(database: Database, of: Whose, index: str) -> None:
    where = holding(seen_by(of)).and_("id > ?", 5)

    plan = await database.read(
        lambda c: c.execute(
            f"explain query plan select id from facts where {where.sql} order by id limit 9",
            where.values,
        ).fetchall()
    )

    assert [index in str(row[-1]) and "SEARCH" in str(row[-1]) for row in plan] == [True]
    assert owned_by(of).values == (of.person_id, of.scope)


STEP = st.tuples(
    st.sampled_from(["store", "replace", "forget", "undo", "search"]), st.integers(0, 9)
)


@settings(max_examples=rounds(15, 300))
@given(steps=st.lists(STEP, max_size=14))
def test_whatever_happens_a_search_shows_what_holds_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("facts") / "hearthbot.db"

    asyncio.run(followed(path, steps))


async def followed(path: Path, steps: list[tuple[str, int]]) -> None:
    async with opened(path) as database:
        indexes = Indexes(database, embedding=WORDS_ALONE)
        facts = SqliteFacts(database, indexes)
        for number, (step, choice) in enumerate(steps):
            known = [one.id for one in await facts.list(ADA)]
            chosen = known[choice % len(known)] if known else None
            if step == "store":
                await facts.store(fact(f"The word is {number}{choice}.", run_id=f"r{choice}"))
            elif step == "replace":
                await facts.store(
                    fact(f"The word is {number}x{choice}.", replaces=chosen, run_id=f"r{choice}")
                )
            elif step == "forget" and chosen is not None:
                await facts.forget(ADA, [chosen])
            elif step == "undo":
                await facts.undo(ADA, RunId(f"r{choice}"))
            shown = await facts.search(ADA, "word", k=50)

            assert {one.id for one in shown} == {one.id for one in await facts.list(ADA)}
