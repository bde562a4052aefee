from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memory.records.errors import StorageError
from memory.records.messages import ConversationId, PersonId, Role, RunId
from memory.records.ports import (
    ChildOf,
    Finished,
    NewRun,
    RunStatus,
    StepRecord,
    StoredRun,
)
from memory.records.rows import OutboxState, OutPart, PartState, Person
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, START_MS, event, rows, run, turn_end

R1, R2, R3 = RunId("r1"), RunId("r2"), RunId("r3")


async def only(journal: SqliteJournal) -> StoredRun:
    (stored,) = await journal.unfinished()
    return stored


# --- submitting ------------------------------------------------------------------------------


# --- steps -----------------------------------------------------------------------------------


async def test_steps_may_be_written_with_the_end(
    journal: SqliteJournal, conversation: ConversationId, path: Path
) -> None:
    await journal.submit(run("r1"))
    await journal.record(R1, 0, "begin", {"a": 1})
    steps = [
        StepRecord(n=0, name="begin", output={"a": 2}),
        StepRecord(n=1, name="model", output={"text": "half \ud83d"}),
    ]

    await journal.finish(R1, turn_end("r1", conversation), steps=steps)

    assert rows(path, "select n, name, output from steps order by n") == [
        (0, "begin", '{"a":1}'),
        (1, "model", '{"text":"half \\ud83d"}'),
    ]


async def test_joined_runs_and_their_messages_end_with_the_step(
    journal: SqliteJournal, inbox: SqliteInbox, path: Path
) -> None:
    stored = await inbox.store([event(str(n)) for n in range(3)])
    for n, run_id in enumerate(("r1", "r2", "r3")):
        await journal.submit(run(run_id, inbox_id=stored[n].id))
    await journal.begin(R1)

    await journal.record(R1, 0, "receive", {"messages": 2}, joined=[R2, R3])

    assert (await only(journal)).run.run_id == R1
    assert await inbox.counts() == {"queued": 1, "joined": 2}
    joined = rows(path, "select joined_to, ended_ms from turns where status = 'joined'")
    assert joined == [("r1", START_MS)] * 2


# --- waiting ---------------------------------------------------------------------------------


# --- the end ---------------------------------------------------------------------------------


async def test_the_end_of_a_turn_is_one_whole(
    journal: SqliteJournal,
    inbox: SqliteInbox,
    outbox: SqliteOutbox,
    conversations: SqliteConversations,
    conversation: ConversationId,
) -> None:
    (stored,) = await inbox.store([event("1")])
    await journal.submit(run("r1", inbox_id=stored.id))
    await journal.begin(R1)

    ended = await journal.finish(R1, turn_end("r1", conversation, reply="hello"))

    (row,) = await outbox.open_rows()
    assert list(ended.ready) == [(LANE, row.id)]
    assert (row.run_id, row.lane, row.text) == (R1, LANE, "hello")
    assert len((await conversations.history(conversation)).entries) == 2
    assert await inbox.counts() == {"replied": 1}
    assert await journal.unfinished() == []


async def test_a_turn_ends_once(
    journal: SqliteJournal,
    outbox: SqliteOutbox,
    conversations: SqliteConversations,
    conversation: ConversationId,
) -> None:
    await journal.submit(run("r1"))
    await journal.finish(R1, turn_end("r1", conversation))

    again = await journal.finish(R1, turn_end("r1", conversation, reply="again"))

    assert again == Finished()
    assert [row.text for row in await outbox.open_rows()] == ["hello"]
    assert len((await conversations.history(conversation)).entries) == 2


async def test_an_end_that_fails_leaves_nothing_of_itself(
    journal: SqliteJournal, outbox: SqliteOutbox, inbox: SqliteInbox, path: Path
) -> None:
    (stored,) = await inbox.store([event("1")])
    await journal.submit(run("r1", inbox_id=stored.id))

    with pytest.raises(StorageError):
        await journal.finish(R1, turn_end("r1", ConversationId("c_none")))

    assert rows(path, "select count(*) from messages") == [(0,)]
    assert await outbox.open_rows() == []
    assert await inbox.counts() == {"queued": 1}


async def test_a_draft_becomes_the_reply(
    journal: SqliteJournal, outbox: SqliteOutbox, conversation: ConversationId
) -> None:
    await journal.submit(run("r1"))
    draft = await outbox.open_draft(R1, LANE)
    await outbox.mark(draft.id, OutPart(n=0, state=PartState.SENT, message_id="9"))

    ended = await journal.finish(R1, turn_end("r1", conversation, reply="whole"))

    (row,) = await outbox.open_rows()
    assert list(ended.ready) == [(LANE, row.id)] == [(LANE, draft.id)]
    assert row.text == "whole"
    assert [part.message_id for part in row.parts] == ["9"]


@pytest.mark.parametrize("state", [PartState.SENDING, PartState.FAILED])
async def test_without_a_reply_a_draft_that_was_never_shown_is_dropped(
    journal: SqliteJournal, outbox: SqliteOutbox, conversation: ConversationId, state: PartState
) -> None:
    await journal.submit(run("r1"))
    draft = await outbox.open_draft(R1, LANE)
    await outbox.mark(draft.id, OutPart(n=0, state=state))

    ended = await journal.finish(R1, turn_end("r1", conversation, reply=""))

    assert list(ended.ready) == []
    assert await outbox.row(draft.id) is None


@pytest.mark.parametrize(
    "part",
    [
        OutPart(n=0, state=PartState.SENT, message_id="9"),
        OutPart(n=0, state=PartState.DOUBTFUL),
        OutPart(n=0, state=PartState.UNKNOWN),
    ],
)
async def test_without_a_reply_a_draft_that_was_shown_stays_as_it_is(
    journal: SqliteJournal, outbox: SqliteOutbox, conversation: ConversationId, part: OutPart
) -> None:
    await journal.submit(run("r1"))
    draft = await outbox.open_draft(R1, LANE)
    await outbox.mark(draft.id, part)

    ended = await journal.finish(R1, turn_end("r1", conversation, reply=""))

    row = await outbox.row(draft.id)
    assert list(ended.ready) == []
    assert row is not None
    assert (row.state, row.parts) == (OutboxState.SENT, (part,))


async def test_a_reply_whose_chat_was_lost_is_kept_but_not_sent(
    journal: SqliteJournal, outbox: SqliteOutbox, conversation: ConversationId
) -> None:
    await journal.submit(run("r1"))
    draft = await outbox.open_draft(R1, LANE)
    await outbox.mark(draft.id, end=OutboxState.FAILED, reason="blocked")

    ended = await journal.finish(R1, turn_end("r1", conversation, reply="whole"))

    row = await outbox.row(draft.id)
    assert list(ended.ready) == []
    assert row is not None
    assert (row.state, row.text) == (OutboxState.FAILED, "whole")


async def test_the_owner_is_told_in_a_private_chat(
    journal: SqliteJournal, outbox: SqliteOutbox, people: SqlitePeople, conversation: ConversationId
) -> None:
    addresses = ("console:local", "telegram:-100", "telegram:5", "telegram:6")
    await people.add_person(Person(id=PersonId("m"), role=Role.MEMBER, addresses=("telegram:1",)))
    await people.add_person(Person(id=PersonId("o"), role=Role.OWNER, addresses=addresses))
    await journal.submit(run("r1"))

    end = turn_end("r1", conversation, reply="sorry", owner_notice="the disk is full")
    ended = await journal.finish(R1, end)

    reply, notice = await outbox.open_rows()
    assert list(ended.ready) == [(LANE, reply.id), ("telegram:5", notice.id)]
    assert (notice.run_id, notice.lane, notice.text) == (None, "telegram:5", "the disk is full")


# --- restarts --------------------------------------------------------------------------------


# --- what follows from an end ------------------------------------------------------------------


def child(run_id: str, *, parent: str = "r1", waits: bool = True, lane: str = LANE) -> NewRun:
    return replace(
        run(run_id, lane=f"agent:{run_id}"),
        limit_s=90.0,
        child_of=ChildOf(run_id=RunId(parent), lane=lane, waits=waits, head=f"does {run_id}"),
    )


async def test_an_end_signals_and_wakes_who_waits_in_its_own_transaction(
    journal: SqliteJournal, conversation: ConversationId
) -> None:
    await journal.submit(run("r1"))
    await journal.suspend(R1, "k1 is done")
    await journal.submit(run("r2"))

    end = replace(turn_end("r2", conversation), signals=(("k1 is done", {"ok": True}),))
    ended = await journal.finish(R2, end)

    assert ended.woken == (R1,)
    assert (await only(journal)).status is RunStatus.QUEUED
    assert await journal.signalled("k1 is done") == {"ok": True}


async def test_what_follows_an_end_that_fails_is_not_there(
    journal: SqliteJournal, conversation: ConversationId
) -> None:
    await journal.submit(run("r1"))
    end = turn_end("r1", ConversationId("c_none"))

    with pytest.raises(StorageError):
        await journal.finish(R1, replace(end, follow=run("r2"), signals=(("key", {}),)))

    assert (await only(journal)).run.run_id == R1
    assert await journal.signalled("key") is None


async def test_a_subagent_that_ended_long_ago_is_listed_no_more(
    journal: SqliteJournal, conversation: ConversationId
) -> None:
    for name in ("k1", "k2"):
        await journal.submit(child(name))
    ended = replace(turn_end("k1", conversation), signals=(("child:k1", {"text": "done"}),))
    await journal.finish(RunId("k1"), ended)
    await journal.signal("approval:7", {})

    await journal.prune(START_MS + 1)

    assert await journal.signalled("child:k1") is None
    assert await journal.signalled("approval:7") == {}
    assert [one.run_id for one in await journal.children(LANE, limit=10)] == ["k2"]
