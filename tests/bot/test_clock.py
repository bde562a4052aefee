"""When a machine's clock is believed, and what time it is while it is not."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from scheduler.clock.machine import CheckedClock
from tests.fakes import START, FixedClock

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def started(*, off: timedelta, is_told: bool = True) -> tuple[FixedClock, CheckedClock]:
    """A machine whose clock is so far ahead of what was stored last."""
    machine = FixedClock(START + off)
    clock = CheckedClock(machine)
    clock.compare(ms(START), is_told=is_told)
    return machine, clock


@pytest.mark.parametrize("off", [timedelta(), -HOUR, HOUR, DAY, 2 * DAY])
def test_a_clock_near_what_was_stored_last_is_believed(off: timedelta) -> None:
    machine, clock = started(off=off)

    assert clock.doubt == ""
    assert clock.now() == machine.now()


@pytest.mark.parametrize("off", [-2 * HOUR, -20_000 * DAY, 3 * DAY, 1_300 * DAY])
def test_one_far_ahead_or_behind_is_not_and_time_goes_on_from_what_is_known(
    off: timedelta,
) -> None:
    machine, clock = started(off=off)

    machine.move(60)

    assert "the last thing I stored" in clock.doubt
    assert "`/resume`" in clock.doubt
    assert clock.now() == START + timedelta(seconds=60)


def test_after_months_off_a_platform_confirms_the_time() -> None:
    machine, clock = started(off=100 * DAY)

    clock.told("Telegram", format_datetime(machine.now() + timedelta(seconds=20), usegmt=True))

    assert clock.doubt == ""
    assert clock.now() == machine.now()


def test_what_a_platform_tells_is_believed_more_than_either() -> None:
    _, clock = started(off=timedelta())

    clock.told("Telegram", format_datetime(START + 30 * DAY, usegmt=True))

    assert "30 days behind Telegram's time" in clock.doubt
    assert clock.now() == START + 30 * DAY


def test_a_clock_that_is_set_right_is_believed_again() -> None:
    machine, clock = started(off=timedelta())
    clock.told("Slack", format_datetime(START + 30 * DAY, usegmt=True))

    machine.move((30 * DAY).total_seconds())
    # The time that passed by the monotonic clock is none: only the wall's was set.
    machine._start += 30 * DAY

    assert clock.doubt == ""
    assert clock.now() == machine.now()


@pytest.mark.parametrize("date", [None, "", "yesterday", "Mon, 99 Foo 2030 99:00:00 GMT"])
def test_a_date_that_is_none_says_nothing(date: str | None) -> None:
    _, clock = started(off=timedelta())

    clock.told("Telegram", date)

    assert clock.doubt == ""


def test_the_owner_has_the_last_word() -> None:
    machine, clock = started(off=1_300 * DAY)

    was_doubted = clock.trust()
    clock.told("Telegram", format_datetime(START, usegmt=True))

    assert was_doubted
    assert not clock.trust()
    assert clock.now() == machine.now()


def test_without_a_platform_to_ask_a_month_away_is_believed() -> None:
    _, month = started(off=30 * DAY, is_told=False)
    _, year = started(off=400 * DAY, is_told=False)

    assert month.doubt == ""
    assert year.doubt != ""


def test_a_file_that_was_changed_later_is_an_older_clocks_witness(tmp_path: Path) -> None:
    file = tmp_path / "hearthbot.db"
    file.touch()
    os.utime(file, times=((START + 5 * DAY).timestamp(),) * 2)
    machine = FixedClock(START + DAY)

    clock = CheckedClock(machine, file=file)
    clock.compare(ms(START), is_told=True)

    assert "4 days behind the last change to its own database" in clock.doubt


def test_a_new_home_believes_its_machine() -> None:
    clock = CheckedClock(FixedClock(datetime(1970, 1, 1, tzinfo=UTC)))

    clock.compare(None, is_told=True)

    assert clock.doubt == ""
