"""The tools over notes (what is worked on, agreed for today or long, in files of the person), and
over the profile."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from agent.prompt.templates import harmless
from agent.tools.groups.files import KeepFormer, ProtectedFiles
from agent.tools.groups.memory import NOTHING_HERE, MemoryRefused, PersonContext
from agent.tools.tool import (
    Caller,
    ChangedFile,
    Effect,
    FileResult,
    Needs,
    tool,
)
from agent.tools.workspace import NOTES, PathMissing, PathRefused, Workspace
from memory.facts.profile import SqliteProfiles
from memory.records.errors import Permanent
from memory.records.messages import PersonId, Role
from memory.records.text import clean, one_line

# --- note files ---------------------------------------------------------------------------------
#
# The notes of a person: `MEMORY.md` for what lasts, and one file for each day. Plain files in the
# workspace that their person may edit; they become part of prompts (`agent.prompt.templates`).
# Every path goes through `Workspace`, so nothing here leads outside, follows a link or reaches
# another person's folder. What reads blocks: call it in a thread.

NOTE_CHARS_MAX = 4_000
"""Of what is added at once."""

FILE_CHARS_MAX = 100_000
"""Of the notes of one day, and of MEMORY.md, beyond which nothing is added."""

LONG_TERM = "MEMORY.md"

Entry = tuple[str, ...]
"""Lines that belong together: a paragraph, a list, or a heading with what follows it at once."""


class NotesRefused(Permanent):
    """Notes that cannot be read or written here; the text says why, for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of a text: `added` is what was new of it, empty when all stood there."""

    path: str
    added: str
    of: ChangedFile


def folder_of(person_id: PersonId, role: Role) -> str:
    """Where a person's notes lie in the workspace. Raises NotesRefused for an id that is no name
    of a folder."""
    if role is Role.OWNER:
        return NOTES
    if not _ID.fullmatch(person_id):
        raise NotesRefused("there is no place for notes of this person")
    return f"{NOTES}/people/{person_id}"


def path_of(folder: str, day: date | None) -> str:
    """The file of a day, or with None that of what lasts."""
    return f"{folder}/{LONG_TERM}" if day is None else f"{folder}/{day:%Y%m}/{day:%Y%m%d}.md"


class Notes:
    """Reads and adds to the notes of a Caller, in private chats alone.

    Raises NotesRefused and PathRefused with a sentence for the model, StorageFull and
    StorageReadOnly. A day of None means the long-term notes.
    """

    def __init__(self, workspace: Workspace, former: KeepFormer | None = None) -> None:
        """`former` saves what the notes said before."""
        self._workspace = workspace
        self._kept = ProtectedFiles(workspace, former)

    def read(self, caller: Caller, day: date | None) -> str:
        """The text, clean; empty when there is none."""
        content = self._workspace.read(path_of(_folder(caller), day), caller, missing=b"")
        return clean(content.decode("utf-8-sig", "replace")).strip()

    def days(self, caller: Caller) -> Sequence[tuple[date, int]]:
        """Return the days that have notes, the newest first, with their sizes in bytes."""
        return sorted(self._days(caller), reverse=True)

    def _days(self, caller: Caller) -> Iterator[tuple[date, int]]:
        folder = _folder(caller)
        try:
            months = self._workspace.entries(folder, caller).entries
        except PathMissing:  # nothing was noted yet
            return
        for month in months:
            if month.kind != "folder" or not _MONTH.fullmatch(month.name):
                continue
            for entry in self._workspace.entries(f"{folder}/{month.name}", caller).entries:
                if entry.kind != "file" or not _DAY.fullmatch(entry.name):
                    continue
                with suppress(ValueError):  # digits that are no day
                    day = date.fromisoformat(entry.name.removesuffix(".md"))
                    if f"{day:%Y%m}" == month.name:
                        yield day, entry.size_bytes

    async def add(self, caller: Caller, text: str, day: date | None) -> Added:
        """Adds what is new in a text at the end, and nothing that stands there word for word.

        So a text that is added twice, also by a call that a kill interrupted, stands there once
        (case ME-05).
        """
        path = path_of(_folder(caller), day)
        added = ""

        def longer(former: bytes) -> bytes | None:
            nonlocal added
            try:
                known = former.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                # A file in another encoding is left alone rather than mixed.
                raise PathRefused(
                    f"{path!r} is not UTF-8 text, so nothing was added to it"
                ) from error
            added = news_of(known, clean(text), day=day)
            if not added:
                return None
            if len(known) + len(added) + 2 > FILE_CHARS_MAX:
                raise NotesRefused(
                    f"{path} is full ({len(known):,} characters; at most {FILE_CHARS_MAX:,}): "
                    "nothing was added. The person may shorten it"
                )
            # One empty line before what is added: an entry of its own.
            joint = b"\n" if former.endswith(b"\n") else b"\n\n"
            if not former.strip() or former.endswith((b"\n\n", b"\n\r\n")):
                joint = b""
            return former + joint + added.encode() + b"\n"

        _, of = await self._kept.change(path, caller, longer, missing=b"")
        return Added(path=path, added=added, of=of)


def _folder(caller: Caller) -> str:
    if caller.is_group:
        raise NotesRefused("notes are private, and closed in group chats")
    return folder_of(caller.person_id, caller.role)


_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MONTH = re.compile(r"[0-9]{6}")
_DAY = re.compile(r"[0-9]{8}\.md")


# --- what is new in a text -----------------------------------------------------------------------


def news_of(known: str, text: str, *, day: date | None) -> str:
    """Return what of `text` does not stand in `known` word for word, paragraph by paragraph.

    A paragraph loses the lines that it begins with, below its heading, and that stand there one
    after the other. A heading that only names the day goes as well: the file is named after it.
    Text with a block of code stays whole, or goes whole. Added to `known`, nothing of `text` is new
    any more.
    """
    there = _block(_lines(known))

    def known_lines(lines: Entry) -> int:
        return next((n for n in range(len(lines), 0, -1) if _block(lines[:n]) in there), 0)

    if _FENCE.search(text):
        return "" if _block(_lines(text.strip())) in there else text.strip()
    fresh: list[Entry] = []
    for entry in _entries(text):
        left = entry[1:] if day is not None and _names_day(entry[0], day) else entry
        # A heading alone is not cut off: what is new below it would stand under another one.
        while (count := known_lines(left)) and not (count == 1 and left[0].startswith("#")):
            left = left[count:]
        if left and left[0].startswith("#"):
            below = left[1 + known_lines(left[1:]) :]
            # Where all below it is known, it may be an old line under a new heading.
            left = (left[0], *below) if below else left
        if left and _block(left) not in there:
            fresh.append(left)
            there += _block(left)
    return "\n\n".join("\n".join(entry) for entry in fresh)


def _block(lines: Entry) -> str:
    """Lines as they are looked for: whole ones alone."""
    return "\n{}\n".format("\n".join(lines))


def _lines(text: str) -> Entry:
    return tuple(line.rstrip() for line in text.splitlines())


def _entries(text: str) -> Iterator[Entry]:
    """In order. An empty line ends one, and a heading begins one."""
    lines: list[str] = []
    for line in _lines(text):
        if lines and (not line or line.startswith("#")):
            yield tuple(lines)
            lines = []
        if line:
            lines.append(line)
    if lines:
        yield tuple(lines)


_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


def _names_day(line: str, day: date) -> bool:
    """Return whether a line is a heading that says which day it is, and nothing else."""
    words = re.findall(r"[^\W\d_]+|\d+", line.casefold())
    numbers = {int(word) for word in words if word.isdecimal()}
    names = {f"{day:{form}}".casefold() for form in ("%A", "%a", "%B", "%b")}
    is_date = {day.year, day.day} <= numbers or int(f"{day:%Y%m%d}") in numbers
    return line.startswith("#") and is_date and {w for w in words if not w.isdecimal()} <= names


DAYS_LISTED_MAX = 60

IN_GROUPS = "notes are private, and closed in group chats."

Where = Literal["today", "long-term"]


class NoteTools:
    """Reads and adds to notes, in private chats alone."""

    def __init__(self, notes: Notes, household: PersonContext) -> None:
        self._notes = notes
        self._household = household

    def _in_private(self, caller: Caller) -> Needs:
        return Needs(refused=IN_GROUPS if caller.is_group else "")

    @tool("memory", Effect.NONE, needs=_in_private, status="reading the notes …")
    async def read_notes(
        self,
        caller: Caller,
        day: Annotated[
            str,
            Field(
                max_length=40,
                description="a date such as 2026-03-01, today, yesterday, or long-term; empty: "
                "list them",
            ),
        ] = "",
    ) -> str:
        """Read the person's notes of a day or the long-term ones, or list the days."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        wanted = " ".join(day.casefold().split())
        if not wanted:
            return await asyncio.to_thread(self._listed, caller)
        if wanted in _LONG_TERM:
            return await asyncio.to_thread(self._read, caller, None)
        today = self._household.now_of(caller.person_id).date()
        return await asyncio.to_thread(self._read, caller, _day(wanted, today))

    def _read(self, caller: Caller, day: date | None) -> str:
        named = "Long-term notes" if day is None else f"Notes of {day:%A}, {day}"
        text = harmless(self._notes.read(caller, day))
        return f"{named}:\n{text}" if text else f"{named}: there are none."

    def _listed(self, caller: Caller) -> str:
        lines = ["long-term"] if self._notes.read(caller, None) else []
        days = self._notes.days(caller)
        lines += [f"{day} ({size_bytes:,} bytes)" for day, size_bytes in days[:DAYS_LISTED_MAX]]
        if len(days) > DAYS_LISTED_MAX:
            lines.append(f"[the newest {DAYS_LISTED_MAX} of {len(days):,} days]")
        return "\n".join(lines) or "There are no notes yet."

    def _append_notes_needs(self, caller: Caller, where: Where) -> Needs:
        if caller.is_group:
            return Needs(refused=IN_GROUPS)
        named = "notes of today" if where == "today" else "long-term notes"
        return Needs(shows=(f"Into the {named}, which later prompts show:",))

    # What stands there already is not added: so a call made again adds nothing.
    @tool(
        "memory",
        Effect.PERSON,
        redo="idempotent",
        needs=_append_notes_needs,
        status="making a note …",
    )
    async def append_notes(
        self,
        caller: Caller,
        text: Annotated[str, Field(min_length=1, max_length=NOTE_CHARS_MAX)],
        where: Where = "today",
    ) -> str:
        """Note what is worked on or agreed, for today or long-term. What stays true of the person
        is a fact instead (store_fact)."""
        await self._household.check_writable(caller)
        day = None
        if where == "today":
            day = self._household.now_of(caller.person_id).date()
        added = await self._notes.add(caller, text, day)
        named = "the long-term notes" if day is None else f"the notes of {day}"
        if not added.added:
            return f"It stands in {named} already ({added.path}); nothing was added."
        done = f"Added to {named} ({added.path}), {len(added.added):,} characters."
        return FileResult(done, added.of)


_LONG_TERM = frozenset({"long-term", "long term", "longterm", "memory.md"})


def _day(text: str, today: date) -> date:
    """Raises MemoryRefused for what is no day."""
    if text in {"today", "yesterday"}:
        return today - timedelta(days=int(text == "yesterday"))
    try:
        if not re.fullmatch(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}", text):
            raise ValueError("a day is written with its year, month and day alone")
        return date.fromisoformat(text)
    except ValueError as error:
        raise MemoryRefused(
            "this names no day: write it like 2026-03-01, or today, yesterday, long-term"
        ) from error


# --- profile --------------------------------------------------------------------------------------
#
# The tools over the profile: who a person is, as one object that they can see and correct.

PATH_CHARS_MAX = 200
REASON_CHARS_MAX = 300

PROFILE_IN_GROUPS = "a profile is private, and closed in group chats."
STEERS = "persona.system_prompt says who the assistant is and how it acts"
SAID_CHARS_MAX = 300
PERSONA_TOO_LONG = (
    f"{STEERS}, and the text is too long to be shown whole to the owner, who has to agree to "
    "exactly it: shorten it"
)


class ProfileTools:
    """Shows and changes a profile, in private chats alone."""

    def __init__(self, profiles: SqliteProfiles, household: PersonContext) -> None:
        self._profiles = profiles
        self._household = household

    def _in_private(self, caller: Caller) -> Needs:
        return Needs(refused=PROFILE_IN_GROUPS if caller.is_group else "")

    @tool("memory", Effect.NONE, needs=_in_private, status="trying to remember …")
    async def get_profile(
        self,
        caller: Caller,
        path: Annotated[
            str, Field(max_length=PATH_CHARS_MAX, description="such as preferences")
        ] = "",
    ) -> str:
        """The person's profile: name, languages, preferences, projects, persona."""
        _check_private(caller)
        if await self._household.is_off(caller):
            return NOTHING_HERE
        profile = await self._profiles.get(caller.person_id)
        if not profile:
            return "Nothing is known of the person yet."
        # What a dotted path names. Raises MemoryRefused where there is nothing.
        value: object = profile
        for name in [part.strip() for part in path.split(".") if part.strip()]:
            if not isinstance(value, Mapping) or name not in value:
                known = ", ".join(sorted(profile))
                raise MemoryRefused(
                    f"nothing is known under {one_line(path)!r} (there is: {known})"
                )
            value = value[name]
        return harmless(_written(value, indent=1))

    def _update_profile_needs(self, caller: Caller, path: str, value: JsonValue) -> Needs:
        """What replaces the text that the assistant begins with is always asked about (SPEC
        §6), also as a part of `persona` as a whole."""
        if caller.is_group:
            return Needs(refused=PROFILE_IN_GROUPS)
        written = _written(value)
        named = written if len(written) <= SAID_CHARS_MAX else "the value below"
        shows = (f"profile: {path} becomes {named}",)
        if not steers(path):
            return Needs(shows=shows)
        return Needs(asks=STEERS, whole=PERSONA_TOO_LONG, shows=shows)

    # What was there is kept, and can be had back.
    @tool(
        "memory",
        Effect.PERSON,
        redo="idempotent",
        needs=_update_profile_needs,
        status="remembering …",
    )
    async def update_profile(
        self,
        caller: Caller,
        path: Annotated[
            str,
            Field(
                min_length=1,
                max_length=PATH_CHARS_MAX,
                description="dotted, such as preferences.units",
            ),
        ],
        value: Annotated[
            JsonValue, Field(description="text, number, list or object; null takes it away")
        ],
        reason: Annotated[str, Field(min_length=1, max_length=REASON_CHARS_MAX)],
    ) -> str:
        """Set a part of the person's profile, such as name, languages or time zone."""
        _check_private(caller)
        if steers(path) and not caller.agreed:
            raise MemoryRefused(f"{STEERS}, and is changed only once the owner has agreed")
        await self._household.check_writable(caller)
        change = await self._profiles.update(
            caller.person_id,
            path.strip(),
            value,
            reason=" ".join(clean(reason).split()),
            run_id=caller.run_id,
        )
        now = "taken away" if change.new is None else f"now {_written(change.new)}"
        before = "" if change.old is None else f" (before: {_written(change.old)})"
        return harmless(f"{change.path} is {now}{before}.")


# --- update_profile ------------------------------------------------------------------------------


def steers(path: str) -> bool:
    """Return whether setting this path may set `persona.system_prompt`, however it is spelt."""
    names = [name for name in map(_folded, path.split(".")) if name]
    return not names or (names[0] == "persona" and names[1:2] in ([], ["system_prompt"]))


def _folded(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if char.isalnum() or char == "_")


def _check_private(caller: Caller) -> None:
    if caller.is_group:
        raise MemoryRefused(PROFILE_IN_GROUPS)


def _written(value: object, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
