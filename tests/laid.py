"""A new database laid where a test wants one: all steps run once in a process, then it is copied.

How a file is made, or found missing, has tests of its own, on files that the program makes.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from memory.database.backup import folder_of
from memory.database.migrate import MIGRATIONS, read_migrations
from memory.database.soundness import DatabasePlace, open_writer


def lay(path: Path) -> None:
    """A database in which nothing is, as the program makes it at its first start; an old one
    stays."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        path.write_bytes(_new())


@cache
def _new() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.db"
        opening = DatabasePlace(
            path=path,
            backups=folder_of(path),
            steps=read_migrations(MIGRATIONS),
            busy_timeout_s=1,
        )
        open_writer(opening).close()
        return path.read_bytes()
