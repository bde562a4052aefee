"""Pictures made by hand, for tests of files that go out: their heads are right, and little else."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 2, height: int = 2, *, more: int = 0) -> bytes:
    """A whole PNG in one colour, or only its head where it would be large; `more` bytes behind."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = (b"\0" + b"\x7f" * width) * height if width * height < 10_000 else b""
    data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data + b"\0" * more


def jpeg(width: int, height: int) -> bytes:
    """As far as the frame, behind a segment that has to be passed over."""
    comment = b"\xff\xfe" + struct.pack(">H", 6) + b"\xff\xc0!!"
    frame = struct.pack(">HBHH", 17, 8, height, width)
    return b"\xff\xd8" + comment + b"\xff\xff\xc2" + frame + b"\0" * 12


def webp(kind: bytes, width: int, height: int) -> bytes:
    """One of the three kinds of WebP, as far as its size."""
    match kind:
        case b"VP8 ":
            body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
        case b"VP8L":
            body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
        case _:
            body = (
                b"\0" * 4 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
            )
    body += b"\0" * 12
    return b"RIFF\0\0\0\0WEBP" + kind + struct.pack("<I", len(body)) + body
