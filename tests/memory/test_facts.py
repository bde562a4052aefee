"""Facts are kept, corrected, found, forgotten and taken back, each person's apart."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memory.database.connection import Database
from memory.facts.store import USES_KEPT_MS, SqliteFacts
from memory.records.facts import Storing, Whose
from memory.records.messages import RunId
from memory.search.vectors import Embedding
from tests.memory.facts_kit import (
    ADA,
    ADA_IN_GROUP,
    BEN,
    BEN_IN_GROUP,
    EMBEDDING,
    WORDS_ALONE,
    fact,
    facts_in,
    texts,
    told,
)
from tests.memory.kit import START, START_MS, StillClock, opened, rows


@pytest.fixture
def facts(database: Database) -> SqliteFacts:
    return facts_in(database)


@pytest.fixture(params=[EMBEDDING, WORDS_ALONE], ids=["meaning", "words alone"])
def either(request: pytest.FixtureRequest, database: Database) -> SqliteFacts:
    embedding = request.param
    assert isinstance(embedding, Embedding)
    return facts_in(database, embedding=embedding)


async def test_a_question_finds_what_answers_it(either: SqliteFacts) -> None:
    await told(either, "Ada plays the violin.", "Ada is allergic to nuts.", "Ada has a cat, Miso.")

    assert [one.text for one in await either.search(ADA, "Which nuts?", k=1)] == [
        "Ada is allergic to nuts."
    ]
    assert await either.search(ADA, "violin", k=0) == []


@pytest.mark.parametrize("query", ["asdf jkl", "🦖", "1871"])
async def test_a_search_for_what_is_not_known_finds_nothing(
    either: SqliteFacts, query: str
) -> None:
    await told(either, "Ada plays the violin.", "Ada is allergic to nuts.", "Ada has a cat, Miso.")

    assert await either.search(ADA, query, k=5) == []
    assert await either.search(ADA, query, k=5, at=START + timedelta(days=1)) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [("Cats", "cat"), ("allergy nut", "nuts"), ("C++", "C++"), ("nurses 7", "7")],
)
async def test_one_word_in_common_is_enough_for_a_search(
    either: SqliteFacts, query: str, found: str
) -> None:
    await told(
        either,
        "Ada plays the violin.",
        "Ada is allergic to nuts.",
        "Ada has a cat.",
        "Ada writes C++.",
        "Ada has 7 sisters.",
    )

    assert any(found in one.text for one in await either.search(ADA, query, k=5))


async def test_a_search_by_meaning_needs_no_word_in_common(facts: SqliteFacts) -> None:
    await told(facts, "Ada plays the violin.", "Ada is allergic to nuts.", "Ada has a cat, Miso.")

    assert [one.text for one in await facts.search(ADA, "instrument", k=5)] == [
        "Ada plays the violin."
    ]


async def test_a_search_by_who_said_it_or_when_finds_it(facts: SqliteFacts) -> None:
    await facts.store(fact("The cake is at five.", ADA_IN_GROUP, speaker="Ada"))

    for query in ("Ada", f"{START:%B}"):
        assert len(await facts.search(BEN_IN_GROUP, query, k=5)) == 1


# --- corrections ------------------------------------------------------------------------


@pytest.mark.case("ME-11")
@pytest.mark.parametrize("says_so", [True, False])
async def test_who_moved_lives_in_one_city_and_after_forgetting_in_none(
    either: SqliteFacts, says_so: bool
) -> None:
    (oslo,) = await told(either, "Ada lives in Oslo.")
    await told(either, "Ada plays the violin.", "Ada is allergic to nuts.")

    moved = await either.store(
        fact("Ada moved to Bergen last week.", replaces=oslo if says_so else None)
    )

    assert moved.outcome is Storing.SUPERSEDED
    assert moved.replaced is not None
    assert (moved.replaced.id, moved.replaced.valid_to_ms) == (oslo, START_MS)
    assert moved.fact is not None
    assert moved.replaced.superseded_by == moved.fact.id
    assert "Ada lives in Oslo." not in await texts(either)
    found = await either.search(ADA, "which city do I live in?", k=9)
    assert "Ada lives in Oslo." not in {one.text for one in found}
    recalled = await either.recall(ADA, "which city do I live in?", k=5)
    assert "Ada moved to Bergen last week." in {one.text for one in recalled}

    assert await either.forget(ADA, [moved.fact.id]) == 1

    for query in ("which city do I live in?", "Oslo", "Bergen", "what do you know about me?"):
        left = [*await either.search(ADA, query, k=9), *await either.recall(ADA, query, k=9)]
        assert not any("Oslo" in one.text or "Bergen" in one.text for one in left)
    assert await either.get(ADA, oslo) is None


async def corrected(facts: SqliteFacts, known: int, text: str, *, run_id: str = "") -> int:
    stored = await facts.store(fact(text, replaces=known, run_id=run_id))
    assert stored.outcome is Storing.SUPERSEDED
    assert stored.fact is not None
    return stored.fact.id


async def test_it_can_be_asked_what_held_at_a_time(either: SqliteFacts, clock: StillClock) -> None:
    await told(either, "Ada lives in Oslo.")
    clock.move(3600)
    await told(either, "Ada moved to Bergen last week.")

    then = START + timedelta(minutes=30)

    assert [one.text for one in await either.list(ADA, at=then)] == ["Ada lives in Oslo."]
    assert [one.text for one in await either.search(ADA, "Oslo", k=5, at=then)] == [
        "Ada lives in Oslo."
    ]
    assert await either.list(ADA, at=START - timedelta(days=1)) == []
    assert await either.search(ADA, "Oslo", k=5, at=START - timedelta(days=1)) == []
    assert [one.text for one in await either.list(ADA, at=clock.now())] == [
        "Ada moved to Bergen last week."
    ]


async def test_a_correction_is_stored_however_alike_it_is(facts: SqliteFacts) -> None:
    (wrong,) = await told(facts, "Ada lives in oslo.")

    corrected = await facts.store(fact("Ada lives in Oslo.", replaces=wrong))

    assert corrected.outcome is Storing.SUPERSEDED
    assert await texts(facts) == {"Ada lives in Oslo."}


async def test_a_correction_to_something_known_closes_the_wrong_one(facts: SqliteFacts) -> None:
    tea, coffee = await told(facts, "Ada likes green tea.", "Ada drinks five coffees a day.")

    corrected = await facts.store(fact("Ada likes green tea", replaces=coffee))

    assert corrected.outcome is Storing.SUPERSEDED
    assert corrected.fact is not None
    assert corrected.fact.id == tea
    assert corrected.replaced is not None
    assert corrected.replaced.id == coffee
    assert await texts(facts) == {"Ada likes green tea."}


async def test_a_fact_that_is_said_again_is_refreshed(
    either: SqliteFacts, clock: StillClock
) -> None:
    (known,) = await told(either, "Ada likes green tea.")
    clock.move(60)

    again = await either.store(replace(fact("ada  LIKES green tea"), confidence=0.4))

    assert again.outcome is Storing.REFRESHED
    assert again.fact is not None
    assert (again.fact.id, again.fact.confidence) == (known, 1.0)
    assert again.fact.last_used_ms == START_MS + 60_000


async def test_the_same_that_is_stored_twice_at_once_is_kept_once(either: SqliteFacts) -> None:
    both = await asyncio.gather(*(either.store(fact("Ada likes green tea.")) for _ in range(3)))

    assert sorted(one.outcome for one in both) == ["refreshed", "refreshed", "stored"]
    assert len(await either.list(ADA)) == 1


@pytest.mark.case("ME-05")
async def test_the_same_in_other_words_makes_no_second_row(either: SqliteFacts) -> None:
    await told(either, "Ada does not eat meat.", "Ada's team meets on Mondays at 10.")

    again = await told(either, "Ada doesn't eat meat", "Ada's team meets every Monday at 10.")

    assert len(set(again)) == 2
    assert len(await either.list(ADA)) == 2


# --- people and places ------------------------------------------------------------------


async def test_in_a_group_all_read_and_each_writes_their_own(either: SqliteFacts) -> None:
    (adas,) = await told(either, "Ada brings the cake.", of=ADA_IN_GROUP)
    (bens,) = await told(either, "Ben brings the drinks.", of=BEN_IN_GROUP)

    assert await texts(either, ADA_IN_GROUP) == {"Ada brings the cake.", "Ben brings the drinks."}
    assert (await either.search(BEN_IN_GROUP, "cake", k=1))[0].id == adas
    assert await either.get(ADA_IN_GROUP, bens) is not None
    assert await either.forget(ADA_IN_GROUP, [bens]) == 0
    assert await texts(either, BEN_IN_GROUP) == {"Ada brings the cake.", "Ben brings the drinks."}


async def test_nobody_else_and_no_other_place_sees_a_fact(either: SqliteFacts) -> None:
    (private,) = await told(either, "Ada sees Dr K.")
    (grouped,) = await told(either, "Ada brings the cake.", of=ADA_IN_GROUP)
    other_group = Whose(person_id=ADA.person_id, scope="telegram:-200")

    for of in (BEN, BEN_IN_GROUP, ADA_IN_GROUP, other_group):
        assert await either.get(of, private) is None
        assert "Ada sees Dr K." not in await texts(either, of)
        assert "Ada sees Dr K." not in {
            one.text for one in await either.search(of, "Ada sees Dr K.", k=9)
        }
    for of in (ADA, BEN, other_group):
        assert await either.get(of, grouped) is None
        assert grouped not in {one.id for one in await either.search(of, "cake", k=9)}
        assert "Ada brings the cake." not in await texts(either, of)
    assert await either.forget(ADA, [grouped]) == 0
    assert await either.forget(BEN, [private]) == 0


async def test_only_what_is_ones_own_in_the_same_place_is_replaced(facts: SqliteFacts) -> None:
    (bens,) = await told(facts, "Ben plays chess.", of=BEN)
    await told(facts, "Ada lives in Oslo.")

    named = await facts.store(fact("Ada plays chess on Sundays.", replaces=bens))
    moved = await facts.store(fact("Ada moved to Bergen last week.", ADA_IN_GROUP))

    assert (named.outcome, moved.outcome) == (Storing.STORED, Storing.STORED)
    assert await texts(facts, BEN) == {"Ben plays chess."}
    assert await texts(facts) == {"Ada lives in Oslo.", "Ada plays chess on Sundays."}


# --- forgetting and taking back ---------------------------------------------------------


async def test_forgetting_leaves_no_word_in_the_file(path: Path) -> None:
    async with opened(path) as database:
        facts = facts_in(database)
        ids = await told(facts, "Ada keeps zebrafinches.", "Ada plays the violin.")
        assert await facts.forget(ADA, [ids[0], 999]) == 1

        assert await texts(facts) == {"Ada plays the violin."}
        await facts.search(ADA, "birds", k=5)
        await database.write(lambda c: c.execute("select 1"))
    raw = b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())

    assert b"zebrafinch" not in raw
    assert b"violin" in raw
    assert rows(path, "select count(*) from tombstones") == [(1,)]


async def test_what_was_forgotten_is_not_learnt_again_unless_asked(either: SqliteFacts) -> None:
    ids = await told(either, "Ada takes pills for her heart every morning.")
    await either.forget(ADA, ids)

    again = await either.store(fact("Ada takes heart pills every morning."))

    assert again.outcome is Storing.REFUSED
    assert "forget" in again.why
    assert await either.list(ADA) == []

    asked = await either.store(fact("Ada takes heart pills every morning.", asked=True))

    assert asked.outcome is Storing.STORED
    assert (await either.store(fact("Ada takes heart pills every morning."))).outcome is (
        Storing.REFRESHED
    )


async def test_taking_a_turn_back_undoes_what_it_stored(either: SqliteFacts) -> None:
    (oslo,) = await told(either, "Ada lives in Oslo.")
    await either.store(fact("Ada moved to Bergen last week.", run_id="r1"))
    await either.store(fact("Ada plays the violin.", run_id="r1"))
    await either.store(fact("Ada is allergic to nuts.", run_id="r2"))
    await either.search(ADA, "violin", k=5)

    for of, run_id in ((BEN, "r1"), (ADA_IN_GROUP, "r1"), (ADA, "")):
        assert await either.undo(of, RunId(run_id)) == ([], [])
    gone, back = await either.undo(ADA, RunId("r1"))

    assert {one.text for one in gone} == {"Ada moved to Bergen last week.", "Ada plays the violin."}
    assert [one.id for one in back] == [oslo]
    assert back[0].valid_to_ms is None
    assert back[0].superseded_by is None
    assert await texts(either) == {"Ada lives in Oslo.", "Ada is allergic to nuts."}
    assert (await either.search(ADA, "Oslo", k=1))[0].id == oslo
    assert all("violin" not in one.text for one in await either.search(ADA, "violin", k=9))
    assert await either.undo(ADA, RunId("r1")) == ([], [])


async def test_what_a_later_turn_corrected_stays_corrected(facts: SqliteFacts) -> None:
    (oslo,) = await told(facts, "Ada lives in Oslo.")
    moved = (await facts.store(fact("Ada moved to Bergen last week.", run_id="r1"))).fact
    assert moved is not None
    rome = await corrected(facts, moved.id, "Ada lives in Rome.", run_id="r2")

    _, back = await facts.undo(ADA, RunId("r1"))

    assert back == []
    assert [one.id for one in await facts.past(ADA, rome)] == [oslo]
    assert await facts.past(BEN, rome) == []
    assert await texts(facts) == {"Ada lives in Rome."}


async def test_two_corrections_of_one_turn_are_taken_back_together(facts: SqliteFacts) -> None:
    (oslo,) = await told(facts, "Ada lives in Oslo.")
    bergen = await corrected(facts, oslo, "Ada lives in Bergen.", run_id="r1")
    await corrected(facts, bergen, "Ada lives in Rome.", run_id="r1")

    gone, back = await facts.undo(ADA, RunId("r1"))

    assert len(gone) == 2
    assert [one.id for one in back] == [oslo]


# --- what is of use ---------------------------------------------------------------------


async def test_what_is_remembered_of_somebody_is_what_tells_most(either: SqliteFacts) -> None:
    await either.store(fact("The archive moves to SQLite.", category="decision"))
    await either.store(fact("Ada is a nurse.", category="background"))
    await either.store(fact("Project Atlas has a weekly review.", category="project"))

    for asked in ("What do you remember about me?", "who am I", "tell me what you know about me"):
        assert (await either.search(ADA, asked, k=3))[0].text == "Ada is a nurse."
        assert len(await either.recall(ADA, asked, k=5)) == 3


@pytest.mark.parametrize("message", ["Thanks, good night", "👍", ""])
async def test_a_greeting_recalls_nothing(either: SqliteFacts, message: str) -> None:
    await told(either, "Ada likes good mornings.", "Ada says hello to everybody.")

    assert await either.recall(ADA, message, k=5) == []


ATLAS = (
    "Project Atlas keeps its model registry in Frankfurt, and its tests run every night at two.",
    "For Project Atlas the tool atlas-deploy builds images, runs smoke tests and tags the release.",
    "Project Atlas uses the tool atlas-lint before each merge request is opened by the team.",
    "In Project Atlas, access to the staging cluster is granted by the platform team on request.",
    "Project Atlas stores its data model in a schema file that is checked in with the code.",
    "The dashboards of Project Atlas are made with Grafana and show latency, errors and traffic.",
    "Project Atlas has a weekly review on Thursdays where all open tickets are sorted by weight.",
    "The Project Atlas command atlas-test accepts a filter, a seed and a number of workers.",
    "Project Atlas plans to move its queue from RabbitMQ to NATS in spring, after the freeze.",
)


@pytest.mark.case("ME-09")
async def test_facts_on_another_matter_stay_out_of_a_prompt(either: SqliteFacts) -> None:
    await told(either, *ATLAS)

    assert await either.recall(ADA, "test model access", k=5) == []
    assert len(await either.recall(ADA, "How do I deploy Atlas?", k=5)) == 5


async def test_an_allergy_comes_up_with_the_cake(either: SqliteFacts) -> None:
    await told(either, *ATLAS, "Ada is allergic to nuts.")

    recalled = await either.recall(ADA, "Should I bring a cake with nuts on Saturday?", k=5)

    assert [one.text for one in recalled] == ["Ada is allergic to nuts."]


async def test_uses_are_counted_without_a_commit_for_each_message(
    facts: SqliteFacts, clock: StillClock
) -> None:
    (violin,) = await told(facts, "Ada plays the violin.")

    for _ in range(3):
        await facts.recall(ADA, "When do I play the violin?", k=5)
    before = await facts.get(ADA, violin)
    clock.move(USES_KEPT_MS / 1000)
    await facts.recall(ADA, "When do I play the violin?", k=5)
    after = await facts.get(ADA, violin)

    assert before is not None
    assert after is not None
    assert (before.uses, after.uses) == (0, 4)
    assert after.last_used_ms == START_MS + USES_KEPT_MS


async def test_uses_that_cannot_be_written_keep_nobody_from_an_answer(
    path: Path, facts: SqliteFacts, clock: StillClock
) -> None:
    await told(facts, "Ada plays the violin.")
    await facts.recall(ADA, "violin", k=5)
    clock.move(USES_KEPT_MS / 1000)

    with closing(sqlite3.connect(path)) as other, capture_logs() as logs:
        other.execute("begin immediate")
        recalled = await facts.recall(ADA, "violin", k=5)

    assert [one.text for one in recalled] == ["Ada plays the violin."]
    assert [entry["event"] for entry in logs] == ["uses_not_counted"]


async def test_what_is_asked_at_the_end_of_a_long_message_is_found(either: SqliteFacts) -> None:
    await told(either, "Ada is allergic to nuts.")

    recalled = await either.recall(ADA, "blah " * 50_000 + "Does it hold nuts?", k=5)

    assert [one.text for one in recalled] == ["Ada is allergic to nuts."]


async def test_a_time_that_no_calendar_knows_is_now(facts: SqliteFacts) -> None:
    stored = await facts.store(replace(fact("Ada plays the violin."), valid_from_ms=2**62))

    assert stored.fact is not None
    assert stored.fact.valid_from_ms == START_MS
    assert len(await facts.search(ADA, "violin", k=1)) == 1
