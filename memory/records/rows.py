"""Values that are stored and handed between the bot and the memory: events, replies, people.

The stores say what is done with them; they stand here because `memory` keeps them and does
not know the bot.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from memory.records.messages import InboxId, OutboxId, PersonId, Role, RunId

# --- coming in -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """A platform event before it is confirmed.

    `source` names the stream (`telegram:<bot id>`), `event_id` the platform's id in it; together
    they are the key. `payload` is the raw event as JSON text, None for a stranger's (only id and
    time are kept, and the row is REFUSED at once).
    """

    source: str
    event_id: str
    lane: str = ""
    payload: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event that is in the inbox."""

    id: InboxId
    event: NewEvent


# --- going out -------------------------------------------------------------------------------


class PartState(StrEnum):
    """Where one platform message is (SPEC §2.7)."""

    READY = "ready"
    SENDING = "sending"
    DOUBTFUL = "doubtful"
    RESENDING = "resending"
    SENT = "sent"
    UNKNOWN = "unknown"
    FAILED = "failed"


class OutboxState(StrEnum):
    """Where a reply is; the last three are terminal."""

    DRAFT = "draft"
    READY = "ready"
    SENT = "sent"
    UNKNOWN = "unknown"
    FAILED = "failed"


BUTTON_BYTES_MAX = 60
"""Of a button's data. Telegram takes 64, and no platform takes fewer."""

BUTTONS_MAX = 40
"""Under one message, in all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button under a message. `data` comes back when it is pressed: ASCII, `prefix:rest`.

    The prefix says whose button it is (`bot.inbox.commands.Press`). Who presses, and what their
    client sends as data, is not known before: it names something that was asked, and never is a
    right by itself.
    """

    label: str
    data: str
    style: Literal["", "good", "bad"] = ""

    def __post_init__(self) -> None:
        prefix, colon, _ = self.data.partition(":")
        fits = (
            self.data.isascii() and self.data.isprintable() and len(self.data) <= BUTTON_BYTES_MAX
        )
        if not (prefix and colon and fits):
            raise ValueError(f"not the data of a button: {self.data[:80]!r}")
        if not self.label.strip():
            raise ValueError(f"a button without a label: {self.data}")


ButtonRows = tuple[tuple[Button, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutFile:
    """A file on its way out. `digest` (SHA-256, hex) names the copy that was made of it, `name` is
    what people see, `path` where it stood in the workspace."""

    digest: str
    name: str
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """Markdown for a chat: `lane` is its address key. `keyboard`: texts to be sent with one tap.

    `buttons` stand in rows under the message, under its last part where it is cut. With a `file`
    the text is its caption, and may be blank; such a message has neither keyboard nor buttons.
    `about` is the address key of a message that this one says was not delivered.
    """

    lane: str
    text: str
    keyboard: tuple[str, ...] = ()
    buttons: ButtonRows = ()
    file: OutFile | None = None
    about: str = ""

    def __post_init__(self) -> None:
        if self.file is not None and (self.keyboard or self.buttons):
            raise ValueError("a file has neither keyboard nor buttons")
        if sum(len(row) for row in self.buttons) > BUTTONS_MAX:
            raise ValueError(f"a message has at most {BUTTONS_MAX} buttons")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutPart:
    """One platform message: markup as rendered, and the source text for the plain fallback.

    `ref` is the platform's name of a file that it was given ahead of the message.
    """

    n: int
    markup: str = ""
    source: str = ""
    state: PartState = PartState.READY
    message_id: str = ""
    ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutRow:
    """A reply with its parts, in order of `n` from 0. `revision` is what it is to read instead,
    without buttons, until it does. A `file` is its first part; it is gone once the row has ended.
    `tried_ms` is the sum of the pauses between its tries, and `about` as in `NewMessage`.
    """

    id: OutboxId
    run_id: RunId | None
    lane: str
    text: str
    state: OutboxState
    parts: tuple[OutPart, ...] = ()
    attempts: int = 0
    not_before_ms: int = 0
    created_ms: int = 0
    keyboard: tuple[str, ...] = ()
    buttons: ButtonRows = ()
    revision: str | None = None
    file: OutFile | None = None
    tried_ms: int = 0
    about: str = ""

    def mark(self, n: int) -> str:
        """The name of one of its messages, given to no other: ids begin anew in a new database."""
        return f"{self.created_ms}-{self.id}-{n}"


# --- people ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who is let in. `addresses` are verified; the name is for display only.

    `language` is what they have set: a code of `memory.records.languages`, or AUTO;
    `language_hint` a code by which a platform says what their app is set to. Both may be empty.
    """

    id: PersonId
    role: Role
    name: str = ""
    addresses: tuple[str, ...] = ()
    time_zone: str = ""
    language: str = ""
    language_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A stranger who asked; nothing of what they wrote is kept."""

    address: str
    channel: str
    code: str
    state: str
    created_ms: int
    expires_ms: int
    answered_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCode:
    """A code by which a person proves that another address is theirs too.

    It was asked for from `address` in the chat `lane`; `used_by` is the address that sent it.
    """

    code: str
    person_id: PersonId
    address: str
    lane: str
    created_ms: int
    expires_ms: int
    used_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """Everybody and every chat known, as one consistent picture."""

    people: tuple[Person, ...]
    chats: dict[str, str]
    pairings: tuple[Pairing, ...]
    links: tuple[LinkCode, ...] = ()


# --- skills ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlaybook:
    """A playbook that lives in the database. `name` is the key, written like a skill's."""

    name: str
    description: str
    keywords: tuple[str, ...]
    text: str
    priority: int = 0
    required_tools: tuple[str, ...] = ()
    updated_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRecord:
    """What the owner decided about a skill of the workspace.

    `digest` names the content that was looked at: a skill whose content differs from it is in
    quarantine again. `enabled` is about the clock: a skill with a schedule runs only when set.
    """

    name: str
    digest: str = ""
    approved: bool = True
    enabled: bool = False
    origin: str = ""


# --- asking a person ---------------------------------------------------------------------------


class Outcome(StrEnum):
    """What came of an approval; EXPIRED when nobody answered in time."""

    ONCE = "once"
    ALWAYS = "always"
    DENIED = "denied"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApproval:
    """A call that a person has to agree to before it is run (SPEC §6).

    `id` follows from the run and the call, so that asking again after a crash asks nothing new;
    `digest` is of tool and arguments: the answer is good for exactly these. `lane` is where the
    turn runs, `person_id` whose turn it is. `shows` is what will happen, exactly; `why` a sentence
    on why it is asked. `owner_alone`: only the owner may answer; `once_only`: "always" is no
    choice.
    """

    id: str
    run_id: RunId
    lane: str
    person_id: PersonId
    agent: str
    tool: str
    digest: str
    shows: str
    why: str
    owner_alone: bool = False
    once_only: bool = False


# --- looking back ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTrace:
    """The recorded steps of a turn that say what was sent: `begin`, and each `model` in order."""

    run_id: RunId
    lane: str
    person_id: PersonId
    started_ms: int
    begin: dict[str, Any]
    asked: tuple[dict[str, Any], ...] = ()


# --- agreed -------------------------------------------------------------------------------------
#
# What people were asked, and what they agreed to: the values between the service that asks and the
# memory that keeps it. The question itself is `memory.records.rows.NewApproval`.


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredApproval:
    """A question as it stands; `outcome` is None while it is open. Times are epoch milliseconds.

    `role` is what the person was when it was asked. `card_lane` and `card` say where the card went
    and which row of the outbox it is; empty and None where there was nowhere to send it.
    `decided_by` is None where nobody answered.
    """

    asked: NewApproval
    role: Role
    asked_ms: int
    expires_ms: int
    outcome: Outcome | None = None
    decided_by: PersonId | None = None
    decided_ms: int = 0
    card_lane: str = ""
    card: OutboxId | None = None

    @property
    def id(self) -> str:
        """The question's."""
        return self.asked.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What became of an answer: the question as it stands now, and whether this answer did it."""

    approval: StoredApproval
    won: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A tool that a person's turns may use from now on without asking, until it is taken back."""

    person_id: PersonId
    agent: str
    tool: str
    granted_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedTool:
    """What the owner agreed to: exactly the content that `digest` names. `parameters` is the JSON
    of what a model was shown of them, empty where it was not kept."""

    tool: str
    digest: str
    description: str = ""
    parameters: str = ""
