"""What travels between a channel and the core. Made by channels, read by everyone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, NewType

PersonId = NewType("PersonId", str)
ConversationId = NewType("ConversationId", str)
RunId = NewType("RunId", str)
InboxId = NewType("InboxId", int)
OutboxId = NewType("OutboxId", int)

QUOTE_CHARS_MAX = 500
"""Characters of a replied-to text that are shown to the model (SPEC §3)."""


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
    at most QUOTE_CHARS_MAX characters; `text` is exactly what the person wrote.
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
class TurnInput:
    """What a chat turn starts from: the message, whose it is, and which conversation it joins."""

    message: IncomingMessage
    conversation: ConversationId
    person_id: PersonId
    role: Role
    person_name: str = ""
    time_zone: str = ""
    language: str = ""

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads back equal."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TurnInput:
        """Reads what `to_json` made, also by an earlier version. Raises KeyError, ValueError."""
        return cls(
            message=_message_from_json(data["message"]),
            conversation=ConversationId(data["conversation"]),
            person_id=PersonId(data["person_id"]),
            role=Role(data["role"]),
            person_name=data.get("person_name", ""),
            time_zone=data.get("time_zone", ""),
            language=data.get("language", ""),
        )


def _message_from_json(data: dict[str, Any]) -> IncomingMessage:
    address = data["address"]
    known = {field.name for field in fields(IncomingMessage)} - {"address", "attachments"}
    return IncomingMessage(
        address=Address(
            channel=address["channel"],
            chat_id=address["chat_id"],
            thread_id=address.get("thread_id"),
        ),
        attachments=tuple(Attachment(**item) for item in data.get("attachments", ())),
        **{name: value for name, value in data.items() if name in known},
    )
