from __future__ import annotations

from pathlib import Path

from memory.stores.inbox import SqliteInbox
from tests.memory.kit import START_MS, event, rows


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
