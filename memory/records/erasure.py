"""Forgetting with proof, taking back, and what is taken along: the values."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from memory.records.errors import Permanent
from memory.records.messages import OutboxId, PersonId, RunId

LETTERS_MIN = 4
"""Of words that are looked for: shorter ones stand inside too many others. Two do where letters are
more than ASCII's, for a name in Chinese may be as short."""


class ForgettingRefused(Permanent):
    """Nothing was erased; the text says why, and what to do."""


class PlaceKind(StrEnum):
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


class ForgetStage(StrEnum):
    """How far it is; each is told as it begins."""

    FACTS = "facts"
    ROWS = "rows"
    FILES = "files"
    INDEX = "index"
    ANEW = "database"
    BACKUPS = "backups"
    SCAN = "scan"


Tell = Callable[[ForgetStage], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetWish:
    """What a person wants forgotten: facts by id, words, or everything that is theirs.

    `lanes` are private chats of theirs; `with_files`: files of the workspace too, not just their
    notes. `cards` are the messages that are to tell how it went.
    """

    person_id: PersonId
    facts: tuple[int, ...] = ()
    phrases: tuple[str, ...] = ()
    everything: bool = False
    is_owner: bool = False
    lanes: tuple[str, ...] = ()
    with_files: bool = False
    cards: tuple[OutboxId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPlaces:
    """Where it stands: rows and note files by kind, the facts that would go, and `files` of the
    workspace, which are left unless asked for. `similar` are sentences that say much the same in
    other words, and stay unless they are named. `backups` are made anew in any case. `refusal` says
    why it could not be erased right now; empty: it could."""

    counts: Mapping[PlaceKind, int] = field(default_factory=dict)
    facts: tuple[int, ...] = ()
    similar: tuple[str, ...] = ()
    notes: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    backups: int = 0
    refusal: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was found anywhere."""
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

    erased: Mapping[PlaceKind, int]
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
        """Return whether nothing of it is left anywhere."""
        return not (self.hits or self.unread or self.tables)


def too_short(phrase: str) -> bool:
    """Return whether words have too few letters to be looked for."""
    letters = [char for char in phrase if char.isalnum()]
    return len(letters) < (LETTERS_MIN if phrase.isascii() else 2)


def check_wish(wish: ForgetWish) -> None:
    """Raises ForgettingRefused for words that would be found in too many others."""
    if not (wish.facts or wish.phrases or wish.everything):
        raise ForgettingRefused("Say what is to be forgotten: a fact, words, or everything.")
    for phrase in wish.phrases:
        if too_short(phrase):
            raise ForgettingRefused(
                f"{phrase.strip()[:20]!r} is too short to be looked for: it stands inside other "
                f"words. Give at least {LETTERS_MIN} letters."
            )


# --- undoing ------------------------------------------------------------------------------------
#
# Taking back what the last turn did (`memory.stores.traces`, `bot.commands.memory.undo`).


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
    """Return how the names of all that one person typed in one chat begin."""
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
class FileChange:
    """A file's text before a write, and after it. `path` is below the workspace."""

    person_id: PersonId
    run_id: RunId
    path: str
    former: str
    becomes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The lines that a text loses, `of` so many that are not blank."""

    gone: tuple[str, ...]
    of: int

    @property
    def is_most(self) -> bool:
        """Return whether more than half of the lines go."""
        return len(self.gone) * 2 > self.of


def loss_of(before: str, after: str) -> Loss:
    """Compare whole lines, wherever they stand: a line that was changed counts as gone."""
    left = Counter(line.strip() for line in after.splitlines())
    lines = [line.strip() for line in before.splitlines() if line.strip()]
    gone = []
    for line in lines:
        if left[line]:
            left[line] -= 1
        else:
            gone.append(line)
    return Loss(gone=tuple(gone), of=len(lines))


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


# --- transfer -----------------------------------------------------------------------------------
#
# What is remembered of a person as a file, out and in (`memory.facts.export`).

FILE_BYTES_MAX = 32_000_000
"""Of a file that is brought in."""


class CarryingRefused(Permanent):
    """A file cannot be brought in, and nothing was changed; the text says where it is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFact:
    """A fact that was not taken, and why."""

    text: str
    why: str


@dataclass(slots=True, kw_only=True)
class Imported:
    """What became of a file so far: facts by outcome, and what of the rest was taken. `left` names
    what stands here already, and otherwise: it was not touched."""

    stored: int = 0
    refreshed: int = 0
    superseded: int = 0
    refused: list[RefusedFact] = field(default_factory=list)
    profile: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
