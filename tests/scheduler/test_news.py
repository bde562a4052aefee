"""The same is no news; whatever differs in a time, a number, a sign or a name is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.notify import findings as news

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
        ("Disk is 91 % full (10:00)", "disk is 91 % full (11:00)."),
        ("The oven is on since 9:00", "The oven is on since 9:30 am"),
        ("Ana has not answered since 2026-05-01 08:00.", "Ana has not answered since 2026-05-02!"),
        ("Backup failed 20 minutes ago", "Backup failed 50 minutes ago"),
        ("Backup failed 1 day ago", "Backup failed 26 h ago"),
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
        ("Dentist at 13:00", "Dentist at 15:00"),
        ("Call Bob at 1 pm", "Call Bob at 2 pm"),
        ("Flight on 2026-11-28", "Flight on 2026-12-02"),
        ("Flight on 2026-11-30 08:00", "Flight on 2026-11-30 09:00"),
        ("Bus is 5 minutes late", "Bus is 50 minutes late"),
        ("Meeting in 5 minutes", "Meeting in 50 minutes"),
        ("Backup failed", "Backup failed 5 minutes ago"),
        ("All paid!", "All paid?"),
        ("The front door is open", "The front door is closed"),
        ("The backup \u2705", "The backup \u274c"),
    ],
)
def test_another_value_is_news_even_to_a_likeness_that_sees_none(one: str, other: str) -> None:
    assert not is_told(other, [finding(one)])
    assert not is_told(other, [finding(one)], likeness=lambda a, b: 0.89)


def test_a_time_that_is_over_meanwhile_makes_no_news() -> None:
    former = [finding("Dentist at 13:00")]

    assert is_told("Dentist at 13:00", former, NOON + timedelta(hours=2))
    assert not is_told("Dentist at 16:00", former, NOON + timedelta(hours=2))


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
    st.sampled_from(["%", " \u20ac", " days", ""]),
)
def test_no_two_numbers_are_the_same(one: int, other: int, unit: str) -> None:
    former = finding(f"The value is {one}{unit} today")

    assert is_told(f"The value is {other}{unit} today", [former]) is (one == other)


@pytest.mark.parametrize("part", [".", "`", "1 h ", "checked at ", "- ", "heartbeat ", "9"])
def test_a_very_long_finding_is_compared_in_time(part: str) -> None:
    text = part * (20_000 // len(part))

    assert not is_told(f"{text} x", [finding(f"{text} 5")], likeness=lambda a, b: 1.0)
