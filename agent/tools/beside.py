"""Files of the home that lie beside the workspace: settings, database, backups, logs. A hard link
gives such a file a second name in the workspace, where no path shows that it leads outside.

Called by the workspace and by the confinement of programs. Functions block: call them in a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

FileId = tuple[int, int]
"""Device and number: the same file under whichever name."""

ENTRIES_MAX = 200_000


class TooMuchBeside(Exception):
    """The home holds more than can be looked through."""


def id_of(status: os.stat_result) -> FileId:
    """Which file this is."""
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
