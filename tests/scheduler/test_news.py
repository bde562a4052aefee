"""The same is no news; whatever differs in a time, a number, a sign or a name is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import news

NOON = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


def finding(text: str, now: datetime = NOON) -> str:
    return news.finding(text, now=now)


def is_told(
    text: str,
    former: list[str],
    now: datetime = NOON,
    likeness: Callable[[str, str], float] | None = None,
) -> bool:
    return news.is_told(text, former, now=now, likeness=likeness)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rent is due", "- **Rent** is due!"),
        ("Disk is 91 % full (checked 10:00)", "disk is 91% full (checked 10:30)"),
        ("Rent is due. Checked at 10:05", "Rent is due. Checked at 3 pm."),
        (
            "Last check: 2026-11-28 10:05 UTC. Rent is due",
            "Last check: 2026-11-28 15:05. Rent is due",
        ),
        ("All paid but one (as of 10:05)", "All paid but one (as of 11:05)"),
    ],
)
def test_the_same_looked_at_later_is_no_news(one: str, other: str) -> None:
    assert is_told(other, [finding(one)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Disk is 91 % full", "Disk is 97 % full"),
        ("3 mails from Ana", "4 mails from Ana"),
        ("Mail from Ana about the rent", "Mail from Ben about the rent"),
        ("The dentist is tomorrow", "The rent is due"),
        ("Rent of 3 days is due", "Rent of 30 days is due"),
        ("Balance fell 5%", "Balance fell -5%"),
        ("Balance is 5 \u20ac", "Balance is \u22125 \u20ac"),
        ("Temperature -5", "Temperature 5"),
        ("Temperature is - 5", "Temperature is 5"),
        ("temp is +3", "temp is -3"),
        ("a>b", "a<b"),
        ("x is 10\u00b2", "x is 102"),
        ("Dentist at 10:00", "Dentist at 15:00"),
        ("Dentist is now at 10:00", "Dentist is now at 15:00"),
        ("Call Bob at 9 am", "Call Bob at 10 am"),
        ("Flight on 2026-11-28", "Flight on 2026-12-02"),
        ("New rules as of 10:00 for all", "New rules as of 11:00 for all"),
        ("No answer since 2026-05-01 08:00", "No answer since 2026-05-02 08:00"),
        ("Bus is 5 minutes late", "Bus is 50 minutes late"),
        ("Meeting in 5 minutes", "Meeting in 50 minutes"),
        ("Backup failed 20 minutes ago", "Backup failed 5 minutes ago"),
        ("Backup failed 20 minutes ago", "Backup failed 20 days ago"),
        ("Backup failed", "Backup failed 5 minutes ago"),
        ("All paid!", "All paid?"),
        ("The front door is open", "The front door is closed"),
        ("The backup \u2705", "The backup \u274c"),
    ],
)
def test_another_value_is_news_even_to_a_likeness_that_sees_none(one: str, other: str) -> None:
    assert not is_told(other, [finding(one)])
    assert not is_told(other, [finding(one)], likeness=lambda a, b: 0.89)


@pytest.mark.parametrize(
    ("one", "other", "minutes", "told"),
    [
        ("Bob called 20 minutes ago", "Bob called 50 minutes ago", 30, True),
        ("Bob called 20 minutes ago", "Bob called 1 h 20 min ago", 60, True),
        ("Bob called 50 minutes ago", "Bob called 1 hour ago", 30, True),
        ("Bob called 1 day ago", "Bob called 2 days ago", 20 * 60, True),
        ("Bob called 20 minutes ago", "Bob called 20 minutes ago", 30, True),
        ("Bob called 20 minutes ago", "Bob called 50 minutes ago", 8 * 60, False),
        ("Bob called 20 minutes ago", "Bob called 5 minutes ago", 30, False),
        ("Bob called 20 minutes ago", "Bob called 20 days ago", 30, False),
        ("Bob called", "Bob called 5 minutes ago", 30, False),
    ],
)
def test_how_long_ago_may_differ_where_it_is_the_same_moment(
    one: str, other: str, minutes: int, told: bool
) -> None:
    assert is_told(other, [finding(one)], NOON + timedelta(minutes=minutes)) is told


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana owes 5 and Ben 7", "Now Ana owes 7, and Ben 5"),
        ("The pipe is warm: 5 degrees", "It is warm in the pipe, -5 degrees"),
        ("The backup did work at night", "At night the backup did not work at all"),
        ("The front door is open", "The front door is closed"),
        ("Mail from Ana Lee on rent", "Mail from Ben Roy on rent"),
        ("The dentist is on Monday", "On Tuesday you see the dentist"),
    ],
)
def test_a_high_likeness_hides_no_changed_value(one: str, other: str) -> None:
    assert not is_told(other, [finding(one)], likeness=lambda a, b: 1.0)


def test_the_same_in_other_words_is_no_news_unless_a_number_differs() -> None:
    former = [finding("The disk is nearly full: 91 %")]

    assert is_told("Nearly full, the disk (91 %)", former, likeness=lambda a, b: 0.93)
    assert not is_told("Nearly full, the disk (92 %)", former, likeness=lambda a, b: 0.93)
    assert not is_told("Nearly full, the disk (91 %)", former, likeness=lambda a, b: 0.89)


@given(st.text(alphabet=st.characters() | st.sampled_from("*_`-. 1:<>\n"), max_size=40))
def test_every_text_is_the_same_as_itself(text: str) -> None:
    assert is_told(text, [finding(text)])


@given(
    st.integers(-999, 999),
    st.integers(-999, 999),
    st.sampled_from(["%", " \u20ac", " days", ":00"]),
)
def test_no_two_numbers_are_the_same(one: int, other: int, unit: str) -> None:
    former = finding(f"The value is {one}{unit} today")

    assert is_told(f"The value is {other}{unit} today", [former]) is (one == other)


@pytest.mark.parametrize("part", [".", "`", "1 h ", "checked at ", "- ", "heartbeat ", "9"])
def test_a_very_long_finding_is_compared_in_time(part: str) -> None:
    text = part * (20_000 // len(part))

    assert not is_told(f"{text} x", [finding(f"{text} 5")], likeness=lambda a, b: 1.0)
