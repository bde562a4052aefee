"""What a file is by its own bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.files.sniff import FileKind, picture_of, signature_of
from tests.agent.files_kit import VOICE, gif, jpeg, png, webp
from tests.agent.reading.made import docx, paragraph, pdf

LOSSY = b"RIFF\x30\0\0\0WEBPVP8 \x10\0\0\0" + b"\0" * 6 + b"\x80\x02\xe0\x01" + b"\0" * 20
LOSSLESS = b"RIFF\x30\0\0\0WEBPVP8L\x10\0\0\0\x2f" + (639 | 479 << 14).to_bytes(4, "little") + b"\0"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (png(640, 480), "image/png"),
        (jpeg(640, 480), "image/jpeg"),
        (jpeg(640, 480, mark=b"\xff" * 300), "image/jpeg"),
        (gif(640, 480), "image/gif"),
        (webp(640, 480), "image/webp"),
        (LOSSY, "image/webp"),
        (LOSSLESS, "image/webp"),
    ],
)
def test_a_picture_says_how_large_it_is(content: bytes, media_type: str) -> None:
    found = signature_of(content)

    assert (found.kind, found.media_type) == (FileKind.PICTURE, media_type)
    assert (found.width, found.height) == (640, 480)


@pytest.mark.parametrize("content", [png(300, 200), jpeg(300, 200), gif(640, 480), LOSSY, LOSSLESS])
def test_what_breaks_off_is_no_picture_or_one_without_a_size_or_the_same_one(
    content: bytes,
) -> None:
    whole = picture_of(content)
    assert whole is not None
    unsized = replace(whole, width=0, height=0)

    found = {picture_of(content[:end]) for end in range(len(content))}
    assert found <= {None, unsized, whole}
    assert picture_of(png(0, 5)) == replace(unsized, media_type="image/png")


@pytest.mark.parametrize(
    ("content", "kind", "shown"),
    [
        (VOICE, FileKind.SOUND, "ogg"),
        (b"ID3\x04\0\0\0\0\0\0", FileKind.SOUND, "mpeg"),
        (b"RIFF\x10\0\0\0WAVEfmt \0", FileKind.SOUND, "wav"),
        (b"\0\0\0\x18ftypM4A \0\0\0\0", FileKind.SOUND, "mp4"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", FileKind.FILM, "mp4"),
        (b"\x1a\x45\xdf\xa3\0\0", FileKind.FILM, "webm"),
        (pdf("a"), FileKind.DOCUMENT, "pdf"),
        (docx(paragraph("a")), FileKind.DOCUMENT, "zip"),
        (b"MZ\x90\0\x03\0\0\0", FileKind.OTHER, "program"),
        (b"\x7fELF\x02\x01\0", FileKind.OTHER, "program"),
        (b"MZ is how this text begins", FileKind.DOCUMENT, "plain"),
        ("Grüße aus Köln".encode(), FileKind.DOCUMENT, "plain"),
        ("Grüße aus Köln".encode("latin-1"), FileKind.DOCUMENT, "plain"),
        ("Grüße".encode("utf-16"), FileKind.DOCUMENT, "plain"),
        (("x" * 4_095 + "ü").encode(), FileKind.DOCUMENT, "plain"),
        (b"\x01\0\x02\0\xfe", FileKind.OTHER, "of an unknown kind"),
    ],
)
def test_each_kind_is_known_by_its_first_bytes(content: bytes, kind: FileKind, shown: str) -> None:
    found = signature_of(content)

    assert (found.kind, found.shown) == (kind, shown)


@given(
    st.sampled_from(
        [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBPVP8 ", b"GIF89a"]
    ),
    st.binary(max_size=200),
)
def test_whatever_the_bytes_are_something_is_said(head: bytes, rest: bytes) -> None:
    found = signature_of(head + rest)

    assert found.shown
    assert (found.width == 0) == (found.height == 0)
