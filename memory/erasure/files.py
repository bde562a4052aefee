"""Files that forgetting writes: what is under way, and texts of the workspace without the words.

Everything here blocks; called by `memory.erasure.erase` in a thread.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from memory.database.backup import sync_folder
from memory.database.premises import text_of
from memory.erasure.verify import Wording
from memory.records.codec import from_json
from memory.records.erasure import ForgetWish
from memory.records.errors import StorageFull

log = structlog.get_logger()

NAME = "forgetting.json"
SPARE_BYTES = 16 * 1024 * 1024
"""What is to stay free on the disk, beside the copies."""
_TRIES = 5


@dataclass(frozen=True, slots=True)
class ForgetNote:
    """What is being forgotten, written down while it is: the one file that still holds the words.
    It is overwritten and removed at the end. At most one wish is under way at a time."""

    path: Path

    def write(self, wish: ForgetWish, wording: Wording) -> None:
        """On the disk once this returns: before anything is erased. Raises OSError."""
        # A worded form of the same name is never seen half.
        making = self.path.with_name(f"{self.path.name}.writing")
        making.unlink(missing_ok=True)
        handle = os.open(making, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"wish": asdict(wish), "wording": asdict(wording)}, file)
            file.flush()
            os.fsync(file.fileno())
        making.replace(self.path)
        sync_folder(self.path.parent)

    def read(self) -> tuple[ForgetWish, Wording] | None:
        """Return what is under way; None when nothing is. Raises OSError.

        A file that cannot be read is set aside: it was written whole, so something else damaged it,
        and whoever looks into it may see what was to be forgotten.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            found = json.loads(data)
            wish, wording = found["wish"], found["wording"]
            return from_json(ForgetWish, wish), from_json(Wording, wording)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            number = 1
            while (aside := self.path.with_name(f"{self.path.stem}.damaged-{number}")).exists():
                number += 1
            self.path.rename(aside)
            sync_folder(self.path.parent)
            log.error(
                "forgetting.unreadable",
                file=str(aside),
                why=type(error).__name__,
                hint="What was being forgotten cannot be told from it. Say it again, "
                "then remove it.",
            )
            return None

    def remove(self) -> None:
        """Its words go too: overwritten where the file system lets them be, then removed."""
        self.path.with_name(f"{self.path.name}.writing").unlink(missing_ok=True)
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return
        with self.path.open("r+b") as file:
            file.write(b"\0" * size)
            file.flush()
            os.fsync(file.fileno())
        self.path.unlink()
        sync_folder(self.path.parent)


def check_space(path: Path, *, free: int | None = None) -> None:
    """Raises StorageFull unless there is room for the copies that forgetting makes; `free` are
    the bytes there are, else the disk is asked.

    The database is written anew once into the `-wal`, and once into a backup.
    """
    wanted = 2 * path.stat().st_size + SPARE_BYTES
    free = shutil.disk_usage(path.parent).free if free is None else free
    if free < wanted:
        needed, there = (-(-size // 1_000_000) for size in (wanted, free))
        raise StorageFull(
            f"Forgetting writes the database anew, and a backup: that takes {needed} MB on the "
            f"disk of {path.parent}, and {there} MB are free. Nothing was erased. Free some space, "
            "and say it again."
        )


def clean_file(path: Path, change: Callable[[str], str]) -> bool:
    """Replaces a text file as a whole by what `change` makes of it; whether anything changed.

    A file without text left is removed. Somebody who writes to it meanwhile wins, and it is looked
    at again.
    """
    for _ in range(_TRIES):
        before = _stamp(path)
        text = text_of(path)
        if text is None or before is None:
            return False
        changed = change(text)
        if changed == text:
            return False
        if _replaced(path, changed, before):
            return True
    return False


def _replaced(path: Path, text: str, before: tuple[int, int, int]) -> bool:
    if not text.strip():
        if _stamp(path) != before:
            return False
        path.unlink(missing_ok=True)
        return True
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    making = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if _stamp(path) != before:
            return False
        making.chmod(stat.S_IMODE(path.stat().st_mode))
        making.replace(path)
        sync_folder(path.parent)
    finally:
        making.unlink(missing_ok=True)
    return True


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
