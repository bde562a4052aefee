from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.database.connection import Database
from memory.database.rows import storable
from memory.records.messages import ConversationId
from memory.records.ports import StoredEntry
from memory.records.transcript import Said
from memory.stores.conversations import SqliteConversations, note_of, stored_note
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, opened, rows, run, turn_end


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


@given(
    text=st.text(max_size=40).map(storable) | st.just("\x11\x13 says Mallory"),
    untrusted=st.booleans(),
)
def test_a_note_reads_back_as_it_was_kept_and_no_text_takes_its_mark_away(
    text: str, untrusted: bool
) -> None:
    note = note_of(7, stored_note(text, untrusted=untrusted))

    assert note.untrusted >= untrusted
    assert note.untrusted == untrusted or text.startswith("\x11\x13")
    assert note.text == text.removeprefix("" if untrusted else "\x11\x13")


# --- how many turns there were ---------------------------------------------------------------


lanes = st.sampled_from(["telegram:1", "telegram:2"])
events = st.one_of(
    st.tuples(st.just("finish"), lanes, st.integers(0, 4)),
    st.tuples(st.just("move"), lanes, st.integers(0, 60)),
    st.tuples(st.just("read"), lanes, st.none() | st.integers(0, 60)),
    st.tuples(st.just("new"), lanes, st.just(0)),
    st.tuples(st.just("restart"), lanes, st.just(0)),
)


@settings(max_examples=60, deadline=None)
@given(story=st.lists(events, max_size=25))
def test_turns_are_as_many_as_a_plain_count_finds_whatever_happened_before(
    tmp_path_factory: pytest.TempPathFactory, story: list[tuple[str, str, int | None]]
) -> None:
    path = tmp_path_factory.mktemp("story") / "hearthbot.db"

    told = asyncio.run(told_and_counted(path, story))

    assert [turns for turns, _ in told] == [counted for _, counted in told]


async def told_and_counted(
    path: Path, story: Sequence[tuple[str, str, int | None]]
) -> list[tuple[int, int]]:
    """At each reading, and of every conversation in the end: what is told, and what is there."""
    told: list[tuple[int, int]] = []
    async with opened(path) as database:
        conversations, journal = SqliteConversations(database), SqliteJournal(database)
        run_ids = (f"r{n}" for n in count())

        async def compare(conversation: ConversationId, upto: int | None) -> None:
            history = await conversations.history(conversation, upto=upto)
            told.append((history.turns, counted(path, conversation)))

        async def end_turn(conversation: ConversationId, said: int, sent_from: int | None) -> None:
            run_id = next(run_ids)
            entries = tuple(Said(text=str(n)) for n in range(said))
            end = turn_end(run_id, conversation, entries=entries, sent_from=sent_from)
            await journal.submit(run(run_id))
            await journal.finish(run(run_id).run_id, end)

        for what, lane, number in story:
            if what == "restart":
                conversations = SqliteConversations(database)
            elif what == "new":
                await conversations.start_new(lane)
            elif what == "read":
                await compare(await conversations.current(lane), number)
            elif what == "move":
                await end_turn(await conversations.current(lane), 1, number)
            else:
                await end_turn(await conversations.current(lane), number or 0, None)
        for (conversation,) in rows(path, "select id from conversations"):
            await compare(ConversationId(str(conversation)), None)
    return told


def counted(path: Path, conversation: ConversationId) -> int:
    found = rows(path, "select distinct conversation_id, run_id from messages")
    return sum(1 for stored, _ in found if stored == conversation)
