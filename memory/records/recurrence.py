"""When a job runs: once, in steps, or by cron text. Values that travel between scheduler, memory
and the bot, with a form for JSON. What they mean in time is `scheduler.clock.recurrence`'s to
say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

COUNT_MAX = 10_000
"""The longest step: of minutes about a week, of days about 27 years."""


class RecurrenceUnit(StrEnum):
    """What is counted between two runs. Minutes and hours pass; the rest is counted by calendar."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"

    @property
    def passes(self) -> bool:
        """Counted in time that passes, whatever clocks on the wall do."""
        return self in {RecurrenceUnit.MINUTE, RecurrenceUnit.HOUR}


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Once, at this moment. `zone` is the IANA name in which it was meant and is shown."""

    moment: datetime
    zone: str

    def __post_init__(self) -> None:
        _must_be_aware(self.moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Every `count` of `unit`, counted from `start`, and never before it.

    Minutes and hours: the first run is at `start`, and `pattern` is empty. Longer units: of every
    `count`-th day, week (from Monday), month or year, beginning with the one that holds `start`,
    what the cron text `pattern` picks.
    """

    count: int
    unit: RecurrenceUnit
    start: datetime
    zone: str
    pattern: str = ""

    def __post_init__(self) -> None:
        _must_be_aware(self.start)
        if not 1 <= self.count <= COUNT_MAX:
            raise ValueError(f"a step is 1 to {COUNT_MAX:,} {self.unit}s, not {self.count}")
        if self.unit.passes == bool(self.pattern):
            raise ValueError("minutes and hours have no pattern, longer units need one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """Whenever the clock on the wall of `zone` fits the cron text; not before `start`, if given."""

    expression: str
    zone: str
    start: datetime | None = None

    def __post_init__(self) -> None:
        if self.start is not None:
            _must_be_aware(self.start)


When = At | Every | Cron


def to_json(when: When) -> dict[str, str | int]:
    """Plain values only; `from_json` makes an equal one of it."""
    match when:
        case At():
            return {"kind": "at", "at": when.moment.isoformat(), "zone": when.zone}
        case Every():
            pattern = {"pattern": when.pattern} if when.pattern else {}
            start = when.start.isoformat()
            return {
                "kind": "every",
                "count": when.count,
                "unit": str(when.unit),
                **pattern,
                "start": start,
                "zone": when.zone,
            }
        case Cron():
            begun = {} if when.start is None else {"start": when.start.isoformat()}
            return {"kind": "cron", "cron": when.expression, "zone": when.zone, **begun}
    assert_never(when)


def from_json(data: Mapping[str, object]) -> When:
    """Raises ValueError, with the key that is wrong, where it is not what `to_json` makes."""
    kind, zone = _text(data, "kind"), _text(data, "zone")
    if kind == "at":
        return At(moment=_moment(data, "at"), zone=zone)
    if kind == "cron":
        start = _moment(data, "start") if "start" in data else None
        return Cron(expression=_text(data, "cron"), zone=zone, start=start)
    if kind != "every":
        raise ValueError(f"kind: {kind[:40]!r} is none of at, every, cron")
    count = data.get("count")
    if not isinstance(count, int) or isinstance(count, bool):
        raise ValueError("count: a whole number is needed")
    return Every(
        count=count,
        unit=RecurrenceUnit(_text(data, "unit")),
        start=_moment(data, "start"),
        zone=zone,
        pattern=_text(data, "pattern") if "pattern" in data else "",
    )


def _text(data: Mapping[str, object], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key}: a text is needed")
    return value


def _moment(data: Mapping[str, object], key: str) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(data, key))
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error
    _must_be_aware(moment)
    return moment


def _must_be_aware(moment: datetime) -> None:
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} does not say its offset from UTC")
