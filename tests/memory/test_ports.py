"""The classes of `memory` fit the ports: mypy reads these assignments."""

from __future__ import annotations

from bot.inbox.ports import Inbox, OutboxStore, PeopleStore
from memory.database.connection import Database
from memory.records.ports import Conversations, Journal
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal


async def test_every_port_of_the_first_light_is_implemented(database: Database) -> None:
    inbox: Inbox = SqliteInbox(database)
    outbox: OutboxStore = SqliteOutbox(database)
    people: PeopleStore = SqlitePeople(database)
    conversations: Conversations = SqliteConversations(database)
    journal: Journal = SqliteJournal(database)

    assert await inbox.counts() == {}
    assert await outbox.counts() == {}
    assert (await people.directory()).people == ()
    assert await conversations.text("none") is None
    assert await journal.unfinished() == []
