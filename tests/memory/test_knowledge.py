"""Documents are found by what is asked, by those who may read them, and by nobody else."""

from __future__ import annotations

import asyncio
import random
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memory.database.connection import Database
from memory.records.errors import DocumentWrong
from memory.records.facts import Chunk, Document, RecallWanted, Whose
from memory.records.messages import ConversationId, PersonId, Role
from memory.search.documents import DocumentBounds, SqliteDocuments
from memory.search.vectors import Embedding, VectorTable
from tests.memory.kit import START_MS, StillClock, rows

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


async def test_a_document_is_saved_in_passages_and_listed_by_name(
    documents: SqliteDocuments,
) -> None:
    await save(documents, "Z" * 2_000, name="z.txt")

    lease = await documents.save(
        ANA, name=" my\nlease ", kind="pdf", source="files/lease.pdf", text=LEASE + "\x00\ud83d"
    )

    assert lease == Document(
        id=lease.id,
        whose=ANA,
        name="my lease",
        kind="pdf",
        source="files/lease.pdf",
        chars=len(LEASE) + 1,
        chunks=1,
        saved_ms=START_MS,
        used_ms=START_MS,
    )
    assert [(one.name, one.chunks) for one in await documents.list(ANA)] == [
        ("my lease", 1),
        ("z.txt", 3),
    ]


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


async def test_what_is_indexed_is_recalled_while_more_is_being_indexed(
    database: Database,
) -> None:
    documents = SqliteDocuments(database, embedding=Embedding(enabled=False), recall_s=0.0)
    await save(documents, LEASE)
    await found(documents, "rent")
    await save(documents, "The rent of the garage is 80 euros each month.", name="garage.txt")

    (chunk,) = await documents.recalled(asked_about("How much is the rent each month?"))

    assert "1,200" in chunk.text
    assert "80 euros" in await found(documents, "garage rent each month")


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


async def test_in_a_group_all_find_what_anybody_saved_there_and_only_that(
    documents: SqliteDocuments,
) -> None:
    await save(documents, "The garden party is on Friday.", of=ANA_IN_GROUP, name="party")
    await save(documents, "The garden party is on Saturday.", of=BEN_IN_GROUP, name="party")
    await save(documents, "The garden party is a secret.", of=ELSEWHERE, name="party")

    here = await found(documents, "when is the garden party", of=BEN_IN_GROUP)

    assert "Friday" in here
    assert "Saturday" in here
    assert "secret" not in here
    assert await found(documents, "when is the garden party") == ""
    assert len(await documents.list(ANA_IN_GROUP)) == 2


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


async def test_a_document_that_is_saved_again_meanwhile_is_there_once_and_whole(
    documents: SqliteDocuments, path: Path
) -> None:
    await asyncio.gather(*(save(documents, f"{n} " * 900) for n in range(6)))

    (saved,) = await documents.list(ANA)
    texts = {str(text)[0] for (text,) in rows(path, "select text from chunks")}
    assert len(texts) == 1
    assert rows(path, "select count(*) from chunks") == [(saved.chunks,)]


async def test_what_was_not_used_for_long_is_offered_to_its_saver_alone(
    documents: SqliteDocuments, clock: StillClock
) -> None:
    await save(documents, LEASE, of=ANA_IN_GROUP)
    clock.move(31 * 86_400)

    assert await documents.unused(BEN_IN_GROUP, days=30) == []
    assert await documents.unused(ANA, days=30) == []
    assert len(await documents.unused(ANA_IN_GROUP, days=30)) == 1
    assert await documents.unused(ANA_IN_GROUP, days=30) == []
