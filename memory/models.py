"""Which model was chosen for a chat: what `bot.model_pool` needs stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from agent.messages import PersonId
from memory.database import Database
from memory.stored_text import storable

_ALL = "select lane, model from chosen_models"
_PUT = """
insert into chosen_models (lane, model, person_id, set_ms) values (?, ?, ?, ?)
on conflict (lane) do update set
    model = excluded.model, person_id = excluded.person_id, set_ms = excluded.set_ms
"""
_REMOVE = "delete from chosen_models where lane = ?"


class SqliteChosenModels:
    """Implements `bot.model_pool.ChosenModels`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> Mapping[str, str]:
        """The name of the model by address; those that have none of their own are not there."""
        rows = await self._database.read(lambda c: c.execute(_ALL).fetchall())
        return dict(rows)

    async def put(self, lane: str, model: str, *, by: PersonId) -> None:
        """Stores or replaces the choice of an address."""
        values = (lane, storable(model), by, self._database.now_ms())

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_PUT, values)

        await self._database.write(work)

    async def remove(self, lane: str) -> None:
        """Back to the usual one."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_REMOVE, (lane,))

        await self._database.write(work)
