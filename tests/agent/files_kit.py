"""Pictures and recordings for the tests: small, and whole as far as their heads say."""

from __future__ import annotations

import struct
import zlib


def png(width: int, height: int) -> bytes:
    """A picture of one colour."""
    row = b"\0" + b"\x66\x33\x22" * width
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(row * height)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def jpeg(width: int, height: int, *, mark: bytes = b"") -> bytes:
    """The head of one, with a comment before its size, and some bytes of no meaning."""
    comment = b"\xff\xfe" + struct.pack(">H", len(mark) + 2) + mark
    size = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9
    return b"\xff\xd8\xff\xe0\x00\x04\0\0" + comment + size + b"\xff\xda\0\x02" + b"\x7f\x80" * 40


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + b"\0" * 20 + b";"


def webp(width: int, height: int) -> bytes:
    """One of the extended kind."""
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x30\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0" + size + b"\0" * 20


VOICE = b"OggS\0\x02" + bytes(range(256)) * 4
PNG, JPEG = png(64, 48), jpeg(640, 480)
