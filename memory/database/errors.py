"""What SQLite and the file system report, as errors of ours with a sentence for the owner."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from memory.records.errors import (
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
)

_CODES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), sqlite3.SQLITE_FULL),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST),
        sqlite3.SQLITE_READONLY,
    ),
}


def storage_error(error: sqlite3.Error | OSError, path: Path) -> StorageError:
    """Return the error to raise in place of `error`. The text never holds stored data."""
    if isinstance(error, OSError):
        code, why = _CODES.get(error.errno or 0, 0), str(error.strerror)
    else:
        # Extended codes (SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_FSYNC, ...) keep the plain one in 8
        # bits.
        code, why = getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error)
        if is_damage(error):
            return StorageCorrupt(
                f"{path} is damaged ({error}). Restart the bot: it checks the file and names "
                "the newest good backup."
            )
    match code:
        case sqlite3.SQLITE_FULL:
            return StorageFull(
                f"No space is left for {path}; the change was not made and what was stored is "
                "intact. Free some space: the bot goes on by itself."
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageLocked(
                f"Another program holds the write lock of {path}; nothing was written. "
                "Close whatever has the file open (a database browser, a second bot)."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StorageReadOnly(
                f"{path} cannot be opened for writing ({why}). Make the file and its folder "
                f"{path.parent} writable for the user that runs the bot."
            )
        case sqlite3.SQLITE_IOERR:
            return StorageError(
                f"The disk failed while {path} was used ({why}); the change was not made. "
                "Look at the disk, then restart the bot."
            )
        case _ if isinstance(error, OSError):
            return StorageError(
                f"{path} could not be used ({why}). Look at the disk, then restart the bot."
            )
        case _:
            return StorageError(f"The database {path} refused a change: {why}.")


def is_damage(error: Exception | None) -> bool:
    """Return whether the file itself is broken, or its `-wal` is cut short."""
    code = getattr(error, "sqlite_errorcode", 0)
    broken = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
    return code & 0xFF in broken or code == sqlite3.SQLITE_IOERR_SHORT_READ
