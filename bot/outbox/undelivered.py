"""Tells the owner which messages were given up. Called by the outbox, which stores the notice
together with the end of the message.
"""

from __future__ import annotations

from datetime import timedelta

from bot.commands.memory_messages import bare
from bot.commands.table import as_typed
from bot.people.access import Access
from bot.people.approvals import is_shared
from memory.records.messages import Address
from memory.records.ports import Clock
from memory.records.rows import NewMessage, OutRow, Person
from memory.stores.outbox import SqliteOutbox

CHARS_MAX = 200
"""How much of the message's beginning is quoted."""

NOTICES_MAX = 5
"""Most notices about one chat in a day; `/status` and the doctor count the rest."""

LAST = "\n\nI will not report more about this chat today; `/status` counts what did not arrive."


class DeliveryNotices:
    """Writes the notices. Implements `bot.outbox.delivery.Undelivered`."""

    def __init__(self, access: Access, store: SqliteOutbox, *, clock: Clock) -> None:
        self._access = access
        self._store = store
        self._clock = clock

    async def __call__(self, row: OutRow, why: str) -> NewMessage | None:
        """Return the notice for the owner, in a private chat other than the message's own if there
        is one. A message for one person is quoted to nobody else. Raise StorageError."""
        owner = self._access.owner_id()
        since = self._clock.now() - timedelta(days=1)
        said = await self._store.notices(row.lane, since_ms=int(since.timestamp() * 1000))
        chats = [] if owner is None else await self._access.private_chats(owner)
        if not chats or said >= NOTICES_MAX:
            return None
        lane = next((chat for chat in chats if chat != row.lane), chats[0])
        reader = await self._access.alone_in(row.lane)
        text = f"**Not delivered** to {self._place(row.lane, reader, owner)}: {_sentence(why)}"
        if reader == owner or is_shared(row.lane):
            text += f"\n\nIt began: {bare(row.text, chars_max=CHARS_MAX)}"
        if said + 1 == NOTICES_MAX:
            text += LAST
        return NewMessage(lane=lane, text=as_typed(text, lane), about=row.lane)

    def _place(self, lane: str, reader: str | None, owner: str | None) -> str:
        address = Address.parse(lane)
        channel = address.channel.capitalize()
        if reader is None:
            kind = "a group" if is_shared(lane) else "a chat"
            return f"{kind} in {channel} (`{address.chat_id}`)"
        return (
            f"your chat in {channel}" if reader == owner else f"{self._name(reader)} in {channel}"
        )

    def _name(self, person_id: str) -> str:
        people: tuple[Person, ...] = tuple(self._access.directory.people)
        name = next((one.name for one in people if one.id == person_id), "")
        return bare(name) or "a member"


def _sentence(why: str) -> str:
    return f"{bare(why, chars_max=300).rstrip('.')}."
