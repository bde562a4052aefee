"""Which hour is meant where neither am nor pm is said.

An hour without either lies between 7 in the morning and 7 in the evening: 8 is 08:00, 5 is 17:00.
Of 6 nobody knows; of what is repeated every day, it is asked for 5 too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time

from scheduler.words.pieces import Clock, Part

DAY_BEGINS = 7
EITHER_HALF = 6
"""An hour that is as likely meant in the morning as in the evening."""

EITHER_HALF_DAILY = (5, 6)
"""Of what comes again and again, a wrong half of the day costs more."""

USUAL = time(9)
"""For a day without a time."""

NIGHT_ENDS = 5
"""Earlier hours belong to the night before as well."""

_LATE_PARTS = ("evening", "night")
_HOURS_OF = {
    "morning": range(13),
    "noon": range(12, 24),
    "evening": (*range(15, 24), *range(NIGHT_ENDS)),
    "night": (*range(15, 24), *range(9)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """A time of day, `days` later than the day that was named."""

    at: time
    days: int = 0


def hours(clock: Clock, part: Part | None) -> tuple[Hour, ...]:
    """What may be meant, the likeliest first; none where clock and part contradict each other."""
    if clock.ends:
        return (Hour(at=time(0), days=1), Hour(at=time(0)))
    said = time(clock.hour, clock.minute, clock.second)
    if part is not None and not part.name.startswith("lunch"):
        return _within(said, clock, part)
    if clock.exact:
        return (Hour(at=said),)
    early, late = (said.replace(hour=said.hour % 12 + half) for half in (0, 12))
    first, second = (late, early) if said.hour % 12 < DAY_BEGINS else (early, late)
    return (Hour(at=first), Hour(at=second))


def _within(said: time, clock: Clock, part: Part) -> tuple[Hour, ...]:
    morning = part.name.endswith("morning")
    if clock.exact:
        if not _fits(said.hour, part):
            return ()
        if said.hour < NIGHT_ENDS and part.name.endswith(_LATE_PARTS):
            return (Hour(at=said, days=1), Hour(at=said))
        return (Hour(at=said),)
    hour = said.hour % 12
    if morning:
        return (Hour(at=said.replace(hour=hour)),) if said.hour < 12 else ()
    afternoon = said.replace(hour=hour + 12)
    if not part.name.endswith(_LATE_PARTS):
        return (Hour(at=afternoon),)
    if said.hour == 12:
        return (Hour(at=said.replace(hour=0), days=1),)
    if hour < NIGHT_ENDS:  # at three in the night, or in a long evening
        return (Hour(at=afternoon), Hour(at=said.replace(hour=hour), days=1))
    return (Hour(at=afternoon),)


def _fits(hour: int, part: Part) -> bool:
    """Whether a part of the day can have this hour of 24."""
    fitting = [hours for name, hours in _HOURS_OF.items() if part.name.endswith(name)]
    return not fitting or hour in fitting[0]
