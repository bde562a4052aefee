"""What people, and models in their name, do with jobs: the values and the port between the doors,
the tools and the scheduler, which implements it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Protocol

from memory.records.job_specs import When
from memory.records.jobs import (
    BrokenJob,
    Due,
    Job,
    JobKind,
    JobRun,
    Missed,
    SetBy,
    SlotState,
    What,
    WhenQuiet,
)
from memory.records.messages import PersonId, RunId

NEXT_SHOWN = 3
"""Due times that are shown before something is kept (SPEC §11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRead:
    """How a time was read. `sentence` has no full stop; `next` are the first due times, in UTC.

    `until` is the last moment at which it may be due, `runs_max` how often; None is without end.
    """

    when: When
    sentence: str
    next: tuple[datetime, ...] = ()
    until: datetime | None = None
    runs_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAsked:
    """Something must be asked first; `options` are what may be meant, the likeliest first."""

    text: str
    options: tuple[TimeRead, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTime:
    """No time that can be kept, with the reason and what to write instead."""

    why: str


TimeAnswer = TimeRead | TimeAsked | NoTime


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeFound:
    """The time in a sentence, and what else the sentence says."""

    answer: TimeAnswer
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWish:
    """A job that somebody wants. `time` is as it was shown; `name` empty: one is made of the words.

    `run_id` names the call that wants it: of one call there is one job, however often it is made.
    """

    person_id: PersonId
    kind: JobKind
    what: What
    time: TimeRead
    deliver_to: str
    name: str = ""
    set_by: SetBy = SetBy.PERSON
    urgent: bool = False
    nag_s: int | None = None
    missed: Missed | None = None
    quiet: WhenQuiet = WhenQuiet.DEFER
    run_id: RunId | None = None


class JobBook(Protocol):
    """Reads times, keeps jobs, changes them. Each method may raise StorageError, and Permanent with
    a sentence for the person where something cannot be done."""

    def zone(self, person_id: PersonId) -> tzinfo:
        """The clock on this person's wall."""

    def read(self, person_id: PersonId, text: str) -> TimeAnswer:
        """How a time is read now: plain words, ISO or cron text."""

    def find_time(self, person_id: PersonId, sentence: str) -> TimeFound | None:
        """The time in a sentence; None where it names none."""

    def due(self, job: Job, *, n: int = NEXT_SHOWN) -> Sequence[Due]:
        """The next due times of a kept job; none where it stands still or is over."""

    def once_resumed(self, job: Job) -> Due | None:
        """When a job that stands still would run next if it were resumed now; None: never."""

    async def add(self, wish: JobWish) -> Job:
        """Keeps a job. A wish with the `run_id` of a job that is kept gives that one."""

    async def foretell(self, job: JobWish | Job) -> str:
        """What it will take, in a line: tokens of a run, runs, and money a day. Empty where it asks
        no model, and where it cannot be told within a moment. Raises nothing."""

    async def of(self, person_id: PersonId) -> Sequence[Job]:
        """The jobs of a person, those that are over left out."""

    async def broken(self, person_id: PersonId) -> Sequence[BrokenJob]:
        """Those of a person that cannot be read: shown, never run, never dropped."""

    async def find(self, person_id: PersonId, name: str) -> Job:
        """The job `j12` of a person, or the one whose name begins so."""

    async def get(self, job_id: int) -> Job | None:
        """One, whoever it belongs to."""

    async def runs(self, job: Job, *, limit: int) -> Sequence[JobRun]:
        """Its newest runs first."""

    async def pause(self, job: Job) -> Job:
        """Stops it until it is resumed."""

    async def resume(self, job: Job) -> Job:
        """Lets it go on from now."""

    async def move(self, job: Job, time: TimeRead) -> Job:
        """Gives it other times."""

    async def reword(self, job: Job, text: str, *, outside: bool = False) -> Job:
        """Gives it other words; `outside` as in `What`."""

    async def rule(self, job: Job, *, missed: Missed | None, quiet: WhenQuiet | None) -> Job:
        """Gives it other rules; what is None stays."""

    async def remove(self, job: Job) -> None:
        """Drops it with its history."""

    async def run(self, job: Job) -> None:
        """Runs it now, beside its times."""

    async def snooze(self, job: Job, until: datetime, *, key: str) -> Job:
        """A reminder once more, later. Of one key what runs again and again comes once more."""

    async def done(self, job: Job) -> Job:
        """A reminder is seen to: it comes no more, unless it runs again and again."""

    async def settle(self, job: Job, slot: str, *, make_up: bool) -> bool:
        """Answers for a due time that its person was asked about: it is run now, or left out.
        False when that was answered before."""

    async def quiet_hours(self, person_id: PersonId) -> str:
        """Such as `22:00-07:00`; empty: there are none."""

    async def set_quiet_hours(self, person_id: PersonId, text: str) -> str:
        """Sets them, as `quiet_hours` gives them; an empty text drops them."""


# --- what was missed ---------------------------------------------------------------------------


class MissedJob(Protocol):
    """Due times that passed while nothing ran, and what was done about them;
    `scheduler.clock.timetable.MissedRun` is one."""

    @property
    def job(self) -> Job: ...

    @property
    def count(self) -> int: ...

    @property
    def first(self) -> Due: ...

    @property
    def last(self) -> Due: ...

    @property
    def done(self) -> SlotState: ...


# --- the heartbeat -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What came of one heartbeat, and why. `at_ms` is epoch milliseconds."""

    at_ms: int
    outcome: str
    why: str


class Beats(Protocol):
    """The last heartbeats of each agent. Raises StorageError."""

    async def beat(self, agent: str, outcome: str, why: str) -> None:
        """Writes one; the oldest of many go."""

    async def last(self, agent: str, n: int) -> Sequence[Beat]:
        """The newest first."""


class Switches(Protocol):
    """What was switched on or off by hand. Raises StorageError."""

    async def is_on(self, name: str) -> bool | None:
        """None: it was not, so the settings say."""

    async def set_on(self, name: str, is_on: bool) -> None:
        """Keeps it, beyond a restart."""


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


# --- foreseen -----------------------------------------------------------------------------------
#
# What would happen by the clock, as it can be told beforehand. Values that
# `scheduler.jobs.forecast` makes and `bot` shows.


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


# --- events -------------------------------------------------------------------------------------
#
# Events: what somebody has noted, with or without a date. The values and ports between the tools
# and doors, the scheduler that reminds of them, and the memory that keeps them.


class Remind(StrEnum):
    """When a person is reminded: the day before at 09:00; on the day at 09:00 of what lasts all
    day, and an hour before of what has a time."""

    BEFORE = "before"
    ON = "on"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOccasion:
    """An event that is to be kept. `at` None: it has no date. What lasts `all_day` is at midnight,
    by the clock of `zone`. In a group `scope` is its chat; empty: it is the person's own.

    `run_id` names the call that made it.
    """

    person_id: PersonId
    name: str
    at: datetime | None
    zone: str
    all_day: bool = False
    note: str = ""
    remind: tuple[Remind, ...] = ()
    scope: str = ""
    run_id: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """An event as it is kept. `created_ms` is epoch milliseconds."""

    id: int
    new: NewOccasion
    created_ms: int = 0

    @property
    def key(self) -> str:
        """How people and models name it: `e5`."""
        return f"e{self.id}"


class OccasionStore(Protocol):
    """Keeps events. Each method is one transaction. Raises StorageError."""

    async def add(self, new: NewOccasion, *, limit: int) -> Occasion | None:
        """Keeps one; the one that is kept, where this call made one before. None when this person
        has so many already."""

    async def since(
        self, person_id: PersonId, scope: str, *, since_ms: int, undated_since_ms: int
    ) -> Sequence[Occasion]:
        """Those of a person in this scope from a moment on, in order, and then those without a date
        that were noted since another."""

    async def remove(self, person_id: PersonId, occasion_id: int, scope: str) -> Occasion | None:
        """Drops one; None when this person has no such one there."""


# --- what is done with them --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OccasionWish:
    """An event that somebody wants noted. `time` None: without a date; `when` are its words.
    Reminders of it go to `deliver_to`; `outside` as in `What`."""

    person_id: PersonId
    name: str
    when: str
    time: TimeRead | None
    deliver_to: str
    note: str = ""
    remind: tuple[Remind, ...] = ()
    scope: str = ""
    run_id: RunId | None = None
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event that is kept, the jobs that remind of it, and those reminders whose time was over
    before."""

    occasion: Occasion
    reminders: tuple[Job, ...] = ()
    too_late: tuple[Remind, ...] = ()


class Agenda(Protocol):
    """Notes events and reminds of them. Raises StorageError, and Permanent with a sentence for the
    person."""

    async def record(self, wish: OccasionWish) -> Recorded:
        """Keeps one with its reminders; the same call again changes nothing."""

    async def ahead(
        self, person_id: PersonId, scope: str, *, days: int | None = None
    ) -> Sequence[Occasion]:
        """Those that are not over, in order, those without a date last: all of 90 days."""

    async def remove(self, person_id: PersonId, scope: str, name: str) -> Occasion | None:
        """Drops the event `e5` with its reminders; None when there is no such one."""
