"""A fresh database for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal
from tests.laid import lay
from tests.memory.kit import StillClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "hearthbot.db"


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def database(path: Path, clock: StillClock) -> AsyncIterator[Database]:
    lay(path)
    async with Database.open(path, clock=clock, busy_timeout_s=0.2) as database:
        yield database


@pytest.fixture
def inbox(database: Database) -> SqliteInbox:
    return SqliteInbox(database)


@pytest.fixture
def outbox(database: Database) -> SqliteOutbox:
    return SqliteOutbox(database)


@pytest.fixture
def people(database: Database) -> SqlitePeople:
    return SqlitePeople(database)


@pytest.fixture
def conversations(database: Database) -> SqliteConversations:
    return SqliteConversations(database)


@pytest.fixture
def journal(database: Database) -> SqliteJournal:
    return SqliteJournal(database)
