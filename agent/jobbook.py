"""What people, and models in their name, do with jobs: the values and the port between the doors,
the tools and the scheduler, which implements it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from agent.jobs import When
from agent.messages import PersonId, RunId
from agent.scheduled import (
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
    `scheduler.timetable.MissedRun` is one."""

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
