"""What a prompt says about a person: their row and their profile together. Asked by
`memory.recall`, in private chats alone."""

from __future__ import annotations

import sqlite3

from agent.messages import PersonId, Role
from agent.recalled import RecallWanted
from agent.stored import Person
from memory.database import Database
from memory.profile import persona_prompt, profile_in, profile_text
from memory.recall import About

_PERSON = "select id, role, name, time_zone, language from people where id = ?"


class AboutPeople:
    """The part `about` of `memory.recall.Parts`. Nothing is kept between calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, wanted: RecallWanted) -> About:
        """Nothing for somebody unknown. Raises StorageError."""
        person, profile = await self._database.read(
            lambda c: (_person(c, wanted.person_id), profile_in(c, wanted.person_id))
        )
        if person is None:
            return About()
        return About(profile=profile_text(person, profile), persona_prompt=persona_prompt(profile))


def _person(connection: sqlite3.Connection, person_id: PersonId) -> Person | None:
    row = connection.execute(_PERSON, (person_id,)).fetchone()
    if row is None:
        return None
    id_, role, name, time_zone, language = row
    return Person(
        id=PersonId(id_), role=Role(role), name=name, time_zone=time_zone, language=language
    )
