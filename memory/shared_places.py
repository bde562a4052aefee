"""What goes from conversations with others when somebody wants everything forgotten: summaries and
notes as a whole, for they may tell of anybody, and what was told to others in that person's words.

Called by `memory.place_rows`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from agent.forgotten import Kind
from memory.places import Key, Place, Search


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeOfAll:
    """Rows that are made anew of what is left. `select` gives their keys; `drop` takes one."""

    kind: Kind
    select: str
    drop: str

    def find(self, connection: sqlite3.Connection, search: Search) -> Sequence[Key]:
        """Those of conversations in which the person spoke, when all of theirs is to go."""
        if not search.wording.everything:
            return []
        return [key for (key,) in connection.execute(self.select, search.values)]

    def erase(self, connection: sqlite3.Connection, search: Search, keys: Sequence[Key]) -> None:
        """Drops them."""
        connection.executemany(self.drop, [(key,) for key in keys])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldToOthers:
    """Rows of `place` that tell others what the person said."""

    place: Place

    @property
    def kind(self) -> Kind:
        return self.place.kind

    def find(self, connection: sqlite3.Connection, search: Search) -> Sequence[Key]:
        """Those that are not the person's own, when all of theirs is to go."""
        if not search.wording.everything or not search.told:
            return []
        own = set(self.place.find(connection, search))
        found = self.place.find(connection, search.among_others)
        return [key for key in found if key not in own]

    def erase(self, connection: sqlite3.Connection, search: Search, keys: Sequence[Key]) -> None:
        """Takes it out of these rows."""
        self.place.erase(connection, search.among_others, keys)


_SHARED = "conversation_id in (select value from json_each(:shared))"

MADE_OF_ALL = (
    MadeOfAll(
        kind=Kind.SUMMARY,
        select=f"select id from compactions where {_SHARED}",  # noqa: S608 - a constant
        drop="delete from compactions where id = ?",
    ),
    MadeOfAll(
        kind=Kind.INSIGHT,
        select=f"select conversation_id from insights where {_SHARED}",  # noqa: S608
        drop="delete from insights where conversation_id = ?",
    ),
)
