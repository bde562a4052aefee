"""What is over leaves the database: when, in which steps, and what stays (docs/reliability.md)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from memory.database.backup import newest_good, remove_older
from memory.database.connection import BITE_ROWS, FREE_PAGES, Database, Work
from memory.records.messages import ConversationId, PersonId, Role, RunId
from memory.records.ports import StepRecord
from memory.records.rows import NewApproval, NewMessage, OutboxState, Outcome, OutPart, PartState
from memory.search.archive import SqliteArchive
from memory.stores.approvals import SqliteApprovals
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from memory.stores.sessions import SqliteSessions
from memory.stores.turns import SqliteJournal
from tests.laid import lay
from tests.memory.kit import LANE, START, START_MS, StillClock, event, rows, run, turn_end

DAY_S = 86_400
T = TypeVar("T")


class Counted(Database):
    """Knows how many rows each of its transactions changed."""

    changes: list[int]

    async def write(self, work: Work[T]) -> T:
        def counted(connection: sqlite3.Connection) -> T:
            began = connection.total_changes
            value = work(connection)
            self.changes.append(connection.total_changes - began)
            return value

        return await super().write(counted)


@pytest.fixture
async def database(path: Path, clock: StillClock) -> AsyncIterator[Counted]:
    lay(path)
    Counted.changes = []
    async with Counted.open(path, clock=clock, busy_timeout_s=0.2) as database:
        assert isinstance(database, Counted)
        yield database


@pytest.fixture
def sessions(database: Database) -> SqliteSessions:
    return SqliteSessions(database)


@pytest.fixture
def approvals(database: Database) -> SqliteApprovals:
    return SqliteApprovals(database)


def count(path: Path, table: str) -> int:
    ((found,),) = rows(path, f"select count(*) from {table}")
    assert isinstance(found, int)
    return found


async def answered(
    database: Database, conversation: ConversationId, number: int, *, steps: int = 3
) -> None:
    """A message that came, was answered, and whose reply was sent."""
    inbox, outbox, journal = SqliteInbox(database), SqliteOutbox(database), SqliteJournal(database)
    (stored,) = await inbox.store([event(str(number))])
    name = f"in-{stored.id}"
    await journal.submit(run(name, message_id=str(number), inbox_id=stored.id), begins=True)
    done = [StepRecord(n=n, name="model", output={"n": n}) for n in range(steps)]
    await journal.finish(RunId(name), turn_end(name, conversation), steps=done)
    row = await outbox.row_of_run(RunId(name))
    assert row is not None
    part = OutPart(n=0, markup="hello", state=PartState.SENT, message_id=str(number))
    await outbox.mark(row.id, part, end=OutboxState.SENT)


async def pruned(database: Database, before_ms: int) -> None:
    """All of it, in the order of housekeeping."""
    await SqliteOutbox(database).prune(before_ms)
    await SqliteApprovals(database).prune(before_ms)
    await SqliteJournal(database).prune(before_ms)
    await SqliteInbox(database).prune(before_ms)


async def test_whatever_is_removed_a_transaction_removes_a_bite_at_most(
    database: Counted, conversation: ConversationId, clock: StillClock, sessions: SqliteSessions,
    path: Path,
) -> None:  # fmt: skip
    for number in range(60):
        await answered(database, conversation, number, steps=8)
    await answered(database, conversation, 60, steps=3 * BITE_ROWS)
    clock.move(DAY_S)
    database.changes.clear()

    await pruned(database, START_MS + 1_000)
    await SqliteArchive(database).index_new()
    database.changes.clear()
    await sessions.prune(START_MS + 1_000)

    # A row of the index of words is several of SQLite's own.
    assert max(database.changes) <= 4 * BITE_ROWS
    assert len(database.changes) > 3
    assert count(path, "messages") == count(path, "steps") == count(path, "exchanges") == 0


async def test_of_what_was_answered_the_history_alone_stays(
    database: Database, conversation: ConversationId, clock: StillClock, path: Path
) -> None:
    for number in range(5):
        await answered(database, conversation, number)
    clock.move(DAY_S)
    await answered(database, conversation, 5)

    await pruned(database, START_MS + 1_000)

    # Who said what is known by its turn; the newest row keeps its number from being given again.
    assert count(path, "messages") == 12
    assert count(path, "turns") == 6
    assert rows(path, "select event_id from inbox") == [("5",)]
    assert count(path, "outbox") == count(path, "outbox_parts") == 1
    assert {run_id for (run_id,) in rows(path, "select run_id from steps")} == {"in-6"}


async def test_numbers_of_events_and_replies_are_never_given_again(
    database: Database, conversation: ConversationId, clock: StillClock, inbox: SqliteInbox,
    outbox: SqliteOutbox,
) -> None:  # fmt: skip
    await answered(database, conversation, 1)
    newest = await outbox.row_of_run(RunId("in-1"))
    clock.move(DAY_S)

    await pruned(database, START_MS + DAY_S * 1000)
    (later,) = await inbox.store([event("2")])
    added = await outbox.add(NewMessage(lane=LANE, text="later"))

    # A turn is named after its event: with the number of another, it would count as done.
    assert later.id == 2
    assert newest is not None
    assert added > newest.id


async def test_an_event_is_known_as_long_as_it_may_be_delivered_again(
    database: Database, conversation: ConversationId, clock: StillClock, inbox: SqliteInbox
) -> None:
    await answered(database, conversation, 1)
    await answered(database, conversation, 2)
    clock.move(2 * DAY_S)

    await inbox.prune(START_MS - 28 * DAY_S * 1000)
    again = await inbox.store([event("1")])
    await inbox.prune(START_MS + 1)
    after = await inbox.store([event("1")])

    assert again == []
    assert len(after) == 1


async def test_what_is_open_stays_however_old_it_is(
    database: Database, clock: StillClock, inbox: SqliteInbox, journal: SqliteJournal,
    outbox: SqliteOutbox, path: Path,
) -> None:  # fmt: skip
    waiting, queued, _ = await inbox.store([event("1"), event("2"), event("3")])
    await journal.submit(run("r1", inbox_id=queued.id), begins=True)
    await journal.record(RunId("r1"), 0, "model", {})
    await journal.suspend(RunId("r1"), "approval:a1")
    await outbox.add(NewMessage(lane=LANE, text="not sent yet"))
    await outbox.add(NewMessage(lane=LANE, text="nor this"))
    clock.move(400 * DAY_S)

    await pruned(database, START_MS + 399 * DAY_S * 1000)

    assert count(path, "inbox") == 3
    assert next(one.id for one in await inbox.unfinished()) == waiting.id
    assert count(path, "outbox") == 2
    assert (await journal.begin(RunId("r1")))[0].output == {}


def question(name: str, run_id: str) -> NewApproval:
    return NewApproval(
        id=name,
        run_id=RunId(run_id),
        lane=LANE,
        person_id=PersonId("p1"),
        agent="default",
        tool="write_file",
        digest="d",
        shows="write it",
        why="because",
        owner_alone=False,
        once_only=False,
    )


async def test_a_question_that_stands_keeps_its_card(
    database: Database, clock: StillClock, journal: SqliteJournal, outbox: SqliteOutbox,
    approvals: SqliteApprovals, path: Path,
) -> None:  # fmt: skip
    for name in ("a1", "a2"):
        await journal.submit(run(name), begins=True)
        card = NewMessage(lane=LANE, text=f"may I? {name}")
        ready = await approvals.add(
            question(name, name), role=Role.OWNER, expires_ms=START_MS + 10**12, card=card
        )
        assert ready is not None
        await outbox.mark(ready[0][1], end=OutboxState.SENT)
    await outbox.add(NewMessage(lane=LANE, text="the newest"))
    await approvals.decide("a2", Outcome.ONCE, by=PersonId("p1"))
    await approvals.settle("a2")
    clock.move(DAY_S)

    await pruned(database, START_MS + 1_000)

    assert rows(path, "select id from approvals order by id") == [("a1",), ("a2",)]
    assert rows(path, "select text from outbox order by id") == [("may I? a1",), ("the newest",)]


async def test_a_result_stays_for_a_turn_that_waited_through_a_long_pause(
    database: Database, conversation: ConversationId, clock: StillClock, journal: SqliteJournal
) -> None:
    from tests.memory.test_journal import child

    await journal.submit(run("r1"), begins=True)
    await journal.submit(child("k1"))
    ended = replace(turn_end("k1", conversation), signals=(("child:k1", {"text": "done"}),))
    await journal.finish(RunId("k1"), ended)
    clock.move(40 * DAY_S)

    await journal.prune(START_MS + DAY_S * 1000)

    assert await journal.signalled("child:k1") == {"text": "done"}


# --- history, where the settings say how long ------------------------------------------------


async def test_an_open_conversation_loses_what_is_too_old(
    database: Database, conversation: ConversationId, clock: StillClock,
    sessions: SqliteSessions, conversations: SqliteConversations,
) -> None:  # fmt: skip
    archive = SqliteArchive(database)
    for number in range(40):
        await answered(database, conversation, number)
    clock.move(10 * DAY_S)
    await answered(database, conversation, 40)
    await archive.index_new()

    await sessions.prune(START_MS + DAY_S * 1000)

    (left,) = await sessions.list(limit=5)
    assert left.id == conversation
    assert [entry.run_id for entry in await sessions.entries(conversation, after=0, limit=9)] == [
        "in-41",
        "in-41",
    ]
    found = await archive.search(PersonId("p1"), "telegram:5", "hello", k=50)
    assert [one.id for one in found] == ["in-41"]
    history = await conversations.history(conversation)
    assert len(history.entries) == 2


async def test_one_who_comes_back_after_long_is_heard_and_answered_from_the_start(
    database: Database, conversation: ConversationId, clock: StillClock,
    sessions: SqliteSessions, conversations: SqliteConversations,
) -> None:  # fmt: skip
    for number in range(8):
        await answered(database, conversation, number)
    await database.write(
        lambda c: c.execute("update conversations set sent_from = 13, shortened_to = 13")
    )
    clock.move(100 * DAY_S)

    await sessions.prune(START_MS + DAY_S * 1000)
    await answered(database, conversation, 9)

    # Numbers begin anew: a mark of before would hide what is said now.
    assert await conversations.current(LANE) == conversation
    assert len((await conversations.history(conversation)).entries) == 2


async def test_a_turn_whose_words_went_by_age_goes_with_its_trace(
    database: Database, conversation: ConversationId, clock: StillClock, sessions: SqliteSessions,
    path: Path,
) -> None:  # fmt: skip
    for number in (1, 2):
        await answered(database, conversation, number)
    clock.move(10 * DAY_S)
    before_ms = START_MS + DAY_S * 1000

    await pruned(database, before_ms)  # the trace alone
    await sessions.prune(before_ms)
    await SqliteOutbox(database).prune(before_ms)
    await SqliteJournal(database).prune(before_ms)

    # That of the newest reply stays as long as it.
    assert rows(path, "select run_id from turns") == [("in-2",)]


# --- the file ---------------------------------------------------------------------------------


async def filled(database: Database, pages: int) -> None:
    await database.write(lambda c: c.execute("create table ballast (body blob)"))
    values = [(bytes(4_000),)] * pages
    await database.write(lambda c: c.executemany("insert into ballast values (?)", values))
    await database.write(lambda c: c.execute("delete from ballast"))


async def test_the_file_gives_back_what_it_does_not_need(database: Counted, path: Path) -> None:
    await filled(database, 2 * FREE_PAGES)
    await database.between(lambda c: c.execute("pragma wal_checkpoint(truncate)").fetchall())
    large = path.stat().st_size

    given = await database.shrink()
    await database.between(lambda c: c.execute("pragma wal_checkpoint(truncate)").fetchall())

    assert given >= FREE_PAGES
    assert path.stat().st_size <= large - given * 4096
    assert await database.shrink() == 0
    assert await database.check() == ""


# --- backups ----------------------------------------------------------------------------------


async def test_a_backup_of_2030_is_never_the_newest(database: Database, path: Path) -> None:
    folder = path.parent / "backups"
    await database.backup(folder / "hearthbot-20300101.db")
    for day in (29, 30, 31):
        await database.backup(folder / f"hearthbot-202607{day}.db")

    newest = newest_good(path, folder, now=START)
    remove_older(path, folder, now=START)

    assert newest == folder / "hearthbot-20260731.db"
    assert sorted(file.name for file in folder.iterdir()) == [
        f"hearthbot-202607{day}.db" for day in (29, 30, 31)
    ]
