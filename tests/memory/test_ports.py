"""The classes of `memory` fit the ports: mypy reads these assignments."""

from __future__ import annotations

from agent.ports import Conversations, Journal
from bot.ports import Inbox, OutboxStore, PeopleStore
from memory.conversations import SqliteConversations
from memory.database import Database
from memory.inbox import SqliteInbox
from memory.journal import SqliteJournal
from memory.outbox import SqliteOutbox
from memory.people import SqlitePeople


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
