"""What the tests of `memory` share: a clock that stands still, and short ways to make values."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractAsyncContextManager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory.database.connection import Database
from memory.records.messages import Address, ConversationId, InboxId, PersonId, RunId
from memory.records.ports import InboxState, Json, NewRun, RunStatus, TurnEnd
from memory.records.rows import NewEvent
from memory.records.transcript import Answered, Entry, Said, Turn

LANE = "telegram:5"
START = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)


class StillClock:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - START).total_seconds()

    async def sleep(self, seconds: float) -> None:
        self.move(seconds)

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def opened(path: Path, *, busy_timeout_s: float = 5.0) -> AbstractAsyncContextManager[Database]:
    """The database at `path`, by a clock that stands still."""
    return Database.open(path, clock=StillClock(), busy_timeout_s=busy_timeout_s)


def event(event_id: str, *, lane: str = LANE, payload: str | None = "{}") -> NewEvent:
    return NewEvent(source="telegram:1", event_id=event_id, lane=lane, payload=payload)


def run(
    run_id: str,
    *,
    lane: str = LANE,
    message_id: str = "",
    inbox_id: InboxId | None = None,
    payload: Json | None = None,
) -> NewRun:
    return NewRun(
        run_id=RunId(run_id),
        lane=lane,
        by=PersonId("p1"),
        payload={"text": run_id} if payload is None else payload,
        message_id=message_id,
        inbox_id=inbox_id,
    )


def turn_end(
    run_id: str,
    conversation: ConversationId,
    *,
    entries: tuple[Entry, ...] | None = None,
    reply: str = "hello",
    status: RunStatus = RunStatus.DONE,
    inbox: InboxState = InboxState.REPLIED,
    notes_taken: tuple[int, ...] = (),
    sent_from: int | None = None,
    owner_notice: str = "",
) -> TurnEnd:
    said: tuple[Entry, ...] = (Said(text=run_id), Answered(text=reply))
    return TurnEnd(
        status=status,
        inbox=inbox,
        conversation=conversation,
        turn=Turn(run_id=RunId(run_id), entries=said if entries is None else entries),
        reply_to=Address(channel="telegram", chat_id="5"),
        reply=reply,
        notes_taken=notes_taken,
        sent_from=sent_from,
        owner_notice=owner_notice,
    )


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    """What stands in a file that nobody has open, or beside the bot that has it open."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()
