"""What travels between a channel and the core. Made by channels, read by everyone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NewType

from memory.records.codec import from_json

PersonId = NewType("PersonId", str)
ConversationId = NewType("ConversationId", str)
RunId = NewType("RunId", str)
InboxId = NewType("InboxId", int)
OutboxId = NewType("OutboxId", int)

QUOTE_CHARS_MAX = 500
"""Characters of a replied-to text that are shown to the model (SPEC §3)."""

FORWARDED_CHARS_MAX = 60
SOMEBODY_ELSE = "somebody else"


def forwarded_from(name: str) -> str:
    """From whom a message was forwarded, as `IncomingMessage.forwarded` holds it: one short line.

    The name is whatever its bearer typed: nothing that ends a note or a quote of ours is left in
    it, and nothing that is not seen (threat model T13).
    """
    seen = "".join(char if char.isprintable() else " " for char in name)
    flat = " ".join(seen.translate(_HARMLESS).split())
    return flat[:FORWARDED_CHARS_MAX].rstrip() or SOMEBODY_ELSE


_HARMLESS = str.maketrans("<>[]«»＜＞", "‹›()‹›‹›")


class Role(StrEnum):
    """What a person may do (SPEC §4)."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"


class Origin(StrEnum):
    """Why a turn runs."""

    CHAT = "chat"
    HEARTBEAT = "heartbeat"
    JOB = "job"
    SUBAGENT = "subagent"


DEFAULT_AGENT = "default"
"""The agent that always exists, and takes what no binding gives to another (SPEC §4)."""


AGENT_CHANNEL = "agent"
"""The channel in the addresses of subagents. None has this name: nothing is delivered there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A place where messages go: a chat, or one thread or topic of it."""

    channel: str
    chat_id: str
    thread_id: str | None = None

    @property
    def key(self) -> str:
        """`telegram:42`, or `telegram:-100:7` for a topic. Unique, and stable for ever."""
        parts = [self.channel, self.chat_id]
        if self.thread_id is not None:
            parts.append(self.thread_id)
        return ":".join(parts)

    @classmethod
    def parse(cls, key: str) -> Address:
        """The address whose `key` this is. Raises ValueError when it is none."""
        parts = key.split(":")
        if len(parts) not in {2, 3} or not all(parts):
            raise ValueError(f"not an address: {key!r}")
        return cls(
            channel=parts[0], chat_id=parts[1], thread_id=parts[2] if len(parts) == 3 else None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that came with a message; `ref` is the platform's own id of it."""

    kind: str
    ref: str
    name: str = ""
    size_bytes: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """One message of one person, as a channel understood it.

    `sent_at_ms` is epoch milliseconds by the platform's clock. `quote` is the text replied to,
    at most QUOTE_CHARS_MAX characters; `text` is exactly what the person wrote. `forwarded` says
    from whom it was forwarded (`forwarded_from`), empty if it was not: then neither text nor quote
    is taken for the person's own words, wherever that matters, nor for a command. `sender_language`
    is a code by which the platform says what the sender's app is set to, empty if it does not.
    `sender_title` is what the sender is at work by the platform, and told in a private chat alone.
    `reply_to` is the platform's id of the message that it replies to, where it does.
    """

    address: Address
    message_id: str
    sender_id: str
    sender_name: str = ""
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    quote: str = ""
    sent_at_ms: int = 0
    is_group: bool = False
    mentions_bot: bool = False
    edited: bool = False
    chat_title: str = ""
    forwarded: str = ""
    sender_language: str = ""
    sender_title: str = ""
    reply_to: str = ""

    @property
    def sender(self) -> str:
        """The sender's address, the only identity there is: `telegram:42`. Never a name."""
        return f"{self.address.channel}:{self.sender_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back: Markdown, at most once."""

    address: Address
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What makes a turn a subagent's (SPEC §12). What is to be done is the turn's message.

    `parent` gave it, by the call `call_id`, in `conversation`. With `waits` that turn stands still
    until it is done; else the result comes back as a message. `tools` are all that it may use.
    `tokens_max` bounds what its model calls may cost together; 0 is no bound. `tainted` and
    `unattended` are the parent's: what was outside text there stays so here.
    """

    parent: RunId
    call_id: str
    conversation: ConversationId
    waits: bool
    tools: tuple[str, ...] = ()
    minutes: int = 5
    steps_max: int = 10
    tokens_max: int = 0
    depth: int = 1
    tainted: bool = False
    unattended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What makes a turn the telling of a background task's end; nobody wrote its message.

    `task` is how the task begins, `ok` whether it was done.
    """

    child: RunId
    task: str
    ok: bool
    unattended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """What makes a turn the run of a job (SPEC §11). Its message holds the instructions, or the
    list of a heartbeat, and is addressed where the result will go: the host delivers it.

    `tools` are exactly those that it has; None: chosen as in a chat. `steps_max` 0 is what all
    turns may. With `makes_jobs` its skill wishes for the tools that make jobs. With a `call` (a
    tool, and the JSON text of its arguments) no model is asked: it is run as it was agreed to when
    the job was made.
    """

    job_id: int
    slot: str
    name: str
    is_heartbeat: bool = False
    full_context: bool = False
    tools: tuple[str, ...] | None = None
    steps_max: int = 0
    makes_jobs: bool = False
    call: tuple[str, str] | None = None

    @property
    def run_id(self) -> RunId:
        """Of its one run in this slot."""
        return RunId(f"{JOB_RUN}{self.job_id}:{self.slot}")

    @property
    def lane(self) -> str:
        """Where it runs: beside the chat that it is for."""
        return f"job:{self.job_id}"


JOB_RUN = "job-"
"""How the ids of runs of jobs begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """What a turn starts from: the message, whose it is, and which conversation it joins.

    A subagent's has a `task`; the address, the person and their rights are those of the turn that
    gave it. A `report` says that the message is ours, about a task that has ended. With a `job` the
    clock began it, and nobody is there. `agent` is the name in the settings of who answers.
    """

    message: IncomingMessage
    conversation: ConversationId
    person_id: PersonId
    role: Role
    person_name: str = ""
    time_zone: str = ""
    language: str = ""
    language_hint: str = ""
    origin: Origin = Origin.CHAT
    task: Task | None = None
    report: Report | None = None
    job: JobOrder | None = None
    agent: str = DEFAULT_AGENT

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads back equal."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TurnInput:
        """Reads what `to_json` made, also by an earlier version. Raises KeyError, ValueError."""
        return from_json(cls, data)
