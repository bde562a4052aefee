"""Profiles: who people are, as one JSON object each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from memory.database.connection import Database
from memory.database.rows import dump, storable
from memory.facts.profile_values import appended, at, checked, cleaned, parsed, said, with_value
from memory.facts.secrets import secret_in
from memory.records.errors import ProfileWrong
from memory.records.facts import ProfileChange
from memory.records.languages import language_name
from memory.records.messages import PersonId, RunId
from memory.records.rows import Person
from memory.records.text import one_line

REASON_CHARS_MAX = 300
TEXT_CHARS_MAX = 2_000
"""Of the layer about a person (SPEC §5)."""
_VALUE_CHARS_MAX = 300

_BODY = "select body from profiles where person_id = ?"
_PUT = """
insert into profiles (person_id, body, updated_ms) values (?, ?, ?)
on conflict (person_id) do update set body = excluded.body, updated_ms = excluded.updated_ms
"""
_REMOVE = "delete from profiles where person_id = ?"
_ADD_CHANGE = """
insert into profile_changes (person_id, path, old, new, reason, run_id, at_ms, undone_ms)
values (?, ?, ?, ?, ?, ?, ?, ?)
"""
_OF_RUN = """
select id, path, old, new, reason, at_ms, run_id, undone_ms from profile_changes
where person_id = ? and run_id = ? and run_id <> '' and undone_ms is null order by id desc
"""
_UNDONE = "update profile_changes set undone_ms = ? where person_id = ? and id = ?"


class SqliteProfiles:
    """Keeps profiles. Raises StorageError, ProfileWrong. A path may end in `[]`: the value, or each
    item of a list, is then added to the list that stands there.

    What a turn changed can be taken back as long as what it set still stands. Taking back is a
    change too.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, person_id: PersonId) -> Mapping[str, object]:
        """The whole profile."""
        return await self._database.read(lambda c: profile_in(c, person_id))

    async def update(
        self,
        person_id: PersonId,
        path: str,
        value: object,
        *,
        reason: str,
        run_id: RunId | None = None,
    ) -> ProfileChange:
        """Sets, adds to or takes away what a path names. Raises ProfileWrong.

        Where it was so already nothing is stored, and the change has the id 0.
        """
        parts, appends = parsed(path)
        wanted = cleaned(value)
        name = ".".join(parts)
        for text in said(name, wanted):
            if kind := secret_in(text):
                raise ProfileWrong(f"It holds {kind}, and secrets are not kept.")
        change = ProfileChange(
            id=0,
            path=name,
            old=None,
            new=wanted,
            reason=storable(one_line(reason, chars_max=REASON_CHARS_MAX)),
            at_ms=self._database.now_ms(),
            run_id=run_id,
        )

        def work(connection: sqlite3.Connection) -> ProfileChange:
            profile = profile_in(connection, person_id)
            old = at(profile, parts)
            new = appended(old, wanted, name) if appends else wanted
            return _changed(connection, person_id, profile, replace(change, old=old, new=new))

        return await self._database.write(work)

    async def undo(self, person_id: PersonId, run_id: RunId) -> Sequence[ProfileChange]:
        """Take back what a turn changed, newest first, and return those changes. What was changed
        again since stays as it is."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[ProfileChange]:
            changes = map(_change, connection.execute(_OF_RUN, (person_id, run_id)).fetchall())
            undone: list[ProfileChange] = []
            for change in changes:
                profile = profile_in(connection, person_id)
                if at(profile, tuple(change.path.split("."))) != change.new:
                    continue
                reason = f"takes back change {change.id}"
                back = ProfileChange(
                    id=0,
                    path=change.path,
                    old=change.new,
                    new=change.old,
                    reason=reason,
                    at_ms=now_ms,
                )
                with suppress(ProfileWrong):  # it does not fit beside what came later
                    _changed(connection, person_id, profile, back)
                    connection.execute(_UNDONE, (now_ms, person_id, change.id))
                    undone.append(replace(change, undone_ms=now_ms))
            return undone

        return await self._database.write(work)


# --- for prompts ---------------------------------------------------------------------------------


def profile_text(person: Person, profile: Mapping[str, object]) -> str:
    """Return what a prompt says about a person, a line for each thing, within TEXT_CHARS_MAX.

    A name and languages of the profile win over what the platform says; its time zone does not
    win over the one that was set by a command, which all times go by.
    """
    lines = [
        ("Name", profile.get("name") or person.name),
        ("Title", profile.get("title")),
        ("Languages", profile.get("languages"))
        if profile.get("languages")
        else ("Language", language_name(person.language)),
        ("Time zone", person.time_zone or profile.get("time_zone")),
        ("Role", person.role),
        ("Wishes to call you", at(profile, ("persona", "name"))),
        ("Wants you to be", at(profile, ("persona", "style"))),
        ("Wants your tone to be", at(profile, ("persona", "tone"))),
        *_listed("Prefers", profile.get("preferences")),
        *_listed("Project", profile.get("projects")),
    ]
    kept: list[str] = []
    room = TEXT_CHARS_MAX - len(_MORE) - 1
    for label, value in lines:
        # On one line, with nothing that could pose as a heading of ours.
        if text := one_line(_plain(value), chars_max=_VALUE_CHARS_MAX):
            room -= len(f"{label}: {text}") + 1
            if room < 0:
                return "\n".join([*kept, _MORE])
            kept.append(f"{label}: {text}")
    return "\n".join(kept)


_MORE = "(more is in the profile: get_profile)"
"""The last line of a text that does not hold all."""


def persona_prompt(profile: Mapping[str, object]) -> str:
    """Return what replaces the base text of a prompt (SPEC §5); empty for nothing."""
    prompt = at(profile, ("persona", "system_prompt"))
    return prompt if isinstance(prompt, str) else ""


def _listed(label: str, value: object) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(f"{label} {key.replace('_', ' ')}", part) for key, part in value.items()]
    if isinstance(value, list):
        return [(label, part) for part in value]
    return []


def _plain(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(_plain, value))
        case Mapping():
            return "; ".join(f"{key.replace('_', ' ')}: {_plain(v)}" for key, v in value.items())
        case _:
            return str(value)


# --- changes -------------------------------------------------------------------------------------


def profile_in(connection: sqlite3.Connection, person_id: PersonId) -> dict[str, object]:
    """The profile of a person, within the caller's transaction; empty where there is none."""
    row = connection.execute(_BODY, (person_id,)).fetchone()
    return {} if row is None else json.loads(row[0])


def put_profile(
    connection: sqlite3.Connection,
    person_id: PersonId,
    profile: Mapping[str, object],
    *,
    now_ms: int,
) -> None:
    """Store a profile as a whole, within the caller's transaction. Raise ProfileWrong."""
    body = checked(profile)
    if profile:
        connection.execute(_PUT, (person_id, body, now_ms))
    else:
        connection.execute(_REMOVE, (person_id,))


def add_change(connection: sqlite3.Connection, person_id: PersonId, change: ProfileChange) -> int:
    """Add a change to the history of a profile, within the caller's transaction."""
    old, new = (None if one is None else dump(one) for one in (change.old, change.new))
    values = (
        old,
        new,
        storable(change.reason),
        change.run_id or "",
        change.at_ms,
        change.undone_ms,
    )
    added = connection.execute(_ADD_CHANGE, (person_id, change.path, *values)).lastrowid
    assert added is not None
    return added


def _changed(
    connection: sqlite3.Connection,
    person_id: PersonId,
    profile: Mapping[str, object],
    change: ProfileChange,
) -> ProfileChange:
    """Store a change and the profile that it makes."""
    if change.old == change.new and type(change.old) is type(change.new):
        return change
    after = with_value(profile, tuple(change.path.split(".")), change.new)
    put_profile(connection, person_id, after, now_ms=change.at_ms)
    return replace(change, id=add_change(connection, person_id, change))


def _change(row: tuple[Any, ...]) -> ProfileChange:
    change_id, path, old, new, reason, at_ms, run_id, undone_ms = row
    return ProfileChange(
        id=change_id,
        path=path,
        old=None if old is None else json.loads(old),
        new=None if new is None else json.loads(new),
        reason=reason,
        at_ms=at_ms,
        run_id=RunId(run_id) if run_id else None,
        undone_ms=undone_ms,
    )
