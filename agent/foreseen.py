"""What would happen by the clock, as it can be told beforehand. Values that `scheduler.ahead`
makes and `bot` shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent.scheduled import Due, Job


class Fate(StrEnum):
    """What would become of a due time.

    told: a message, or a result if there is one, goes out at once; held: it waits for the end of
    quiet hours; digest: it is too much for the day and waits for the next; dropped: quiet hours
    drop it. skipped and asked: it was missed, and nothing is made up for, or only on a yes.
    """

    TOLD = "told"
    HELD = "held"
    DIGEST = "digest"
    DROPPED = "dropped"
    SKIPPED = "skipped"
    ASKED = "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """What one run takes: about so many calls of a model, with tokens and US dollars of all of
    them. `dollars` None: the model's price is not known."""

    calls: int = 0
    tokens: int = 0
    dollars: float | None = 0.0


FREE_RUN = RunCost()
"""Of what asks no model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """One due time ahead. Times are epoch milliseconds: it runs at `runs_ms`, and what it says is
    heard at `told_ms` (None: never). `missed` counts the due times that it stands for, where they
    had passed."""

    job: Job
    due: Due
    runs_ms: int
    fate: Fate
    told_ms: int | None = None
    missed: int = 0
    cost: RunCost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """All of a span, in order. `unpriced` runs have a cost that nobody knows; `troubles` are keys
    of jobs whose times cannot be found, with the reason. With `is_cut` there are more than were
    looked at."""

    runs: tuple[Foreseen, ...] = ()
    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    troubles: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often something runs, and what that takes, a day on average. `dollars` None: not
    known."""

    runs: float
    tokens: float
    dollars: float | None
