"""Forgetting with proof: the values, and the port by which the doors ask for it.

`memory.forgetting` implements it; `bot.memory` shows what was found and tells how it went.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from agent.errors import Permanent
from agent.messages import OutboxId, PersonId

LETTERS_MIN = 4
"""Of words that are looked for: shorter ones stand inside too many others. Two do where letters are
more than ASCII's, for a name in Chinese may be as short."""


class ForgettingRefused(Permanent):
    """Nothing was erased; the text says why, and what to do."""


class Kind(StrEnum):
    """What a place is for its person."""

    FACT = "facts"
    PROFILE = "profile"
    DOCUMENT = "documents"
    HISTORY = "history"
    SUMMARY = "summaries"
    INSIGHT = "insights"
    REPLY = "messages sent"
    NOTE = "hints for the next turn"
    TRACE = "traces"
    PROMPT = "kept prompts"
    QUESTION = "questions asked"
    TASK = "background tasks"
    JOB = "jobs and dates"
    INCOMING = "messages coming in"
    FILE = "files"
    FORMER = "earlier texts of files"


class Stage(StrEnum):
    """How far it is; each is told as it begins."""

    FACTS = "facts"
    ROWS = "rows"
    FILES = "files"
    INDEX = "index"
    ANEW = "database"
    BACKUPS = "backups"
    SCAN = "scan"


Tell = Callable[[Stage], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person wants forgotten: facts by id, words, or everything that is theirs.

    `lanes` are private chats of theirs, `names` what they are called; `with_files`: files of the
    workspace too, not just their notes. `cards` are the messages that are to tell how it went.
    """

    person_id: PersonId
    facts: tuple[int, ...] = ()
    phrases: tuple[str, ...] = ()
    everything: bool = False
    is_owner: bool = False
    names: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    with_files: bool = False
    cards: tuple[OutboxId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where it stands: rows and note files by kind, the facts that would go, and `files` of the
    workspace, which are left unless asked for. `backups` are made anew in any case. `refusal` says
    why it could not be erased right now; empty: it could."""

    counts: Mapping[Kind, int] = field(default_factory=dict)
    facts: tuple[int, ...] = ()
    notes: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    backups: int = 0
    refusal: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found anywhere."""
        return not self.counts and not self.files


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was done, and what the look through all files found.

    `blanked` are other files of the workspace than notes, in which the words were blanked.
    `hits` are files that still hold it, `tables` those in which it still stands as this person's,
    `unread` files that could not be looked into: with any of them it did not succeed. `left` are
    files of the workspace that were left on purpose. `theirs` says in which tables, and
    `their_files` in which files, others said the same; that is for the owner's eyes alone.
    """

    erased: Mapping[Kind, int]
    backup: Path
    dropped: tuple[Path, ...]
    files: int
    bytes: int
    blanked: tuple[Path, ...] = ()
    hits: tuple[Path, ...] = ()
    unread: tuple[Path, ...] = ()
    left: tuple[Path, ...] = ()
    tables: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    their_files: tuple[Path, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing of it is left anywhere."""
        return not (self.hits or self.unread or self.tables)


class Forgets(Protocol):
    """Finds and erases. One at a time; everything else goes on meanwhile."""

    async def find(self, wish: Wish) -> Found:
        """Every place that holds it. Changes nothing. Raises StorageError, ForgettingRefused."""

    async def under_way(self) -> Wish | None:
        """What was begun and not finished, as after a kill."""

    async def forget(self, wish: Wish, tell: Tell) -> Proof:
        """Erases it everywhere and looks whether that is so. May be repeated.

        Raises ForgettingRefused while it cannot be done, StorageError. Once it has begun, it is
        finished by a later call, or by `resume`.
        """

    async def resume(self, tell: Tell) -> Proof | None:
        """Finishes what a former process began; None where there is nothing. Raises as `forget`."""


def too_short(phrase: str) -> bool:
    """Whether words have too few letters to be looked for."""
    letters = [char for char in phrase if char.isalnum()]
    return len(letters) < (LETTERS_MIN if phrase.isascii() else 2)


def check_wish(wish: Wish) -> None:
    """Raises ForgettingRefused for words that would be found in too many others."""
    if not (wish.facts or wish.phrases or wish.everything):
        raise ForgettingRefused("Say what is to be forgotten: a fact, words, or everything.")
    for phrase in wish.phrases:
        if too_short(phrase):
            raise ForgettingRefused(
                f"{phrase.strip()[:20]!r} is too short to be looked for: it stands inside other "
                f"words. Give at least {LETTERS_MIN} letters."
            )
