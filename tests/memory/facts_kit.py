"""What the tests about facts share: people, places, and short ways to make facts."""

from __future__ import annotations

from memory.database.connection import Database
from memory.facts.store import SqliteFacts
from memory.records.facts import Category, FactSource, NewFact, Whose
from memory.records.messages import PersonId, RunId
from memory.search.indexes import Indexes
from memory.search.vectors import Embedding

EMBEDDING = Embedding()
"""Loaded once for all tests."""
WORDS_ALONE = Embedding(enabled=False)

ADA = Whose(person_id=PersonId("p_ada"))
BEN = Whose(person_id=PersonId("p_ben"))
GROUP = "telegram:-100"
ADA_IN_GROUP = Whose(person_id=ADA.person_id, scope=GROUP)
BEN_IN_GROUP = Whose(person_id=BEN.person_id, scope=GROUP)


def facts_in(database: Database, *, embedding: Embedding = EMBEDDING) -> SqliteFacts:
    return SqliteFacts(database, Indexes(database, embedding=embedding))


def fact(
    text: str,
    of: Whose = ADA,
    *,
    category: Category = "background",
    run_id: str = "",
    replaces: int | None = None,
    speaker: str = "",
    asked: bool = False,
) -> NewFact:
    return NewFact(
        whose=of,
        text=text,
        category=category,
        source=FactSource.MESSAGE,
        run_id=RunId(run_id) if run_id else None,
        replaces=replaces,
        speaker=speaker,
        asked=asked,
    )


async def told(facts: SqliteFacts, *texts: str, of: Whose = ADA) -> list[int]:
    """Stores each; returns the ids of what holds."""
    stored = [await facts.store(fact(text, of)) for text in texts]
    return [one.fact.id for one in stored if one.fact is not None]


async def texts(facts: SqliteFacts, of: Whose = ADA) -> set[str]:
    return {one.text for one in await facts.list(of)}
