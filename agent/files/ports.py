"""What opening the files of messages needs of others: where they are, who understands speech, and
who makes pictures smaller.

`bot` implements the first, `agent.models` the second, `agent.files.scaling` the third;
`agent.files.attachments` calls them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memory.records.errors import Permanent
from memory.records.messages import Address, Attachment
from memory.records.spending import Charge


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


class PictureDamaged(Permanent):
    """A picture that cannot be drawn; the text is a sentence about it."""


class PictureTooLarge(Permanent):
    """A picture that takes too much to be made smaller; the text is a sentence about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledPicture:
    """A picture made smaller; its size is in pixels."""

    content: bytes
    media_type: str
    width: int
    height: int


class Scaler(Protocol):
    """Makes pictures smaller. May be called by many tasks at once, and again for the same."""

    async def scaled(self, content: bytes, *, side_max: int, bytes_max: int) -> ScaledPicture:
        """Upright, its first frame, of at most so many pixels a side and bytes, and without notes
        of the camera: the same for the same picture. Raises PictureDamaged, PictureTooLarge and
        Temporary, each with a sentence about the picture, without its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedOptions:
    """Bounds: bytes of one file, characters of all documents of a message that go into the turn
    itself, and pixels of the longest side of a picture that is shown, where it can be made smaller.
    `host_zone` is for people whose time zone is not known."""

    bytes_max: int = 20_000_000
    text_chars_max: int = 8_000
    picture_side_max: int = 1_568
    host_zone: str = "UTC"
