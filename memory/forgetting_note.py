"""What is being forgotten, written down while it is: the one file that still holds the words.

It is overwritten and removed at the end. Blocks; called by `memory.forgetting`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog

from agent.forgotten import Wish
from agent.messages import PersonId
from memory.backups import sync_folder
from memory.wording import Wording

log = structlog.get_logger()

NAME = "forgetting.json"


@dataclass(frozen=True, slots=True)
class Note:
    """The file at `path`. At most one wish is under way at a time."""

    path: Path

    def write(self, wish: Wish, wording: Wording) -> None:
        """On the disk once this returns: before anything is erased. Raises OSError."""
        # A worded form of the same name is never seen half.
        making = self.path.with_name(f"{self.path.name}.writing")
        making.unlink(missing_ok=True)
        handle = os.open(making, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"wish": asdict(wish), "wording": asdict(wording)}, file)
            file.flush()
            os.fsync(file.fileno())
        making.replace(self.path)
        sync_folder(self.path.parent)

    def read(self) -> tuple[Wish, Wording] | None:
        """What is under way; None when nothing is."""
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return None
        try:
            return _read(json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            # It was written whole, so somebody changed it: it says nothing that could be done.
            log.error("forgetting.unreadable", file=str(self.path), why=type(error).__name__)
            return None

    def remove(self) -> None:
        """Its words go too: overwritten where the file system lets them be, then removed."""
        self.path.with_name(f"{self.path.name}.writing").unlink(missing_ok=True)
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return
        with self.path.open("r+b") as file:
            file.write(b"\0" * size)
            file.flush()
            os.fsync(file.fileno())
        self.path.unlink()
        sync_folder(self.path.parent)


def _read(data: dict[str, Any]) -> tuple[Wish, Wording]:
    wish, wording = data["wish"], data["wording"]
    return (
        Wish(
            person_id=PersonId(wish["person_id"]),
            facts=tuple(wish["facts"]),
            phrases=tuple(wish["phrases"]),
            everything=bool(wish["everything"]),
            is_owner=bool(wish["is_owner"]),
            names=tuple(wish["names"]),
            lanes=tuple(wish["lanes"]),
            with_files=bool(wish["with_files"]),
        ),
        Wording(
            *(tuple(wording[name]) for name in ("phrases", "sentences", "names")),
            everything=bool(wording["everything"]),
        ),
    )
