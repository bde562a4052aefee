"""Times as they were read, what is foreseen by the clock, heartbeats, and events that people have
noted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum

from memory.records.jobs import Due, Job, JobRun, JobStatus, MisfirePolicy, QuietPolicy, When
from memory.records.messages import PersonId, RunId

NEXT_SHOWN = 3
"""Due times that are shown before something is kept (SPEC §11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRead:
    """How a time was read. `sentence` has no full stop; `next` are the first due times, in UTC.

    `until` is the last moment at which it may be due, `runs_max` how often; None is without end.
    `is_day`: a day was named and no time of it.
    """

    when: When
    sentence: str
    next: tuple[datetime, ...] = ()
    until: datetime | None = None
    runs_max: int | None = None
    is_day: bool = False

    @property
    def expires_ms(self) -> int | None:
        """`until` as a job keeps it: the first millisecond at which it is over."""
        return None if self.until is None else int(self.until.timestamp() * 1000) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAsked:
    """What must be asked first. `options` are what may be meant, the likeliest first; `past` is the
    moment that was meant, where that is over. `for_zone`: the time zone is asked for."""

    text: str
    options: tuple[TimeRead, ...] = ()
    past: datetime | None = None
    for_zone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTime:
    """No time that can be kept, with the reason and what to write instead."""

    why: str


TimeAnswer = TimeRead | TimeAsked | NoTime


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeFound:
    """A time in a sentence: how it is read, its own words, and what else the sentence says."""

    answer: TimeAnswer
    words: str
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanges:
    """What is to become of a job; what is not named stays. `outside` as in `What`, of the text."""

    time: TimeRead | None = None
    text: str = ""
    name: str = ""
    missed: MisfirePolicy | None = None
    quiet: QuietPolicy | None = None
    paused: bool | None = None
    outside: bool = False


# --- the heartbeat -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRun:
    """What came of one heartbeat, and why. `at_ms` is epoch milliseconds."""

    at_ms: int
    outcome: str
    why: str


# --- names and words ---------------------------------------------------------------------------


def call_key(run_id: RunId, tool: str, arguments: str) -> RunId:
    """The name of one call, which a repeated one has too: its turn, and what was asked."""
    digest = hashlib.sha256(f"{tool}\n{arguments}".encode("utf-8", "replace")).hexdigest()
    return RunId(f"{run_id}#{digest[:16]}")


def moment_words(moment: datetime, zone: tzinfo) -> str:
    """`Tue 1 Dec 2026, 17:00`, on the wall of a zone."""
    local = moment.astimezone(zone)
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M}"


def due_words(due: Due, zone: tzinfo) -> str:
    """The same of a due time."""
    return moment_words(datetime.fromtimestamp(due.at_ms / 1000, UTC), zone)


# --- forecasts ----------------------------------------------------------------------------------
#
# What would happen by the clock, as it can be told beforehand.


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
class ForecastRun:
    """One due time ahead, and what would become of it; of a heartbeat outside of its hours nothing.
    Times are epoch milliseconds: it runs at `runs_ms`, and what it says is heard at `told_ms`
    (None: never). `missed` counts the due times that it stands for, where they
    had passed."""

    job: Job
    due: Due
    runs_ms: int
    fate: Fate | None = None
    told_ms: int | None = None
    missed: int = 0
    cost: RunCost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """All of a span that begins at `since_ms`, in order. `unpriced` runs have a cost that nobody
    knows; `troubles` are keys of jobs whose times cannot be found, with the reason. With `is_cut`
    there are more than were looked at."""

    runs: tuple[ForecastRun, ...] = ()
    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    troubles: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False
    since_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often something runs, and what that takes, a day on average. `dollars` None: not
    known."""

    runs: float
    tokens: float
    dollars: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run of a job takes by `model`, and how often it runs, on average."""

    cost: RunCost
    a_day: Pace
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """Everything about a job: its next runs, as if it were on, or the `trouble` of finding them;
    and its newest runs first."""

    status: JobStatus
    next_runs: tuple[ForecastRun, ...] = ()
    trouble: str = ""
    runs: tuple[JobRun, ...] = ()


# --- events -------------------------------------------------------------------------------------


class Remind(StrEnum):
    """When a person is reminded: the day before at 09:00; on the day at 09:00 of what lasts all
    day, and an hour before of what has a time."""

    BEFORE = "before"
    ON = "on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What somebody has noted. With the id 0 it is a draft that is not kept yet.

    `at` None: it has no date. What lasts `all_day` is at midnight, by the wall clock of `zone`. In
    a group `scope` is its chat; empty: it is the person's own. `run_id` names the call that made
    it.
    """

    person_id: PersonId
    name: str
    at: datetime | None = None
    zone: str = ""
    all_day: bool = False
    note: str = ""
    remind: tuple[Remind, ...] = ()
    scope: str = ""
    run_id: RunId | None = None
    id: int = 0
    created_ms: int = 0

    @property
    def key(self) -> str:
        """Return how people and models name it: `e5`."""
        return f"e{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent:
    """An event that is kept, the jobs that remind of it, and those reminders whose time was over
    before."""

    event: Event
    reminders: tuple[Job, ...] = ()
    too_late: tuple[Remind, ...] = ()
