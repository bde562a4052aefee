"""Whatever is typed is answered, quickly, and with times that lie ahead."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory.records.recurrence import from_json, to_json
from memory.records.schedule import NoTime, TimeAsked, TimeRead
from scheduler.timetext.parse import find, read

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
