"""Opens the file with care: checked, brought up to date, and never an empty one for a full one.

Everything here blocks: it runs in the writer's thread, before anything else does.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import struct
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory.database.backup import (
    APPLICATION_ID,
    all_backups,
    connect,
    is_good,
    is_ours,
    new_file,
    newest_good,
    problems,
    remove_with_companions,
    sync_file,
    sync_folder,
)
from memory.database.errors import is_damage, storage_error
from memory.database.migrate import Migration, apply, upgrade, version_of
from memory.records.errors import StorageCorrupt, StorageError

CHECKED_BYTES_MAX = 200 * 1024 * 1024
"""Up to this size the whole file is checked before it is used (about a second at the most)."""

_WAL_HEADER_BYTES = 32
_WAL_FRAME_HEADER_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasePlace:
    """What to open, and how."""

    path: Path
    backups: Path
    steps: tuple[Migration, ...]
    busy_timeout_s: float
    now: datetime | None = None
    """The machine's time unless given."""

    @property
    def wal(self) -> Path:
        """The file of commits that are not yet in the main file."""
        return self.path.with_name(f"{self.path.name}-wal")


def open_writer(opening: DatabasePlace) -> sqlite3.Connection:
    """The connection that writes. Raises StorageError."""
    try:
        _make_or_examine(opening)
        connection = _checked(opening)
        if version_of(connection) < len(opening.steps):
            connection.close()
            upgrade(opening.path, opening.steps, timeout_s=opening.busy_timeout_s)
            connection = _checked(opening)
        return connection
    except (sqlite3.Error, OSError) as error:
        found = storage_error(error, opening.path)
        if isinstance(found, StorageCorrupt):
            raise damaged(opening, str(error)) from error
        raise found from error


def open_reader(opening: DatabasePlace) -> sqlite3.Connection:
    """A connection beside the writer that cannot write. Raises StorageError."""
    try:
        connection = connect(opening.path, timeout_s=opening.busy_timeout_s)
        connection.execute("pragma query_only = on")
    except sqlite3.Error as error:
        raise storage_error(error, opening.path) from error
    return connection


# --- before SQLite sees it -------------------------------------------------------------------


def _make_or_examine(opening: DatabasePlace) -> None:
    size = opening.path.stat().st_size if opening.path.exists() else None
    if size:
        _examine_length(opening, size)
        return
    if opening.wal.exists() or all_backups(opening.path, opening.backups, now=opening.now):
        raise damaged(opening, "it is missing" if size is None else "it is empty")
    # A new file, complete before it gets its name, so that a kill leaves none or a whole one.
    path = opening.path
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    making = path.with_name(f"{path.name}.creating")
    new_file(making)
    with closing(connect(making)) as connection:
        # Nothing can be lost yet: one sync at the end is enough.
        connection.execute("pragma synchronous = off")
        connection.execute("pragma journal_mode = memory")
        connection.execute("pragma auto_vacuum = incremental")
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        apply(connection, opening.steps)
        connection.execute("pragma journal_mode = wal")
    sync_file(making)
    making.replace(path)
    remove_with_companions(making)
    sync_folder(path.parent)


def _examine_length(opening: DatabasePlace, size: int) -> None:
    """Refuses a file whose last page is cut short: SQLite would read the rest as zeros.

    A kill or power cut while commits move from the `-wal` may leave that, harmlessly: then the
    page stands in the `-wal` as well.
    """
    if opening.path.is_dir():
        return
    with opening.path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        if 1 in _pages_in_wal(opening.wal, _page_bytes_of(opening.wal)):
            return  # which SQLite reads in its place
        raise damaged(opening, "it does not begin like a database")
    (page_bytes,) = struct.unpack(">H", header[16:18])
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    if page_bytes < 512:
        raise damaged(opening, "its header makes no sense")
    last_page, cut = divmod(size, page_bytes)
    if cut and last_page + 1 not in _pages_in_wal(opening.wal, page_bytes):
        raise damaged(opening, "its end is cut off")


def _page_bytes_of(wal: Path) -> int:
    """As its header says (sqlite.org/fileformat.html#walformat, bytes 8 to 11); 0 without one."""
    try:
        with wal.open("rb") as file:
            return int.from_bytes(file.read(12)[8:], "big")
    except OSError:
        return 0


def _pages_in_wal(wal: Path, page_bytes: int) -> set[int]:
    if not page_bytes or not wal.exists():
        return set()
    pages: set[int] = set()
    with wal.open("rb") as file:
        file.seek(_WAL_HEADER_BYTES)
        while len(frame := file.read(_WAL_FRAME_HEADER_BYTES)) == _WAL_FRAME_HEADER_BYTES:
            pages.add(struct.unpack(">I", frame[:4])[0])
            file.seek(page_bytes, 1)
    return pages


# --- with SQLite -----------------------------------------------------------------------------


def _checked(opening: DatabasePlace) -> sqlite3.Connection:
    connection = connect(opening.path, timeout_s=opening.busy_timeout_s)
    try:
        if not is_ours(connection):
            raise damaged(opening, "it is not a database of Hearthbot")
        found = version_of(connection)
        if found > len(opening.steps):
            raise StorageError(
                f"{opening.path} was written by a newer Hearthbot (step {found}; this one knows "
                f"{len(opening.steps)}). It was left as it is. Start the newer version."
            )
        if opening.path.stat().st_size <= CHECKED_BYTES_MAX and (
            trouble := problems(connection, "quick_check")
        ):
            raise damaged(opening, trouble)
        for pragma in (
            "journal_mode = wal",
            "synchronous = full",
            "foreign_keys = on",
            "secure_delete = on",
            "temp_store = memory",
            "journal_size_limit = 16777216",
        ):
            connection.execute(f"pragma {pragma}")
        # Finds out now, not at the first message, whether the file can be written.
        connection.execute("begin immediate")
        connection.execute("rollback")
    except BaseException:
        connection.close()
        raise
    return connection


def damaged(opening: DatabasePlace, what: str) -> StorageCorrupt:
    """Return the error to raise, with the newest good backup and how to put it back."""
    path = opening.path
    backup = newest_good(path, opening.backups, now=opening.now)
    if backup is None:
        return StorageCorrupt(
            f"{path} cannot be used: {what}. It was left in place. There is no good backup in "
            f"{opening.backups}. Put back a copy of your own; or, to begin with an empty memory, "
            f"move {path.name}* and {opening.backups.name} out of {path.parent}."
        )
    return StorageCorrupt(
        f"{path} cannot be used: {what}. It was left in place. The newest good backup is {backup}. "
        f"To go on with it, stop the bot, then: {put_back(path, backup)}"
    )


def harmed(opening: DatabasePlace, what: str) -> StorageCorrupt:
    """The error to raise for a file that was harmed while it was in use. Where the main file is
    whole by itself, a start goes on with it and with what can be read of the `-wal`."""
    if not is_good(opening.path, mode="ro&immutable=1"):
        return damaged(opening, what)
    return StorageCorrupt(
        f"{opening.wal} is damaged: {what}. {opening.path} itself is whole. Start the bot again: "
        "it goes on with that. What was stored last may be missing."
    )


def put_back(path: Path, backup: Path) -> str:
    """Return the command that sets aside what is there and puts a backup in its place."""
    wal = path.with_name(f"{path.name}-wal")
    there = [shlex.quote(str(file)) for file in (wal, path)]
    aside = "".join(f"test ! -e {file} || mv {file} {file}.damaged; " for file in there)
    return f"{aside}cp -p {shlex.quote(str(backup))} {shlex.quote(str(path))}"


# --- soundness ----------------------------------------------------------------------------------
#
# Notices while the bot runs that its file was damaged, deleted or replaced by somebody else.
#
# Everything here blocks: `Database` calls it in a thread. Nothing opens the file but SQLite itself:
# where another handle on it is closed, the system drops SQLite's locks with it.

CONFIRM_S = 1.0
"""Pause after a finding before it is checked again."""

REST = 50
"""Seconds without a check for each second that one took: 2 % of the time at most."""


class Soundness:
    """Watches a file that was just opened and checked.

    SQLite never swaps the file or its `-wal` while they are open: commits, checkpoints, VACUUM and
    copies all leave them where they are. So another file under either name was put there by
    somebody else. What is in them is checked on a connection of its own, which has no page of them
    in memory yet, whenever they were written since the last check.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = (path, path.with_name(f"{path.name}-wal"))
        self._first = [file.stat().st_ino for file in self._files]
        self._checked = self._state()
        self.look_after()
        self._rests_until = 0.0
        self._is_over = False

    def look(self) -> str:
        """Return what is wrong now, in a few words; empty if all is well, or it cannot be told."""
        if not self._found():
            return ""
        time.sleep(CONFIRM_S)
        self._rests_until = 0.0
        return self._found()

    def look_before(self) -> str:
        """As `look`, where there is reason to: for before each commit. A file that is gone, another
        one or shorter than after the last commit was touched by somebody else."""
        now = zip(self._stats(), self._first, self._sizes, strict=False)
        as_left = [one.st_ino == first and one.st_size >= size for one, first, size in now]
        if as_left == [True, True]:
            return ""
        self._rests_until = 0.0
        return self.look()

    def look_after(self) -> None:
        """Remember how long the files are, after each commit: it may have moved the `-wal` into the
        main file, or given space back."""
        self._sizes = [one.st_size for one in self._stats()] or [0, 0]

    def moved(self) -> str:
        """Return which file was deleted or replaced since it was opened; empty if neither."""
        for file, first in zip(self._files, self._first, strict=True):
            try:
                now = file.stat().st_ino
            except FileNotFoundError:
                return f"{file.name} was deleted while the bot ran"
            except OSError:
                return ""  # out of reach, perhaps only for now
            if now != first:
                return f"{file.name} was replaced by another file while the bot ran"
        return ""

    def end(self) -> None:
        """End a check that is under way, as the bot stops."""
        self._is_over = True

    def _found(self) -> str:
        if moved := self.moved():
            return moved
        state = self._state()
        if state == self._checked or time.monotonic() < self._rests_until:
            return ""
        began = time.monotonic()
        try:
            if not self._path.stat().st_size:
                return "it was emptied"  # SQLite would then remove the `-wal`
            with closing(connect(self._path)) as connection:
                connection.set_progress_handler(lambda: self._is_over, 10_000)
                found = problems(connection, "quick_check")
        except (sqlite3.Error, OSError) as error:
            found = str(error) if is_damage(error) else ""
        ended = time.monotonic()
        self._rests_until = ended + REST * (ended - began)
        if not found:
            self._checked = state
        return found

    def _stats(self) -> list[os.stat_result]:
        """Return one for each file; none if they are out of reach."""
        try:
            return [file.stat() for file in self._files]
        except OSError:
            return []

    def _state(self) -> list[tuple[int, int]]:
        """Return sizes and times that change with every write."""
        return [(one.st_size, one.st_mtime_ns) for one in self._stats()]
