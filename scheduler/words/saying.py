"""How times are said back, so that a person sees how they were read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def day_words(day: date) -> str:
    """Tuesday 1 December 2026."""
    return f"{DAY_NAMES[day.weekday()]} {day.day} {MONTH_NAMES[day.month - 1]} {day.year}"


def moment_words(moment: datetime) -> str:
    """On Tuesday 1 December 2026 at 17:00; with seconds where it has some."""
    return f"on {day_words(moment)} at {time_words(moment.time())}"


def time_words(at: time) -> str:
    """17:00."""
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"


def ordinal_words(number: int) -> str:
    """1st, 2nd, last."""
    if number < 0:
        return "last" if number == -1 else f"{ordinal_words(-number)} to last"
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(words: Sequence[str]) -> str:
    """With commas, and an "and" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
