"""The notes of a person: `MEMORY.md` for what lasts, and one file for each day.

Plain files in the workspace that their person may edit; they become part of prompts
(`agent.library`). Every path goes through `Workspace`, so nothing here leads outside, follows a
link or reaches another person's folder. Used by `agent.tools.notes`; what reads blocks: call it in
a thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from agent.errors import Permanent
from agent.messages import PersonId, Role
from agent.text import clean
from agent.tools.former_files import KeepsFormer, KeptFiles
from agent.tools.tool import Caller, OfFile
from agent.tools.workspace import NOTES, PathMissing, PathRefused, Workspace

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
class DayOfNotes:
    """That there are notes of a day."""

    day: date
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of a text: `added` is what was new of it, empty when all stood there."""

    path: str
    added: str
    of: OfFile


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

    def __init__(self, workspace: Workspace, former: KeepsFormer | None = None) -> None:
        """`former` saves what the notes said before."""
        self._workspace = workspace
        self._kept = KeptFiles(workspace, former)

    def read(self, caller: Caller, day: date | None) -> str:
        """The text, clean; empty when there is none."""
        content = self._workspace.read(path_of(_folder(caller), day), caller, missing=b"")
        return clean(content.decode("utf-8-sig", "replace")).strip()

    def days(self, caller: Caller) -> Sequence[DayOfNotes]:
        """Those that have notes, the newest first."""
        return sorted(self._days(caller), key=lambda found: found.day, reverse=True)

    def _days(self, caller: Caller) -> Iterator[DayOfNotes]:
        folder = _folder(caller)
        for month in self._names(folder, caller):
            if not _MONTH.fullmatch(month):
                continue
            for entry in self._workspace.entries(f"{folder}/{month}", caller).entries:
                day = _day_of(entry.name) if entry.kind == "file" else None
                if day is not None and f"{day:%Y%m}" == month:
                    yield DayOfNotes(day=day, size_bytes=entry.size_bytes)

    def _names(self, folder: str, caller: Caller) -> Sequence[str]:
        try:
            listing = self._workspace.entries(folder, caller)
        except PathMissing:  # nothing was noted yet
            return ()
        return [entry.name for entry in listing.entries if entry.kind == "folder"]

    async def add(self, caller: Caller, text: str, day: date | None) -> Added:
        """Adds what is new in a text at the end, and nothing that stands there word for word.

        So a text that is added twice, also by a call that a kill interrupted, stands there once
        (case ME-05).
        """
        path = path_of(_folder(caller), day)
        added = ""

        def longer(former: bytes) -> bytes | None:
            nonlocal added
            known = _decoded(former, path)
            added = news_of(known, clean(text), day=day)
            if not added:
                return None
            _check_room(known, added, path)
            return former + _joint(former) + added.encode() + b"\n"

        _, of = await self._kept.change(path, caller, longer, missing=b"")
        return Added(path=path, added=added, of=of)


def _folder(caller: Caller) -> str:
    if caller.is_group:
        raise NotesRefused("notes are private, and closed in group chats")
    return folder_of(caller.person_id, caller.role)


def _decoded(content: bytes, path: str) -> str:
    """What is there already. A file in another encoding is left alone rather than mixed."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PathRefused(f"{path!r} is not UTF-8 text, so nothing was added to it") from error


def _check_room(known: str, added: str, path: str) -> None:
    if len(known) + len(added) + 2 > FILE_CHARS_MAX:
        raise NotesRefused(
            f"{path} is full ({len(known):,} characters; at most {FILE_CHARS_MAX:,}): nothing was "
            "added. The person may shorten it"
        )


def _joint(former: bytes) -> bytes:
    """One empty line before what is added: an entry of its own."""
    if not former.strip():
        return b""
    if former.endswith((b"\n\n", b"\n\r\n")):
        return b""
    return b"\n" if former.endswith(b"\n") else b"\n\n"


def _day_of(name: str) -> date | None:
    if not _DAY.fullmatch(name):
        return None
    try:
        return datetime.strptime(name, "%Y%m%d.md").date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return None


_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MONTH = re.compile(r"[0-9]{6}")
_DAY = re.compile(r"[0-9]{8}\.md")


# --- what is new in a text -----------------------------------------------------------------------


def news_of(known: str, text: str, *, day: date | None) -> str:
    """What of `text` does not stand in `known` word for word, entry by entry.

    An entry that is known goes; one that begins with a known one loses that beginning. A heading
    that only names the day goes as well: the file is named after it. Text with a block of code
    stays whole, or goes whole. Added to `known`, nothing of `text` is new any more.
    """
    known_ones = _Known(known)
    if _FENCE.search(text):
        return "" if known_ones.holds(_lines(text.strip())) else text.strip()
    fresh: list[Entry] = []
    for entry in _entries(text):
        names_day = day is not None and _names_day(entry[0], day)
        if left := known_ones.without(entry[1:] if names_day else entry):
            fresh.append(left)
            known_ones.learn(left)
    return "\n\n".join("\n".join(entry) for entry in fresh)


class _Known:
    """What stands in a text already, and what will."""

    def __init__(self, text: str) -> None:
        self._text = _block(_lines(text))
        self._entries: dict[str, list[Entry]] = {}
        for entry in _entries(text):
            self._entries.setdefault(entry[0], []).append(entry)

    def holds(self, lines: Entry) -> bool:
        """Whether lines stand there, one after the other."""
        return not lines or _block(lines) in self._text

    def learn(self, entry: Entry) -> None:
        """From now on it stands there."""
        self._text += _block(entry)
        self._entries.setdefault(entry[0], []).append(entry)

    def without(self, entry: Entry) -> Entry:
        """The entry without the known ones that it begins with; empty when nothing is left."""
        left = entry
        while not self.holds(left):
            first = self._longest(left)
            if not first:
                left = self._below_heading(left)
                break
            left = left[len(first) :]
        return () if self.holds(left) else left

    def _below_heading(self, entry: Entry) -> Entry:
        """The same for what stands below a new heading; where all of that is known, the whole
        entry is kept: it may be an old line under a new head."""
        if not entry[0].startswith("#"):
            return entry
        first = self._longest(entry[1:])
        rest = entry[1 + len(first) :]
        return (entry[0], *rest) if rest else entry

    def _longest(self, lines: Entry) -> Entry:
        """The longest known entry that these lines begin with."""
        ones = self._entries.get(lines[0], ()) if lines else ()
        return max((one for one in ones if lines[: len(one)] == one), key=len, default=())


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
    """Whether a line is a heading that says which day it is, and nothing else."""
    if not line.startswith("#"):
        return False
    words = re.findall(r"[^\W\d_]+|\d+", line.casefold())
    numbers = {int(word) for word in words if word.isdecimal()}
    others = {word for word in words if not word.isdecimal()}
    is_date = {day.year, day.day} <= numbers or int(f"{day:%Y%m%d}") in numbers
    names = {f"{day:%A}", f"{day:%a}", f"{day:%B}", f"{day:%b}"}
    return is_date and others <= {name.casefold() for name in names} | _DAY_WORDS


_DAY_WORDS = frozenset({"notes", "note", "daily", "log", "of", "for", "th", "st", "nd", "rd"})
