"""Which times hang on the clock on a person's wall, and what they are on another one.

Used by the clerk, who reads times, and by whoever moves what was read on the wrong wall.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import assert_never
from zoneinfo import ZoneInfo

from agent.jobbook import TimeAnswer, TimeAsked, TimeRead
from agent.jobs import At, Cron, Every, When
from scheduler.cron import wall_moment

KEPT_MAX = 500
"""Readings that are kept until they are used; the oldest go."""

MOMENT = timedelta(seconds=2)
"""Two readings of 'in 10 minutes' lie no further apart; a step in minutes begins on a full one."""

_FAR = (ZoneInfo("Asia/Kathmandu"), ZoneInfo("Pacific/Marquesas"))
"""Zones in whose time hardly anybody's 8 in the morning is 8, or 8 in the evening."""


class Anywhere:
    """Readings that mean the same wherever their person is: in 10 minutes, at 9 in Tokyo.

    They are told by reading the same words in a far zone. Kept in memory: what was read before a
    restart is read anew before it is used.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[TimeRead, None] = OrderedDict()

    def note(
        self, answer: TimeAnswer, zone: ZoneInfo, again: Callable[[ZoneInfo], TimeAnswer]
    ) -> None:
        """Looks at what was read in `zone`; `again` reads it in another one."""
        readings = _readings(answer)
        if not readings:
            return
        far = _readings(again(next(one for one in _FAR if one != zone)))
        for reading in readings:
            self._kept.pop(reading, None)
            if any(_is_same(reading.when, other.when) for other in far):
                self._kept[reading] = None
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)

    def __contains__(self, time: TimeRead) -> bool:
        return time in self._kept or _passes(time.when)


def _readings(answer: TimeAnswer) -> tuple[TimeRead, ...]:
    match answer:
        case TimeRead():
            return (answer,)
        case TimeAsked(options=options):
            return options
        case _:
            return ()


def _is_same(here: When, there: When) -> bool:
    """Of two readings of the same words in two zones."""
    if isinstance(here, At) and isinstance(there, At):
        return abs(here.moment - there.moment) <= MOMENT
    return type(here) is type(there) and here.zone == there.zone


def _passes(when: When) -> bool:
    """Whether it is counted in time that passes."""
    return isinstance(when, Every) and when.unit.passes


def on_wall(when: When, zone: ZoneInfo) -> When:
    """The same times of the day on the wall of `zone`. Raises LookupError, ValueError or OSError
    where the zone that it has is not known (any more)."""
    here = ZoneInfo(when.zone)
    match when:
        case At():
            return At(moment=rehung(when.moment, here, zone), zone=zone.key)
        case Every():
            if _passes(when):
                return when
            return replace(when, start=rehung(when.start, here, zone), zone=zone.key)
        case Cron():
            start = None if when.start is None else rehung(when.start, here, zone)
            return replace(when, start=start, zone=zone.key)
    assert_never(when)


def rehung(moment: datetime, here: ZoneInfo, there: ZoneInfo) -> datetime:
    """When the clock `there` shows what the one `here` shows at an aware moment."""
    return wall_moment(moment.astimezone(here).replace(tzinfo=None, fold=0), there)


def go_alike(one: ZoneInfo, other: ZoneInfo, *, now: datetime) -> bool:
    """Whether two clocks show the same from now on, for a year."""
    days = (now.astimezone(UTC) + timedelta(days=7 * week) for week in range(54))
    return all(day.astimezone(one).utcoffset() == day.astimezone(other).utcoffset() for day in days)
