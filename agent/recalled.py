"""What is remembered for one prompt: the values behind the layers about a person and their past.

Found by the `Recall` port before the layers run, so that a layer reads nothing by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agent.messages import ConversationId, PersonId, Role


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
