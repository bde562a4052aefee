"""What is remembered of a person, taken out as one JSON object and brought in again.

A file is read with distrust: checked as a whole before anything is changed, bounded, and whatever
it says about whose it is, it is brought in for the person who asked. Used by `memory.service`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from memory.database.connection import Database
from memory.database.premises import Premises, note_files, text_of
from memory.records.erasure import FILE_BYTES_MAX, CarryingRefused, Imported
from memory.records.errors import StorageError
from memory.records.facts import FACT_CHARS_MAX, Category
from memory.records.messages import PersonId

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


class Transfer:
    """Takes out and brings in what is remembered of one person. Raises StorageError."""

    def __init__(self, database: Database, premises: Premises) -> None:
        self._database = database
        self._premises = premises

    async def export(self, person_id: PersonId, *, is_owner: bool) -> dict[str, Any]:
        """Facts with those that no longer hold, the profile with its history, documents, notes, and
        how many things were forgotten: one JSON object, of the form of `Carried`."""
        stored = await self._database.read(partial(_stored, person_id=person_id))
        notes = await asyncio.to_thread(self._notes, person_id, is_owner=is_owner)
        now_ms = self._database.now_ms()
        head = {"format": FORMAT, "version": VERSION, "made_ms": now_ms, "person_id": person_id}
        return {**head, **stored, "notes": notes, "conversations": CONVERSATIONS}

    async def load(self, person_id: PersonId, path: Path, *, is_owner: bool) -> Imported:
        """Add what a file holds: facts, profile and documents in one transaction, then notes that
        are not there yet. Raise CarryingRefused when it cannot be read: nothing is changed then."""
        # Hardly any process ever brings a file in, so none loads at its start what reads one.
        from memory.facts.load import take_in

        text = await asyncio.to_thread(_text, path)
        carried = await asyncio.to_thread(read_file, text, str(path))
        now_ms = self._database.now_ms()
        taken: Imported = await self._database.write(
            partial(take_in, person_id=person_id, carried=carried, now_ms=now_ms)
        )
        await asyncio.to_thread(self._put_notes, person_id, carried, taken, is_owner=is_owner)
        return taken

    def _notes(self, person_id: PersonId, *, is_owner: bool) -> list[dict[str, str]]:
        folder = self._premises.notes(person_id, is_owner=is_owner)
        found = []
        for path in note_files(self._premises, person_id, is_owner=is_owner):
            text = text_of(path)
            if path.is_relative_to(folder) and text is not None:
                found.append({"path": path.relative_to(folder).as_posix(), "text": text})
        return found

    def _put_notes(
        self, person_id: PersonId, carried: Carried, taken: Imported, *, is_owner: bool
    ) -> None:
        folder = self._premises.notes(person_id, is_owner=is_owner)
        for note in carried.notes:
            path = folder / note.path
            if _NOTE.fullmatch(note.path) and text_of(path) == note.text:
                continue
            if _NOTE.fullmatch(note.path) and _write_new(path, note):
                taken.notes.append(note.path)
            else:
                taken.left.append(f"notes {note.path}")


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
    """Return whether the file was not there yet, and is now."""
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


# --- carried file -------------------------------------------------------------------------------
#
# The form of a file with what is remembered, as it is read: every field checked, every list
# bounded. Called by `memory.facts.export`.

FACTS_MAX, CHANGES_MAX, DOCUMENTS_MAX, PASSAGES_MAX, NOTES_MAX = (
    50_000,
    20_000,
    2_000,
    20_000,
    5_000,
)
PROBLEMS_TOLD, REPLACED_MAX = 5, 1_000

Ms = Annotated[int, Field(ge=0, le=253_402_300_799_999)]
"""Epoch milliseconds, up to the year 9999."""
Id = Annotated[int, Field(ge=1, le=2**53)]
Line = Annotated[str, Field(max_length=FACT_CHARS_MAX)]


class _TransferPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CarriedFact(_TransferPart):
    """A fact. The ids are those of the file: they link a fact to the one that replaced it."""

    id: Id
    scope: Annotated[str, Field(max_length=200, pattern=r"^([a-z]+:[^\s:]+)?$")] = ""
    text: Annotated[str, Field(min_length=1, max_length=FACT_CHARS_MAX)]
    category: Category
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    source: Literal["message", "tool", "person", "import"] = "import"
    quote: Annotated[str, Field(max_length=2_000)] = ""
    speaker: Annotated[str, Field(max_length=200)] = ""
    valid_from_ms: Ms
    valid_to_ms: Ms | None = None
    superseded_by: Id | None = None
    created_ms: Ms
    last_used_ms: Ms | None = None
    uses: Annotated[int, Field(ge=0, le=10**9)] = 0


class CarriedChange(_TransferPart):
    """A change of the profile."""

    path: Annotated[str, Field(max_length=200)]
    old: JsonValue = None
    new: JsonValue = None
    reason: Line = ""
    at_ms: Ms
    undone_ms: Ms | None = None


class CarriedDocument(_TransferPart):
    """A saved document, in its passages."""

    scope: Annotated[str, Field(max_length=200, pattern=r"^([a-z]+:[^\s:]+)?$")] = ""
    name: Annotated[str, Field(min_length=1, max_length=300)]
    kind: Annotated[str, Field(max_length=20)]
    source: Annotated[str, Field(max_length=2_000)] = ""
    chars: Annotated[int, Field(ge=0, le=10**9)]
    saved_ms: Ms
    passages: Annotated[
        list[Annotated[str, Field(max_length=4_000)]], Field(max_length=PASSAGES_MAX)
    ]


class CarriedNote(_TransferPart):
    """A file of notes; its path is below the folder of the person's notes."""

    path: Annotated[str, Field(max_length=200)]
    text: Annotated[str, Field(max_length=1_000_000)]


class Carried(_TransferPart):
    """The whole file."""

    format: Literal["hearthbot-memory"]
    version: Literal[1]
    made_ms: Ms
    person_id: Annotated[str, Field(max_length=200)] = ""
    facts: Annotated[list[CarriedFact], Field(max_length=FACTS_MAX)] = []
    profile: dict[str, JsonValue] = {}
    profile_history: Annotated[list[CarriedChange], Field(max_length=CHANGES_MAX)] = []
    documents: Annotated[list[CarriedDocument], Field(max_length=DOCUMENTS_MAX)] = []
    forgotten: Annotated[int, Field(ge=0)] = 0
    notes: Annotated[list[CarriedNote], Field(max_length=NOTES_MAX)] = []
    conversations: str = ""

    @model_validator(mode="after")
    def _is_of_one_piece(self) -> Carried:
        by_id = {fact.id: fact for fact in self.facts}
        if len(by_id) < len(self.facts):
            raise ValueError("two facts have the same id")
        for fact in self.facts:
            if fact.valid_to_ms is None and fact.superseded_by is not None:
                raise ValueError(f"fact {fact.id} is replaced, and has no valid_to_ms")
            # A chain that bites its tail would have no end.
            seen = {fact.id}
            after = fact.superseded_by
            while after is not None and after in by_id:
                if after in seen:
                    raise ValueError(f"fact {fact.id} replaces itself in the end")
                if len(seen) > REPLACED_MAX:
                    raise ValueError(f"fact {fact.id} was replaced too often to be followed")
                seen.add(after)
                after = by_id[after].superseded_by
        return self


def read_file(text: str, name: str) -> Carried:
    """Raises CarryingRefused with line or field of what is wrong."""
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise CarryingRefused(
            f"{name}, line {error.lineno}, column {error.colno}: {error.msg}. Nothing was changed."
        ) from error
    except RecursionError as error:
        raise CarryingRefused(f"{name} is nested too deeply. Nothing was changed.") from error
    if not isinstance(data, dict) or data.get("format") != "hearthbot-memory":
        raise CarryingRefused(
            f"{name} is not what `hearthbot memory export` writes as JSON (its `format` would be "
            "hearthbot-memory; Markdown is for reading alone). Nothing was changed."
        )
    if data.get("version") != 1:
        raise CarryingRefused(
            f"{name} is of version {str(data.get('version'))[:20]}; this Hearthbot reads version "
            "1. Nothing was changed."
        )
    try:
        return Carried.model_validate(data)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False, include_input=False):
            place = "".join(f"[{i}]" if isinstance(i, int) else f".{i}" for i in problem["loc"])
            problems.append(f"{place.removeprefix('.') or 'the file'}: {problem['msg']}")
        more = len(problems) - PROBLEMS_TOLD
        told = problems[:PROBLEMS_TOLD] + ([f"and {more} more"] if more > 0 else [])
        raise CarryingRefused(
            "\n".join([f"{name} cannot be brought in, and nothing was changed:", *told])
        ) from error
