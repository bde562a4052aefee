from __future__ import annotations

from pathlib import Path

import pytest

from memory.records.messages import InboxId
from memory.records.ports import InboxState
from memory.records.rows import NewMessage
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, START_MS, event, rows, run


async def test_new_events_come_back_in_their_order(inbox: SqliteInbox) -> None:
    stored = await inbox.store([event("3"), event("1"), event("2")])

    assert [known.event.event_id for known in stored] == ["3", "1", "2"]
    assert list(await inbox.unfinished()) == list(stored)


async def test_a_second_delivery_changes_nothing(inbox: SqliteInbox) -> None:
    await inbox.store([event("1", payload="first")])

    again = await inbox.store([event("1", payload="second"), event("2"), event("2")])

    assert [known.event.event_id for known in again] == ["2"]
    assert [known.event.payload for known in await inbox.unfinished()] == ["first", "{}"]


async def test_the_same_id_in_another_stream_is_another_event(inbox: SqliteInbox) -> None:
    here = event("1")
    there = type(here)(source="telegram:2", event_id="1", lane=LANE, payload="{}")

    stored = await inbox.store([here, there])

    assert len(stored) == 2


async def test_nothing_to_store_is_no_work(inbox: SqliteInbox) -> None:
    assert list(await inbox.store([])) == []


async def test_of_a_stranger_only_id_and_time_are_kept(inbox: SqliteInbox, path: Path) -> None:
    stored = await inbox.store([event("9", lane="telegram:666", payload=None)])

    assert [known.event.event_id for known in stored] == ["9"]
    assert await inbox.unfinished() == []
    kept = rows(path, "select lane, payload, state, received_ms, ended_ms from inbox")
    assert kept == [("", None, "refused", START_MS, START_MS)]


async def test_a_queued_event_is_no_longer_unfinished(
    inbox: SqliteInbox, journal: SqliteJournal
) -> None:
    (stored,) = await inbox.store([event("1")])

    await journal.submit(run("r1", inbox_id=stored.id))

    assert await inbox.unfinished() == []
    assert await inbox.counts() == {"queued": 1}


async def test_an_event_ends_together_with_its_reply(
    inbox: SqliteInbox, outbox: SqliteOutbox
) -> None:
    (stored,) = await inbox.store([event("1")])

    reply = NewMessage(lane=LANE, text="pong")
    outbox_id = await inbox.end(stored.id, InboxState.COMMAND, reply=reply)

    assert outbox_id is not None
    assert [(row.id, row.text) for row in await outbox.open_rows()] == [(outbox_id, "pong")]
    assert await inbox.counts() == {"command": 1}


async def test_an_event_ends_once(inbox: SqliteInbox, outbox: SqliteOutbox) -> None:
    (stored,) = await inbox.store([event("1")])
    await inbox.end(stored.id, InboxState.SILENT, reason="bot", reply=None)

    again = await inbox.end(stored.id, InboxState.FAILED, reply=NewMessage(lane=LANE, text="?"))

    assert again is None
    assert await outbox.open_rows() == []
    assert await inbox.counts() == {"silent": 1}


async def test_the_end_of_an_unknown_event_says_nothing(
    inbox: SqliteInbox, outbox: SqliteOutbox
) -> None:
    reply = NewMessage(lane=LANE, text="?")

    assert await inbox.end(InboxId(77), InboxState.COMMAND, reply=reply) is None
    assert await outbox.open_rows() == []


@pytest.mark.parametrize("state", [InboxState.RECEIVED, InboxState.QUEUED])
async def test_an_open_state_is_not_an_end(inbox: SqliteInbox, state: InboxState) -> None:
    (stored,) = await inbox.store([event("1")])

    with pytest.raises(ValueError, match="not an end"):
        await inbox.end(stored.id, state, reply=None)


async def test_half_a_surrogate_pair_does_not_stop_the_inbox(inbox: SqliteInbox) -> None:
    await inbox.store([event("1", payload='{"text": "\ud83d"}')])

    assert [known.event.payload for known in await inbox.unfinished()] == ['{"text": "?"}']


async def test_an_event_tells_where_it_is(inbox: SqliteInbox) -> None:
    [stored] = await inbox.store([event("1")])

    before = await inbox.state(stored.event.source, "1")
    await inbox.end(stored.id, InboxState.SILENT, reply=None)

    assert (before, await inbox.state(stored.event.source, "1")) == (
        InboxState.RECEIVED,
        InboxState.SILENT,
    )
    assert await inbox.state("s", "2") is None
