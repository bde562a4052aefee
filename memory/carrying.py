"""What is remembered of a person, taken out as one JSON object and brought in again.

A file is read with distrust: checked as a whole before anything is changed, bounded, and whatever
it says about whose it is, it is brought in for the person who asked. Used by `bot.memory`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.carried import FILE_BYTES_MAX, CarryingRefused, Imported
from agent.errors import StorageError
from agent.messages import PersonId
from memory.database import Database
from memory.erasing import Premises, note_files, text_of

if TYPE_CHECKING:
    from memory.carried_file import Carried, CarriedNote
    from memory.taking_in import Taken

_FACTS = """
select id, scope, text, category, confidence, source, quote, speaker, valid_from_ms, valid_to_ms,
    superseded_by, created_ms, last_used_ms, uses
from facts where person_id = ? order by id
"""
_PROFILE = "select body from profiles where person_id = ?"
_CHANGES = """
select path, old, new, reason, at_ms, undone_ms from profile_changes where person_id = ? order by id
"""
_DOCUMENTS = """
select id, scope, name, kind, source, chars, saved_ms from documents where person_id = ? order by id
"""
_PASSAGES = "select text from chunks where document_id = ? order by n"
_TOMBSTONES = "select count(*) from tombstones where person_id = ?"

# A folder at most, and never that of other people's notes.
_NOTE = re.compile(r"(?!people/)(?:\w[\w -]*/)?\w[\w. -]*\.md")

FORMAT, VERSION = "hearthbot-memory", 1
CONVERSATIONS = "Conversations are not in here: `hearthbot sessions export` writes them."


class Carrying:
    """Implements `agent.carried.Carries`."""

    def __init__(self, database: Database, premises: Premises) -> None:
        self._database = database
        self._premises = premises

    async def taken_out(self, person_id: PersonId, *, is_owner: bool) -> dict[str, Any]:
        """Facts with those that no longer hold, the profile with its history, documents, notes, and
        how many things were forgotten."""
        stored = await self._database.read(partial(_stored, person_id=person_id))
        notes = await asyncio.to_thread(self._notes, person_id, is_owner=is_owner)
        now_ms = self._database.now_ms()
        head = {"format": FORMAT, "version": VERSION, "made_ms": now_ms, "person_id": person_id}
        return {**head, **stored, "notes": notes, "conversations": CONVERSATIONS}

    async def brought_in(self, person_id: PersonId, path: Path, *, is_owner: bool) -> Imported:
        """Facts, profile and documents in one transaction, then notes that are not there yet."""
        # Hardly any process ever brings a file in, so none loads at its start what reads one.
        from memory.carried_file import read_file
        from memory.taking_in import take_in

        text = await asyncio.to_thread(_text, path)
        carried = await asyncio.to_thread(read_file, text, str(path))
        now_ms = self._database.now_ms()
        taken: Taken = await self._database.write(
            partial(take_in, person_id=person_id, carried=carried, now_ms=now_ms)
        )
        notes, left = await asyncio.to_thread(
            self._put_notes, person_id, carried, is_owner=is_owner
        )
        return Imported(
            stored=taken.stored,
            refreshed=taken.refreshed,
            superseded=taken.superseded,
            refused=tuple(taken.refused),
            profile=tuple(taken.profile),
            documents=tuple(taken.documents),
            notes=tuple(notes),
            left=(*taken.left, *left),
        )

    def _notes(self, person_id: PersonId, *, is_owner: bool) -> list[dict[str, str]]:
        folder = self._premises.notes(person_id, is_owner=is_owner)
        found = []
        for path in note_files(self._premises, person_id, is_owner=is_owner):
            text = text_of(path)
            if path.is_relative_to(folder) and text is not None:
                found.append({"path": path.relative_to(folder).as_posix(), "text": text})
        return found

    def _put_notes(
        self, person_id: PersonId, carried: Carried, *, is_owner: bool
    ) -> tuple[list[str], list[str]]:
        folder = self._premises.notes(person_id, is_owner=is_owner)
        put, left = [], []
        for note in carried.notes:
            path = folder / note.path
            if _NOTE.fullmatch(note.path) and text_of(path) == note.text:
                continue
            if _NOTE.fullmatch(note.path) and _write_new(path, note):
                put.append(note.path)
            else:
                left.append(f"notes {note.path}")
        return put, left


def _stored(connection: sqlite3.Connection, person_id: PersonId) -> dict[str, Any]:
    body = connection.execute(_PROFILE, (person_id,)).fetchone()
    return {
        "facts": list(_rows(connection, _FACTS, person_id)),
        "profile": {} if body is None else json.loads(body[0]),
        "profile_history": [
            {**row, "old": _value(row["old"]), "new": _value(row["new"])}
            for row in _rows(connection, _CHANGES, person_id)
        ],
        "documents": [
            {**row, "passages": [text for (text,) in connection.execute(_PASSAGES, (document,))]}
            for row in _rows(connection, _DOCUMENTS, person_id)
            if (document := row.pop("id"))
        ],
        "forgotten": connection.execute(_TOMBSTONES, (person_id,)).fetchone()[0],
    }


def _rows(connection: sqlite3.Connection, sql: str, person_id: str) -> Iterator[dict[str, Any]]:
    found = connection.execute(sql, (person_id,))
    names = [column[0] for column in found.description]
    for row in found.fetchall():
        yield dict(zip(names, row, strict=True))


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            raise CarryingRefused(
                f"{path} has {size:,} bytes; at most {FILE_BYTES_MAX:,} are read. Nothing was "
                "changed."
            )
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise CarryingRefused(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise CarryingRefused(
            f"{path} is no text in UTF-8 (byte {error.start:,}): is it what `hearthbot memory "
            "export` wrote? Nothing was changed."
        ) from error


def _write_new(path: Path, note: CarriedNote) -> bool:
    """Whether the file was not there yet, and is now."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("x", encoding="utf-8", newline="") as file:
            path.chmod(0o600)
            file.write(note.text)
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageError(
            f"Facts, profile and documents are in, but {path} could not be written "
            f"({error.strerror}). Mend that, and bring the file in once more."
        ) from error
    return True


def as_json(carried: Mapping[str, Any]) -> str:
    """As it is written to a file: one can read it, too."""
    return json.dumps(carried, ensure_ascii=False, indent=1) + "\n"
