"""When a job runs: once, in steps, or by cron text. Values that travel between scheduler, memory
and the bot, with a form for JSON. What they mean in time is `scheduler.clock.recurrence`'s to
say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum

from memory.records import codec

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

_KINDS: dict[str, type[When]] = {"at": At, "every": Every, "cron": Cron}
_KEYS = {"moment": "at", "expression": "cron"}
"""Fields that have another name in JSON."""


def to_json(when: When) -> dict[str, str | int]:
    """Plain values only; `from_json` makes an equal one of it."""
    data: dict[str, str | int] = {}
    for kind, type_ in _KINDS.items():
        if isinstance(when, type_):
            data["kind"] = kind
    for field in fields(when):
        value = getattr(when, field.name)
        if value not in {None, ""}:
            plain = value.isoformat() if isinstance(value, datetime) else value
            data[_KEYS.get(field.name, field.name)] = plain
    return data


def from_json(data: Mapping[str, object]) -> When:
    """Raises ValueError, with the key that is wrong, where it is not what `to_json` makes."""
    kind = _KINDS.get(str(data.get("kind")))
    if kind is None:
        raise ValueError(f"kind: {data.get('kind')!r:.40} is none of at, every, cron")
    values = {field.name: data.get(_KEYS.get(field.name, field.name)) for field in fields(kind)}
    try:
        return codec.from_json(kind, values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"of {data['kind']}: {error}") from error


def _must_be_aware(moment: datetime) -> None:
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} does not say its offset from UTC")
