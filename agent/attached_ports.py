"""What opening the files of messages needs of others: where they are, and who understands speech.

`bot` implements the first, `agent.models` the second; `agent.attached` calls both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.errors import Permanent
from agent.messages import Address, Attachment
from agent.spending import Charge


class FileUnavailable(Permanent):
    """A file that cannot be had; the text is the end of a sentence about it."""


class FileSource(Protocol):
    """Where the files of messages are: the platforms. May be called by many tasks at once."""

    async def fetch(self, address: Address, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole of it, which may be repeated. Raises FileUnavailable, also for more than
        `bytes_max`, and Temporary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A recording; `seconds` is 0 where nobody knows."""

    name: str
    content: bytes
    seconds: int
    charge: Charge


class Transcriber(Protocol):
    """Turns speech into text."""

    async def transcript(self, sound: Sound) -> str:
        """What is said in it. Raises AssistantError with a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedOptions:
    """Bounds: bytes of one file, and characters of all documents of a message that go into the
    turn itself. `host_zone` is for people whose time zone is not known."""

    bytes_max: int = 20_000_000
    text_chars_max: int = 8_000
    host_zone: str = "UTC"
