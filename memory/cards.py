"""Which of our messages somebody pressed a button under, by the platform's id of the message."""

from __future__ import annotations

from agent.messages import OutboxId
from memory.database import Database

_CARD = """
select outbox.id, outbox.text from outbox_parts join outbox on outbox.id = outbox_id
where buttons <> '' and revision is null and lane = ? and message_id = ?
order by outbox.id desc limit 1
"""


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
