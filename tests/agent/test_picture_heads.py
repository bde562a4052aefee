"""Pictures by their first bytes: whatever the name says, and whatever is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.files.sniff import FileKind, Signature, picture_of
from tests.bot.files_kit import jpeg, png, webp

HEADS = (png(300, 200), jpeg(300, 200), *(webp(k, 300, 200) for k in (b"VP8 ", b"VP8L", b"VP8X")))

KINDS = ("png", "jpeg", "webp", "webp", "webp")


@pytest.mark.parametrize(("content", "kind"), list(zip(HEADS, KINDS, strict=True)))
def test_the_kind_and_the_sides_are_read(content: bytes, kind: str) -> None:
    assert picture_of(content) == Signature(
        kind=FileKind.PICTURE, media_type=f"image/{kind}", width=300, height=200
    )


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7", b"RIFF0000WAVE"])
def test_all_else_is_no_picture(content: bytes) -> None:
    assert picture_of(content) is None


@pytest.mark.parametrize("content", HEADS)
def test_what_breaks_off_is_no_picture_or_one_without_a_size_or_the_same_one(
    content: bytes,
) -> None:
    whole = picture_of(content)
    assert whole is not None
    unsized = replace(whole, width=0, height=0)

    found = {picture_of(content[:end]) for end in range(len(content))}
    assert found <= {None, unsized, whole}
    assert picture_of(png(0, 5)) == replace(unsized, media_type="image/png")


@settings(max_examples=200)
@given(st.sampled_from(HEADS), st.binary(max_size=60), st.integers(2, 40))
def test_no_bytes_stop_the_reading(head: bytes, noise: bytes, keep: int) -> None:
    picture_of(head[:keep] + noise)
