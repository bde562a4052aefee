"""Messages of ours by the platform's id: which has the button that was pressed, and which of a
conversation belong to something else than one message."""

from __future__ import annotations

from collections.abc import Collection

from agent.messages import OutboxId
from memory.database import Database

_CARD = """
select outbox.id, outbox.text from outbox_parts join outbox on outbox.id = outbox_id
where buttons <> '' and revision is null and lane = ? and message_id = ?
order by outbox.id desc limit 1
"""
# What was there before it came; answers of other turns, unless a button let them go on; what jobs
# found meanwhile; and questions of other turns.
_OTHERS = """
with asking as (
    select received_ms, reason, coalesce(joined_to, inbox.run_id) as run_id
    from inbox left join turns on turns.run_id = inbox.run_id
    where source = ? and event_id = ?
), newest as (select id, run_id, created_ms from outbox where lane = ? order by id desc limit ?)
select message_id from newest
join asking join outbox_parts on outbox_id = newest.id
where message_id <> '' and (
    newest.created_ms < received_ms
    or (newest.run_id is not asking.run_id and newest.run_id is not null and reason <> 'button')
    or newest.id in (select outbox_id from job_runs where outbox_id is not null)
    or newest.id in (
        select outbox_id from approvals where outbox_id is not null
        and approvals.run_id is not asking.run_id and reason <> 'button'
    )
)
"""

NEWEST_MAX = 200
"""Messages of a conversation that are looked at: more do not come while one is answered."""


class SqliteCards:
    """Finds them for those who know a message by its text alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing(self, lane: str, message_id: str) -> tuple[OutboxId, str] | None:
        """The message and its text; None for one that is not ours, or whose buttons are gone or
        going. Raises StorageError."""
        values = (lane, message_id)
        row = await self._database.read(lambda c: c.execute(_CARD, values).fetchone())
        return None if row is None else (OutboxId(row[0]), str(row[1]))

    async def others(self, lane: str, source: str, event_id: str) -> Collection[str]:
        """The newest messages of ours there that do not belong to what came as this event, by their
        platform ids. Raises StorageError."""
        values = (source, event_id, lane, NEWEST_MAX)
        rows = await self._database.read(lambda c: c.execute(_OTHERS, values).fetchall())
        return {str(row[0]) for row in rows}
