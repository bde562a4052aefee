"""Notices while the bot runs that its file was damaged, deleted or replaced by somebody else.

Everything here blocks: `Database` calls it in a thread. Nothing opens the file but SQLite itself:
where another handle on it is closed, the system drops SQLite's locks with it.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from memory.backups import connect, problems
from memory.faults import is_damage

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
        self._sizes = self._lengths()
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
        now = self._lengths()
        if not self.moved() and all(
            size >= last for size, last in zip(now, self._sizes, strict=True)
        ):
            return ""
        self._rests_until = 0.0
        return self.look()

    def look_after(self) -> None:
        """Remember how long the files are, after each commit: it may have moved the `-wal` into the
        main file, or given space back."""
        self._sizes = self._lengths()

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
        found = self._damage()
        ended = time.monotonic()
        self._rests_until = ended + REST * (ended - began)
        if not found:
            self._checked = state
        return found

    def _lengths(self) -> list[int]:
        try:
            return [file.stat().st_size for file in self._files]
        except OSError:
            return [0, 0]

    def _state(self) -> list[tuple[int, int]]:
        """Return sizes and times that change with every write."""
        try:
            found = [file.stat() for file in self._files]
        except OSError:
            return []
        return [(one.st_size, one.st_mtime_ns) for one in found]

    def _damage(self) -> str:
        if not self._path.stat().st_size:
            return "it was emptied"  # SQLite would then remove the `-wal`
        try:
            with closing(connect(self._path)) as connection:
                connection.set_progress_handler(lambda: self._is_over, 10_000)
                return problems(connection, "quick_check")
        except sqlite3.Error as error:
            return str(error) if is_damage(error) else ""
