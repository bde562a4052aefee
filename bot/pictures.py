"""What kind of picture a file is, and how large: by its first bytes, whatever its name says.

Used where a platform shows pictures of some kinds and sizes only. Nothing of them is decoded.
"""

from __future__ import annotations

from dataclasses import dataclass

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of a JPEG after which its size stands."""
_ALONE = frozenset({0x01, *range(0xD0, 0xDA)})
"""Markers of a JPEG without a length."""
_MARKERS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """`kind` is jpeg, png or webp; the sides are in pixels."""

    kind: str
    width: int
    height: int


def picture_of(content: bytes) -> Picture | None:
    """None for what is no picture of these kinds, or breaks off before its size."""
    if content.startswith(_PNG):
        return _png(content)
    if content.startswith(_JPEG):
        return _jpeg(content)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return _webp(content)
    return None


def _png(content: bytes) -> Picture | None:
    if content[12:16] != b"IHDR" or len(content) < 24:
        return None
    return _picture("png", _big(content[16:20]), _big(content[20:24]))


def _jpeg(content: bytes) -> Picture | None:
    at = 2
    for _ in range(_MARKERS_MAX):
        if at + 9 > len(content) or content[at] != 0xFF:
            return None
        marker = content[at + 1]
        if marker == 0xFF:  # filling
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker in _FRAMES:
            height, width = _big(content[at + 5 : at + 7]), _big(content[at + 7 : at + 9])
            return _picture("jpeg", width, height)
        else:
            at += 2 + max(_big(content[at + 2 : at + 4]), 2)
    return None


def _webp(content: bytes) -> Picture | None:
    if len(content) < 30:
        return None
    match content[12:16]:
        case b"VP8 ":
            return _picture(
                "webp", _little(content[26:28]) & 0x3FFF, _little(content[28:30]) & 0x3FFF
            )
        case b"VP8L":
            bits = _little(content[21:25])
            return _picture("webp", (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1)
        case b"VP8X":
            return _picture("webp", _little(content[24:27]) + 1, _little(content[27:30]) + 1)
        case _:
            return None


def _picture(kind: str, width: int, height: int) -> Picture | None:
    return Picture(kind=kind, width=width, height=height) if width and height else None


def _big(part: bytes) -> int:
    return int.from_bytes(part, "big")


def _little(part: bytes) -> int:
    return int.from_bytes(part, "little")
