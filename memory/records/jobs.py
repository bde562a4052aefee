"""Jobs as they are kept, their runs, and what is told of them.

A slot is a due time as the wall clock of the job's zone shows it: it is run at most once, whatever
happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from memory.records.messages import DEFAULT_AGENT, OutboxId, PersonId, RunId
from memory.records.ports import NewRun, StoredRun
from memory.records.recurrence import When
from memory.records.rows import NewMessage

JobRef = NewType("JobRef", str)
"""How people and models name a job: `j12`, or how its name begins."""


def list_name(agent: str) -> str:
    """Where an agent's list for the heartbeat lies in the workspace."""
    return "HEARTBEAT.md" if agent == DEFAULT_AGENT else f"agents/{agent}/HEARTBEAT.md"


class JobKind(StrEnum):
    """What a job does: send a fixed text, follow instructions, use a skill, call a tool, or look
    after the list of things to see to."""

    MESSAGE = "message"
    AGENT = "agent"
    SKILL = "skill"
    TOOL = "tool"
    HEARTBEAT = "heartbeat"


MADE_UP_MAX = 24
"""Of a job that makes up for all it missed: so many of the newest."""

COUNTED_MAX = 2_000
"""So many due times that passed are counted one by one (about 25 ms); of more it is said that there
are so many or more."""


class MisfirePolicy(StrEnum):
    """What becomes of due times that passed while nothing ran."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"
    ASK = "ask"


class QuietPolicy(StrEnum):
    """What becomes of a result that falls into a person's quiet hours."""

    DEFER = "defer"
    DROP = "drop"
    IGNORE = "ignore"


class SetBy(StrEnum):
    """Who made a job. What a person set up itself counts toward no daily cap."""

    PERSON = "person"
    SKILL = "skill"
    BOT = "bot"


@dataclass(frozen=True, slots=True, kw_only=True)
class What:
    """What a job does, by its kind: a text or instructions, a skill, or a tool with the JSON text
    of its arguments. `outside`: the text may be somebody else's words, as its turn had read such;
    it counts as outside text where it is told."""

    text: str = ""
    skill: str = ""
    tool: str = ""
    arguments: str = ""
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """One due time: its slot, and the moment in epoch milliseconds."""

    slot: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job. With the id 0 it is a draft that is not kept yet; `name` empty: one is made of its
    words.

    `deliver_to` is an address key, bound when it is made. `missed_within_s` bounds how late a
    misfire may be made up for; None: always. `urgent` passes quiet hours. `nag_s` repeats a
    reminder every so many seconds until it is done. `run_id` is the call that made it: of one call
    there is one job.

    `next` None: it is over. `paused` says why it stands still; after a failure it is not begun
    before `not_before_ms`.
    """

    person_id: PersonId
    what: What
    when: When
    deliver_to: str
    kind: JobKind = JobKind.MESSAGE
    name: str = ""
    agent: str = DEFAULT_AGENT
    missed: MisfirePolicy = MisfirePolicy.ONCE
    missed_within_s: int | None = None
    quiet: QuietPolicy = QuietPolicy.DEFER
    urgent: bool = False
    set_by: SetBy = SetBy.PERSON
    nag_s: int | None = None
    max_runs: int | None = None
    expires_ms: int | None = None
    run_id: RunId | None = None
    id: int = 0
    next: Due | None = None
    enabled: bool = True
    paused: str = ""
    not_before_ms: int = 0
    failures: int = 0
    runs: int = 0
    created_ms: int = 0

    @property
    def key(self) -> JobRef:
        """How people and models name it: `j12`."""
        return JobRef(f"j{self.id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenJob:
    """A row that cannot be read: shown by its name, never run, never dropped."""

    id: int
    name: str
    person_id: PersonId
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks something of the job service. `person_id` None: the operator at the command line, to
    whom all jobs are open. In a group only what is for it may be seen: `group` is its place
    (`memory.records.facts.place_of`). `is_model`: the assistant, in that person's name."""

    person_id: PersonId | None = None
    group: str = ""
    is_model: bool = False


OPERATOR = Asker()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job and what follows from it now: the name of its person, the IANA name of the zone in
    which its times are shown to them, and its next due times.

    Of one that stands still `due` is empty, and `once_resumed` is when it would run next if it were
    resumed now; None: it is over, or its times cannot be told.
    """

    job: Job
    zone: str
    person_name: str = ""
    due: tuple[Due, ...] = ()
    once_resumed: Due | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobList:
    """Jobs that are not over, and rows that cannot be read."""

    jobs: tuple[JobStatus, ...] = ()
    broken: tuple[BrokenJob, ...] = ()


class SlotState(StrEnum):
    """What became of a due time that was taken.

    taken: its turn runs; found: it has a result that is not told yet; waiting: told once quiet
    hours end, or with a digest; asked: its person is asked whether to make up for it.
    """

    TAKEN = "taken"
    FOUND = "found"
    TOLD = "told"
    SILENT = "silent"
    FAILED = "failed"
    SKIPPED = "skipped"
    WAITING = "waiting"
    ASKED = "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One row of the ledger. Times are epoch milliseconds."""

    job_id: int
    due: Due
    state: SlotState
    taken_ms: int
    run_id: RunId | None = None
    result: str | None = None
    note: str = ""
    late_s: int = 0
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfires:
    """Due times of a job that passed while nothing ran, until its person was told of them. `count`
    is how many, `first` and `last` the first and the last of them; `done` is what was done."""

    job_id: int
    count: int
    first: Due
    last: Due
    done: SlotState


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """How a due time is taken, in one transaction: the row of the ledger, what it sets going (a
    message, a turn, or nothing), and the job's next due time.

    `state` is what the slot is at once; a `message` makes it TOLD, a `run` TAKEN. A message joins
    the history of its chat, after the note `joins`, as outside text where `tainted`. Without
    `counts` it is none of the runs that the job is to have. `missed` is kept with it: its
    person is to be told of that.
    """

    job_id: int
    due: Due
    next: Due | None
    state: SlotState
    message: NewMessage | None = None
    run: NewRun | None = None
    late_s: int = 0
    note: str = ""
    joins: str = ""
    tainted: bool = False
    counts: bool = True
    missed: Misfires | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a taking set going: an outbox row that is ready, or a queued run."""

    outbox_id: OutboxId | None = None
    run: StoredRun | None = None


class NotTaken(StrEnum):
    """Why nothing was set going.

    before: this due time was taken before. changed: somebody changed, paused or removed the job
    since it was read. other: another due time has this slot, as the job moved to another time zone.
    """

    BEFORE = "before"
    CHANGED = "changed"
    OTHER = "other"


# --- telling a person, unasked -----------------------------------------------------------------


class Held(StrEnum):
    """Why something waits to be told."""

    QUIET = "quiet"
    CAP = "cap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """Something that was found for a person. `finding` is how it is compared with later ones,
    empty: not at all. `counts` toward the daily cap; `note` is what history says of how it came;
    `tainted`: it may rest on text from outside."""

    job: Job
    due: Due
    text: str
    finding: str = ""
    counts: bool = True
    note: str = ""
    tainted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNotification:
    """Something that waits to be told. `job_name` is whose it is."""

    id: int
    person_id: PersonId
    lane: str
    text: str
    why: Held
    created_ms: int
    job_name: str = ""
