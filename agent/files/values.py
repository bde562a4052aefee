"""Files of messages as values: bounds, what cannot be had, and how a file is called. Names that
other people gave are made fit for a folder, a path and a sentence.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from agent.files.sniff import CLAIMS, ENDINGS, EXACT, Signature
from memory.records.errors import Permanent
from memory.records.messages import Address, Attachment, TurnInput

FetchFile = Callable[[Address, Attachment, int], Awaitable[bytes]]
"""The whole of a file of at most so many bytes, from its platform; by many tasks at once, and again
for the same. Raises FileUnavailable, also for more bytes, and Temporary."""


class FileUnavailable(Permanent):
    """A file that cannot be had; the text is the end of a sentence about it."""


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
    """Return what came, in words: `a voice note of 12 seconds`, `the document 'report.pdf'`."""
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


# --- names that others gave ----------------------------------------------------------------------

NAME_BYTES_MAX = 120
"""Of a name without its mark: file systems take 255."""

_KEPT = frozenset("-_.")
_RUNS = re.compile(r"_{2,}")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me"})
"""Controls, directions, joiners, halves of a character."""


def safe_name(given: str, *, mark: str = "") -> str:
    """A name of letters, digits and `-_.` alone: no folders, nothing hidden, nothing unseen, and
    nothing that could end a quote of ours. With a `mark`, that stands before the ending.

    Never empty: a name of which nothing is left becomes `file`.
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFKC", given))[-1]
    letters = (
        one if one.isalnum() or one in _KEPT else "_"
        for one in last
        if unicodedata.category(one) not in _UNSEEN
    )
    name = _RUNS.sub("_", "".join(letters)).strip("_. -")
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending) > 10:
        stem, ending = name, ""
    stem = stem.rstrip("_. -").encode()[:NAME_BYTES_MAX].decode("utf-8", "ignore") or "file"
    marked = f"{stem}-{mark}" if mark else stem
    return f"{marked}.{ending}" if ending else marked


def fitting(path: str, found: Signature) -> str:
    """Return the path with an ending that fits what the file is: programs go by the last one. What
    may well end so keeps its ending alone, and text that has none needs none."""
    endings = ENDINGS.get(found.media_type, ())
    stem, _, claimed = path.rpartition("/")[2].rpartition(".")
    claimed = claimed.lower() if stem else ""
    if not endings or claimed in endings:
        return path
    is_bare = not claimed and found.media_type != "text/plain"
    is_wrong = is_bare or found.media_type in EXACT or claimed in CLAIMS
    return f"{path}.{endings[0]}" if is_wrong else path


def as_fitted(path: str) -> Iterator[str]:
    """Yield every path that `fitting` may make of this one, itself first."""
    yield path
    yield from (f"{path}.{one}" for one in dict.fromkeys(ends[0] for ends in ENDINGS.values()))
