"""Consistent copies of the file: made while the bot runs, verified, and kept for three days.

Everything here blocks: `Database` calls it in a thread.

Copies are ranked by the day in their names. One of a day still to come ranks last, since a wrong
clock named it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable
from contextlib import closing, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory.database.errors import storage_error
from memory.records.errors import StorageCorrupt, StorageError

APPLICATION_ID = 0x48524254
"""Stands in the header of each of our files ("HRBT"); any other file is refused."""

BACKUPS_KEPT = 3

_making = threading.Lock()
"""Held while a copy is made: a half-written one without it was left by a dead process."""


def folder_of(path: Path) -> Path:
    """Where the daily backups of a database lie."""
    return path.parent / "backups"


def daily_name(path: Path, now: datetime) -> str:
    """`hearthbot-20260801.db`: one a day, in UTC."""
    return f"{path.stem}-{now:%Y%m%d}{path.suffix}"


def all_backups(path: Path, folder: Path, *, now: datetime | None = None) -> list[Path]:
    """The daily backups, newest first, then what an upgrade has set aside. `now` is the machine's
    time unless given."""
    pattern = f"{path.stem}-{'[0-9]' * 8}{path.suffix}"
    # One day ahead may be another time zone, or a clock that is being corrected in small steps.
    last = daily_name(path, (now or datetime.now(UTC)) + timedelta(days=1))
    daily = sorted(folder.glob(pattern), key=lambda f: (f.name <= last, f.name), reverse=True)
    aside = sorted(path.parent.glob(f"{path.name}.before-*"), reverse=True)
    return [*daily, *(file for file in aside if file.name.rpartition("-")[2].isdigit())]


def newest_good(path: Path, folder: Path, *, now: datetime | None = None) -> Path | None:
    """The newest backup that can be read and is whole."""
    return next((file for file in all_backups(path, folder, now=now) if is_good(file)), None)


def make_backup(source: Path | sqlite3.Connection, to: Path) -> None:
    """Copy a database, given by its path or open, to `to`, which appears only once the copy is
    verified.

    Raises StorageError.
    """
    making = to.with_name(f"{to.name}.making")
    try:
        with _making:
            to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                copy_database(source, making)
                # The daily backup doubles as the daily full check: the copy is checked, not the
                # live file.
                with closing(connect(making)) as connection:
                    if found := problems(connection, "integrity_check"):
                        raise _not_verified(making, found)
                sync_file(making)
                making.replace(to)
                sync_folder(to.parent)
            finally:
                remove_with_companions(making)
    except (sqlite3.Error, OSError) as error:
        found_error = storage_error(error, to)
        if isinstance(found_error, StorageCorrupt):
            raise _not_verified(to, str(error)) from error
        raise found_error from error


def remove_older(path: Path, folder: Path, *, now: datetime) -> None:
    """Remove all but the newest BACKUPS_KEPT daily backups, and remains of unfinished copies.
    Raises StorageError for what cannot be removed, once the others are gone."""
    daily = [file for file in all_backups(path, folder, now=now) if file.parent == folder]
    with _making:
        remove_files([*daily[BACKUPS_KEPT:], *half_written(path, folder)])


def half_written(path: Path, folder: Path) -> list[Path]:
    """Copies being made, or left by a process that died, with the files SQLite put beside them."""
    return list(folder.glob(f"{path.stem}-*.making*"))


def remove_files(files: Iterable[Path]) -> None:
    """Remove each file on its own. Raises StorageError, which names the first that stays."""
    left: list[str] = []
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            left.append(f"{file} ({error.strerror})")
    if left:
        more = f", and {len(left) - 1} more," if len(left) > 1 else ""
        raise StorageError(
            f"{left[0]}{more} could not be removed. Remove what you no longer want, or make the "
            "bot's user the owner of it and its folder."
        )


# --- files -----------------------------------------------------------------------------------


def connect(path: Path, *, mode: str = "rw", timeout_s: float = 5.0) -> sqlite3.Connection:
    """A plain connection. `rw` never makes a file: a missing one is an error."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        cached_statements=256,
    )


def new_file(path: Path) -> None:
    """Makes an empty file that only its owner can read, in place of any leftover."""
    remove_with_companions(path)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def copy_database(source: Path | sqlite3.Connection, to: Path) -> None:
    """A copy as of one moment, in one file without a `-wal` beside it; not yet synced."""
    new_file(to)
    opened = closing(connect(source)) if isinstance(source, Path) else nullcontext(source)
    with opened as connection, closing(connect(to)) as target:
        target.execute("pragma synchronous = off")
        connection.backup(target)
        target.execute("pragma journal_mode = delete")


def remove_with_companions(path: Path) -> None:
    """Removes a file of ours that is not (or no longer) in use, with what SQLite put beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Waits until the file's content is on the disk."""
    _sync(path, os.O_RDWR)


def sync_folder(folder: Path) -> None:
    """Waits until the folder's names are on the disk."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _not_verified(file: Path, why: str) -> StorageCorrupt:
    return StorageCorrupt(
        f"The backup {file} did not verify ({why}); the older ones are kept. The database itself "
        "may be damaged: restart the bot, it checks the file."
    )


def problems(connection: sqlite3.Connection, check: str) -> str:
    """The first finding of `quick_check` or `integrity_check`; empty when all is well."""
    try:
        found = str(connection.execute(f"pragma {check}(1)").fetchone()[0])
    except UnicodeDecodeError:
        # What it says quotes what is damaged, and that is no text any more.
        return "malformed database schema"
    # The line before it names the database, of which there is one.
    return "" if found == "ok" else found.splitlines()[-1]


def is_ours(connection: sqlite3.Connection) -> bool:
    """Return whether the file carries our mark."""
    return bool(connection.execute("pragma application_id").fetchone()[0] == APPLICATION_ID)


def is_good(file: Path, *, mode: str = "ro") -> bool:
    """Return whether a file can be read, is ours and is whole."""
    try:
        with closing(connect(file, mode=mode)) as connection:
            return is_ours(connection) and not problems(connection, "quick_check")
    except sqlite3.Error:
        return False


# --- what SQLite keeps of erased rows -------------------------------------------------------------

VACUUM_IN_MEMORY_MAX = 64 * 1024 * 1024
"""Bytes of a database that is made anew in memory; a larger one needs a temporary file."""

_READERS_WAITED_MS = 20


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


def renew_backups(path: Path, folder: Path, now: datetime) -> tuple[Path, list[Path]]:
    """Makes today's backup anew, then removes all older ones and what upgrades set aside.

    Raises StorageError: then the older ones are still there.
    """
    today = folder / daily_name(path, now)
    make_backup(path, today)
    older = [file for file in all_backups(path, folder, now=now) if file != today]
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
