"""A file replaced as a whole. Called by `agent.tools.workspace` alone.

All of it blocks. Names are relative to a handle on their folder, so that no link leads elsewhere.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_MODE = 0o600
_MODE_BITS = 0o777


class ChangedMeanwhile(Exception):
    """A file is no longer the one that was read; nothing was written."""


def replace(
    name: str, folder: int, content: bytes, *, is_due: Callable[[os.stat_result | None], bool]
) -> None:
    """Atomic: after a kill there is the old content or the new one. A link swapped in under `name`
    is replaced itself. Who may read, write and run a file stays as it was; a new one is for the
    owner of the process alone.

    Raises OSError, and ChangedMeanwhile where `is_due` refuses the file that is there at the last
    moment; then nothing was written."""
    part = f".{secrets.token_hex(8)}.part"
    try:
        handle = os.open(part, _CREATE, _NEW_MODE, dir_fd=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            former = _status(name, folder)
            if former is not None and stat.S_ISREG(former.st_mode):
                # Without setuid and its kin. Some file systems, such as FAT, have one mode and take
                # no other: asked for what is there already, they are not asked.
                mode = former.st_mode & _MODE_BITS
                if os.fstat(file.fileno()).st_mode & _MODE_BITS != mode:
                    os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        # Looked at last of all, so that hardly anything fits in between.
        if not is_due(_status(name, folder)):
            raise ChangedMeanwhile
        os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except (OSError, ChangedMeanwhile):
        with suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise
    os.fsync(folder)


def is_leftover(name: str) -> bool:
    """Return whether a file is a write that a kill interrupted."""
    return re.fullmatch(r"\.[0-9a-f]{16}\.part", name) is not None


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return None


def is_same(now: os.stat_result | None, former: os.stat_result | None) -> bool:
    """Return whether a file is still the one that was looked at; None where there was none."""
    if now is None or former is None:
        return now is former
    seen = ("st_dev", "st_ino", "st_mtime_ns", "st_size")
    return all(getattr(now, name) == getattr(former, name) for name in seen)


# --- beside -------------------------------------------------------------------------------------
#
# Files of the home that lie beside the workspace: settings, database, backups, logs. A hard link
# gives such a file a second name in the workspace, where no path shows that it leads outside.
#
# Called by the workspace and by the confinement of programs. Functions block: call them in a
# thread.

FileId = tuple[int, int]
"""Device and number: the same file under whichever name."""

ENTRIES_MAX = 200_000


class TooMuchBeside(Exception):
    """The home holds more than can be looked through."""


def id_of(status: os.stat_result) -> FileId:
    """Return which file this is."""
    return status.st_dev, status.st_ino


def many_named(home: Path, workspace: Path) -> frozenset[FileId]:
    """The files below `home`, without those below `workspace`, that have more than one name: as a
    rule none. Both are real paths. Raises TooMuchBeside, for what was not looked at is not known.
    """
    return frozenset(
        id_of(status)
        for status in _files(home, workspace)
        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode)
    )


def _files(home: Path, workspace: Path) -> Iterator[os.stat_result]:
    waiting, seen = [str(home)], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if not entry.is_dir(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False)
                    elif entry.path != str(workspace):
                        waiting.append(entry.path)
        except OSError:
            continue  # gone meanwhile, or closed to us and so to whoever acts through us
        if seen > ENTRIES_MAX:
            raise TooMuchBeside
