"""What is being forgotten, written down while it is: the one file that still holds the words.

It is overwritten and removed at the end. Blocks; called by `memory.erasure.erase`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog

from memory.database.backup import sync_folder
from memory.erasure.verify import Wording
from memory.records.erasure import ForgetWish
from memory.records.messages import OutboxId, PersonId

log = structlog.get_logger()

NAME = "forgetting.json"


@dataclass(frozen=True, slots=True)
class ForgetNote:
    """The file at `path`. At most one wish is under way at a time."""

    path: Path

    def write(self, wish: ForgetWish, wording: Wording) -> None:
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

    def read(self) -> tuple[ForgetWish, Wording] | None:
        """What is under way; None when nothing is. Raises OSError.

        A file that cannot be read is set aside: it was written whole, so something else damaged it,
        and whoever looks into it may see what was to be forgotten.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return _read(json.loads(data))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._set_aside(type(error).__name__)
            return None

    def _set_aside(self, why: str) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.path.stem}.damaged-{number}")).exists():
            number += 1
        self.path.rename(aside)
        sync_folder(self.path.parent)
        log.error(
            "forgetting.unreadable",
            file=str(aside),
            why=why,
            hint="What was being forgotten cannot be told from it. Say it again, then remove it.",
        )

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


def _read(data: dict[str, Any]) -> tuple[ForgetWish, Wording]:
    wish, wording = data["wish"], data["wording"]
    return (
        ForgetWish(
            person_id=PersonId(_text(wish["person_id"])),
            facts=tuple(int(one) for one in wish["facts"]),
            phrases=_texts(wish["phrases"]),
            everything=bool(wish["everything"]),
            is_owner=bool(wish["is_owner"]),
            lanes=_texts(wish["lanes"]),
            with_files=bool(wish["with_files"]),
            cards=tuple(OutboxId(int(one)) for one in wish.get("cards", ())),
        ),
        Wording(_texts(wording["phrases"]), everything=bool(wording["everything"])),
    )


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(type(value).__name__)
    return tuple(map(_text, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value
