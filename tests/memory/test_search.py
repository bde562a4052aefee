"""Finding things by words and meaning: what is found, in which order, and what is never raised."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.search.fts import ROWS_MAX
from memory.search.hybrid import FOR_MEMORY, Item, Search
from memory.search.vectors import Embedding

EMBEDDING = Embedding()

FACTS = (
    Item(id="cat", text="Anna has a cat named Miso.", subject="Anna"),
    Item(id="job", text="Bob works as a nurse in a hospital.", subject="Bob"),
    Item(id="trip", text="Anna flew to Lisbon.", subject="Anna", day=date(2025, 5, 7)),
    Item(id="food", text="Bob is allergic to peanuts.", subject="Bob"),
    Item(id="car", text="Carla bought an old automobile.", subject="Carla"),
)


def found(search: Search, query: str, k: int = 3) -> list[str]:
    return [one.id for one in search.rank(query, k=k)]


@pytest.fixture(scope="module")
def facts() -> Search:
    return Search(FACTS, embedding=EMBEDDING)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("What is the name of Anna's pet?", "cat"),
        ("Which foods must Bob avoid?", "food"),
        ("who drives a vehicle", "car"),
        ("Does somebody work in medicine?", "job"),
        ("What happened in May 2025?", "trip"),
    ],
)
def test_a_question_finds_the_fact_that_answers_it(facts: Search, query: str, best: str) -> None:
    assert found(facts, query)[0] == best


def test_without_embeddings_words_alone_find_what_shares_a_word() -> None:
    search = Search(FACTS)

    assert found(search, "peanuts") == ["food"]
    assert found(search, "a motorised vehicle") == []
    assert {one.cosine for one in search.rank("Is Anna allergic?", k=5)} == {0.0}


def test_english_endings_accents_and_hyphens_make_no_difference() -> None:
    search = Search([Item(id="a", text="Sends e-mails from the café."), Item(id="b", text="Sun")])

    assert found(search, "send") == found(search, "email") == found(search, "CAFE") == ["a"]


def test_a_person_who_is_named_comes_before_others_of_whom_the_same_is_said() -> None:
    items = [
        Item(id="b", text="Plays chess on Sundays.", subject="Bob"),
        Item(id="a", text="Plays chess on Sundays.", subject="Anna"),
    ]
    search = Search(items, embedding=EMBEDDING)

    assert found(search, "When does Bob play chess?")[0] == "b"
    assert found(search, "When does Anna play chess?")[0] == "a"


def test_what_stands_beside_a_good_fit_is_found_with_it() -> None:
    items = [
        Item(id="1", text="Where shall we meet for the concert?"),
        Item(id="2", text="At the fountain.", after="1"),
        Item(id="3", text="At the bridge."),
    ]
    search = Search(items, weights=FOR_MEMORY)

    assert found(search, "concert") == ["1", "2"]


@pytest.mark.parametrize("embedding", [None, EMBEDDING])
def test_what_is_added_is_found_and_what_is_removed_is_not(embedding: Embedding | None) -> None:
    search = Search(FACTS[:2], embedding=embedding)
    search.add(FACTS[2:])
    search.remove(["cat", "unknown"])

    assert found(search, "Which peanuts must Bob avoid?")[0] == "food"
    assert "cat" not in found(search, "Anna's cat named Miso", k=9)
    assert len(search) == 4
    assert "food" in search
    assert "cat" not in search


WORD = st.sampled_from(["tea", "rain", "harbour", "violin", "copper", "bread", "winter", "map"])
SOME_TEXTS = st.lists(st.lists(WORD, min_size=1, max_size=4).map(" ".join), max_size=12)


@settings(max_examples=40, deadline=None)
@given(texts=SOME_TEXTS, cut=st.integers(0, 12), gone=st.sets(st.integers(0, 11)), query=WORD)
def test_whatever_comes_and_goes_words_find_the_same_as_in_an_index_built_at_once(
    texts: list[str], cut: int, gone: set[int], query: str
) -> None:
    items = [Item(id=str(number), text=text) for number, text in enumerate(texts)]
    grown = Search(items[:cut])
    grown.add(items[cut:])
    grown.remove(str(number) for number in gone)

    whole = Search([item for number, item in enumerate(items) if number not in gone])

    assert set(found(grown, query, k=20)) == set(found(whole, query, k=20))


def test_a_large_index_leaves_out_the_most_common_words_and_finds_the_rare_one() -> None:
    items = [
        Item(id=str(number), text=f"alpha beta gamma number{number}")
        for number in range(ROWS_MAX + 1)
    ]
    search = Search(items)

    assert found(search, "alpha beta gamma number77", k=1) == ["77"]
    assert len(found(search, "alpha", k=5)) == 5


def test_likeness_tells_paraphrases_from_other_matters() -> None:
    likeness = EMBEDDING.likeness(
        "Anna likes green tea.",
        ["Anna likes green tea.", "Anna enjoys green tea.", "The train leaves at noon."],
    )

    assert likeness is not None
    assert likeness[0] == pytest.approx(1, abs=1e-5)
    assert likeness[0] > likeness[1] > 0.7 > likeness[2]


def test_loading_leaves_logging_and_environment_as_they_were() -> None:
    program = (
        "import logging, os\n"
        "from memory.search.vectors import Embedding\n"
        "before = dict(os.environ)\n"
        "assert Embedding().table() is not None\n"
        "root = logging.getLogger()\n"
        "print(root.handlers, root.level == logging.WARNING, dict(os.environ) == before)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[] True True"
    assert logging.getLogger().level != logging.INFO


ANY_TEXT = st.text(max_size=60) | st.sampled_from(
    ['"', "AND OR NOT", "a*", "b^2", "\ud800", "{x}:"]
)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(ANY_TEXT, max_size=8), query=ANY_TEXT, k=st.integers(0, 12))
def test_whatever_is_written_and_asked_nothing_is_raised(
    texts: list[str], query: str, k: int
) -> None:
    items = [
        Item(id=str(number), text=text, title=text, subject=text, after=str(number - 1))
        for number, text in enumerate(texts)
    ]

    for embedding in (None, EMBEDDING):
        ranked = Search(items, embedding=embedding).rank(query, k=k)

        assert len(ranked) <= k
        assert len({one.id for one in ranked}) == len(ranked)
        scores = [round(one.score, 6) for one in ranked]
        assert scores == sorted(scores, reverse=True)
