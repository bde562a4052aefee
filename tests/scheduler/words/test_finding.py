"""The time in a sentence, and the sentence without it."""

from __future__ import annotations

from datetime import datetime

import pytest

from memory.records.schedule import NoTime, TimeAsked, TimeFound, TimeRead
from scheduler.timetext.parse import find
from tests.scheduler.words.asked import BERLIN, walls

NOW = datetime(2026, 11, 28, 10, 17, tzinfo=BERLIN)


def found(text: str) -> TimeFound:
    phrase = find(text, now=NOW, zone=BERLIN)
    assert phrase is not None, text
    return phrase


@pytest.mark.parametrize(
    ("text", "words", "rest", "local"),
    [
        ("remind me to call Bob tomorrow at 5", "tomorrow at 5", "call Bob", "11-29T17:00"),
        ("remind me tomorrow at 5 to call Bob", "tomorrow at 5", "call Bob", "11-29T17:00"),
        ("me tomorrow at 5 to call Bob", "tomorrow at 5", "call Bob", "11-29T17:00"),
        ("me and Ann eat tomorrow at 5", "tomorrow at 5", "me and Ann eat", "11-29T17:00"),
        ("Remind me in 2 hours to eat", "in 2 hours", "eat", "11-28T12:17"),
        ("in 20 minutes remind me to stretch", "in 20 minutes", "stretch", "11-28T10:37"),
        ("Call Mum on Sunday at 3pm", "on Sunday at 3pm", "Call Mum", "11-29T15:00"),
        ("please remind me: buy sun cream tomorrow", "tomorrow", "buy sun cream", "11-29T09:00"),
        (
            "remind me every weekday at 8 to take my pills",
            "every weekday at 8",
            "take my pills",
            "11-30T08:00",
        ),
        (
            "remind me that the rent is due on the 1st of every month",
            "on the 1st of every month",
            "the rent is due",
            "12-01T09:00",
        ),
        (
            "remind me tomorrow to book a table for Friday at 8",
            "tomorrow",
            "book a table for Friday at 8",
            "11-29T09:00",
        ),
        (
            "remind me to meet Ann on Monday at 9 about the March report",
            "on Monday at 9",
            "meet Ann about the March report",
            "11-30T09:00",
        ),
        ("remind me to pay $12.50 on Friday", "on Friday", "pay $12.50", "12-04T09:00"),
        ("tomorrow at noon", "tomorrow at noon", "", "11-29T12:00"),
    ],
)
def test_the_time_is_found_and_the_rest_is_what_to_do(
    text: str, words: str, rest: str, local: str
) -> None:
    phrase = found(text)

    assert isinstance(phrase.answer, TimeRead), phrase
    assert (phrase.words, phrase.rest) == (words, rest)
    assert walls(phrase.answer)[0] == f"2026-{local}"


@pytest.mark.parametrize(
    "text",
    [
        "remind me to water the plants tomorrow at 5pm or at 6pm",
        "remind me to buy milk at 5 shops tomorrow",
        "remind me 10 minutes before the meeting at 3pm",
        "remind me to leave by 5pm",
        "remind me about Christmas presents on December 1st",
        "remind me to invite everybody except Ann on Friday every year",
        "wake me at 6:30 tomorrow",
    ],
)
def test_a_sentence_that_may_mean_another_time_is_asked_about(text: str) -> None:
    answer = found(text).answer

    assert isinstance(answer, TimeAsked)
    assert answer.options


def test_a_time_in_two_places_is_offered_as_one() -> None:
    phrase = found("remind me tomorrow to call Bob at 5")

    assert isinstance(phrase.answer, TimeAsked)
    first = phrase.answer.options[0]
    assert walls(first)[0] == "2026-11-29T17:00"
    assert phrase.rest == "call Bob"


@pytest.mark.parametrize(
    "text",
    [
        *("", "remind me to pay the rent", "may this work", "the sun is out", "one second please"),
        *("buy 2 tickets", "that was the one", "version 2.0 is out", "x" * 3_000),
    ],
)
def test_a_sentence_without_a_time_has_none(text: str) -> None:
    assert find(text, now=NOW, zone=BERLIN) is None


def test_a_time_that_cannot_be_kept_is_found_with_its_reason() -> None:
    answer = found("remind me to call Ann tomorrow at 5pm PST").answer

    assert isinstance(answer, NoTime)
    assert "PST" in answer.why


def test_the_rest_keeps_its_letters_and_its_signs() -> None:
    assert (
        found("Remind me to send “Ünsal’s” FILE (v2) tomorrow").rest == "send “Ünsal’s” FILE (v2)"
    )
