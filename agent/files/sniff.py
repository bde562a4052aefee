"""What a file is by its own first bytes, whatever its name says, and how large a picture is.

Pure; called by `agent.files.attachments` and `agent.files.sniff`. Nothing is unpacked or drawn
here: a few bytes are looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

HEAD_BYTES = 4_096
"""So far text is looked for in what nobody knows."""


class FileKind(StrEnum):
    """What can be done with a file."""

    PICTURE = "picture"
    SOUND = "sound recording"
    FILM = "video"
    DOCUMENT = "document"
    OTHER = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """`media_type` is what it is, in the words of the web; the size of a picture is in pixels, 0
    where its head is damaged."""

    kind: FileKind
    media_type: str
    width: int = 0
    height: int = 0

    @property
    def shown(self) -> str:
        """For a sentence: `jpeg`."""
        if self == _UNKNOWN:
            return "of an unknown kind"
        return self.media_type.rpartition("/")[2].removeprefix("x-")


_MARKS = (
    (0, b"OggS", FileKind.SOUND, "audio/ogg"),
    (0, b"ID3", FileKind.SOUND, "audio/mpeg"),
    (0, b"\xff\xfb", FileKind.SOUND, "audio/mpeg"),
    (0, b"\xff\xf3", FileKind.SOUND, "audio/mpeg"),
    (0, b"\xff\xf2", FileKind.SOUND, "audio/mpeg"),
    (0, b"fLaC", FileKind.SOUND, "audio/flac"),
    (0, b"#!AMR", FileKind.SOUND, "audio/amr"),
    (8, b"WAVE", FileKind.SOUND, "audio/wav"),
    (4, b"ftypM4A", FileKind.SOUND, "audio/mp4"),
    (4, b"ftyp", FileKind.FILM, "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", FileKind.FILM, "video/webm"),
    (0, b"PK\x03\x04", FileKind.DOCUMENT, "application/zip"),  # Word's among them
    (0, b"\xd0\xcf\x11\xe0", FileKind.DOCUMENT, "application/office"),
    (0, b"7z\xbc\xaf\x27\x1c", FileKind.OTHER, "application/x-7z"),
    (0, b"Rar!", FileKind.OTHER, "application/x-rar"),
    (0, b"\x1f\x8b", FileKind.OTHER, "application/gzip"),
    (0, b"BZh", FileKind.OTHER, "application/x-bzip2"),
    (0, b"\xfd7zXZ", FileKind.OTHER, "application/x-xz"),
    (0, b"\x7fELF", FileKind.OTHER, "application/x-program"),
    (0, b"MZ", FileKind.OTHER, "application/x-program"),
)
"""Where a mark stands, and of what. Pictures and PDF are looked at more closely."""

ENDINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "image/jpeg": ("jpg", "jpeg", "jpe", "jfif"),
        "image/png": ("png", "apng"),
        "image/gif": ("gif",),
        "image/webp": ("webp",),
        "application/pdf": ("pdf", "ai"),
        "audio/ogg": ("ogg", "oga", "opus", "ogv"),
        "audio/mpeg": ("mp3", "mpga"),
        "audio/flac": ("flac",),
        "audio/amr": ("amr",),
        "audio/wav": ("wav", "wave"),
        "audio/mp4": ("m4a", "mp4", "aac"),
        "video/mp4": ("mp4", "m4v", "mov", "3gp", "m4a", "heic", "avif"),
        "video/webm": ("webm", "mkv", "weba"),
        "application/zip": ("zip", "docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "jar"),
        "application/gzip": ("gz", "tgz", "tgs"),
        "text/plain": ("txt",),
    }
)
"""How names of such files end, the usual way first. Text, archives and containers have many more:
their names are only wrong where they claim to be something else (`CLAIMS`)."""

EXACT = frozenset(
    {"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"}
    | {kind for kind in ENDINGS if kind.startswith("audio/")}
)
"""Kinds of which all endings are known."""

CLAIMS = frozenset(ending for kind in EXACT for ending in ENDINGS[kind])
"""Endings that say of a file that it is one of those."""

_TEXT_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_PLAIN = Signature(kind=FileKind.DOCUMENT, media_type="text/plain")
_UNKNOWN = Signature(kind=FileKind.OTHER, media_type="application/octet-stream")


def signature_of(content: bytes) -> Signature:
    """By the bytes alone. What may be text is a document, and read to find out."""
    head = content[:HEAD_BYTES]
    if b"%PDF-" in head[:1_024]:
        return Signature(kind=FileKind.DOCUMENT, media_type="application/pdf")
    if _is_plain(head):
        return _PLAIN
    if (picture := picture_of(content)) is not None:
        return picture
    for at, mark, kind, media_type in _MARKS:
        if head.startswith(mark, at) and (mark != b"WAVE" or head.startswith(b"RIFF")):
            return Signature(kind=kind, media_type=media_type)
    is_text = head.startswith(_TEXT_MARKS) or b"\0" not in head
    return _PLAIN if is_text else _UNKNOWN


def _is_plain(head: bytes) -> bool:
    """Return whether these are words: the marks of some kinds of files are letters too."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if len(head) < HEAD_BYTES or error.start < len(head) - 3:  # it may be cut in a character
            return False
        text = head[: error.start].decode()
    return all(char.isprintable() or char.isspace() for char in text)


# --- pictures ------------------------------------------------------------------------------------


def picture_of(content: bytes) -> Signature | None:
    """A picture of the kinds that chats show; None for all else."""
    if content.startswith(b"\xff\xd8\xff"):
        return _of_picture("image/jpeg", _jpeg_size(content))
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        size = _unpacked(">II", content, 16) if content[12:16] == b"IHDR" else (0, 0)
        return _of_picture("image/png", size)
    if content.startswith((b"GIF87a", b"GIF89a")):
        return _of_picture("image/gif", _unpacked("<HH", content, 6))
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return _of_picture("image/webp", _webp_size(content))
    return None


def _of_picture(media_type: str, size: tuple[int, int]) -> Signature:
    width, height = size if all(size) else (0, 0)
    return Signature(kind=FileKind.PICTURE, media_type=media_type, width=width, height=height)


def _unpacked(form: str, content: bytes, at: int) -> tuple[int, int]:
    try:
        first, second = struct.unpack_from(form, content, at)
    except struct.error:
        return (0, 0)
    return (int(first), int(second))


_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})
"""Segments of a JPEG that are numbered like those with its size."""
_ALONE = frozenset({0x01, *range(0xD0, 0xDA)})
"""Marks in a JPEG without a length."""


def _jpeg_size(content: bytes) -> tuple[int, int]:
    """From segment to segment, each of which says how long it is."""
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF or marker in _ALONE:  # a filler, or a mark
            at += 1 if marker == 0xFF else 2
            continue
        if 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            height, width = _unpacked(">HH", content, at + 5)
            return (width, height)
        length = int.from_bytes(content[at + 2 : at + 4])
        if length < 2:
            break
        at += 2 + length
    return (0, 0)


def _webp_size(content: bytes) -> tuple[int, int]:
    match content[12:16]:
        case b"VP8X" if len(content) >= 30:
            width = int.from_bytes(content[24:27], "little") + 1
            return (width, int.from_bytes(content[27:30], "little") + 1)
        case b"VP8L" if len(content) >= 25:
            bits = int.from_bytes(content[21:25], "little")
            return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 ":
            width, height = _unpacked("<HH", content, 26)
            return (width & 0x3FFF, height & 0x3FFF)
        case _:
            return (0, 0)
