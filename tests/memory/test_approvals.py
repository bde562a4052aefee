"""Questions to people, as they are kept: one answer each, whatever comes at the same moment."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.messages import OutboxId, PersonId, Role, RunId
from memory.records.ports import InboxState, RunStatus
from memory.records.rows import (
    Button,
    Decided,
    Grant,
    NewApproval,
    NewMessage,
    OutboxState,
    Outcome,
    OutPart,
    PartState,
    StoredApproval,
)
from memory.stores.approvals import SqliteApprovals, SqliteCards
from memory.stores.conversations import SqliteConversations
from memory.stores.outbox import SqliteOutbox
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, START_MS, StillClock, rows, run, turn_end

# --- approvals -----------------------------------------------------------------------------------


TEN_MINUTES_MS = 600_000
ANN, BOB = PersonId("p1"), PersonId("p2")


@pytest.fixture
def approvals(database: Database) -> SqliteApprovals:
    return SqliteApprovals(database)


def question(approval_id: str = "a1", *, once_only: bool = False) -> NewApproval:
    return NewApproval(
        id=approval_id,
        run_id=RunId("r1"),
        lane="telegram:5",
        person_id=ANN,
        agent="default",
        tool="exec",
        digest="d1",
        shows="```\nls\n```",
        why="It runs a program.",
        owner_alone=True,
        once_only=once_only,
    )


def stored(asked: NewApproval) -> StoredApproval:
    return StoredApproval(
        asked=asked,
        role=Role.OWNER,
        asked_ms=START_MS,
        expires_ms=START_MS + TEN_MINUTES_MS,
        card_lane="telegram:1",
        card=OutboxId(1),
    )


async def ask(
    approvals: SqliteApprovals, asked: NewApproval, *, ms: int = TEN_MINUTES_MS
) -> list[tuple[str, OutboxId]] | None:
    ready = await approvals.add(
        asked,
        role=Role.OWNER,
        expires_ms=START_MS + ms,
        card=NewMessage(lane="telegram:1", text=f"may I? {asked.id}"),
        notices=[NewMessage(lane="telegram:-9", text="I asked the owner")],
    )
    return None if ready is None else list(ready)


async def arrives(approvals: SqliteApprovals, card: int) -> None:
    """The card is with the person; its notice is the row behind it."""
    await SqliteOutbox(approvals._database).mark(OutboxId(card), end=OutboxState.SENT)


# --- asking ------------------------------------------------------------------------------------


async def test_asking_again_asks_nothing_new(
    approvals: SqliteApprovals, outbox: SqliteOutbox
) -> None:
    await ask(approvals, question())

    again = await ask(approvals, replace(question(), shows="something else"))

    assert again is None
    assert await approvals.open_ones() == [stored(question())]
    assert len(await outbox.open_rows()) == 2


async def test_a_question_without_its_card_is_never_there(path: Path, database: Database) -> None:
    approvals = SqliteApprovals(database)
    await database.write(
        lambda c: c.execute(
            "create temp trigger full before insert on outbox "
            "begin select raise(abort, 'disk full'); end"
        )
    )

    with pytest.raises(Exception, match="refused a change"):
        await ask(approvals, question())

    assert rows(path, "select * from approvals") == []


# --- answering ---------------------------------------------------------------------------------


@pytest.mark.case("SE-04")
async def test_of_many_answers_at_the_same_moment_one_wins(approvals: SqliteApprovals) -> None:
    await ask(approvals, question())
    answers = [Outcome.ONCE, Outcome.DENIED, Outcome.ALWAYS] * 10

    decided = await asyncio.gather(
        *(approvals.decide("a1", answer, by=PersonId(f"p{n}")) for n, answer in enumerate(answers)),
        approvals.expire(),
    )

    winners = [one for one in decided if isinstance(one, Decided) and one.won]
    assert len(winners) == 1
    assert await approvals.get("a1") == winners[0].approval


@pytest.mark.parametrize(("late_ms", "won"), [(-1, True), (0, False), (1, False)])
async def test_an_answer_counts_until_the_time_is_over_and_not_a_moment_longer(
    approvals: SqliteApprovals, clock: StillClock, late_ms: int, won: bool
) -> None:
    await ask(approvals, question())
    await arrives(approvals, 1)
    clock.move((TEN_MINUTES_MS + late_ms) / 1000)

    decided = await approvals.decide("a1", Outcome.ALWAYS, by=ANN)

    assert decided is not None
    assert decided.won is won
    assert decided.approval.outcome is (Outcome.ALWAYS if won else Outcome.EXPIRED)
    assert decided.approval.decided_by == (ANN if won else None)
    assert await approvals.is_always(ANN, "default", "exec") is won


# --- time --------------------------------------------------------------------------------------


async def test_the_question_of_a_turn_that_was_stopped_takes_no_answer(
    approvals: SqliteApprovals, journal: SqliteJournal, conversations: SqliteConversations
) -> None:
    await ask(approvals, question())
    await journal.submit(run("r1"))
    conversation = await conversations.current("telegram:5")
    end = turn_end(
        "r1", conversation, reply="", status=RunStatus.CANCELLED, inbox=InboxState.CANCELLED
    )
    await journal.finish(RunId("r1"), end)

    decided = await approvals.decide("a1", Outcome.ONCE, by=ANN)

    assert decided is not None
    assert decided.won is False
    assert decided.approval.outcome is Outcome.EXPIRED


# --- what follows ------------------------------------------------------------------------------


async def test_old_answers_go_and_what_a_turn_could_still_ask_for_stays(
    approvals: SqliteApprovals, journal: SqliteJournal, clock: StillClock
) -> None:
    await journal.submit(run("r1"))
    for approval_id, run_id in (("open", "r0"), ("waits", "r1"), ("old", "r0"), ("raw", "r0")):
        await ask(approvals, replace(question(approval_id), run_id=RunId(run_id)))
    for approval_id in ("waits", "old", "raw"):
        await approvals.decide(approval_id, Outcome.ALWAYS, by=ANN)
    for approval_id in ("waits", "old"):
        await approvals.settle(approval_id)

    assert await approvals.prune(START_MS) == 0
    assert await approvals.prune(START_MS + 1) == 1

    assert [await approvals.get(one) is None for one in ("open", "waits", "old", "raw")] == [
        *(False, False, True, False)
    ]
    assert await approvals.is_always(ANN, "default", "exec")


# --- for good ----------------------------------------------------------------------------------


async def test_what_was_agreed_to_for_good_is_listed_once_and_can_be_taken_back(
    approvals: SqliteApprovals, path: Path, clock: StillClock
) -> None:
    for n, agent in enumerate(("work", "default", "default")):
        await ask(approvals, replace(question(f"a{n}"), agent=agent))
        await approvals.decide(f"a{n}", Outcome.ALWAYS, by=ANN)
        clock.move(1)

    assert await approvals.grants(ANN) == [
        Grant(person_id=ANN, agent="default", tool="exec", granted_ms=START_MS + 1_000),
        Grant(person_id=ANN, agent="work", tool="exec", granted_ms=START_MS),
    ]
    assert not await approvals.is_always(BOB, "default", "exec")
    assert not await approvals.is_always(ANN, "third", "exec")
    assert not await approvals.is_always(ANN, "default", "execute")
    assert await approvals.revoke(BOB, "exec") == 0
    assert await approvals.revoke(ANN, "mail") == 0
    assert await approvals.revoke(ANN, "exec") == 2
    assert await approvals.revoke(ANN, "exec") == 0
    assert await approvals.grants(ANN) == []
    assert not await approvals.is_always(ANN, "default", "exec")
    (kept,) = rows(path, "select count(*), min(revoked_ms) from standing_grants")
    assert kept == (2, START_MS + 3_000), "who could do what, and until when, stays on record"


# --- cards ---------------------------------------------------------------------------------------


ROWS = ((Button(label="Done", data="job:1:done"),),)


async def test_it_is_found_by_chat_and_id_until_its_buttons_go(database: Database) -> None:
    outbox, cards = SqliteOutbox(database), SqliteCards(database)
    sent = []
    for text, buttons in (("drink tea", ROWS), ("hello", ())):
        row = await outbox.add(NewMessage(lane=LANE, text=text, buttons=buttons))
        part = OutPart(n=0, state=PartState.SENT, message_id=str(70 + row))
        await outbox.plan(row, [part])
        await outbox.mark(row, part, end=OutboxState.SENT)
        sent.append((row, part.message_id))
    (card, card_id), (_, plain_id) = sent

    assert await cards.standing(LANE, card_id) == (card, "drink tea")
    assert await cards.standing("telegram:6", card_id) is None
    assert await cards.standing(LANE, plain_id) is None
    assert await cards.standing(LANE, "unknown") is None

    await outbox.revise(card, "done")
    assert await cards.standing(LANE, card_id) is None
