"""What was told unasked, what waits to be told, and when a person is not to be spoken to.
Used by `scheduler.notify`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memory.database.connection import Database
from memory.database.rows import to_row
from memory.records.jobs import Held, HeldNotification, Notification, SlotState
from memory.records.messages import OutboxId, PersonId
from memory.records.rows import NewMessage
from memory.stores.inbox import join_history
from memory.stores.outbox import add_message

_COUNT = """
select count(*) from tellings where person_id = ? and told_ms >= ? and told_ms <= ? and counts
"""
_FINDINGS = """
select finding from tellings
where job_id = ? and created_ms >= ? and created_ms <= ? and finding <> '' order by id desc
"""
_ADD = """
insert into tellings
    (person_id, lane, job_id, slot, text, finding, counts, why, created_ms, told_ms)
values (:person_id, :lane, :job_id, :slot, :text, :finding, :counts, :why, :now_ms, :told_ms)
"""
_END = """
update job_runs set state = ?, outbox_id = ?, result = null, ended_ms = ?
where job_id = ? and slot = ? and ended_ms is null and state <> 'waiting'
"""
_WAITING = """
select tellings.id, tellings.person_id, lane, text, why, tellings.created_ms,
    jobs.name as job_name
from tellings left join jobs on jobs.id = tellings.job_id
where told_ms is null order by tellings.id
"""
# A digest counts toward no day: it is what was too much for another one, or one message for many.
_TOLD = """
update tellings set told_ms = ?, counts = 0 where id = ? and told_ms is null
returning job_id, slot
"""
_END_WAITING = """
update job_runs set state = 'told', outbox_id = ?, ended_ms = ?
where job_id = ? and slot = ? and state = 'waiting'
"""
_DROP = "delete from tellings where id = ? and told_ms is null returning job_id, slot"
_END_DROPPED = """
update job_runs set state = 'failed', note = ?, ended_ms = ?
where job_id = ? and slot = ? and state = 'waiting'
"""
_QUIET = "select from_minute, to_minute from quiet_hours where person_id = ?"
_SET_QUIET = """
insert into quiet_hours (person_id, from_minute, to_minute, set_ms) values (?, ?, ?, ?)
on conflict (person_id) do update set
    from_minute = excluded.from_minute, to_minute = excluded.to_minute, set_ms = excluded.set_ms
"""
_DROP_QUIET = "delete from quiet_hours where person_id = ?"


class SqliteTellings:
    """Notifications, told and held back, and quiet hours, in SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, person_id: PersonId, *, since_ms: int) -> int:
        """How many that count were told to a person."""
        values = (person_id, since_ms, self._database.now_ms())
        return int(await self._database.value(_COUNT, values))

    async def findings(self, job_id: int, *, since_ms: int) -> Sequence[str]:
        """What a job told (or holds back) since then."""
        values = (job_id, since_ms, self._database.now_ms())
        return [text for (text,) in await self._database.rows(_FINDINGS, values)]

    async def tell(self, new: Notification, message: NewMessage) -> OutboxId | None:
        """Sends it; None when the slot is over."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> OutboxId | None:
            slot = (new.job.id, new.due.slot)
            ended = connection.execute(_END, (SlotState.TOLD, None, now_ms, *slot)).rowcount
            if not ended:
                return None
            outbox_id = add_message(connection, message, now_ms=now_ms)
            connection.execute(_SET_OUTBOX, (outbox_id, *slot))
            connection.execute(_ADD, _row(new, why="", now_ms=now_ms, told_ms=now_ms))
            join_history(
                connection,
                message.lane,
                run_id=f"{new.job.key}:{new.due.slot}",
                note=new.note,
                text=message.text,
                tainted=new.tainted,
                now_ms=now_ms,
            )
            return outbox_id

        return await self._database.write(work)

    async def hold(self, new: Notification, why: Held) -> bool:
        """Keeps it for later; False when the slot is over."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> bool:
            slot = (new.job.id, new.due.slot)
            held = connection.execute(_END, (SlotState.WAITING, None, None, *slot)).rowcount > 0
            if held:
                connection.execute(_ADD, _row(new, why=why, now_ms=now_ms, told_ms=None))
            return held

        return await self._database.write(work)

    async def waiting(self) -> Sequence[HeldNotification]:
        """All that waits, the oldest first."""
        return await self._database.records(HeldNotification, _WAITING)

    async def tell_waiting(
        self, those: Sequence[HeldNotification], message: NewMessage, *, note: str
    ) -> OutboxId | None:
        """Sends one message in their place; None when one of them was told before."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> OutboxId | None:
            told = [connection.execute(_TOLD, (now_ms, one.id)).fetchone() for one in those]
            if not told or None in told:
                raise _ToldBefore
            outbox_id = add_message(connection, message, now_ms=now_ms)
            connection.executemany(_END_WAITING, [(outbox_id, now_ms, *slot) for slot in told])
            run_id = f"digest:{those[0].id}"
            # What it rests on is not known of each part any more: it counts as from outside.
            join_history(
                connection,
                message.lane,
                run_id=run_id,
                note=note,
                text=message.text,
                tainted=True,
                now_ms=now_ms,
            )
            return outbox_id

        try:
            return await self._database.write(work)
        except _ToldBefore:
            return None

    async def drop(self, those: Sequence[HeldNotification], *, why: str) -> int:
        """Tells none of them any more: their slots are FAILED. How many waited still."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> int:
            rows = [connection.execute(_DROP, (one.id,)).fetchone() for one in those]
            dropped = [row for row in rows if row is not None]
            connection.executemany(_END_DROPPED, [(why, now_ms, *slot) for slot in dropped])
            return len(dropped)

        return await self._database.write(work)

    async def quiet_hours(self, person_id: PersonId) -> tuple[int, int] | None:
        """From which minute of the day to which; None: there are none."""
        rows = await self._database.rows(_QUIET, (person_id,))
        return (rows[0][0], rows[0][1]) if rows else None

    async def set_quiet_hours(self, person_id: PersonId, hours: tuple[int, int] | None) -> None:
        """Sets or drops them."""
        if hours is None:
            await self._database.execute(_DROP_QUIET, (person_id,))
        else:
            values = (person_id, *hours, self._database.now_ms())
            await self._database.execute(_SET_QUIET, values)


_SET_OUTBOX = "update job_runs set outbox_id = ? where job_id = ? and slot = ?"


class _ToldBefore(Exception):
    """Rolls a digest back of which a part was told already."""


def _row(new: Notification, *, why: str, now_ms: int, told_ms: int | None) -> dict[str, object]:
    job = new.job
    whose = {"person_id": job.person_id, "lane": job.deliver_to, "job_id": job.id}
    times = {"slot": new.due.slot, "why": why, "now_ms": now_ms, "told_ms": told_ms}
    return {**to_row(new), **whose, **times}
