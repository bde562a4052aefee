from __future__ import annotations

from pathlib import Path

from memory.records.ports import InboxState
from memory.records.rows import NewMessage
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from tests.memory.kit import LANE, START_MS, event, rows


async def test_new_events_come_back_in_their_order(inbox: SqliteInbox) -> None:
    stored = await inbox.store([event("3"), event("1"), event("2")])

    assert [known.event.event_id for known in stored] == ["3", "1", "2"]
    assert list(await inbox.unfinished()) == list(stored)


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


async def test_an_event_ends_together_with_its_reply(
    inbox: SqliteInbox, outbox: SqliteOutbox
) -> None:
    (stored,) = await inbox.store([event("1")])

    reply = NewMessage(lane=LANE, text="pong")
    outbox_id = await inbox.end(stored.id, InboxState.COMMAND, reply=reply)

    assert outbox_id is not None
    assert [(row.id, row.text) for row in await outbox.open_rows()] == [(outbox_id, "pong")]
    assert await inbox.counts() == {"command": 1}
