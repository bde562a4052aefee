"""Patterns from outside: checked before use, and stopped when they take too long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.skills.rules import CHARS_MAX, Pattern, PatternWrong, TooSlow, check_pattern
from tests.thorough import rounds


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bdeploy(ment)?\b",
        r"(?P<what>\w+) please",
        r"[\](){1000}]{1,9}",
        ".{0,1000}a.{0,1000}b",
        "(?i:a)(?=b)",
        "(a{1000}){1000",
        "",
    ],
)
def test_ordinary_patterns_have_no_fault(pattern: str) -> None:
    assert Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "position"),
    [
        ("a(b", "missing ), unterminated subpattern", 2),
        ("[z-a]", "bad character range z-a", 2),
        ("(?R)", "unknown extension ?R", 2),
        ("a" * (CHARS_MAX + 1), "it is longer than 1,000 characters", 0),
        ("(?:a{1000}){1000}", "its repetitions multiply to more than 10,000", 0),
        ("((a{100}|b){100}c){100}", "its repetitions multiply to more than 10,000", 0),
        ("(a{1000})(?#){1000}", "leave out comments and (?x)", 10),
        ("(?x)(a{1000}) {1000}", "leave out comments and (?x)", 1),
        ("a{9999999999999}", "a repetition count is too large", 0),
        ("(" * 480 + ")" * 480, "too many brackets stand within each other", 0),
    ],
)
def test_a_faulty_pattern_is_told_with_its_place(pattern: str, text: str, position: int) -> None:
    with pytest.raises(PatternWrong, match=re.escape(text)) as fault:
        Pattern(pattern)

    assert (fault.value.text, fault.value.position) == (text, position)


def test_a_pattern_gives_what_it_hit_in_any_case() -> None:
    assert Pattern(r"\bships? it\b").found("Please SHIP IT now", limit_s=1) == "SHIP IT"
    assert Pattern("^now").found("Please SHIP IT now", limit_s=1) is None
    assert Pattern("straße").found("In der Straße", limit_s=1) == "Straße"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 5_000 + "b"),
        ("(?:.*a){20}b", "a" * 10_000),
    ],
)
def test_a_slow_pattern_is_stopped(pattern: str, text: str) -> None:
    slow = Pattern(pattern)
    begun = time.monotonic()

    with pytest.raises(TooSlow):
        slow.found(text, limit_s=0.05)

    assert time.monotonic() - begun < 60


@settings(max_examples=rounds(75, 300), deadline=None)
@given(st.text("ab()[]{}*+?|\\^$.,:=!<>0159-# \n", max_size=25), st.text("ab0 ", max_size=30))
def test_any_pattern_is_refused_or_works_like_pythons(pattern: str, text: str) -> None:
    try:
        check_pattern(pattern)
    except PatternWrong:
        return

    expected = re.search(pattern, text, re.IGNORECASE)
    found = Pattern(pattern).found(text, limit_s=5)

    assert (found is None) == (expected is None)
