"""Repetitions: how they are read, what is asked about, and what cannot be kept."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from memory.records.recurrence import Cron, Every
from memory.records.schedule import TimeAsked, TimeRead
from scheduler.clock.recurrence import next_slots
from scheduler.timetext.parse import due as due_times
from tests.scheduler.words.asked import BERLIN, answered, asked, due, refused


def read(text: str) -> TimeRead:
    answer = answered(text)
    assert isinstance(answer, TimeRead), f"{text}: {answer}"
    return answer


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("every weekday at 8", "0 8 * * 1-5"),
        ("Mon-Fri at 9:15", "15 9 * * 1-5"),
        ("every day from Monday to Friday", "0 9 * * 1-5"),
        ("weekends at 10am", "0 10 * * 0,6"),
        ("daily", "0 9 * * *"),
        ("every day at noon", "0 12 * * *"),
        ("every morning", "0 9 * * *"),
        ("each evening at 8", "0 20 * * *"),
        ("every day at 9 and 21", "0 9,21 * * *"),
        ("every weekday at 8:30, 12:30 and 17:30", "30 8,12,17 * * 1-5"),
        ("every Monday, Wednesday and Friday at 7am", "0 7 * * 1,3,5"),
        ("Tuesdays & Thursdays", "0 9 * * 2,4"),
        ("every Friday to Sunday", "0 9 * * 0,5,6"),
        ("every Sunday night", "0 21 * * 0"),
        ("once a week on Saturday", "0 9 * * 6"),
        ("every day except Sunday", "0 9 * * 1,2,3,4,5,6"),
        ("every weekday but not on Fridays", "0 9 * * 1,2,3,4"),
        ("on the 15th of every month at 10am", "0 10 15 * *"),
        ("monthly on the 1st and 15th", "0 9 1,15 * *"),
        ("every 31st", "0 9 31 * *"),
        ("last day of each month at 17:00", "0 17 L * *"),
        ("first Monday of each month at 9", "0 9 * * 1#1"),
        ("every first Friday", "0 9 * * 5#1"),
        ("second and fourth Tuesday of the month at noon", "0 12 * * 2#2,2#4"),
        ("weekday mornings at 7", "0 7 * * 1-5"),
        ("every second Tuesday of the month", "0 9 * * 2#2"),
        ("2nd and last Friday of every month", "0 9 * * 5#2,5L"),
        ("every year on 5 May", "0 9 5 5 *"),
        ("every May 5th at 8am", "0 8 5 5 *"),
        ("every first Monday of January", "0 9 * 1 1#1"),
        ("every first Monday of every month", "0 9 * * 1#1"),
        ("every 12 months on 5 May", "0 9 5 5 *"),
        ("every second day of the month", "0 9 2 * *"),
        ("every night at 2am", "0 2 * * *"),
        ("every Friday night at 11pm", "0 23 * * 5"),
        ("every Christmas", "0 9 25 12 *"),
        ("yearly on the last Sunday in March", "0 9 * 3 0L"),
        ("daily except in July and August", "0 9 * 1,2,3,4,5,6,9,10,11,12 *"),
        ("every hour between 9 and 17", "0 9-17 * * *"),
        ("every 2 hours from 8 to 20 on weekdays", "0 8-20/2 * * 1-5"),
        ("every 15 minutes between 9am and 5pm", "*/15 9-16 * * *"),
        ("0 9 * * mon-fri", "0 9 * * MON-FRI"),
        ("@weekly", "0 0 * * 0"),
    ],
)
def test_what_cron_text_can_say_becomes_cron_text(text: str, expression: str) -> None:
    when = read(text).when

    assert isinstance(when, Cron)
    assert (when.expression, when.zone) == (expression, "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("every second Friday", "2026-12-04T09:00", "2026-12-18T09:00"),
        ("every 3 weeks on Monday at 7pm", "2026-11-30T19:00", "2026-12-21T19:00"),
        ("every other week on Mon and Thu", "2026-11-30T09:00", "2026-12-03T09:00"),
        ("every other day at 8pm", "2026-11-28T20:00", "2026-11-30T20:00"),
        ("every 5 days", "2026-11-29T09:00", "2026-12-04T09:00"),
        ("every other month on the 6th", "2026-12-06T09:00", "2027-02-06T09:00"),
        ("first Monday of every 3 months", "2026-12-07T09:00", "2027-03-01T09:00"),
        ("every 4 years on 29 February", "2028-02-29T09:00", "2032-02-29T09:00"),
        ("every 3 hours", "2026-11-28T13:17", "2026-11-28T16:17"),
        ("every hour and a half", "2026-11-28T11:47", "2026-11-28T13:17"),
        ("alternate Fridays at 6pm", "2026-12-04T18:00", "2026-12-18T18:00"),
        ("every half hour", "2026-11-28T10:47", "2026-11-28T11:17"),
        ("hourly", "2026-11-28T11:17", "2026-11-28T12:17"),
        ("every 90 minutes starting tomorrow", "2026-11-29T00:00", "2026-11-29T01:30"),
        ("every 3 days starting 24 December", "2026-12-24T09:00", "2026-12-27T09:00"),
    ],
)
def test_longer_steps_begin_with_the_first_that_is_ahead(
    text: str, first: str, second: str
) -> None:
    assert isinstance(read(text).when, Every)
    assert due(text)[:2] == [first, second]


def test_limits_end_the_runs() -> None:
    now = datetime(2026, 11, 28, 10, 17, tzinfo=BERLIN)

    def all_due(text: str) -> list[str]:
        return [
            f"{at.astimezone(BERLIN):%m-%d}" for at in due_times(read(text), after=now, count=50)
        ]

    assert all_due("Mondays for 3 times") == ["11-30", "12-07", "12-14"]
    assert all_due("every day at 12:00 2 times") == ["11-28", "11-29"]
    assert all_due("every Monday until 14 December") == ["11-30", "12-07", "12-14"]
    assert all_due("every Monday until December") == ["11-30"]
    assert all_due("every day for 3 days") == ["11-29", "11-30", "12-01"]
    assert all_due("every Monday for the next two weeks") == ["11-30", "12-07"]
    assert all_due("every Friday starting 10 December for two times") == ["12-11", "12-18"]
    assert all_due("every Monday from December 10 to December 20") == ["12-14"]


def test_the_sentence_says_all_of_it() -> None:
    assert read("every second Friday at 18:00").sentence == (
        "every 2 weeks on Friday at 18:00, beginning on Friday 4 December 2026"
    )
    assert read("every weekday at 8 and 17 until 1 March").sentence == (
        "every weekday (Monday to Friday) at 08:00 and 17:00, until 2027-03-01"
    )
    assert "left out where a month has no such day" in read("monthly on the 30th").sentence
    assert read("daily except in August").sentence == "every day at 09:00, not in August"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weekly", "On which day?"),
        ("every month", "On which day?"),
        ("every 2 weeks", "every 2 weeks on Saturday"),
        ("once a year", "On which day?"),
        ("twice a day", "At which times?"),
        ("three times a week", "On which days?"),
        ("biweekly", "Every two weeks, or twice a week?"),
        ("every day at 5", "At 05:00 or at 17:00?"),
        ("every weekday at 6:30", "At 06:30 or at 18:30?"),
        ("monthly on Tuesday", "Which Tuesday of the month?"),
        ("every year on the 5th", "In which month?"),
        ("Monday and Thursday at 9", "or only the next time?"),
        ("monday every month at 9", "Which Monday of the month?"),
        ("5 may monthly", "Every month, or in May alone?"),
        ("first Monday of January every month at 8", "Every month, or in January alone?"),
        ("every 3 months on 5 May", "Every 3 months, or in May alone?"),
        ("every 3 days of the month", "Every month on the 3rd, or every 3 days?"),
        ("twice every Monday", "At which times?"),
        ("every Friday night at 1am", "After midnight the next day has begun"),
        ("every Saturday night at 2", "After midnight the next day has begun"),
    ],
)
def test_what_leaves_a_day_or_a_time_open_is_asked_about(text: str, said: str) -> None:
    assert said in asked(text)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("weekly at 10", ["every Saturday at 10:00"]),
        ("every month", ["every month on the 28th at 09:00"]),
        ("once a year", ["every year on the 28th of November at 09:00"]),
        ("every day at 5", ["every day at 05:00", "every day at 17:00"]),
        ("daily at 9 and 11pm", ["every day at 09:00 and 23:00", "every day at 21:00 and 23:00"]),
        ("Monday and Thursday at 9", ["every Monday and Thursday at 09:00"]),
        ("every day 3 times", ["every day at 09:00, 3 times"]),
    ],
)
def test_a_question_about_a_repetition_offers_what_may_be_meant(
    text: str, options: list[str]
) -> None:
    answer = answered(text)

    assert isinstance(answer, TimeAsked)
    assert [one.sentence for one in answer.options] == options
    assert all(one.next for one in answer.options)


def test_a_repetition_of_which_nothing_lies_ahead_is_asked_about() -> None:
    assert "nothing lies ahead" in asked("every Monday until tomorrow")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("every 30 seconds", "The shortest step is a minute"),
        ("every day except tomorrow", "Single days cannot be left out"),
        ("every 7 minutes between 9 and 17", "does not fit evenly into an hour"),
        ("every hour from 9:30 to 17", "from a full hour"),
        ("every weekday at 8 and 17:30", "have the same minutes"),
        ("second to last day of each month", "Counting from the end"),
        ("every Friday in week 12", "weeks of a year"),
        ("every Easter", "not the same each time"),
        ("0 9 31 2 *", "At character 5"),
        ("61 * * * *", "minute is 0 to 59"),
        ("@fortnightly", "@weekly"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(text: str, said: str) -> None:
    assert said in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        *("every", "every birthday", "every 0 minutes", "every 99999 hours", "starting 1 March"),
        *("from May to July", "twice", "every day every week", "every time"),
        *(
            "1 March every week",
            "every day on 1 March",
            "every week on the 5th",
            "every day on Monday",
        ),
        *("every evening at 9am", "every morning at 9pm", "every Monday in January"),
    ],
)
def test_what_is_no_repetition_is_refused(text: str) -> None:
    assert "Times look like" in refused(text)


def test_a_very_long_step_is_found_without_walking_there() -> None:
    when = read("every 9999 weeks on Tuesday").when

    first, second = next_slots(when, after=datetime(2026, 11, 28, tzinfo=UTC), n=2)

    days = date.fromisoformat(second.local[:10]) - date.fromisoformat(first.local[:10])
    assert days.days == 9999 * 7
