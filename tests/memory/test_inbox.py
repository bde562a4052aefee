"""Messages on their way in and out, as they are kept."""

from __future__ import annotations

from pathlib import Path

from memory.records.messages import OutboxId
from memory.records.rows import (
    Button,
    NewMessage,
    OutboxState,
    OutFile,
    OutPart,
    PartState,
)
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from tests.memory.kit import LANE, START_MS, event, rows

# --- inbox ---------------------------------------------------------------------------------------


async def test_a_second_delivery_changes_nothing(inbox: SqliteInbox) -> None:
    await inbox.store([event("1", payload="first")])

    again = await inbox.store([event("1", payload="second"), event("2"), event("2")])

    assert [known.event.event_id for known in again] == ["2"]
    assert [known.event.payload for known in await inbox.unfinished()] == ["first", "{}"]


async def test_of_a_stranger_only_id_and_time_are_kept(inbox: SqliteInbox, path: Path) -> None:
    stored = await inbox.store([event("9", lane="telegram:666", payload=None)])

    assert [known.event.event_id for known in stored] == ["9"]
    assert await inbox.unfinished() == []
    kept = rows(path, "select lane, payload, state, received_ms, ended_ms from inbox")
    assert kept == [("", None, "refused", START_MS, START_MS)]


# --- outbox --------------------------------------------------------------------------------------


READY, SENDING, SENT = PartState.READY, PartState.SENDING, PartState.SENT


async def add(outbox: SqliteOutbox, text: str = "hi") -> OutboxId:
    return await outbox.add(NewMessage(lane=LANE, text=text))


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
