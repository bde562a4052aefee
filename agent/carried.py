"""What is remembered of a person as a file, out and in: the values, and the port of the doors.

`memory.carrying` implements it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agent.errors import Permanent
from agent.messages import PersonId

FILE_BYTES_MAX = 32_000_000
"""Of a file that is brought in."""


class CarryingRefused(Permanent):
    """A file cannot be brought in, and nothing was changed; the text says where it is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A fact that was not taken, and why."""

    text: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of a file: facts by outcome, and what of the rest was taken. `left` names what
    stands here already, and otherwise: it was not touched."""

    stored: int = 0
    refreshed: int = 0
    superseded: int = 0
    refused: tuple[Refused, ...] = ()
    profile: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Carries(Protocol):
    """Takes out and brings in what is remembered of one person. Raises StorageError."""

    async def taken_out(self, person_id: PersonId, *, is_owner: bool) -> dict[str, Any]:
        """All of it as one JSON object; its form is that of `memory.carrying`."""

    async def brought_in(self, person_id: PersonId, path: Path, *, is_owner: bool) -> Imported:
        """Adds what a file holds that was taken out before, here or elsewhere.

        Raises CarryingRefused when it cannot be read: then nothing was changed.
        """
