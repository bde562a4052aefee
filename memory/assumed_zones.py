"""Times that were set up by an assumed time zone, and who is asked about it: the `AssumedZoneStore`
of the core."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agent.assumed_zones import Asking, AssumedTime, Timed, ZoneQuestion
from agent.messages import OutboxId, PersonId
from agent.stored import NewMessage
from memory.database import Database
from memory.outbox import add_message

_WANT = """
insert into zone_questions (person_id, lane, zone, state, created_ms)
values (?, ?, ?, 'wanted', ?)
on conflict (person_id) do nothing returning 1
"""
_QUESTIONS = "select person_id, lane, zone, state, outbox_id from zone_questions"
_WANTED = f"{_QUESTIONS} where state = 'wanted' order by created_ms, person_id"
_QUESTION = f"{_QUESTIONS} where person_id = ?"
_IS_WANTED = "select 1 from zone_questions where person_id = ? and state = 'wanted'"
_ASKED = "update zone_questions set state = 'asked', outbox_id = ? where person_id = ?"
_END = "update zone_questions set state = 'over' where person_id = ?"
_ASSUME = """
insert into assumed_times (kind, id, person_id, zone) values (?, ?, ?, ?)
on conflict (kind, id) do update set person_id = excluded.person_id, zone = excluded.zone
"""
# Ids are never used again, so what is left of things that are gone means nothing.
_SWEEP = """
delete from assumed_times where person_id = ? and case kind
    when 'job' then not exists (select 1 from jobs where jobs.id = assumed_times.id)
    else not exists (select 1 from events where events.id = assumed_times.id)
end
"""
_ASSUMED = "select person_id, kind, id, zone from assumed_times where person_id = ? order by id"
_SETTLE = "delete from assumed_times where person_id = ?"
_SETTLE_ONE = "delete from assumed_times where kind = ? and id = ?"
_MOVE_EVENT = "update events set at_ms = ?, zone = ? where id = ? and person_id = ? returning 1"


class SqliteAssumedZones:
    """Implements `agent.assumed_zones.AssumedZoneStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def want(self, person_id: PersonId, *, lane: str, zone: str) -> bool:
        """Writes down that a person shall be asked; False for one about whom it was before."""
        values = (person_id, lane, zone, self._database.now_ms())
        row = await self._database.write(lambda c: c.execute(_WANT, values).fetchone())
        return row is not None

    async def wanted(self) -> Sequence[ZoneQuestion]:
        """Those that are to be asked yet."""
        rows = await self._database.read(lambda c: c.execute(_WANTED).fetchall())
        return [_question(row) for row in rows]

    async def ask(self, person_id: PersonId, message: NewMessage) -> OutboxId | None:
        """Adds the card to the outbox, once; None where it is not wanted (any more)."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> OutboxId | None:
            if connection.execute(_IS_WANTED, (person_id,)).fetchone() is None:
                return None
            card = add_message(connection, message, now_ms=now_ms)
            connection.execute(_ASKED, (card, person_id))
            return card

        return await self._database.write(work)

    async def question(self, person_id: PersonId) -> ZoneQuestion | None:
        """That of a person."""
        row = await self._database.read(lambda c: c.execute(_QUESTION, (person_id,)).fetchone())
        return None if row is None else _question(row)

    async def end(self, person_id: PersonId) -> None:
        """The question is over: it is neither asked nor asked again."""
        await self._change(_END, (person_id,))

    async def assume(self, time: AssumedTime) -> None:
        """One more, or the same one by another zone."""
        values = (time.kind, time.id, time.person_id, time.zone)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SWEEP, (time.person_id,))
            connection.execute(_ASSUME, values)

        await self._database.write(work)

    async def assumed(self, person_id: PersonId) -> Sequence[AssumedTime]:
        """Those of a person; some may be gone by now."""
        rows = await self._database.read(lambda c: c.execute(_ASSUMED, (person_id,)).fetchall())
        return [
            AssumedTime(person_id=PersonId(whose), kind=Timed(kind), id=id, zone=zone)
            for whose, kind, id, zone in rows
        ]

    async def settle(self, person_id: PersonId) -> None:
        """None of a person's is assumed any more."""
        await self._change(_SETTLE, (person_id,))

    async def settle_one(self, kind: Timed, id: int) -> None:
        """This one is not."""
        await self._change(_SETTLE_ONE, (kind, id))

    async def move_event(self, person_id: PersonId, id: int, at: datetime, zone: str) -> bool:
        """Gives an event another time, which is no longer assumed. False where it is gone."""
        values = (int(at.timestamp() * 1000), zone, id, person_id)

        def work(connection: sqlite3.Connection) -> bool:
            connection.execute(_SETTLE_ONE, (Timed.EVENT, id))
            return connection.execute(_MOVE_EVENT, values).fetchone() is not None

        return await self._database.write(work)

    async def _change(self, sql: str, values: tuple[object, ...]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(sql, values)

        await self._database.write(work)


def _question(row: tuple[Any, ...]) -> ZoneQuestion:
    person_id, lane, zone, state, card = row
    return ZoneQuestion(
        person_id=PersonId(person_id),
        lane=lane,
        zone=zone,
        state=Asking(state),
        card=None if card is None else OutboxId(card),
    )
