"""Times that hang on a clock on a wall, and the same ones on another wall."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.records.recurrence import At, Cron, Every, RecurrenceUnit, When
from memory.records.schedule import TimeAnswer, TimeAsked, TimeRead
from scheduler.clock.misfire import first_due
from scheduler.jobs.times import ANYWHERE_MAX, Anywhere
from scheduler.jobs.zone_moves import go_alike, on_wall, rehung
from scheduler.timetext.parse import read

BERLIN, TOKYO, VIENNA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo"), ZoneInfo("Europe/Vienna")
NEW_YORK, LAGOS = ZoneInfo("America/New_York"), ZoneInfo("Africa/Lagos")
NOW = datetime(2026, 11, 28, 13, 32, 17, tzinfo=UTC)

ZONES = (BERLIN, TOKYO, NEW_YORK, ZoneInfo("Asia/Kolkata"), ZoneInfo("Australia/Lord_Howe"))
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1)).map(
    lambda moment: moment.replace(second=0, microsecond=0, tzinfo=UTC)
)


def answered(text: str, zone: ZoneInfo, *, now: datetime = NOW) -> TimeAnswer:
    return read(text, now=now, zone=zone)


def noted(text: str, zone: ZoneInfo = BERLIN) -> list[bool]:
    """Whether each reading of it is the same anywhere."""
    anywhere, answer = Anywhere(), answered(text, zone)
    # Read again a moment later, as it is in fact.
    later = NOW + timedelta(seconds=1)
    anywhere.note(answer, zone, lambda far: answered(text, far, now=later))
    readings = answer.options if isinstance(answer, TimeAsked) else (answer,)
    return [isinstance(one, TimeRead) and one.when in anywhere for one in readings]


@pytest.mark.parametrize(
    "text",
    ["in 10 minutes", "in 2 hours", "in 90 seconds", "every 2 hours", "every 15 minutes",
     "tomorrow at 9 Asia/Tokyo", "every day at 8 Europe/Berlin", "2026-12-01T09:00+01:00"],
)  # fmt: skip
def test_what_passes_or_names_its_zone_is_the_same_anywhere(text: str) -> None:
    assert noted(text) == [True]


@pytest.mark.parametrize(
    "text",
    ["tomorrow at 9", "tomorrow", "tonight", "at 17:00", "every day at 8", "every other day",
     "0 8 * * *", "2026-12-01T09:00", "in 3 days at 10:00", "every 2 hours between 9 and 17"],
)  # fmt: skip
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu", "Etc/GMT+12", "UTC"])
def test_what_names_a_time_of_the_day_is_not(text: str, zone: str) -> None:
    assert noted(text, ZoneInfo(zone)) == [False]


def test_of_a_time_that_may_mean_two_neither_is() -> None:
    assert noted("at 12") == noted("saturday 3 to 4pm") == [False, False]


def test_readings_are_forgotten_when_there_are_many() -> None:
    anywhere = Anywhere()
    kept = [
        TimeRead(when=At(moment=NOW + timedelta(minutes=n), zone="UTC"), sentence="once")
        for n in range(ANYWHERE_MAX + 1)
    ]

    for one in kept:
        anywhere.note(one, BERLIN, lambda far, one=one: one)  # type: ignore[misc]

    assert kept[0].when not in anywhere
    assert kept[-1].when in anywhere


@given(MOMENTS, st.sampled_from(ZONES), st.sampled_from(ZONES))
def test_the_other_clock_shows_what_the_first_one_did(
    moment: datetime, here: ZoneInfo, there: ZoneInfo
) -> None:
    moved = rehung(moment, here, there)

    before = moment.astimezone(here).replace(tzinfo=None)
    after = moved.astimezone(there).replace(tzinfo=None)
    gap = after - before
    assert timedelta(0) <= gap <= timedelta(hours=1), "a time that the other one leaves out"
    assert moved.utcoffset() is not None


@pytest.mark.parametrize(
    ("when", "first"),
    [
        (At(moment=datetime(2026, 11, 29, 8, 0, tzinfo=UTC), zone="Europe/Berlin"), "00:00"),
        (Cron(expression="0 9 * * *", zone="Europe/Berlin"), "00:00"),
        (
            Every(
                count=2,
                unit=RecurrenceUnit.DAY,
                start=datetime(2026, 11, 29, 8, 0, tzinfo=UTC),
                zone="Europe/Berlin",
                pattern="0 9 * * *",
            ),
            "00:00",
        ),
        (
            Every(
                count=2,
                unit=RecurrenceUnit.HOUR,
                start=datetime(2026, 11, 28, 14, 5, tzinfo=UTC),
                zone="Europe/Berlin",
            ),
            "14:05",
        ),
    ],
)
def test_nine_in_berlin_becomes_nine_in_tokyo_and_what_passes_stays(when: When, first: str) -> None:
    due = first_due(on_wall(when, TOKYO), after=NOW)

    assert due is not None
    assert f"{datetime.fromtimestamp(due.at_ms / 1000, UTC):%H:%M}" == first


def test_a_zone_that_is_not_known_any_more_is_an_error() -> None:
    with pytest.raises(LookupError):
        on_wall(Cron(expression="0 9 * * *", zone="Mars/Olympus"), TOKYO)


def test_clocks_that_differ_in_summer_alone_do_not_go_alike() -> None:
    assert go_alike(BERLIN, VIENNA, now=NOW)
    assert not go_alike(BERLIN, LAGOS, now=NOW)
    assert not go_alike(BERLIN, TOKYO, now=NOW)
