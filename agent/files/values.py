"""Files of messages as values: bounds, what cannot be had, and how a file is called."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.files.sniff import safe_name
from memory.records.errors import Permanent
from memory.records.messages import Address, Attachment, TurnInput

FetchFile = Callable[[Address, Attachment, int], Awaitable[bytes]]
"""The whole of a file of at most so many bytes, from its platform; by many tasks at once, and again
for the same. Raises FileUnavailable, also for more bytes, and Temporary."""


class FileUnavailable(Permanent):
    """A file that cannot be had; the text is the end of a sentence about it."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedOptions:
    """Bounds: bytes of one file, characters of all documents of a message that go into the turn
    itself, and pixels of the longest side of a picture that is shown, where it can be made smaller.
    `host_zone` is for people whose time zone is not known."""

    bytes_max: int = 20_000_000
    text_chars_max: int = 8_000
    picture_side_max: int = 1_568
    host_zone: str = "UTC"


# --- names ---------------------------------------------------------------------------------------

_ENDINGS = {
    "photo": ".jpg",
    "sticker": ".webp",
    "voice": ".ogg",
    "audio": ".mp3",
    "video": ".mp4",
    "video_note": ".mp4",
    "animation": ".mp4",
}
"""Of files that come without a name."""

_CALLED = {"photo": "picture", "voice": "voice note", "video_note": "video message"}


def file_name(turn: TurnInput, number: int, attachment: Attachment) -> str:
    """The name under which the file is kept, the `number`th of its message.

    It follows from the message and the file alone, so that it is the same after a restart; nobody
    who does not know the platform's own id of the file could have put another one there."""
    message = turn.message
    key = (message.address.key, message.message_id, str(number), attachment.ref)
    mark = hashlib.sha256("\n".join(key).encode("utf-8", "replace")).hexdigest()[:10]
    given = attachment.name or f"{attachment.kind}{_ENDINGS.get(attachment.kind, '')}"
    return safe_name(given, mark=mark)


def called(attachment: Attachment) -> str:
    """What came, in words: `a voice note of 12 seconds`, `the document 'report.pdf'`."""
    kind = _CALLED.get(attachment.kind, attachment.kind.replace("_", " "))
    length = f" of {attachment.seconds} seconds" if attachment.seconds else ""
    if attachment.name:
        return f"the {kind} '{safe_name(attachment.name)}'{length}"
    return f"{'an' if kind[:1] in 'aeio' else 'a'} {kind}{length}"


def size_of(size_bytes: int) -> str:
    """For a sentence: `231 kB`."""
    if size_bytes < 10_000:
        return f"{size_bytes:,} bytes"
    return f"{size_bytes / 1_000:,.0f} kB" if size_bytes < 1e6 else f"{size_bytes / 1e6:,.1f} MB"
