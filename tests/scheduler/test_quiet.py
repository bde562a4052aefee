"""Quiet hours are read, held and ended by the clock on the person's wall."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.notify.delivery import HoursOfDay, read_hours

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = HoursOfDay(from_minute=22 * 60, to_minute=7 * 60)


@pytest.mark.parametrize(
    "text", ["22:00-07:00", "22-7", "22:00 – 7:00", "22 to 07:00", " 22:00 until 7 "]
)
def test_hours_are_read_as_people_write_them(text: str) -> None:
    assert read_hours(text) == NIGHT
    assert str(NIGHT) == "22:00-07:00"


@pytest.mark.parametrize(
    "text", ["", "22", "25-7", "22:61-7", "7-7", "at night", "22:00-", "24:01-7"]
)
def test_what_are_no_hours_is_not_guessed(text: str) -> None:
    assert read_hours(text) is None


@pytest.mark.parametrize(
    ("hour", "minute", "holds"),
    [(21, 59, False), (22, 0, True), (3, 0, True), (6, 59, True), (7, 0, False), (12, 0, False)],
)
def test_a_night_goes_over_midnight(hour: int, minute: int, holds: bool) -> None:
    moment = datetime(2026, 6, 1, hour, minute, tzinfo=BERLIN)

    assert NIGHT.holds(moment.astimezone(UTC), BERLIN) is holds


def test_their_end_is_the_next_morning() -> None:
    late = datetime(2026, 6, 1, 23, 15, 7, tzinfo=BERLIN)
    early = datetime(2026, 6, 2, 5, 0, tzinfo=BERLIN)
    morning = datetime(2026, 6, 2, 7, 0, tzinfo=BERLIN)

    assert NIGHT.end(late, BERLIN) == NIGHT.end(early, BERLIN) == morning
    assert NIGHT.end(morning, BERLIN) == morning


def test_an_end_that_the_clocks_leave_out_is_right_after_the_gap() -> None:
    hours = HoursOfDay(from_minute=60, to_minute=150)  # up to 02:30, which is not there
    moment = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # 01:30

    assert hours.end(moment, BERLIN) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


@given(
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.datetimes(datetime(2026, 1, 1), datetime(2028, 12, 31), timezones=st.just(UTC)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"]),
)
def test_after_their_end_they_hold_no_more(
    start: int, end: int, moment: datetime, zone: str
) -> None:
    if start == end:
        return
    hours, here = HoursOfDay(from_minute=start, to_minute=end), ZoneInfo(zone)

    over = hours.end(moment, here)

    assert moment <= over <= moment + timedelta(hours=26)
    if over != moment:
        assert hours.holds(moment, here)
