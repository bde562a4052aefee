"""What is remembered for a prompt: the `Recall` that the core needs."""

from __future__ import annotations

import sqlite3

from agent.messages import PersonId
from agent.recalled import Recalled, RecallWanted
from agent.scene import one_line
from memory.database import Database

_PERSON = "select name, language, time_zone, role from people where id = ?"
_LABELS = ("Name", "Language", "Time zone", "Role")


class SqliteRecall:
    """Implements `agent.ports.Recall` with what is stored so far: who the person is.

    The other parts stay empty until their tables exist: facts and earlier exchanges come with
    long-term memory (as do the persona and more of the profile), chunks with knowledge, pins and
    recommendations with insights, what is upcoming with the scheduler, the summary with compaction.

    Nothing is kept between calls: people change at run time, and one row costs little.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recall(self, wanted: RecallWanted) -> Recalled:
        """What this person may see in this place; nothing of a profile in a group (SPEC §9)."""
        if wanted.scope:
            return Recalled()
        person_id = wanted.person_id
        return Recalled(profile=await self._database.read(lambda c: _profile(c, person_id)))


def _profile(connection: sqlite3.Connection, person_id: PersonId) -> str:
    """One line for each thing known; empty for somebody unknown."""
    row = connection.execute(_PERSON, (person_id,)).fetchone()
    if row is None:
        return ""
    # A name is whatever its bearer typed: it must not be able to add lines of its own.
    known = zip(_LABELS, map(one_line, row), strict=True)
    return "\n".join(f"{label}: {value}" for label, value in known if value)
