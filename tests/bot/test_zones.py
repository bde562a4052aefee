"""Time zones as people name them: clear ones are taken, unclear ones are asked about."""

from __future__ import annotations

import string
from datetime import UTC, datetime
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.people.timezone import ABBREVIATIONS, CITIES, SUGGESTIONS_MAX, read_zone, zone_of

NOW = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "zone"),
    [
        ("Europe/Vienna", "Europe/Vienna"),
        ("europe/vienna", "Europe/Vienna"),
        (" america/new york ", "America/New_York"),
        ("Vienna", "Europe/Vienna"),
        ("new_york", "America/New_York"),
        ("New   York", "America/New_York"),
        ("Wien", "Europe/Vienna"),
        ("münchen", "Europe/Berlin"),
        ("São Paulo", "America/Sao_Paulo"),
        ("ZÜRICH", "Europe/Zurich"),
        ("San Francisco", "America/Los_Angeles"),
        ("Mumbai", "Asia/Kolkata"),
        ("UTC", "UTC"),
        ("+2", "Etc/GMT-2"),
        ("UTC+2", "Etc/GMT-2"),
        ("gmt -5", "Etc/GMT+5"),
        ("+02:00", "Etc/GMT-2"),
        ("+0", "Etc/UTC"),
        ("+14", "Etc/GMT-14"),
    ],
)
def test_what_is_clear_is_taken(said: str, zone: str) -> None:
    assert read_zone(said, now=NOW).zone == zone


@pytest.mark.parametrize(
    ("said", "among"),
    [
        ("Viena", "Europe/Vienna"),
        ("Europe/Viena", "Europe/Vienna"),
        ("Lodnon", "Europe/London"),
        ("san fransisco", "America/Los_Angeles"),
        ("EST", "America/New_York"),
        ("cet", "Europe/Berlin"),
        ("IST", "Asia/Kolkata"),
        ("+05:30", "Asia/Kolkata"),
        ("Washington", "America/New_York"),
    ],
)
def test_what_is_not_clear_is_asked_about(said: str, among: str) -> None:
    read = read_zone(said, now=NOW)

    assert read.zone == ""
    assert among in read.suggestions
    assert len(read.suggestions) <= SUGGESTIONS_MAX


@pytest.mark.parametrize(
    "said",
    ["", " ", "xyzzy", "+15", "-13", "+3:99", "../../etc/passwd", "/etc/localtime", "Factory",
     "localtime", "\x00", "Europe/Vienna\n/x", "V" * 65, "V" * 1_000_000],
)  # fmt: skip
def test_nonsense_is_no_zone(said: str) -> None:
    assert read_zone(said, now=NOW).zone == ""


def test_an_offset_is_on_the_side_that_was_said() -> None:
    zone = zone_of(read_zone("UTC+2", now=NOW).zone)

    assert NOW.astimezone(zone).hour == 14
    assert read_zone("UTC+2", now=NOW).is_fixed
    assert not read_zone("Vienna", now=NOW).is_fixed


def test_every_zone_that_we_name_is_in_the_database() -> None:
    named = [*CITIES, *(name for names in ABBREVIATIONS.values() for name in names.split(", "))]

    assert set(named) <= available_timezones()
    assert all(read_zone(name, now=NOW).zone == name for name in named)


def test_every_city_that_we_name_is_clear() -> None:
    for zone, cities in CITIES.items():
        for city in cities.split(", "):
            assert read_zone(city, now=NOW).zone == zone, city


@given(
    st.one_of(st.text(), st.text(alphabet=string.ascii_letters + " /_+-:0123456789", max_size=20))
)
def test_whatever_is_said_a_zone_that_is_taken_can_be_used(said: str) -> None:
    read = read_zone(said, now=NOW)

    assert all(zone_of(name) is not None for name in (read.zone or "UTC", *read.suggestions))
    assert not (read.zone and read.suggestions)


@given(st.sampled_from(sorted(available_timezones() - {"Factory", "localtime"})))
def test_every_name_of_the_database_is_itself_in_any_case(name: str) -> None:
    if name.upper() in ABBREVIATIONS:
        return

    assert read_zone(name.lower(), now=NOW).zone.lower() in {name.lower(), "etc/utc"} or (
        name.startswith(("Etc/GMT", "GMT"))
    )
