"""The classes of `memory` fit the ports: mypy reads these assignments."""

from __future__ import annotations

from memory.database.connection import Database
from memory.records.ports import Conversations, Journal
from memory.stores.conversations import SqliteConversations
from memory.stores.turns import SqliteJournal


async def test_every_port_of_the_first_light_is_implemented(database: Database) -> None:
    conversations: Conversations = SqliteConversations(database)
    journal: Journal = SqliteJournal(database)

    assert await conversations.text("none") is None
    assert await journal.unfinished() == []
