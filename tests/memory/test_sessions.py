"""Conversations as a whole: listed, read, and erased so that nothing of them is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory.database.connection import Database
from memory.records.messages import ConversationId, RunId
from memory.records.ports import ChildOf, NewRun
from memory.records.transcript import Said
from memory.search.archive import SqliteArchive
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.sessions import SessionBusy, SqliteSessions
from memory.stores.turns import SqliteJournal
from tests.memory.history_kit import ScriptedCheap, add_turns, compactor, detected, talk, wanted
from tests.memory.kit import LANE, StillClock, event, run, turn_end

WORD = "zanzibarword"


@pytest.fixture
def sessions(database: Database) -> SqliteSessions:
    return SqliteSessions(database)


async def a_turn(
    database: Database,
    conversation: ConversationId,
    run_id: str = "m1",
    *,
    lane: str = LANE,
    child_of: ChildOf | None = None,
) -> None:
    """A whole turn with the word in whatever it leaves: inbox, payload, steps, history, reply."""
    journal, payload = SqliteJournal(database), {"conversation": conversation, "text": WORD}
    (stored,) = await SqliteInbox(database).store([event(run_id, lane=lane, payload=WORD)])
    made = run(run_id, lane=lane, payload=payload, inbox_id=stored.id)
    await journal.submit(
        NewRun(
            run_id=made.run_id,
            lane=lane,
            by=made.by,
            payload=payload,
            inbox_id=stored.id,
            child_of=child_of,
        )
    )
    await journal.begin(RunId(run_id))
    await journal.record(RunId(run_id), 0, "begin", {"context": WORD, "conversation": conversation})
    await journal.finish(
        RunId(run_id), turn_end(run_id, conversation, entries=(Said(text=WORD),), reply=WORD)
    )


async def tables_with(database: Database, word: str) -> list[str]:
    """Those in which a word stands anywhere."""

    def work(connection: Any) -> list[str]:
        names = [
            name
            for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")
            if not name.startswith("exchange_words")
        ]
        return [
            name
            for name in names
            if any(word in str(row) for row in connection.execute(f'select * from "{name}"'))
        ]

    return await database.read(work)


@pytest.mark.parametrize("is_open", [True, False])
async def test_an_erased_conversation_leaves_no_word_anywhere(
    database: Database,
    conversation: ConversationId,
    conversations: SqliteConversations,
    path: Path,
    is_open: bool,
) -> None:
    told: list[str] = []
    sessions = SqliteSessions(database, erased=lambda: told.append("erased"))
    await a_turn(database, conversation)
    await conversations.note(conversation, WORD, untrusted=True)
    await SqliteArchive(database).index_new()
    await add_turns(database, conversation, [talk(WORD)] * 30)
    await compactor(database, ScriptedCheap(lambda p: detected(WORD))).compact(wanted(conversation))
    other = await conversations.current("telegram:9")
    await add_turns(database, other, [talk("kilimanjaro")], lane="telegram:9")
    if not is_open:
        await conversations.start_new(LANE)
    assert len(await tables_with(database, WORD)) >= 5

    assert await sessions.erase(conversation)

    assert await tables_with(database, WORD) == []
    assert await tables_with(database, conversation) == []
    assert told == ["erased"]
    conversations._open.clear()
    assert await conversations.current(LANE) != conversation
    assert await tables_with(database, "kilimanjaro") == ["messages"]
    await database.between(lambda c: c.execute("pragma wal_checkpoint(truncate)").fetchall())
    assert WORD.encode() not in path.read_bytes()
    erased = await database.read(
        lambda c: c.execute("select erased_ms, payload from turns where run_id = 'm1'").fetchone()
    )
    assert erased == (database.now_ms(), "{}")
    assert not await sessions.erase(conversation)


async def test_what_its_subagents_said_goes_with_it(
    database: Database, conversation: ConversationId, conversations: SqliteConversations
) -> None:
    await a_turn(database, conversation)
    lane = "agent:task-1"
    child = await conversations.current(lane)
    await a_turn(
        database,
        child,
        "task-1",
        lane=lane,
        child_of=ChildOf(run_id=RunId("m1"), lane=LANE, waits=True, head=WORD),
    )
    await SqliteJournal(database).signal("child:task-1", {"text": WORD})

    await SqliteSessions(database).erase(conversation)

    assert await tables_with(database, WORD) == []


@pytest.mark.parametrize("suspended", [False, True])
async def test_none_is_erased_while_a_turn_runs_there(
    database: Database,
    conversation: ConversationId,
    sessions: SqliteSessions,
    journal: SqliteJournal,
    suspended: bool,
) -> None:
    await a_turn(database, conversation)
    await journal.submit(run("m2"))
    await journal.begin(RunId("m2"))
    if suspended:
        await journal.suspend(RunId("m2"), "approval:1")

    with pytest.raises(SessionBusy, match="nothing was erased"):
        await sessions.erase(conversation)

    assert len(await sessions.find(conversation)) == 1


async def test_a_fact_stays_and_rests_on_no_line_any_more(
    database: Database, conversation: ConversationId, sessions: SqliteSessions
) -> None:
    await add_turns(database, conversation, [talk("I live in Bergen")])
    await database.write(
        lambda c: c.execute(
            "insert into facts (person_id, text, category, confidence, source, message_id,"
            " valid_from_ms, created_ms) select 'p1', 'Ada lives in Bergen.', 'background', 1,"
            " 'message', min(id), 0, 0 from messages"
        )
    )

    await sessions.erase(conversation)

    facts = await database.read(
        lambda c: c.execute("select text, message_id from facts").fetchall()
    )
    assert facts == [("Ada lives in Bergen.", None)]


async def test_closed_conversations_are_erased_after_their_days(
    database: Database,
    clock: StillClock,
    conversations: SqliteConversations,
    sessions: SqliteSessions,
) -> None:
    old = await conversations.current(LANE)
    await add_turns(database, old, [talk("old")])
    new = await conversations.start_new(LANE)
    clock.move(86_400)
    await add_turns(database, new, [talk("new")])
    await conversations.start_new(LANE)
    await add_turns(database, await conversations.current(LANE), [talk("open")])

    await sessions.prune(database.now_ms() - 3_600_000)

    left = [one.id for one in await sessions.list(limit=10)]
    assert old not in left
    assert len(left) == 2
    assert await sessions.prune(database.now_ms() - 3_600_000) == 0
