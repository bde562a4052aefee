from __future__ import annotations

import pytest

from memory.records.messages import OutboxId, RunId
from memory.records.rows import (
    Button,
    ButtonRows,
    NewMessage,
    OutboxState,
    OutFile,
    OutPart,
    PartState,
)
from memory.stores.outbox import SqliteOutbox
from tests.memory.kit import LANE

READY, SENDING, SENT = PartState.READY, PartState.SENDING, PartState.SENT


async def add(outbox: SqliteOutbox, text: str = "hi") -> OutboxId:
    return await outbox.add(NewMessage(lane=LANE, text=text))


async def parts_of(outbox: SqliteOutbox, outbox_id: OutboxId) -> tuple[OutPart, ...]:
    row = await outbox.row(outbox_id)
    assert row is not None
    return row.parts


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


async def test_a_plan_replaces_parts_and_removes_those_beyond(outbox: SqliteOutbox) -> None:
    outbox_id = await add(outbox)
    await outbox.plan(outbox_id, [OutPart(n=n, source=f"old {n}") for n in range(3)])

    kept = OutPart(n=0, markup="<b>", source="new", state=SENT, message_id="5")
    await outbox.plan(outbox_id, [kept, OutPart(n=1, source="new 1")])

    assert await parts_of(outbox, outbox_id) == (kept, OutPart(n=1, source="new 1"))


async def test_an_ended_row_stays_as_it_ended(outbox: SqliteOutbox) -> None:
    outbox_id = await add(outbox)
    await outbox.mark(outbox_id, end=OutboxState.SENT)

    await outbox.mark(outbox_id, end=OutboxState.FAILED, reason="late")

    assert await outbox.counts() == {"sent": 1}


# --- buttons, and what is to read otherwise ------------------------------------------------------

BUTTONS = (
    (Button(label="Ja \u2713", data="ask:1", style="good"), Button(label="No", data="ask:2")),
    (Button(label="Later", data="ask:3", style="bad"),),
)


@pytest.mark.parametrize("buttons", [(), BUTTONS])
async def test_buttons_are_kept_with_a_message(outbox: SqliteOutbox, buttons: ButtonRows) -> None:
    row = await outbox.row(await outbox.add(NewMessage(lane=LANE, text="hi", buttons=buttons)))

    assert row is not None
    assert row.buttons == buttons


async def test_half_a_character_in_a_label_does_no_harm(outbox: SqliteOutbox) -> None:
    odd = ((Button(label="go \ud83d", data="ask:1"),), ())

    row = await outbox.row(await outbox.add(NewMessage(lane=LANE, text="hi", buttons=odd)))

    assert row is not None
    assert row.buttons == ((Button(label="go ?", data="ask:1"),),)


async def test_a_revision_is_adopted_only_while_nothing_went_out(outbox: SqliteOutbox) -> None:
    fresh, tried, begun = [
        await outbox.add(NewMessage(lane=LANE, text="a", buttons=BUTTONS)) for _ in range(3)
    ]
    await outbox.plan(tried, [OutPart(n=0, source="a"), OutPart(n=1, source="b")])
    await outbox.plan(begun, [OutPart(n=0, source="a", state=SENDING)])
    for outbox_id in (fresh, tried, begun):
        assert await outbox.revise(outbox_id, "b") == LANE

    rows = [await outbox.adopt(outbox_id) for outbox_id in (fresh, tried, begun)]

    texts = [(row.text, row.buttons, row.revision, len(row.parts)) for row in rows if row]
    assert texts == [("b", (), None, 0), ("b", (), None, 0), ("a", BUTTONS, "b", 1)]
    assert await outbox.to_revise() == []


async def test_rows_that_ended_are_to_be_revised_until_they_are(outbox: SqliteOutbox) -> None:
    ended, waiting = await add(outbox, "a"), await add(outbox, "a")
    await outbox.mark(ended, end=OutboxState.SENT)
    await outbox.postpone(ended, not_before_ms=99, attempts=7)
    for outbox_id in (ended, waiting):
        await outbox.revise(outbox_id, "b")

    to_revise = await outbox.to_revise()
    row = await outbox.row(ended)
    again = await outbox.revised(ended, "an older wish")
    still = await outbox.to_revise()
    done = await outbox.revised(ended, "b", rest=NewMessage(lane=LANE, text="rest"))
    twice = await outbox.revised(ended, "b", rest=NewMessage(lane=LANE, text="rest"))

    assert to_revise == still == [(LANE, ended)]
    assert row is not None
    assert (row.attempts, row.not_before_ms) == (0, 0), "those of the edit"
    assert again is None
    assert twice is None
    assert done is not None
    further = await outbox.row(done)
    assert further is not None
    assert further.text == "rest"
    assert await outbox.to_revise() == []


async def test_what_was_sent_with_buttons_and_has_them_is_found_by_its_channel(
    outbox: SqliteOutbox,
) -> None:
    ids = [
        await outbox.add(NewMessage(lane=lane, text=text, buttons=buttons))
        for lane, text, buttons in (
            ("console:local", "a", BUTTONS),
            ("console:local", "b", ()),
            ("telegram:5", "c", BUTTONS),
            ("console:local", "d", BUTTONS),
            ("console:local", "e", BUTTONS),
        )
    ]
    for outbox_id in ids:
        await outbox.mark(outbox_id, end=OutboxState.SENT)
    await outbox.revise(ids[3], "over")
    await outbox.revised(ids[3], "over")
    row = await outbox.row(ids[0])
    assert row is not None

    found = await outbox.with_buttons("console", since_ms=row.created_ms)

    assert [one.text for one in found] == ["a", "e"]
    assert await outbox.with_buttons("console", since_ms=row.created_ms + 1) == []
    assert [one.text for one in await outbox.with_buttons("console", since_ms=0, limit=1)] == ["e"]


FILE = OutFile(digest="ab" * 32, name="plan.pdf", path="files/plan.pdf", size_bytes=9)


async def test_a_file_stays_with_its_row_until_that_has_ended(outbox: SqliteOutbox) -> None:
    first = await outbox.add(NewMessage(lane=LANE, text="Here", file=FILE))
    await add(outbox)
    await outbox.plan(first, [OutPart(n=0, source="Here", ref="F1")])

    [row, _] = await outbox.open_rows()
    before = await outbox.files()
    await outbox.mark(first, OutPart(n=0, state=SENT, ref="F1"), end=OutboxState.SENT)
    ended = await outbox.row(first)

    assert (row.file, row.text, row.parts[0].ref) == (FILE, "Here", "F1")
    assert before == [FILE]
    assert await outbox.files() == []
    assert ended is not None
    assert (ended.file, ended.parts[0].ref) == (None, "F1")


async def test_a_notice_is_added_once_with_the_end_that_it_tells_of(outbox: SqliteOutbox) -> None:
    first = await outbox.add(NewMessage(lane=LANE, text="", file=FILE))
    notice = NewMessage(lane=LANE, text="It could not be sent.")

    while_open = await outbox.mark(first, notices=[notice])
    told = await outbox.mark(first, end=OutboxState.FAILED, notices=[notice])
    again = await outbox.mark(first, end=OutboxState.FAILED, notices=[notice])

    assert (while_open, again) == ([], [])
    ((lane, number),) = told
    assert lane == LANE
    row = await outbox.row(number)
    assert row is not None
    assert (row.text, row.state) == ("It could not be sent.", OutboxState.READY)
    assert await outbox.counts() == {"failed": 1, "ready": 1}
