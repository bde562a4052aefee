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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from memory.database.backup import (
    all_backups,
    connect,
    daily_name,
    half_written,
    make_backup,
    remove_with_companions,
    sync_folder,
)
from memory.database.connection import Database, Work
from memory.database.errors import storage_error
from memory.erasure.places import Key, Place, Search, drop_everything, is_busy
from memory.erasure.verify import all_files
from memory.facts.tombstones import raise_generation
from memory.records.erasure import ForgettingRefused
from memory.records.errors import StorageFull

T = TypeVar("T")

VACUUM_IN_MEMORY_MAX = 64 * 1024 * 1024
"""Bytes of a database that is made anew in memory; a larger one needs a temporary file."""

SPARE_BYTES = 16 * 1024 * 1024
"""What is to stay free on the disk, beside the copies."""

TEXT_BYTES_MAX = 20_000_000
"""Of a file of notes; one that is larger is none."""

ABOUT_THE_OWNER = "USER.md"

_READERS_WAITED_MS = 20


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
        """Whether a file is of the notes of somebody else."""
        folder = self.workspace / "memory"
        if path == self.workspace / ABOUT_THE_OWNER:
            return not is_owner
        if not path.is_relative_to(folder):
            return False
        people = folder / "people"
        if path.is_relative_to(people):
            return is_owner or not path.is_relative_to(people / person_id)
        return not is_owner


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


def check_idle(connection: sqlite3.Connection, search: Search) -> None:
    """Raises ForgettingRefused while a turn that may have read it is not over."""
    if is_busy(connection, search):
        raise ForgettingRefused(BUSY)


def erase_rows(
    connection: sqlite3.Connection,
    search: Search,
    found: Sequence[tuple[Place, Sequence[Key]]],
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


# --- what SQLite keeps of them ---------------------------------------------------------------


def make_anew(connection: sqlite3.Connection) -> None:
    """Rewrites the file without a free page, and its full-text index without a deleted word."""
    connection.execute("insert into exchange_words (exchange_words) values ('optimize')")
    pages, page_bytes = (
        connection.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    # What is built meanwhile holds nothing any more that was to go.
    is_small = pages * page_bytes <= VACUUM_IN_MEMORY_MAX
    connection.execute(f"pragma temp_store = {'memory' if is_small else 'file'}")
    try:
        connection.execute("vacuum")
    finally:
        connection.execute("pragma temp_store = memory")


def empty_wal(connection: sqlite3.Connection) -> bool:
    """Moves all commits into the main file and cuts the `-wal` to nothing. False while a reader
    holds on to an older state; that is found out at once, for writers have to wait meanwhile."""
    usual_ms = connection.execute("pragma busy_timeout").fetchone()[0]
    connection.execute(f"pragma busy_timeout = {min(usual_ms, _READERS_WAITED_MS)}")
    try:
        busy, _, _ = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    finally:
        connection.execute(f"pragma busy_timeout = {usual_ms}")
    return not busy


# --- older copies ----------------------------------------------------------------------------


def renew_backups(database: Database, premises: Premises) -> tuple[Path, list[Path]]:
    """Makes today's backup anew, then removes all older ones and what upgrades set aside.

    Raises StorageError: then the older ones are still there.
    """
    path, folder = database.path, premises.backups
    today = folder / daily_name(path, database.now())
    make_backup(path, today)
    older = [file for file in all_backups(path, folder, now=database.now()) if file != today]
    leftovers = [
        *path.parent.glob(f"{path.name}.creating*"),
        *path.parent.glob(f"{path.name}.upgrading*"),
        *half_written(path, folder),
    ]
    for file in (*older, *leftovers):
        remove_with_companions(file)
    for place in {path.parent, folder}:
        sync_folder(place)
    return today, older


# --- notes, and other files of the workspace -------------------------------------------------


def note_files(premises: Premises, person_id: str, *, is_owner: bool) -> Iterator[Path]:
    """The person's own: their notes, and what the owner tells of themselves."""
    for path in all_files(premises.notes(person_id, is_owner=is_owner)):
        if not premises.is_of_another(path, person_id, is_owner=is_owner):
            yield path
    about = premises.workspace / ABOUT_THE_OWNER
    if is_owner and about.is_file() and not about.is_symlink():
        yield about


def text_of(path: Path) -> str | None:
    """What a file of text says; None when it is none, or gone."""
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
