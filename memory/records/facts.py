"""What is remembered for months: the values in which stores, tools, layers and commands speak.

Nothing here may be asked for
without saying whose it is: a `Whose` names a person and a place, and every query filters by both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from memory.records.messages import Address, ConversationId, PersonId, Role, RunId
from memory.records.usage import Charge

# --- recalled -----------------------------------------------------------------------------------
#
# What is remembered for one prompt: the values behind the layers about a person and their past.
#
# Found by the `Recall` port before the layers run, so that a layer reads nothing by itself.


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallWanted:
    """For whom, where and about what. `text` is the message, the list or the task.

    In a group only what belongs to this group may be found (SPEC §9): `scope` is then its chat
    without a topic, and empty in a private chat. `place` is the chat in any case. `history_from` is
    the first message id that is sent anyway. With `memory_off` nothing is found (/private).
    """

    person_id: PersonId
    role: Role
    conversation: ConversationId
    text: str
    now: datetime
    scope: str = ""
    place: str = ""
    history_from: int = 0
    memory_off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One remembered sentence. `speaker` is who said it, in groups."""

    id: str
    text: str
    category: str = ""
    speaker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Something that was said before, and what was answered. `tainted`: text from outside was in
    what was sent then, so the answer may repeat it."""

    id: str
    when: datetime
    said: str
    answered: str
    tainted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of a saved document, with the name of the document."""

    id: str
    text: str
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """An event or a job that is due within the next days; `when` in the person's zone, None for
    what has no date."""

    id: str
    when: datetime | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """All of it, the most relevant first. Empty parts make no layer.

    `profile` is text about the person; `persona_prompt` replaces the base text (SPEC §5, base).
    `summary` is that of the last compaction.
    """

    profile: str = ""
    persona_prompt: str = ""
    facts: tuple[Fact, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    pins: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    coming: tuple[Coming, ...] = ()
    summary: str = ""


Category = Literal["preference", "background", "pattern", "project", "contact", "decision"]
CATEGORIES: tuple[Category, ...] = (
    "preference",
    "background",
    "pattern",
    "project",
    "contact",
    "decision",
)

FACT_SOURCE = "fact:"
"""How the source of a remembered fact begins in a prompt's record."""

FACT_CHARS_MAX = 500
"""Of a fact's text: one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """A person, and where: `scope` is empty for what is private, else the chat of a group.

    What is written belongs to this person in this scope. What is read is the person's alone where
    it is private; in a group it is what anybody said there, and nothing else (SPEC §9). With
    EVERYWHERE it is what this person said wherever it was: for reading, on the machine alone.
    """

    person_id: PersonId
    scope: str = ""


EVERYWHERE = "*"


def place_of(address: Address) -> str:
    """A chat without its thread or topic: `telegram:-100`."""
    return f"{address.channel}:{address.chat_id}"


def whose(person_id: PersonId, address: Address, *, is_group: bool) -> Whose:
    """Whose memory a message of this person at this address is about."""
    return Whose(person_id=person_id, scope=place_of(address) if is_group else "")


# --- facts -----------------------------------------------------------------------------------


class FactSource(StrEnum):
    """Where a fact is from: a line that the extractor read, a tool's call, the person, a file."""

    MESSAGE = "message"
    TOOL = "tool"
    PERSON = "person"
    IMPORT = "import"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A fact that is to be stored. `text` is one sentence in the third person.

    `message_id` and `quote` are the line it rests on, `run_id` the turn; `speaker` who said it, as
    shown then. `replaces` is the id of the fact that it corrects. `asked`: the person wished for it
    in so many words, which lifts an earlier wish to forget. `generation` is given by work behind
    the scenes: how often something was forgotten before it read the line (see
    `memory.facts.tombstones`).
    """

    whose: Whose
    text: str
    category: Category
    source: FactSource
    confidence: float = 1.0
    message_id: int | None = None
    run_id: RunId | None = None
    quote: str = ""
    speaker: str = ""
    valid_from_ms: int | None = None
    replaces: int | None = None
    asked: bool = False
    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFact:
    """A fact as it stands. Times are epoch milliseconds; `valid_to_ms` None: it still holds."""

    id: int
    whose: Whose
    text: str
    category: Category
    source: FactSource
    confidence: float
    valid_from_ms: int
    created_ms: int
    valid_to_ms: int | None = None
    superseded_by: int | None = None
    message_id: int | None = None
    run_id: RunId | None = None
    quote: str = ""
    speaker: str = ""
    last_used_ms: int | None = None
    uses: int = 0

    @property
    def key(self) -> str:
        """Return how people and models name it: `f12`."""
        return fact_key(self.id)


def fact_key(fact_id: int) -> str:
    """`f12`."""
    return f"f{fact_id}"


def fact_id_of(key: str) -> int | None:
    """The id that `f12`, `F12` or `12` names; None when it is none."""
    digits = key.strip().removeprefix("f").removeprefix("F")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


class Storing(StrEnum):
    """What became of a fact that was to be stored."""

    STORED = "stored"
    REFRESHED = "refreshed"
    """It was known, in these or very similar words: the known one counts as said again."""
    SUPERSEDED = "superseded"
    """It was stored, and a fact that it contradicts was closed."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The outcome. `fact` is the one that holds now (None when refused), `replaced` the one that
    was closed, `why` the reason of a refusal, fit for a person."""

    outcome: Storing
    fact: StoredFact | None = None
    replaced: StoredFact | None = None
    why: str = ""


# --- the profile -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange:
    """A change of one path of a profile. `old` and `new` are values of JSON, None: nothing."""

    id: int
    path: str
    old: object
    new: object
    reason: str
    at_ms: int
    run_id: RunId | None = None
    undone_ms: int | None = None


# --- documents ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A saved document. `kind` is the ending (`pdf`), `source` where it came from."""

    id: int
    whose: Whose
    name: str
    kind: str
    source: str
    chars: int
    chunks: int
    saved_ms: int
    used_ms: int


# --- conversations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What was summed up last in a conversation: its history is sent from `sent_from` on.
    `tainted`: the summary may repeat text from outside. Without an id it is not stored yet."""

    id: int = 0
    kind: Literal["truncate", "summarise", "digest"]
    from_id: int
    sent_from: int
    summary: str
    reason: str
    messages: int
    tokens_before: int
    tokens_after: int
    made_ms: int = 0
    tainted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionWanted:
    """A conversation that may have to be compacted, named by whose account that goes on. `forced`:
    whatever its size (/compact, or a history that does not fit `tokens_max`, 0 being the usual
    limits)."""

    charge: Charge
    forced: bool = False
    tokens_max: int = 0


# --- overview -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A fact that was closed, and the one that took its place."""

    old: StoredFact
    new: StoredFact


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What is known of somebody in one place: the facts that hold, newest first, what was corrected
    lately, the names of a profile's parts, how many documents, and what is in mind for the open
    conversation."""

    facts: Sequence[StoredFact]
    corrected: Sequence[Corrected]
    profile: Sequence[str] = ()
    documents: int = 0
    in_mind: Sequence[str] = ()
