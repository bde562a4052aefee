"""What was ever said is found again: by whom, where, how well, and what is never found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memory.database.connection import Database
from memory.records.facts import Exchange
from memory.records.messages import ConversationId, PersonId, RunId
from memory.records.transcript import Answered, Said, ToolCall, ToolResult
from memory.search.archive import ENTRIES_AT_ONCE, SqliteArchive, drop_from_index
from memory.stores.conversations import SqliteConversations
from memory.stores.turns import SqliteJournal
from tests.memory.history_kit import add_turns, talk
from tests.memory.kit import LANE, StillClock, run, turn_end

OWNER = PersonId("p1")


@pytest.fixture
def archive(database: Database) -> SqliteArchive:
    return SqliteArchive(database)


def said(found: Sequence[Exchange]) -> list[str]:
    return [one.said for one in found]


async def test_an_exchange_is_found_by_what_was_said_and_by_what_was_answered(
    database: Database, archive: SqliteArchive, conversation: ConversationId, clock: StillClock
) -> None:
    runs = await add_turns(
        database,
        conversation,
        [talk("Which seats?", "14A and 14B."), talk("Buy milk", "Noted."), talk("Hm", "Lisbon!")],
    )

    (seats,) = await archive.search(OWNER, LANE, "the seats", k=3)
    (lisbon,) = await archive.search(OWNER, LANE, "lisbon", k=3)

    assert (seats.id, seats.said, seats.answered) == (runs[0], "Which seats?", "14A and 14B.")
    assert seats.when == clock.now()
    assert lisbon.id == runs[2]


async def test_only_the_same_person_in_the_same_chat_is_searched(
    database: Database, archive: SqliteArchive, conversations: SqliteConversations
) -> None:
    group, topic, private = "telegram:-100", "telegram:-100:7", LANE
    await add_turns(
        database, await conversations.current(private), [talk("boat in private")], lane=private
    )
    for lane in (group, topic):
        conversation = await conversations.current(lane)
        await add_turns(database, conversation, [talk(f"boat in {lane}")], lane=lane)
        await add_turns(database, conversation, [talk("boat of Bob")], lane=lane, by="p2")

    in_group = await archive.search(OWNER, "telegram:-100", "boat", k=9)
    in_private = await archive.search(OWNER, private, "boat", k=9)
    elsewhere = await archive.search(OWNER, "slack:C1", "boat", k=9)

    assert sorted(said(in_group)) == [f"boat in {group}", f"boat in {topic}"]
    assert said(in_private) == ["boat in private"]
    assert elsewhere == []


async def test_what_is_sent_anyway_is_left_out_and_other_conversations_are_not(
    database: Database,
    archive: SqliteArchive,
    conversation: ConversationId,
    conversations: SqliteConversations,
) -> None:
    await add_turns(database, conversation, [talk("boat one"), talk("boat two")])
    later = await conversations.start_new(LANE)
    await add_turns(database, later, [talk("boat three"), talk("boat four")])
    start = await database.read(
        lambda c: c.execute("select id from messages where body like '%boat four%'").fetchone()[0]
    )

    found = await archive.search(
        OWNER, LANE, "boat", k=9, before=start, conversation=ConversationId(later)
    )
    everything = await archive.search(OWNER, LANE, "boat", k=9)

    assert set(said(found)) == {"boat one", "boat two", "boat three"}
    assert len(everything) == 4
    nothing_sent = await archive.search(
        OWNER, LANE, "boat", k=9, before=0, conversation=ConversationId(later)
    )
    assert len(nothing_sent) == 4


async def test_only_words_are_indexed_and_only_a_persons_own(
    database: Database, archive: SqliteArchive, conversation: ConversationId
) -> None:
    call = ToolCall(id="c", name="t", arguments='{"q": "argumentword"}')
    await add_turns(
        database,
        conversation,
        [
            [
                Said(text="look", quote="quotedword"),
                Answered(text="<think>hiddenword</think>", calls=(call,)),
                ToolResult(call_id="c", content="resultword"),
                Answered(text="seen"),
            ],
            [Said(text="forwardedword", forwarded=True), Answered(text="A letter.")],
            [Said(text="(reportword)", by="task-1"), Answered(text="The task is done.")],
        ],
    )

    for word in ("argument", "quoted", "hidden", "result", "forwarded", "report"):
        assert await archive.search(OWNER, LANE, f"{word}word", k=3) == []
    (done,) = await archive.search(OWNER, LANE, "task", k=3)
    assert (done.said, done.answered) == ("", "The task is done.")


async def test_what_was_said_with_memory_off_or_by_subagents_is_never_indexed(
    database: Database, archive: SqliteArchive, conversations: SqliteConversations
) -> None:
    private = await conversations.current(LANE)
    await database.write(
        lambda c: c.execute("update conversations set is_private = 1 where id = ?", (private,))
    )
    await add_turns(database, private, [talk("a secret boat")])
    child = await conversations.current("agent:task-1")
    await add_turns(database, child, [talk("a boat for a task")], lane="agent:task-1")
    later = await conversations.start_new(LANE)
    await add_turns(database, later, [talk("a plain boat")])

    assert said(await archive.search(OWNER, LANE, "boat", k=9)) == ["a plain boat"]
    assert await archive.index_new() == 0


async def test_a_long_past_is_indexed_in_bites_and_each_turn_once(
    database: Database, archive: SqliteArchive, conversation: ConversationId
) -> None:
    many = ENTRIES_AT_ONCE + 7
    await add_turns(database, conversation, [talk(f"q{n}", f"a{n}") for n in range(many)])
    await add_turns(database, conversation, [[Said(text=f"s{n}") for n in range(2_500)]])

    first = await archive.index_new()
    again = await SqliteArchive(database).index_new()

    assert (first, again) == (many + 1, 0)
    assert len(await archive.search(OWNER, LANE, f"q{many - 1}", k=3)) == 1


async def test_new_messages_that_take_the_numbers_of_erased_ones_are_indexed(
    database: Database, archive: SqliteArchive, conversation: ConversationId
) -> None:
    await add_turns(database, conversation, [talk("first boat"), talk("second boat")])
    await archive.index_new()

    def erase(connection: object) -> None:
        drop_from_index(connection, conversation)  # type: ignore[arg-type]
        connection.execute("delete from messages")  # type: ignore[attr-defined]

    await database.write(erase)
    await add_turns(database, conversation, [talk("third boat")])

    assert said(await archive.search(OWNER, LANE, "boat", k=3)) == ["third boat"]


async def test_an_answer_after_text_from_outside_is_marked_as_resting_on_it(
    database: Database, archive: SqliteArchive, conversation: ConversationId
) -> None:
    journal = SqliteJournal(database)
    results = {
        "r1": ToolResult(call_id="c1", content='he wrote "untrusted":true here'),
        "r2": ToolResult(call_id="c1", content="a page", untrusted=True),
        "r3": ToolResult(call_id="c1", content="ours"),
    }
    for name, result in results.items():
        await journal.submit(run(name))
        call = Answered(text="", calls=(ToolCall(id="c1", name="web_fetch", arguments="{}"),))
        entries = (Said(text=f"about lighthouses {name}"), call, result, Answered(text="bright"))
        await journal.finish(RunId(name), turn_end(name, conversation, entries=entries))

    found = await archive.search(OWNER, LANE, "lighthouses", k=5)

    assert {one.id: one.tainted for one in found} == {"r1": False, "r2": True, "r3": True}
