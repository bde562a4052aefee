"""Empty files and folders that stand in the workspace while programs run in the sandbox.

What does not exist cannot be covered: a program could make its own SOUL.md. So each protected name
is there while any program runs, and gone again behind the last one. Methods block.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock


class Placeholders:
    """Shared by all programs of one bot that run at a time. May be called from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0
        self._made: dict[Path, None] = {}

    def hold(self, *, files: Sequence[Path], folders: Sequence[Path]) -> None:
        """Sees to it that all are there, outer ones first. `release` must follow. Raises OSError,
        and then holds nothing."""
        with self._lock:
            self._holders += 1
            try:
                for folder in folders:
                    self._make_folder(folder)
                for file in files:
                    self._make_file(file)
            except OSError:
                self._release()
                raise

    def release(self) -> None:
        """Behind the last holder, what was made and is still empty goes."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        self._holders -= 1
        if self._holders:
            return
        for path in reversed(self._made):
            with suppress(OSError):
                _remove_empty(path)
        self._made.clear()

    def _make_folder(self, path: Path) -> None:
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            self._made[path] = None

    def _make_file(self, path: Path) -> None:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            if _was_ours(path):
                self._made[path] = None
            return
        with os.fdopen(handle, "wb"):
            os.utime(handle, (0, 0))
        self._made[path] = None


def _was_ours(path: Path) -> bool:
    """Left behind by a kill: empty, and dated as no file of a person's is."""
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size == 0 and status.st_mtime_ns == 0


def _remove_empty(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    elif path.lstat().st_size == 0:
        path.unlink()
