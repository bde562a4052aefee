from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from agent.messages import ConversationId
from agent.ports import StoredEntry
from agent.transcript import Answered, Said, ToolCall, ToolResult
from memory.conversations import SqliteConversations
from memory.database import Database
from memory.journal import SqliteJournal
from tests.memory.kit import LANE, rows, run, turn_end


async def finish(
    journal: SqliteJournal,
    run_id: str,
    conversation: ConversationId,
    *,
    sent_from: int | None = None,
) -> None:
    await journal.submit(run(run_id))
    await journal.finish(run(run_id).run_id, turn_end(run_id, conversation, sent_from=sent_from))


def texts(entries: tuple[StoredEntry, ...]) -> list[str]:
    return [stored.entry.text for stored in entries if isinstance(stored.entry, Said)]


async def test_an_address_has_one_open_conversation(
    database: Database, conversations: SqliteConversations
) -> None:
    first = await conversations.current(LANE)

    assert await conversations.current(LANE) == first
    assert await SqliteConversations(database).current(LANE) == first


@pytest.mark.case("SE-17")
async def test_two_people_never_share_a_conversation(
    conversations: SqliteConversations, journal: SqliteJournal
) -> None:
    five = await conversations.current("telegram:5")
    six = await conversations.current("telegram:6")
    await finish(journal, "my PIN is 4711", five)

    anew = await conversations.start_new("telegram:6")

    assert len({five, six, anew}) == 3
    assert (await conversations.history(six)).entries == ()
    assert (await conversations.history(anew)).entries == ()
    assert await conversations.current("telegram:5") == five
    assert texts((await conversations.history(five)).entries) == ["my PIN is 4711"]


async def test_ids_are_random_or_as_chance_is_passed_in(database: Database) -> None:
    chance = iter(["c_1", "c_2"])
    passed_in = SqliteConversations(database, new_id=lambda: next(chance))

    assert await passed_in.current("telegram:1") == "c_1"
    assert re.fullmatch(r"c_[0-9a-f]{16}", await SqliteConversations(database).start_new(LANE))


async def test_a_new_conversation_keeps_the_old_one(
    conversations: SqliteConversations, journal: SqliteJournal, path: Path
) -> None:
    old = await conversations.current(LANE)
    await finish(journal, "r1", old)

    new = await conversations.start_new(LANE)

    assert await conversations.current(LANE) == new != old
    assert texts((await conversations.history(old)).entries) == ["r1"]
    assert rows(path, "select count(*) from conversations where closed_ms is null") == [(1,)]


async def test_a_cancelled_restart_leaves_no_stale_answer(
    database: Database, conversations: SqliteConversations
) -> None:
    await conversations.current(LANE)
    asking = asyncio.create_task(conversations.current(LANE))
    starting = asyncio.create_task(conversations.start_new(LANE))
    await asyncio.sleep(0)

    starting.cancel()
    await asyncio.gather(asking, starting, return_exceptions=True)

    truth = await SqliteConversations(database).current(LANE)
    assert await conversations.current(LANE) == truth


async def test_entries_read_back_equal_in_their_order(
    conversations: SqliteConversations, journal: SqliteJournal
) -> None:
    conversation = await conversations.current(LANE)
    call = ToolCall(id="t1", name="clock", arguments='{"zone": "UTC"}')
    entries = (
        Said(text="what time is it? \ud83d ☀", sender="Ann", quote="q"),
        Answered(text="", calls=(call,), finish="tool_calls", model="m"),
        ToolResult(call_id="t1", content="12:00", ok=False),
        Answered(text="noon"),
    )
    await journal.submit(run("r1"))
    await journal.finish(run("r1").run_id, turn_end("r1", conversation, entries=entries))

    history = await conversations.history(conversation)

    assert tuple(stored.entry for stored in history.entries) == entries
    assert {stored.run_id for stored in history.entries} == {"r1"}
    ids = [stored.id for stored in history.entries]
    assert ids == sorted(set(ids))


async def test_history_grows_with_each_turn_also_when_it_is_kept_in_memory(
    database: Database, conversations: SqliteConversations, journal: SqliteJournal
) -> None:
    conversation = await conversations.current(LANE)

    for n in range(5):
        await finish(journal, f"r{n}", conversation)
        kept = await conversations.history(conversation)

        assert texts(kept.entries) == [f"r{m}" for m in range(n + 1)]
        assert kept == await SqliteConversations(database).history(conversation)


async def test_history_begins_where_it_is_sent_from_and_can_go_back(
    database: Database, conversations: SqliteConversations, journal: SqliteJournal
) -> None:
    conversation = await conversations.current(LANE)
    for run_id in ("r1", "r2", "r3"):
        await finish(journal, run_id, conversation)
    ids = [stored.id for stored in (await conversations.history(conversation)).entries]

    await finish(journal, "r4", conversation, sent_from=ids[2])
    assert texts((await conversations.history(conversation)).entries) == ["r2", "r3", "r4"]
    await finish(journal, "r5", conversation, sent_from=0)

    found = await conversations.history(conversation)
    assert texts(found.entries) == ["r1", "r2", "r3", "r4", "r5"]
    assert found == await SqliteConversations(database).history(conversation)


async def test_history_ends_at_an_id_inclusively(
    conversations: SqliteConversations, journal: SqliteJournal
) -> None:
    conversation = await conversations.current(LANE)
    for run_id in ("r1", "r2"):
        await finish(journal, run_id, conversation)
    whole = (await conversations.history(conversation)).entries

    cut = await conversations.history(conversation, upto=whole[1].id)

    assert cut.entries == whole[:2]
    assert (await conversations.history(conversation)).entries == whole


async def test_the_history_of_an_unknown_conversation_is_empty(
    conversations: SqliteConversations,
) -> None:
    history = await conversations.history(ConversationId("c_none"))

    assert (history.entries, history.notes) == ((), ())


async def test_memory_of_many_conversations_is_bounded_and_still_right(
    conversations: SqliteConversations, journal: SqliteJournal
) -> None:
    ids = [await conversations.current(f"telegram:{n}") for n in range(300)]
    await asyncio.gather(*(finish(journal, f"r{n}", ids[n]) for n in range(300)))

    for _ in range(2):
        for n in range(300):
            assert texts((await conversations.history(ids[n])).entries) == [f"r{n}"]

    assert len(conversations._kept._by_id) == 256


async def test_a_conversation_too_large_to_keep_is_read_each_time(
    conversations: SqliteConversations, journal: SqliteJournal
) -> None:
    conversation = await conversations.current(LANE)
    entries = tuple(Said(text="x" * 1_000_000) for _ in range(13))
    await journal.submit(run("r1"))
    await journal.finish(run("r1").run_id, turn_end("r1", conversation, entries=entries))

    for _ in range(2):
        assert len((await conversations.history(conversation)).entries) == 13

    assert conversations._kept._weight == 0


async def test_a_note_is_told_until_a_turn_takes_it(
    conversations: SqliteConversations, journal: SqliteJournal
) -> None:
    conversation = await conversations.current(LANE)
    await conversations.note(conversation, "the message was edited")
    await conversations.note(conversation, "twice")
    (first, _) = (await conversations.history(conversation)).notes

    await journal.submit(run("r1"))
    end = turn_end("r1", conversation, notes_taken=(first[0],))
    await journal.finish(run("r1").run_id, end)

    assert first[1] == "the message was edited"
    assert [text for _, text in (await conversations.history(conversation)).notes] == ["twice"]


async def test_a_long_text_is_stored_once(
    database: Database, conversations: SqliteConversations
) -> None:
    await conversations.keep_text("d1", "long")
    await conversations.keep_text("d1", "other")
    await SqliteConversations(database).keep_text("d1", "other")

    assert await conversations.text("d1") == "long"
    assert await conversations.text("d2") is None
