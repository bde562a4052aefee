"""Times in plain words: how they are read, what is asked about, and what is refused; and the time
in a sentence. In Berlin, on a Saturday morning unless said otherwise."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory.records.jobs import Cron, Every, from_json, to_json
from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeFound, TimeRead
from scheduler.clock.recurrence import next_slots, slot_of
from scheduler.timetext.parse import due as due_times
from scheduler.timetext.parse import find, read

BERLIN = ZoneInfo("Europe/Berlin")
SATURDAY = "2026-11-28T10:17"


def answered(text: str, now: str = SATURDAY, zone: ZoneInfo = BERLIN) -> TimeAnswer:
    return read(text, now=datetime.fromisoformat(now).replace(tzinfo=zone), zone=zone)


def due(text: str, now: str = SATURDAY) -> list[str]:
    """The next slots of what is read without a question."""
    answer = answered(text, now)
    assert isinstance(answer, TimeRead), f"{text}: {answer}"
    return walls(answer)


def walls(time: TimeRead) -> list[str]:
    """The next slots, as the wall clock of its zone shows them."""
    return [slot_of(at, ZoneInfo(time.when.zone)).local for at in time.next]


def offered(text: str, now: str = SATURDAY) -> list[str]:
    """The first slot of each reading that is offered with a question."""
    answer = answered(text, now)
    assert isinstance(answer, TimeAsked), f"{text}: {answer}"
    return [walls(one)[0] for one in answer.options]


def asked(text: str, now: str = SATURDAY) -> str:
    answer = answered(text, now)
    assert isinstance(answer, TimeAsked), f"{text}: {answer}"
    return answer.text


def refused(text: str, now: str = SATURDAY) -> str:
    answer = answered(text, now)
    assert isinstance(answer, NoTime), f"{text}: {answer}"
    return answer.why


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("in 2 hours", "2026-11-28T12:17"),
        ("in an hour and a half", "2026-11-28T11:47"),
        ("in 2h30", "2026-11-28T12:47"),
        ("in 45 seconds", "2026-11-28T10:17:45"),
        ("in 3 days", "2026-12-01T10:17"),
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
        ("9:05", "2026-11-28T21:05"),
        ("09:05", "2026-11-29T09:05"),
        ("5 pm", "2026-11-28T17:00"),
        ("at 1530", "2026-11-28T15:30"),
        ("half past six", "2026-11-28T18:30"),
        ("ten to noon", "2026-11-28T11:50"),
        ("two hours before 5pm", "2026-11-28T15:00"),
        ("quarter past 4", "2026-11-28T16:15"),
        ("midnight", "2026-11-29T00:00"),
        ("7am", "2026-11-29T07:00"),
        ("tonight at 8", "2026-11-28T20:00"),
        ("tonight at 2am", "2026-11-29T02:00"),
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
        ("tomorrow evening", "2026-11-29T19:00"),
        ("Monday", "2026-11-30T09:00"),
        ("next Friday 9am", "2026-12-04T09:00"),
        ("Tuesday of next week at noon", "2026-12-01T12:00"),
        ("a week from Tuesday", "2026-12-08T09:00"),
        ("Monday week", "2026-12-07T09:00"),
        ("three Fridays from now", "2026-12-18T09:00"),
        ("next weekend", "2026-12-05T09:00"),
        ("two days before New Year's Eve", "2026-12-29T09:00"),
    ],
)
def test_a_day_without_a_time_begins_at_nine(text: str, local: str) -> None:
    assert due(text) == [local]


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("on the 3rd of March", "2027-03-03T09:00"),
        ("Friday, 4 December", "2026-12-04T09:00"),
        ("Friday the 13th", "2027-08-13T09:00"),
        ("12/24", "2026-12-24T09:00"),
        ("24.12.", "2026-12-24T09:00"),
        ("29 February", "2028-02-29T09:00"),
        ("on the 31st", "2026-12-31T09:00"),
        ("next month on the 5th", "2026-12-05T09:00"),
        ("first Monday of February", "2027-02-01T09:00"),
        ("second to last Sunday of May", "2027-05-23T09:00"),
        ("end of month", "2026-11-30T09:00"),
        ("beginning of next week", "2026-11-30T09:00"),
        ("100th day of 2027", "2027-04-10T09:00"),
        ("Easter Monday", "2027-03-29T09:00"),
        ("black friday", "2027-11-26T09:00"),
        ("2026-12-01 17:30", "2026-12-01T17:30"),
        ("2026-12-01T17:30:00Z", "2026-12-01T18:30"),
        ("5pm Europe/London", "2026-11-28T18:00"),
    ],
)
def test_dates_are_read_in_many_forms(text: str, local: str) -> None:
    assert due(text) == [local]


@pytest.mark.parametrize(
    ("text", "now", "options"),
    [
        ("at 8", "2026-11-28T10:17", ["2026-11-29T08:00", "2026-11-28T20:00"]),
        ("at 5", "2026-11-28T20:00", ["2026-11-29T17:00", "2026-11-29T05:00"]),
        ("tomorrow at 6", "2026-11-28T10:17", ["2026-11-29T18:00", "2026-11-29T06:00"]),
        ("friday night at 2", "2026-11-28T10:17", ["2026-12-04T14:00", "2026-12-05T02:00"]),
        ("tomorrow at midnight", "2026-11-28T10:17", ["2026-11-30T00:00", "2026-11-29T00:00"]),
        ("Saturday at noon", "2026-11-28T10:17", ["2026-11-28T12:00", "2026-12-05T12:00"]),
        ("next Friday", "2026-12-01T10:00", ["2026-12-11T09:00", "2026-12-04T09:00"]),
        ("3/4 at 5pm", "2026-11-28T10:17", ["2027-03-04T17:00", "2027-04-03T17:00"]),
        ("end of next week", "2026-11-28T10:17", ["2026-12-04T09:00", "2026-12-06T09:00"]),
        ("next month", "2026-11-28T10:17", ["2026-12-01T09:00", "2026-12-28T09:00"]),
        ("third Friday of the month", "2026-11-28T10:17", ["2026-12-18T09:00"]),
        ("in two weeks on Monday", "2026-11-28T10:17", ["2026-12-07T09:00", "2026-12-14T09:00"]),
        ("by Friday", "2026-11-28T10:17", ["2026-12-04T09:00"]),
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


def reading(text: str) -> TimeRead:
    answer = answered(text)
    assert isinstance(answer, TimeRead), f"{text}: {answer}"
    return answer


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("every weekday at 8", "0 8 * * 1-5"),
        ("every day from Monday to Friday", "0 9 * * 1-5"),
        ("daily", "0 9 * * *"),
        ("every morning", "0 9 * * *"),
        ("every weekday at 8:30, 12:30 and 17:30", "30 8,12,17 * * 1-5"),
        ("Tuesdays & Thursdays", "0 9 * * 2,4"),
        ("every Sunday night", "0 21 * * 0"),
        ("every day except Sunday", "0 9 * * 1,2,3,4,5,6"),
        ("every weekday but not on Fridays", "0 9 * * 1,2,3,4"),
        ("on the 15th of every month at 10am", "0 10 15 * *"),
        ("monthly on the 1st and 15th", "0 9 1,15 * *"),
        ("last day of each month at 17:00", "0 17 L * *"),
        ("first Monday of each month at 9", "0 9 * * 1#1"),
        ("2nd and last Friday of every month", "0 9 * * 5#2,5L"),
        ("every year on 5 May", "0 9 5 5 *"),
        ("every first Monday of January", "0 9 * 1 1#1"),
        ("every 12 months on 5 May", "0 9 5 5 *"),
        ("every second day of the month", "0 9 2 * *"),
        ("every Christmas", "0 9 25 12 *"),
        ("yearly on the last Sunday in March", "0 9 * 3 0L"),
        ("daily except in July and August", "0 9 * 1,2,3,4,5,6,9,10,11,12 *"),
        ("every hour between 9 and 17", "0 9-17 * * *"),
        ("every 2 hours from 8 to 20 on weekdays", "0 8-20/2 * * 1-5"),
        ("0 9 * * mon-fri", "0 9 * * MON-FRI"),
        ("@weekly", "0 0 * * 0"),
    ],
)
def test_what_cron_text_can_say_becomes_cron_text(text: str, expression: str) -> None:
    when = reading(text).when

    assert isinstance(when, Cron)
    assert (when.expression, when.zone) == (expression, "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("every second Friday", "2026-12-04T09:00", "2026-12-18T09:00"),
        ("every other week on Mon and Thu", "2026-11-30T09:00", "2026-12-03T09:00"),
        ("every other day at 8pm", "2026-11-28T20:00", "2026-11-30T20:00"),
        ("every other month on the 6th", "2026-12-06T09:00", "2027-02-06T09:00"),
        ("every 4 years on 29 February", "2028-02-29T09:00", "2032-02-29T09:00"),
        ("every 3 hours", "2026-11-28T13:17", "2026-11-28T16:17"),
        ("every hour and a half", "2026-11-28T11:47", "2026-11-28T13:17"),
        ("every 90 minutes starting tomorrow", "2026-11-29T00:00", "2026-11-29T01:30"),
    ],
)
def test_longer_steps_begin_with_the_first_that_is_ahead(
    text: str, first: str, second: str
) -> None:
    assert isinstance(reading(text).when, Every)
    assert due(text)[:2] == [first, second]


def test_limits_end_the_runs() -> None:
    now = datetime(2026, 11, 28, 10, 17, tzinfo=BERLIN)

    def all_due(text: str) -> list[str]:
        return [
            f"{at.astimezone(BERLIN):%m-%d}" for at in due_times(reading(text), after=now, count=50)
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
    assert reading("every second Friday at 18:00").sentence == (
        "every 2 weeks on Friday at 18:00, beginning on Friday 4 December 2026"
    )
    assert reading("every weekday at 8 and 17 until 1 March").sentence == (
        "every weekday (Monday to Friday) at 08:00 and 17:00, until 2027-03-01"
    )
    assert "left out where a month has no such day" in reading("monthly on the 30th").sentence
    assert reading("daily except in August").sentence == "every day at 09:00, not in August"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weekly", "On which day?"),
        ("every month", "On which day?"),
        ("twice a day", "At which times?"),
        ("biweekly", "Every two weeks, or twice a week?"),
        ("every day at 5", "At 05:00 or at 17:00?"),
        ("monthly on Tuesday", "Which Tuesday of the month?"),
        ("every year on the 5th", "In which month?"),
        ("Monday and Thursday at 9", "or only the next time?"),
        ("5 may monthly", "Every month, or in May alone?"),
        ("every 3 days of the month", "Every month on the 3rd, or every 3 days?"),
        ("twice every Monday", "At which times?"),
        ("every Friday night at 1am", "After midnight the next day has begun"),
    ],
)
def test_what_leaves_a_day_or_a_time_open_is_asked_about(text: str, said: str) -> None:
    assert said in asked(text)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("weekly at 10", ["every Saturday at 10:00"]),
        ("every month", ["every month on the 28th at 09:00"]),
        ("daily at 9 and 11pm", ["every day at 09:00 and 23:00", "every day at 21:00 and 23:00"]),
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
    when = reading("every 9999 weeks on Tuesday").when

    first, second = next_slots(when, after=datetime(2026, 11, 28, tzinfo=UTC), n=2)

    days = date.fromisoformat(second.local[:10]) - date.fromisoformat(first.local[:10])
    assert days.days == 9999 * 7


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
        ("me and Ann eat tomorrow at 5", "tomorrow at 5", "me and Ann eat", "11-29T17:00"),
        ("Remind me in 2 hours to eat", "in 2 hours", "eat", "11-28T12:17"),
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
        "remind me about Christmas presents on December 1st",
        "remind me to invite everybody except Ann on Friday every year",
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


SAID = (
    "in at on the every each second first last other next this monday fridays may 3 5 15th 30 2026 "
    "9999 am pm : - / , . of to from until for times twice weeks days hours minutes month year "
    "tomorrow tonight noon midnight morning evening before after past quarter half an a and except "
    "starting weekend weekdays christmas easter 1/2 12:30 17h 9:99 0 2026-12-01 ago utc est "
    "Europe/Berlin end beginning 31st february remind me @daily * */5 0-7"
)
WORDS = SAID.split()
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "Pacific/Apia", "America/Santiago")]
MOMENTS = (
    *(datetime(2026, 11, 28, 10, 17), datetime(2028, 2, 29, 23, 59, 59)),
    *(datetime(2026, 3, 29, 1, 30), datetime(2999, 12, 30), datetime(1970, 1, 2)),
)


def test_any_row_of_words_is_answered_and_what_is_read_lies_ahead() -> None:
    chance = random.Random(20261128)
    for _ in range(500):
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 9)))
        zone = chance.choice(ZONES)
        now = chance.choice(MOMENTS).replace(tzinfo=zone)

        answer = read(text, now=now, zone=zone)
        find(f"remind me to go {text}", now=now, zone=zone)

        readings = answer.options if isinstance(answer, TimeAsked) else ()
        if isinstance(answer, TimeRead):
            readings = (answer,)
            assert answer.next, text
        for one in readings:
            times = list(one.next)
            assert times == sorted(set(times)), text
            assert all(at >= now.astimezone(UTC) - timedelta(seconds=1) for at in times), text
            assert from_json(to_json(one.when)) == one.when


def test_words_that_could_be_read_in_very_many_ways_do_not_hold_it_up() -> None:
    now = datetime(2026, 11, 28, 10, 17, tzinfo=UTC)
    for part in ("at 5, ", "1,", "monday and ", "until monday ", "half past ", "1 hour ", "5:30,"):
        answer = read((part * 300)[:300], now=now, zone=ZoneInfo("UTC"))
        find((part * 2_000)[:2_000], now=now, zone=ZoneInfo("UTC"))

        assert isinstance(answer, NoTime | TimeAsked | TimeRead)


def test_of_two_days_at_one_hour_the_day_alone_is_asked() -> None:
    now = datetime(2026, 11, 28, 10, 17, tzinfo=UTC)

    answer = read("3/4 at 5", now=now, zone=ZoneInfo("UTC"))

    assert isinstance(answer, TimeAsked)
    assert {one.next[0].hour for one in answer.options} == {17}
    assert len(answer.options) == 2
    assert "morning" not in answer.text
    assert answer.text


def test_the_same_words_mean_other_moments_elsewhere() -> None:
    now = datetime(2026, 11, 28, 23, 30, tzinfo=UTC)

    def moment(zone: str) -> datetime:
        answer = read("tomorrow at 9am", now=now, zone=ZoneInfo(zone))
        assert isinstance(answer, TimeRead)
        return answer.next[0]

    assert moment("UTC") == datetime(2026, 11, 29, 9, tzinfo=UTC)
    assert moment("Asia/Tokyo") == datetime(2026, 11, 30, 0, tzinfo=UTC)
    assert moment("America/New_York") == datetime(2026, 11, 29, 14, tzinfo=UTC)


def test_as_many_next_times_as_are_wanted_are_shown() -> None:
    now = datetime(2026, 11, 28, tzinfo=UTC)

    many = read("every day at 9", now=now, zone=ZoneInfo("UTC"), count=10)
    few = read("daily for two times", now=now, zone=ZoneInfo("UTC"), count=10)

    assert isinstance(many, TimeRead)
    assert isinstance(few, TimeRead)
    assert (len(many.next), len(few.next), few.runs_max) == (10, 2, 2)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize(
    "text",
    [
        "31 December 9999 at 23:59",
        "every day until 9999-12-31",
        "1 jan 0001",
        "0001-01-01T00:00",
        "9999-12-31 23:00 every 3 days",
    ],
)
def test_times_at_the_ends_of_the_calendar_break_nothing(text: str, zone: str) -> None:
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)

    answer = read(text, now=now, zone=ZoneInfo(zone))
    phrase = find(f"call mum {text}", now=now, zone=ZoneInfo(zone))

    assert isinstance(answer, NoTime | TimeRead | TimeAsked)
    assert phrase is None or isinstance(phrase.answer, NoTime | TimeRead | TimeAsked)
