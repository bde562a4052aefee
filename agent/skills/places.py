"""The folders that skills stand in, looked through cheaply: only what has changed is read again.

A folder is a skill if it holds SKILL.md. A folder that does not may hold skills itself, one level
deep (`skills/travel/trains/SKILL.md`). Hidden ones are passed over, links are not followed. One
broken folder takes no other down. Called by the library, in a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from agent.skills.parser import FILE_BYTES_MAX, Unreadable
from agent.skills.reader import SkillFile, SkillReading, read_skill
from agent.skills.skill import Problem, Severity, SkillPlace

# --- folder -------------------------------------------------------------------------------------
#
# The folder of a skill on the disk: which files it has, whether they changed, what they hold.
#
# No link is followed, and nothing but regular files is opened. Everything here blocks.

SKILL_FILE = "SKILL.md"
FILES_MAX = 2_000
BYTES_MAX = 20_000_000
DEPTH_MAX = 16

LEFT_OUT = frozenset({".git", "__pycache__", ".DS_Store", "Thumbs.db", "__MACOSX"})
"""What systems and interpreters leave behind: no part of a skill."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Stamp = tuple[str, int, int, int, int]
"""A file below the folder: path with slashes, size in bytes, times of content and inode, inode.

A plain tuple, for these are made and compared by the hundred every two seconds.
"""


def stamps(folder: str, *, files_max: int = FILES_MAX) -> tuple[Stamp, ...]:
    """All files, by path. Of more than `files_max`, that many and one.

    Raises Unreadable for links, devices and folders that are too deep, and OSError.
    """
    found: list[Stamp] = []
    waiting = [("", folder)]
    while waiting and len(found) <= files_max:
        prefix, path = waiting.pop()
        if prefix.count("/") > DEPTH_MAX:
            raise Unreadable(f"its folders are more than {DEPTH_MAX} deep")
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name in LEFT_OUT:
                    continue
                name = prefix + entry.name
                if entry.is_symlink():
                    raise Unreadable(f"{shown(name)} is a link, and links are not followed")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((name + "/", entry.path))
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    times = status.st_mtime_ns, status.st_ctime_ns
                    found.append((name, status.st_size, *times, status.st_ino))
                else:
                    raise Unreadable(f"{shown(name)} is neither a file nor a folder")
    return tuple(sorted(found))


def read_file(path: str, *, bytes_max: int) -> bytes:
    """A regular file's content, at most `bytes_max` and one byte. Raises OSError, Unreadable."""
    handle = os.open(path, _READ)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unreadable(f"{shown(Path(path).name)} is not a regular file")
        return file.read(bytes_max + 1)


def digest(folder: str, files: tuple[Stamp, ...]) -> str:
    """Names the content of all files, wherever the folder stands. Empty for a folder too large.

    Raises OSError and Unreadable.
    """
    if len(files) > FILES_MAX or sum(stamp[1] for stamp in files) > BYTES_MAX:
        return ""
    sums = sha256()
    room = BYTES_MAX
    for name, *_ in files:
        content = read_file(f"{folder}/{name}", bytes_max=room)
        room -= len(content)
        if room < 0:
            raise Unreadable("it grew while it was read")
        for part in (os.fsencode(name), content):
            sums.update(len(part).to_bytes(8, "big") + part)
    return sums.hexdigest()


def shown(name: str) -> str:
    """A name from the disk as text that is safe in a log and in a prompt."""
    return name if name.isprintable() else ascii(name)


SKILLS_MAX = 1_000
"""Folders looked at in one place; what is beyond is reported."""

_QUIET = ("readme", "license", "changelog", "contributing")
_CALLED = {
    SkillPlace.WORKSPACE: ("skills", "workspace/skills"),
    SkillPlace.USER: ("~/.agents/skills", "~/.agents/skills"),
    SkillPlace.SHIPPED: ("shipped/skills", "shipped/skills"),
}
"""What a place is called for the model (as its file tools have it) and for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFolders:
    """Where skills are looked for. `user` is off unless it is set."""

    workspace: Path
    shipped: Path
    user: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedSkill:
    """One folder as it was read. `is_settled`: it was the same at two scans in a row.

    A file that is written within the grain of the file system's clock after it was read keeps its
    times; so whatever looks new is read once more at the next scan.
    """

    files: tuple[Stamp, ...]
    reading: SkillReading
    digest: str = ""
    is_settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceScan:
    """What a scan of a place found: skills by their path, and what is wrong beside them."""

    found: Mapping[str, ScannedSkill] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def scan(place: SkillPlace, root: Path, before: PlaceScan) -> PlaceScan:
    """All skills of a place; those that look as they did `before` are not read again."""
    problems: list[Problem] = []
    found: dict[str, ScannedSkill] = {}
    scanner = _Scanner(place, str(root), problems)
    for n, (name, path) in enumerate(scanner.folders()):
        if n == SKILLS_MAX:
            scanner.report("", f"more than {SKILLS_MAX:,} skills: the rest is left out")
            break
        try:
            files, known = stamps(path), before.found.get(path)
            is_same = known is not None and known.files == files
            if known is None or not (is_same and known.is_settled):
                data = read_file(f"{path}/{SKILL_FILE}", bytes_max=FILE_BYTES_MAX)
                known = ScannedSkill(
                    files=files,
                    reading=read_skill(data, scanner.where(name, path)),
                    digest=digest(path, files),
                    is_settled=is_same,
                )
            found[path] = known
        except FileNotFoundError:
            continue  # Removed since the folder was listed; the next scan says what is there.
        except OSError as error:
            scanner.report(name, f"cannot be read: {error.strerror}")
        except Unreadable as error:
            scanner.report(name, str(error))
    return PlaceScan(found=found, problems=tuple(problems))


@dataclass(frozen=True, slots=True)
class _Scanner:
    """Goes through one place and reports what is no skill."""

    place: SkillPlace
    root: str
    problems: list[Problem]

    def folders(self) -> Iterator[tuple[str, str]]:
        """The path of each skill's folder below the root, and as a whole."""
        for entry in self._entries("", self.root):
            path = self._folder(entry.name, entry)
            if path is None:
                continue
            if os.path.lexists(f"{path}/{SKILL_FILE}"):
                yield entry.name, path
            else:
                yield from self._group(entry.name, path)

    def where(self, name: str, path: str) -> SkillFile:
        location, file = _CALLED[self.place]
        return SkillFile(
            folder_name=name.rpartition("/")[2],
            place=self.place,
            location=f"{location}/{name}/{SKILL_FILE}",
            file=f"{file}/{name}/{SKILL_FILE}",
            folder=Path(path),
        )

    def report(self, name: str, text: str, severity: Severity = Severity.ERROR) -> None:
        file = _CALLED[self.place][1]
        self.problems.append(
            Problem(
                skill=shown(name.rpartition("/")[2]),
                file=f"{file}/{shown(name)}" if name else file,
                text=text,
                severity=severity,
            )
        )

    def _group(self, name: str, path: str) -> Iterator[tuple[str, str]]:
        is_empty = True
        for entry in self._entries(name, path):
            inner = f"{name}/{entry.name}"
            if not os.path.lexists(f"{entry.path}/{SKILL_FILE}"):
                continue
            is_empty = False
            found = self._folder(inner, entry)
            if found is not None:
                yield inner, found
        if is_empty and os.path.lexists(path):
            self.report(name, f"has no {SKILL_FILE}", Severity.WARNING)

    def _entries(self, name: str, path: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(path) as entries:
                visible = [entry for entry in entries if not entry.name.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            self.report(name, f"cannot be read: {error.strerror}")
            return []
        return sorted(visible, key=lambda entry: entry.name)

    def _folder(self, name: str, entry: os.DirEntry[str]) -> str | None:
        """The folder behind an entry, or None after a report."""
        if not name.isprintable():
            self.report(name, "its name has characters that no skill's folder may have")
            return None
        try:
            if entry.is_symlink():
                self.report(name, "is a link, and links are not followed: copy the folder here")
                return None
            if entry.is_dir(follow_symlinks=False):
                return entry.path
        except OSError as error:
            self.report(name, f"cannot be read: {error.strerror}")
            return None
        if not name.casefold().startswith(_QUIET):
            text = f"is a file: a skill is a folder with {SKILL_FILE}"
            self.report(name, text, Severity.WARNING)
        return None
