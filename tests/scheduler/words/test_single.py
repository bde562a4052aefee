"""Times that come once: how they are read, and what is asked about."""

from __future__ import annotations

import pytest

from tests.scheduler.words.asked import answered, asked, due, offered, refused


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("in 2 hours", "2026-11-28T12:17"),
        ("in twenty-five minutes", "2026-11-28T10:42"),
        ("in half an hour", "2026-11-28T10:47"),
        ("in an hour and a half", "2026-11-28T11:47"),
        ("in 2h30", "2026-11-28T12:47"),
        ("1 hour 20 minutes from now", "2026-11-28T11:37"),
        ("in 45 seconds", "2026-11-28T10:17:45"),
        ("in 3 days", "2026-12-01T10:17"),
        ("in 3 days at 5pm", "2026-12-01T17:00"),
        ("in a month", "2026-12-28T10:17"),
    ],
)
def test_a_duration_is_counted_from_now(text: str, local: str) -> None:
    assert due(text) == [local]


def test_hours_pass_and_days_keep_the_time_where_clocks_are_changed() -> None:
    before = "2026-03-28T12:00"

    assert due("in 24 hours", before) == ["2026-03-29T13:00"]
    assert due("in one day", before) == ["2026-03-29T12:00"]
    assert due("tomorrow at 2:30am", before) == ["2026-03-29T03:00"]


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("17:00", "2026-11-28T17:00"),
        ("9:05", "2026-11-28T21:05"),
        ("09:05", "2026-11-29T09:05"),
        ("5 pm", "2026-11-28T17:00"),
        ("5.30pm", "2026-11-28T17:30"),
        ("at 1530", "2026-11-28T15:30"),
        ("at 18h", "2026-11-28T18:00"),
        ("half past six", "2026-11-28T18:30"),
        ("ten to noon", "2026-11-28T11:50"),
        ("two hours before 5pm", "2026-11-28T15:00"),
        ("12 noon", "2026-11-28T12:00"),
        ("quarter past 4", "2026-11-28T16:15"),
        ("five thirty p.m.", "2026-11-28T17:30"),
        ("four o'clock", "2026-11-28T16:00"),
        ("noon", "2026-11-28T12:00"),
        ("midnight", "2026-11-29T00:00"),
        ("7am", "2026-11-29T07:00"),
        ("in the morning", "2026-11-29T09:00"),
        ("tonight", "2026-11-28T21:00"),
        ("tonight at 8", "2026-11-28T20:00"),
        ("tonight at 12", "2026-11-29T00:00"),
        ("tonight at 2am", "2026-11-29T02:00"),
        ("7 this evening", "2026-11-28T19:00"),
        ("today at 3", "2026-11-28T15:00"),
    ],
)
def test_a_time_without_a_day_is_the_next_one(text: str, local: str) -> None:
    assert due(text, "2026-11-28T10:17" if text != "9:05" else "2026-11-28T12:30") == [local]


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("tomorrow", "2026-11-29T09:00"),
        ("tomorrow at 5", "2026-11-29T17:00"),
        ("at 8 tomorrow", "2026-11-29T08:00"),
        ("tomorrow 9", "2026-11-29T09:00"),
        ("tomorrow evening", "2026-11-29T19:00"),
        ("tomorrow evening at 7:30", "2026-11-29T19:30"),
        ("the day after tomorrow evening", "2026-11-30T19:00"),
        ("Monday", "2026-11-30T09:00"),
        ("mon. at 8am", "2026-11-30T08:00"),
        ("Sunday morning at 6", "2026-11-29T06:00"),
        ("next Friday 9am", "2026-12-04T09:00"),
        ("Tuesday of next week at noon", "2026-12-01T12:00"),
        ("a week from Tuesday", "2026-12-08T09:00"),
        ("Monday week", "2026-12-07T09:00"),
        ("three Fridays from now", "2026-12-18T09:00"),
        ("next weekend", "2026-12-05T09:00"),
        ("two days before New Year's Eve", "2026-12-29T09:00"),
        ("two weeks after tomorrow", "2026-12-13T09:00"),
    ],
)
def test_a_day_without_a_time_begins_at_nine(text: str, local: str) -> None:
    assert due(text) == [local]


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("on the 3rd of March", "2027-03-03T09:00"),
        ("March third at 4pm", "2027-03-03T16:00"),
        ("3 Mar", "2027-03-03T09:00"),
        ("24 December 2027, 18:00", "2027-12-24T18:00"),
        ("Friday, 4 December", "2026-12-04T09:00"),
        ("Friday the 13th", "2027-08-13T09:00"),
        ("12/24", "2026-12-24T09:00"),
        ("24.12.", "2026-12-24T09:00"),
        ("24-Dec-27", "2027-12-24T09:00"),
        ("29 February", "2028-02-29T09:00"),
        ("on the 31st", "2026-12-31T09:00"),
        ("the 5th of next month", "2026-12-05T09:00"),
        ("next month on the 5th", "2026-12-05T09:00"),
        ("first Monday of February", "2027-02-01T09:00"),
        ("last Friday of January 2028 at 10", "2028-01-28T10:00"),
        ("second to last Sunday of May", "2027-05-23T09:00"),
        ("end of month", "2026-11-30T09:00"),
        ("the last day of the month", "2026-11-30T09:00"),
        ("end of February 2028", "2028-02-29T09:00"),
        ("beginning of next week", "2026-11-30T09:00"),
        ("end of the year", "2026-12-31T09:00"),
        ("100th day of 2027", "2027-04-10T09:00"),
        ("Christmas Eve at 6pm", "2026-12-24T18:00"),
        ("Easter Monday", "2027-03-29T09:00"),
        ("black friday", "2027-11-26T09:00"),
        ("2026-12-01", "2026-12-01T09:00"),
        ("2026-12-01 17:30", "2026-12-01T17:30"),
        ("2026-12-01T17:30:00Z", "2026-12-01T18:30"),
        ("5pm Europe/London", "2026-11-28T18:00"),
        ("5pm UTC", "2026-11-28T18:00"),
    ],
)
def test_dates_are_read_in_many_forms(text: str, local: str) -> None:
    assert due(text) == [local]


@pytest.mark.parametrize(
    ("text", "now", "options"),
    [
        ("at 8", "2026-11-28T10:17", ["2026-11-29T08:00", "2026-11-28T20:00"]),
        ("at 5", "2026-11-28T04:30", ["2026-11-28T17:00", "2026-11-28T05:00"]),
        ("at 5", "2026-11-28T20:00", ["2026-11-29T17:00", "2026-11-29T05:00"]),
        ("tomorrow at 6", "2026-11-28T10:17", ["2026-11-29T18:00", "2026-11-29T06:00"]),
        ("friday night at 2", "2026-11-28T10:17", ["2026-12-04T14:00", "2026-12-05T02:00"]),
        ("tomorrow night at 2am", "2026-11-28T10:17", ["2026-11-30T02:00", "2026-11-29T02:00"]),
        ("tomorrow at midnight", "2026-11-28T10:17", ["2026-11-30T00:00", "2026-11-29T00:00"]),
        ("Saturday at noon", "2026-11-28T10:17", ["2026-11-28T12:00", "2026-12-05T12:00"]),
        ("next Friday", "2026-12-01T10:00", ["2026-12-11T09:00", "2026-12-04T09:00"]),
        ("3/4 at 5pm", "2026-11-28T10:17", ["2027-03-04T17:00", "2027-04-03T17:00"]),
        ("3.4. at 5pm", "2026-11-28T10:17", ["2027-04-03T17:00", "2027-03-04T17:00"]),
        ("28 November at 9am", "2026-11-28T10:17", ["2027-11-28T09:00"]),
        ("end of next week", "2026-11-28T10:17", ["2026-12-04T09:00", "2026-12-06T09:00"]),
        ("next month", "2026-11-28T10:17", ["2026-12-01T09:00", "2026-12-28T09:00"]),
        ("in March", "2026-11-28T10:17", ["2027-03-01T09:00"]),
        ("third Friday of the month", "2026-11-28T10:17", ["2026-12-18T09:00"]),
        ("in two weeks on Monday", "2026-11-28T10:17", ["2026-12-07T09:00", "2026-12-14T09:00"]),
        ("by Friday", "2026-11-28T10:17", ["2026-12-04T09:00"]),
        ("after 2pm", "2026-11-28T10:17", ["2026-11-28T14:00"]),
        ("tomorrow from 3 to 4pm", "2026-11-28T10:17", ["2026-11-29T15:00"]),
        ("Friday 5 December", "2026-11-28T10:17", ["2031-12-05T09:00", "2026-12-05T09:00"]),
    ],
)
def test_what_may_mean_several_times_is_asked_with_the_likeliest_first(
    text: str, now: str, options: list[str]
) -> None:
    assert offered(text, now) == options


@pytest.mark.parametrize("text", ["yesterday at 5", "5 minutes ago", "last Friday", "2020-01-01"])
def test_what_is_over_is_asked_about(text: str) -> None:
    assert asked(text).startswith("That is over: it was ")
    assert offered(text) == []


@pytest.mark.parametrize(
    "text", ["today", "soon", "in a bit", "end of day", "this week", "in November"]
)
def test_what_names_no_time_of_the_day_is_asked_about(text: str) -> None:
    assert asked(text)


def test_an_hour_that_is_over_is_not_moved_to_another_part_of_the_day() -> None:
    assert asked("this morning at 9").startswith("That is over: it was Saturday 28 November 2026")


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "blah", "5", "at", "next", "4 45", "25:00", "at 13pm", "0 am", "9:99"),
        *("30 February", "31 November", "2026-02-30", "2026-13-01", "99th", "in 5"),
        *("morgen um 9", "demain", "明日", "tomorrow and Friday", "at 555.123.4567", "5pm 6pm"),
        *("in 0/0 hours", "in 9999 years", "morning evening", "tomorrow yesterday"),
    ],
)
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    assert "every weekday at 8" in refused(text)


def test_an_abbreviation_of_several_zones_is_refused_with_a_way_out() -> None:
    assert "Europe/Berlin" in refused("tomorrow at 5pm EST")


def test_a_date_and_a_weekday_that_never_meet_are_not_read() -> None:
    assert offered("Monday 24 December 2026") == ["2026-12-24T09:00"]
    assert "Thursday 24 December 2026" in asked("Monday 24 December 2026")


def test_a_text_that_is_too_long_is_refused() -> None:
    assert "at most 300" in refused("tomorrow " * 100)


def test_the_sentence_says_the_day_and_the_time_in_full() -> None:
    answer = answered("next Friday 9am")

    assert getattr(answer, "sentence", "") == "once, on Friday 4 December 2026 at 09:00"
