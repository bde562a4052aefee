"""What comes of reading a time: it is read, something must be asked, or it is no time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.jobs import When
from scheduler.cron import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How it was read. `sentence` has no full stop; `next` are the first due times.

    `until` is the last moment at which it may be due, `runs_max` how often; None is without end.
    """

    when: When
    sentence: str
    next: Sequence[Slot] = ()
    until: datetime | None = None
    runs_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What must be asked first. `options` are the readings to choose from, the likeliest first;
    `past` is the moment that was meant, where that is over.
    """

    text: str
    options: Sequence[Reading] = ()
    past: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No time that can be kept, with the reason and what to write instead."""

    why: str


Answer = Reading | Question | Refusal
