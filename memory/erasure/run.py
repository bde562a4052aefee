"""Erases for good: rows, and after them whatever SQLite, older copies and files still hold of them.

Each function may be repeated. Called by `memory.erasure.erase`, in the order in which they stand
here.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from memory.database.backup import (
    connect,
    sync_folder,
)
from memory.database.connection import Work
from memory.database.errors import storage_error
from memory.database.premises import text_of
from memory.erasure.places import ErasurePlace, Key, PlaceSearch, drop_everything, is_busy
from memory.facts.tombstones import raise_generation
from memory.records.erasure import ForgettingRefused
from memory.records.errors import StorageFull

T = TypeVar("T")

SPARE_BYTES = 16 * 1024 * 1024
"""What is to stay free on the disk, beside the copies."""

# --- rows ------------------------------------------------------------------------------------

BUSY = (
    "A message of this person is being answered, or an answer of theirs is waited for "
    "(`/approve`, `/agents`). What is in use cannot be erased under it, so nothing was. Say it "
    "again once that is done; `/stop` ends it."
)


def check_space(path: Path, *, free: int | None = None) -> None:
    """Raises StorageFull unless there is room for the copies that forgetting makes; `free` are
    the bytes there are, else the disk is asked.

    The database is written anew once into the `-wal`, and once into a backup.
    """
    wanted = 2 * path.stat().st_size + SPARE_BYTES
    free = shutil.disk_usage(path.parent).free if free is None else free
    if free < wanted:
        raise StorageFull(
            f"Forgetting writes the database anew, and a backup: that takes {_mb(wanted)} MB on "
            f"the disk of {path.parent}, and {_mb(free)} MB are free. Nothing was erased. Free "
            "some space, and say it again."
        )


def check_idle(connection: sqlite3.Connection, search: PlaceSearch) -> None:
    """Raises ForgettingRefused while a turn that may have read it is not over."""
    if is_busy(connection, search):
        raise ForgettingRefused(BUSY)


def erase_rows(
    connection: sqlite3.Connection,
    search: PlaceSearch,
    found: Sequence[tuple[ErasurePlace, Sequence[Key]]],
) -> None:
    """Erases what was found, in the caller's transaction, which stands or falls as a whole.

    Raises ForgettingRefused.
    """
    check_idle(connection, search)
    raise_generation(connection)
    if search.wording.everything:
        drop_everything(connection, search)
    for place, keys in found:
        if keys:
            place.erase(connection, search, keys)


# --- notes, and other files of the workspace -------------------------------------------------


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


_TRIES = 5


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


def _mb(size: int) -> int:
    return -(-size // 1_000_000)


# --- looking without holding anybody up ------------------------------------------------------


def looking(path: Path, work: Work[T]) -> T:
    """Runs `work` on a connection of its own that only reads. Raises StorageError."""
    try:
        connection = connect(path, mode="ro")
        try:
            connection.execute("begin")
            return work(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise storage_error(error, path) from error
