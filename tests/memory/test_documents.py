"""Documents are found by what is asked, by those who may read them, and by nobody else."""

from __future__ import annotations

import asyncio
import random
import re
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from memory.database.connection import Database
from memory.records.errors import DocumentWrong
from memory.records.facts import Chunk, Document, RecallWanted, Whose
from memory.records.messages import ConversationId, PersonId, Role
from memory.search.documents import (
    OVERLAP_CHARS,
    PASSAGE_CHARS,
    DocumentBounds,
    SqliteDocuments,
    passages,
    table_passages,
)
from memory.search.vectors import Embedding, VectorTable
from tests.memory.kit import START_MS, StillClock, rows

# --- knowledge -----------------------------------------------------------------------------------


ANA = Whose(person_id=PersonId("ana"))
BEN = Whose(person_id=PersonId("ben"))
ANA_IN_GROUP = Whose(person_id=PersonId("ana"), scope="telegram:-100")
BEN_IN_GROUP = Whose(person_id=PersonId("ben"), scope="telegram:-100")
ELSEWHERE = Whose(person_id=PersonId("ben"), scope="telegram:-200")

LEASE = "The tenant pays 1,200 euros of rent each month.\n\nThe notice period is three months."


@pytest.fixture(scope="module")
def embedding() -> Embedding:
    return Embedding()


@pytest.fixture
def documents(database: Database, embedding: Embedding) -> SqliteDocuments:
    return SqliteDocuments(database, embedding=embedding)


async def save(
    documents: SqliteDocuments, text: str, *, of: Whose = ANA, name: str = "lease.txt"
) -> Document:
    return await documents.save(of, name=name, kind="txt", source="files/x", text=text)


async def found(documents: SqliteDocuments, query: str, *, of: Whose = ANA) -> str:
    return "\n".join(chunk.text for chunk in await documents.search(of, query, k=5))


# --- saving --------------------------------------------------------------------------------------


async def test_the_same_name_is_replaced_and_its_old_words_are_found_no_more(
    documents: SqliteDocuments, clock: StillClock, path: Path
) -> None:
    first = await save(documents, "The rent is 900 euros.")
    assert "900" in await found(documents, "how much is the rent")
    clock.move(5)

    second = await save(documents, "The rent is 1,300 euros.")

    assert (second.id, second.saved_ms) == (first.id, START_MS + 5_000)
    assert await found(documents, "how much is the rent") == "The rent is 1,300 euros."
    assert rows(path, "select text from chunks") == [("The rent is 1,300 euros.",)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a", " \n\x07", "has no text in it"),
        ("  ", "x", "needs a name"),
        ("a", "word " * 300, r"1,500 characters \(at most 1,000\)"),
    ],
)
async def test_what_cannot_be_saved_is_refused_with_a_sentence(
    database: Database, embedding: Embedding, name: str, text: str, said: str
) -> None:
    documents = SqliteDocuments(
        database, embedding=embedding, bounds=DocumentBounds(chars_max=1_000)
    )

    with pytest.raises(DocumentWrong, match=said):
        await save(documents, text, name=name)

    assert await documents.list(ANA) == []


# --- finding -------------------------------------------------------------------------------------

MANUAL = """Error E15 means that the leak sensor tripped: close the tap and call the service.

Rinse the filter weekly under running water. Refill the salt when the lamp lights up."""


async def test_a_passage_is_found_by_its_words_and_by_what_it_means(
    documents: SqliteDocuments,
) -> None:
    await save(documents, LEASE)
    await save(documents, MANUAL, name="dishwasher.pdf")

    by_word = await documents.search(ANA, "what does E15 mean", k=1)
    by_meaning = await documents.search(ANA, "how much do I pay my landlord", k=1)
    by_name = await documents.search(ANA, "the dishwasher", k=1)

    assert [chunk.document for chunk in by_word] == ["dishwasher.pdf"]
    assert [chunk.document for chunk in by_meaning] == ["lease.txt"]
    assert [chunk.document for chunk in by_name] == ["dishwasher.pdf"]
    assert isinstance(by_word[0], Chunk)


@pytest.mark.case("ME-09")
@pytest.mark.parametrize(
    "query",
    ["test model access", "thanks!", "what is it", "write a poem about autumn leaves", "", " ?"],
)
async def test_what_has_nothing_to_do_with_a_query_is_not_found(
    documents: SqliteDocuments, query: str
) -> None:
    await save(documents, LEASE)
    for n in range(9):
        text = f"Project Alba, part {n}: the pump in house {n} is fixed by the plumber. " * 10
        await save(documents, text, name=f"alba {n}.md")

    assert await documents.search(ANA, query, k=5) == []


class Gate:
    """Embeddings that are not there before they are let through."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.loads = 0

    def load(self) -> VectorTable:
        self.loads += 1
        self.opened.wait(timeout=60)
        raise OSError("No embeddings here.")


def asked_about(text: str) -> RecallWanted:
    return RecallWanted(
        person_id=ANA.person_id,
        role=Role.MEMBER,
        conversation=ConversationId("c1"),
        text=text,
        now=datetime.fromtimestamp(START_MS / 1000, UTC),
    )


async def test_a_message_does_not_wait_for_an_index_that_takes_long_and_the_tool_does(
    database: Database,
) -> None:
    gate = Gate()
    documents = SqliteDocuments(database, embedding=Embedding(load=gate.load), recall_s=0.0)
    await save(documents, LEASE)
    with capture_logs() as logs:
        recalled = await documents.recalled(asked_about("How much is the rent each month?"))
        tool = asyncio.create_task(found(documents, "rent each month"))
        await asyncio.sleep(0)
        was_done = tool.done()
        gate.opened.set()
        answer = await tool

    assert (recalled, was_done) == ([], False)
    assert "1,200" in answer
    assert [line["event"] for line in logs].count("documents.not_indexed_yet") == 1
    assert gate.loads == 1
    (chunk,) = await documents.recalled(asked_about("How much is the rent each month?"))
    assert "1,200" in chunk.text


# --- nobody else's -------------------------------------------------------------------------------


@pytest.mark.case("ME-07")
async def test_private_documents_are_found_by_their_person_alone(
    documents: SqliteDocuments,
) -> None:
    await save(documents, "My salary is CANARY-81000 and my therapist is Dr K.", name="CANARY.txt")
    await save(documents, "Our plan for the garden.", of=BEN_IN_GROUP)
    await documents.search(ANA, "salary", k=5)

    for somebody in (BEN, ANA_IN_GROUP, BEN_IN_GROUP, ELSEWHERE):
        assert "CANARY" not in await found(documents, "CANARY salary therapist", of=somebody)
        assert "CANARY" not in str(await documents.list(somebody))
        assert await documents.remove(somebody, "CANARY.txt") is None
    assert "CANARY" in await found(documents, "salary")


async def test_in_a_group_only_who_saved_it_replaces_or_removes_it(
    documents: SqliteDocuments,
) -> None:
    await save(documents, "The garden party is on Friday.", of=ANA_IN_GROUP, name="party")

    assert await documents.remove(BEN_IN_GROUP, "party") is None
    await save(documents, "Nothing.", of=BEN_IN_GROUP, name="party")

    assert "Friday" in await found(documents, "garden party", of=BEN_IN_GROUP)


async def test_whoever_saves_what_nobody_ever_reads_of_another(
    database: Database, documents: SqliteDocuments
) -> None:
    """Anything in any order: each text names whose it is, and is only ever seen there."""
    chance = random.Random(4)
    people = [Whose(person_id=PersonId(p), scope=s) for p in "ab" for s in ("", "g:1", "g:2")]
    for step in range(120):
        of = chance.choice(people)
        place = of.scope or of.person_id
        action = chance.random()
        if action < 0.5:
            await save(documents, f"mark place={place} {step}", of=of, name=str(step % 3))
        elif action < 0.65:
            await documents.remove(of, str(step % 3))
        else:
            texts = [chunk.text for chunk in await documents.search(of, "mark place", k=9)]
            assert all(f"place={place} " in text for text in texts)
            expected = sum(one.chunks for one in await documents.list(of))
            assert len(texts) == min(expected, 9)


# --- bounds, and what was erased -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "text", "said"),
    [
        (DocumentBounds(passages_max=2), "x" * 2_000, r"3 passages \(at most 2\)"),
        (DocumentBounds(documents_max=2), "three", "remove one first"),
        (DocumentBounds(passages_in_all_max=2), "more", "there is room for 0"),
    ],
    ids=["passages", "documents", "in all"],
)
async def test_what_is_too_much_is_refused_and_a_known_one_can_still_be_replaced(
    database: Database, embedding: Embedding, bounds: DocumentBounds, text: str, said: str
) -> None:
    documents = SqliteDocuments(database, embedding=embedding, bounds=bounds)
    await save(documents, "one", name="a")
    await save(documents, "two", name="b")

    with pytest.raises(DocumentWrong, match=said):
        await save(documents, text, name="c")

    await save(documents, "other", name="a")
    await save(documents, "of another", name="c", of=BEN)
    assert [one.name for one in await documents.list(ANA)] == ["a", "b"]


async def test_what_was_erased_from_the_table_is_found_no_more(
    documents: SqliteDocuments, database: Database
) -> None:
    """As when a person has all that they said forgotten."""
    await save(documents, LEASE)
    await save(documents, "Error E15 means that the filter is full.", name="manual")
    await documents.search(ANA, "rent", k=5)

    await database.write(lambda c: c.execute("delete from documents where name = 'lease.txt'"))
    assert await found(documents, "rent") == ""

    await database.write(lambda c: c.execute("update chunks set text = 'Error E15: erased'"))
    assert await found(documents, "E15") == "Error E15: erased"


# --- passages ------------------------------------------------------------------------------------


def test_a_passage_ends_with_a_paragraph_if_one_ends_near() -> None:
    first, second = "word " * 140, "next " * 140

    assert next(iter(passages(f"{first.strip()}.\n\n{second}"))) == f"{first.strip()}."


TEXTS = st.text(alphabet=st.sampled_from("ab .!\n日。"), max_size=300).map(lambda text: text * 12)


@settings(max_examples=80, deadline=None)
@given(text=TEXTS)
def test_nothing_is_lost_and_every_passage_fits(text: str) -> None:
    found = list(passages(text))

    assert all(0 < len(passage) <= PASSAGE_CHARS for passage in found)
    assert len(found) <= 1 + len(text) // 500
    place = 0
    for passage in found:
        start = text.index(passage, max(place - OVERLAP_CHARS - PASSAGE_CHARS, 0))
        assert start <= place or not text[place:start].strip()
        place = max(place, start + len(passage))
    assert not text[place:].strip()


def test_a_table_repeats_its_first_line_and_cuts_between_rows() -> None:
    rows = [f"item {n},{n * 3},in stock" for n in range(120)]

    found = list(table_passages("name,price,state\n" + "\n".join(rows)))

    assert len(found) > 2
    assert all(passage.startswith("name,price,state\n") for passage in found)
    assert all(len(passage) <= PASSAGE_CHARS for passage in found)
    assert [row for passage in found for row in passage.split("\n")[1:]] == rows


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("ab,\n"), max_size=200).map(lambda text: text * 9))
def test_no_row_of_a_table_is_lost(text: str) -> None:
    found = list(table_passages(text))

    assert all(0 < len(passage) <= PASSAGE_CHARS for passage in found)
    kept = re.sub(r"\s", "", "".join(found))
    assert len(kept) >= len(re.sub(r"\s", "", text))
