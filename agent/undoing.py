"""Taking back what the last turn did: the values, and what is needed of who keeps them.

`memory.undoing` implements the port, `bot.undo` uses it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.messages import PersonId, RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A call that changed something: the tool's name, and what kind of thing (`Effect`)."""

    tool: str
    effect: str
    file: str = ""
    """The protected file, if it was one."""


def typed_run(person_id: PersonId, lane: str, message_id: str) -> RunId:
    """Under which name is kept what a command such as `/remember` stored: it is no turn."""
    return RunId(f"{typed_in(person_id, lane)}{message_id}")


def typed_in(person_id: PersonId, lane: str) -> str:
    """How the names of all that one person typed in one chat begin."""
    return f"typed:{person_id}:{lane}#"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastTurn:
    """The newest turn that changed something, with those of its subagents as `runs`; or a command
    that did (`typed`).

    `facts` and `changes` count what it stored and what of it can be taken back; `is_undone`: it was
    taken back already.
    """

    run_id: RunId
    ended_ms: int
    runs: tuple[RunId, ...]
    done: tuple[Done, ...] = ()
    facts: int = 0
    changes: int = 0
    is_undone: bool = False
    typed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerFile:
    """What a file said before a run changed it, and after that."""

    run_id: RunId
    path: str
    former: str
    becomes: str
    """A digest (`digest_of`)."""


def digest_of(text: str) -> str:
    """Return what a file's text is recognised by."""
    return hashlib.sha256(text.encode()).hexdigest()


class FormerFiles(Protocol):
    """What files said before. Raises StorageError."""

    async def of(self, run_ids: Sequence[RunId]) -> Sequence[FormerFile]:
        """What these runs changed, the newest first."""

    async def drop(self, file: FormerFile) -> None:
        """Forget it, once it is put back. May be repeated."""


class TurnsDone(Protocol):
    """What turns did. Raises StorageError."""

    async def last(self, person_id: PersonId, lane: str, *, since_ms: int) -> LastTurn | None:
        """The newest turn of this person at this address that ended since then and changed
        something, or a command after it that stored something; None where there is none."""

    async def undone(self, run_ids: Sequence[RunId]) -> None:
        """Writes that these were taken back. May be repeated."""
