"""Hours of the day: a person's quiet hours, and those in which the heartbeat is active. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

MINUTES_OF_DAY = 24 * 60

_HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(?:-|–|—|to|until)\s*(\d{1,2})(?::(\d{2}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursOfDay:
    """From one minute of the day up to another, which may be on the next day."""

    from_minute: int
    to_minute: int

    def __str__(self) -> str:
        return f"{_spelled(self.from_minute)}-{_spelled(self.to_minute)}"

    def holds(self, moment: datetime, zone: tzinfo) -> bool:
        """Return whether the wall clock of this zone shows one of these minutes."""
        local = moment.astimezone(zone)
        minute = local.hour * 60 + local.minute
        if self.from_minute <= self.to_minute:
            return self.from_minute <= minute < self.to_minute
        return minute >= self.from_minute or minute < self.to_minute

    def end(self, moment: datetime, zone: tzinfo) -> datetime:
        """Return when they are over next; the moment itself where they do not hold.

        A minute that a change of clocks leaves out is over right after the gap.
        """
        if not self.holds(moment, zone):
            return moment
        local = moment.astimezone(zone).replace(second=0, microsecond=0, tzinfo=None)
        until = local.replace(hour=self.to_minute // 60, minute=self.to_minute % 60)
        if until <= local:
            until += timedelta(days=1)
        return until.replace(tzinfo=zone).astimezone(moment.tzinfo)


def read_hours(text: str) -> HoursOfDay | None:
    """Read `22:00-07:00`, `22-7` or `22:00 to 7:00`; None when it is none."""
    found = _HOURS.fullmatch(text.strip().casefold())
    if found is None:
        return None
    start, end = _minute(found[1], found[2]), _minute(found[3], found[4])
    if start is None or end is None or start == end:
        return None
    return HoursOfDay(from_minute=start, to_minute=end)


def _minute(hour: str, minute: str | None) -> int | None:
    hours, minutes = int(hour), int(minute or 0)
    if minutes > 59 or hours > 24 or (hours == 24 and minutes):
        return None
    return (hours * 60 + minutes) % MINUTES_OF_DAY


def _spelled(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
