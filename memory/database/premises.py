"""Where things lie in a home: whose notes are whose, and files of text that are read with care."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TEXT_BYTES_MAX = 20_000_000
"""Of a file of notes; one that is larger is none."""

ABOUT_THE_OWNER = "USER.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """Where things lie: the home, and in it the workspace and the daily backups."""

    root: Path
    workspace: Path
    backups: Path

    def notes(self, person_id: str, *, is_owner: bool) -> Path:
        """The folder of a person's notes."""
        folder = self.workspace / "memory"
        return folder if is_owner else folder / "people" / person_id

    def is_of_another(self, path: Path, person_id: str, *, is_owner: bool) -> bool:
        """Return whether a file is of the notes of somebody else."""
        folder = self.workspace / "memory"
        if path == self.workspace / ABOUT_THE_OWNER:
            return not is_owner
        if not path.is_relative_to(folder):
            return False
        people = folder / "people"
        if path.is_relative_to(people):
            return is_owner or not path.is_relative_to(people / person_id)
        return not is_owner


def note_files(premises: Premises, person_id: str, *, is_owner: bool) -> Iterator[Path]:
    """The person's own: their notes, and what the owner tells of themselves."""
    for path in all_files(premises.notes(person_id, is_owner=is_owner)):
        if not premises.is_of_another(path, person_id, is_owner=is_owner):
            yield path
    about = premises.workspace / ABOUT_THE_OWNER
    if is_owner and about.is_file() and not about.is_symlink():
        yield about


def text_of(path: Path) -> str | None:
    """Return what a file of text says; None when it is none, or gone."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > TEXT_BYTES_MAX:
            return None
        try:
            return file.read().decode("utf-8")
        except UnicodeDecodeError:
            return None


def all_files(root: Path) -> Iterator[Path]:
    """Plain files below a folder, sorted; links, sockets and pipes are none."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            try:
                is_file = stat.S_ISREG(path.lstat().st_mode)
            except OSError:
                continue
            if is_file:
                yield path
