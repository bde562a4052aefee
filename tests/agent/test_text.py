"""Outside text made fit for a request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.skills.parser import cleaned
from memory.records.text import clean, seen


@pytest.mark.parametrize(
    "unseen",
    ["\U000e0041", "\u202e", "\u2066", "\u200b", "\ufeff", "\u00ad", "\ue000", "\U000e0101",
     "\ufe0f", "\u3164", "\u034f", "\x00", "\x1b[8m"],
)  # fmt: skip
def test_what_is_drawn_as_nothing_is_taken_out(unseen: str) -> None:
    assert seen(f"a{unseen}b") == "ab"


@pytest.mark.parametrize("text", ["Grüße, 東京!", "नमस्ते", "مرحبا", "tea 🍵 🇩🇪 👍🏽", "a\tb\nc"])
def test_what_can_be_seen_stays(text: str) -> None:
    assert seen(text) == text


@given(st.text())
def test_what_was_made_seen_is_left_alone_by_every_later_cleaning(text: str) -> None:
    once = seen(text)

    assert seen(once) == clean(once) == cleaned(once) == once
