from __future__ import annotations

import pytest

from agent.messages import OutboxId, RunId
from agent.stored import NewMessage, OutboxState, OutPart, PartState
from memory.outbox import SqliteOutbox
from tests.memory.kit import LANE

READY, SENDING, SENT = PartState.READY, PartState.SENDING, PartState.SENT


async def add(outbox: SqliteOutbox, text: str = "hi") -> OutboxId:
    return await outbox.add(NewMessage(lane=LANE, text=text))


async def parts_of(outbox: SqliteOutbox, outbox_id: OutboxId) -> tuple[OutPart, ...]:
    row = await outbox.row(outbox_id)
    assert row is not None
    return row.parts


async def test_a_message_is_ready_at_once(outbox: SqliteOutbox) -> None:
    outbox_id = await add(outbox, "hi \ud83d")

    row = await outbox.row(outbox_id)

    assert row is not None
    assert (row.run_id, row.lane, row.text, row.state) == (None, LANE, "hi ?", OutboxState.READY)
    assert row.parts == ()
    assert await outbox.open_rows() == [row]


async def test_open_rows_are_the_ready_ones_with_their_parts_oldest_first(
    outbox: SqliteOutbox,
) -> None:
    first, ended, third = [await add(outbox, text) for text in ("a", "b", "c")]
    await outbox.open_draft(RunId("r1"), LANE)
    await outbox.plan(third, [OutPart(n=0, source="c0"), OutPart(n=1, source="c1")])
    await outbox.mark(ended, end=OutboxState.SENT)

    found = await outbox.open_rows()

    assert [row.id for row in found] == [first, third]
    assert [part.source for part in found[1].parts] == ["c0", "c1"]


async def test_a_draft_begins_with_its_first_part_being_sent(outbox: SqliteOutbox) -> None:
    row = await outbox.open_draft(RunId("r1"), LANE)

    assert (row.state, row.run_id, row.lane) == (OutboxState.DRAFT, "r1", LANE)
    assert row.parts == (OutPart(n=0, state=SENDING),)
    assert await outbox.row_of_run(RunId("r1")) == row


async def test_an_existing_row_of_a_run_comes_back_unchanged(outbox: SqliteOutbox) -> None:
    made = await outbox.open_draft(RunId("r1"), LANE)
    await outbox.mark(made.id, OutPart(n=0, state=SENT, message_id="77"))

    again = await outbox.open_draft(RunId("r1"), "telegram:6")

    assert (again.id, again.lane) == (made.id, LANE)
    assert again.parts == (OutPart(n=0, state=SENT, message_id="77"),)


async def test_what_is_not_there_is_none(outbox: SqliteOutbox) -> None:
    assert await outbox.row(OutboxId(9)) is None
    assert await outbox.row_of_run(RunId("r9")) is None


async def test_a_plan_replaces_parts_and_removes_those_beyond(outbox: SqliteOutbox) -> None:
    outbox_id = await add(outbox)
    await outbox.plan(outbox_id, [OutPart(n=n, source=f"old {n}") for n in range(3)])

    kept = OutPart(n=0, markup="<b>", source="new", state=SENT, message_id="5")
    await outbox.plan(outbox_id, [kept, OutPart(n=1, source="new 1")])

    assert await parts_of(outbox, outbox_id) == (kept, OutPart(n=1, source="new 1"))


async def test_an_empty_plan_removes_all_parts(outbox: SqliteOutbox) -> None:
    outbox_id = await add(outbox)
    await outbox.plan(outbox_id, [OutPart(n=0), OutPart(n=1)])

    await outbox.plan(outbox_id, [])

    assert await parts_of(outbox, outbox_id) == ()


async def test_a_mark_writes_state_and_message_id_and_leaves_the_words(
    outbox: SqliteOutbox,
) -> None:
    outbox_id = await add(outbox)
    await outbox.plan(outbox_id, [OutPart(n=0, markup="m", source="s"), OutPart(n=1)])

    await outbox.mark(outbox_id, OutPart(n=0, state=SENT, message_id="8"))

    sent = OutPart(n=0, markup="m", source="s", state=SENT, message_id="8")
    assert await parts_of(outbox, outbox_id) == (sent, OutPart(n=1))


async def test_a_mark_can_end_the_row(outbox: SqliteOutbox) -> None:
    outbox_id = await add(outbox)
    await outbox.plan(outbox_id, [OutPart(n=0)])

    sent = OutPart(n=0, state=SENT, message_id="8")
    await outbox.mark(outbox_id, sent, end=OutboxState.SENT)

    assert await outbox.open_rows() == []
    assert await outbox.counts() == {"sent": 1}


async def test_an_ended_row_stays_as_it_ended(outbox: SqliteOutbox) -> None:
    outbox_id = await add(outbox)
    await outbox.mark(outbox_id, end=OutboxState.SENT)

    await outbox.mark(outbox_id, end=OutboxState.FAILED, reason="late")

    assert await outbox.counts() == {"sent": 1}


async def test_marks_and_plans_of_a_row_that_is_gone_do_nothing(outbox: SqliteOutbox) -> None:
    gone = OutboxId(404)

    await outbox.plan(gone, [OutPart(n=0)])
    await outbox.mark(gone, OutPart(n=0, state=SENT, message_id="1"), end=OutboxState.SENT)

    assert await outbox.row(gone) is None


@pytest.mark.parametrize("state", [OutboxState.DRAFT, OutboxState.READY])
async def test_an_open_state_does_not_end_a_row(outbox: SqliteOutbox, state: OutboxState) -> None:
    outbox_id = await add(outbox)

    with pytest.raises(ValueError, match="not an end"):
        await outbox.mark(outbox_id, end=state)


async def test_when_to_try_again_is_kept(outbox: SqliteOutbox) -> None:
    outbox_id = await add(outbox)

    await outbox.postpone(outbox_id, not_before_ms=123, attempts=2)

    row = await outbox.row(outbox_id)
    assert row is not None
    assert (row.not_before_ms, row.attempts, row.state) == (123, 2, OutboxState.READY)
