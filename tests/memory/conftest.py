"""A fresh database for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.messages import ConversationId
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqlitePeople
from memory.stores.turns import SqliteJournal
from tests.laid import lay
from tests.memory.forgetting_kit import lived_in
from tests.memory.kit import LANE, StillClock


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


@pytest.fixture
async def conversation(conversations: SqliteConversations) -> ConversationId:
    return await conversations.current(LANE)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one home with a past is made for all tests of this process."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return lived_in(made, tmp_path / "home")
