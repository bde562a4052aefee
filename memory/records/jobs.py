"""Jobs as they are kept, and the port by which the scheduler reaches them.

`memory` implements it; `scheduler` decides what is due, and `bot` shows it. A slot is a due time as
the clock on the wall of the job's zone shows it: it is run at most once, whatever happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from memory.records.job_specs import When
from memory.records.messages import DEFAULT_AGENT, OutboxId, PersonId, RunId
from memory.records.ports import NewRun, StoredRun
from memory.records.rows import NewMessage


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


class Missed(StrEnum):
    """What becomes of due times that passed while nothing ran."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"
    ASK = "ask"


class WhenQuiet(StrEnum):
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
class NewJob:
    """A job that is to be kept. `deliver_to` is an address key, bound when it is made.

    `missed_within_s` bounds how late a missed run may be made up for; None: always. `urgent`
    passes quiet hours. `nag_s` repeats a reminder every so many seconds until it is done. `run_id`
    is the turn that made it.
    """

    name: str
    person_id: PersonId
    kind: JobKind
    what: What
    when: When
    deliver_to: str
    agent: str = DEFAULT_AGENT
    missed: Missed = Missed.ONCE
    missed_within_s: int | None = None
    quiet: WhenQuiet = WhenQuiet.DEFER
    urgent: bool = False
    set_by: SetBy = SetBy.PERSON
    nag_s: int | None = None
    max_runs: int | None = None
    expires_ms: int | None = None
    enabled: bool = True
    run_id: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it stands. `next` None: it is over. `paused` says why it stands still; after a
    failure it is not begun before `not_before_ms`."""

    id: int
    new: NewJob
    next: Due | None
    enabled: bool
    paused: str = ""
    not_before_ms: int = 0
    failures: int = 0
    runs: int = 0
    created_ms: int = 0

    @property
    def key(self) -> str:
        """How people and models name it: `j12`."""
        return f"j{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenJob:
    """A row that cannot be read: shown by its name, never run, never dropped."""

    id: int
    name: str
    person_id: PersonId
    why: str


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
class MissedDues:
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
    missed: MissedDues | None = None


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


class JobStore(Protocol):
    """Jobs and their ledger. Each method is one transaction. Raises StorageError."""

    async def add(self, job: NewJob, first: Due | None) -> Job | None:
        """Keeps one; None when this person has one of this name."""

    async def get(self, job_id: int) -> Job | None:
        """One, whoever it belongs to; None also for one that cannot be read."""

    async def kept(self, person_id: PersonId | None = None) -> Sequence[Job]:
        """All (of a person), by their next due time, those that are over last."""

    async def broken(self) -> Sequence[BrokenJob]:
        """Rows that cannot be read."""

    async def put(self, job: Job, *, anew: bool = False) -> bool:
        """Replaces what a job is and when; False when it is gone. `anew`: its runs are counted
        from none."""

    async def remove(self, job_id: int) -> bool:
        """Drops one with its ledger; False when it is gone."""

    async def due(self, now_ms: int, *, limit: int, kind: JobKind | None = None) -> Sequence[Job]:
        """Enabled jobs (of one kind) whose next due time has come, the earliest first."""

    async def next_ms(self, *, after_ms: int = 0) -> int | None:
        """When the next one is due, later than `after_ms`; None when none is."""

    async def newest_ms(self) -> int | None:
        """When a due time was taken or a job changed last, by the clock of then; None: never."""

    async def take(self, taking: Taking, *, of: Job) -> Taken | NotTaken:
        """Takes a due time of a job that stands as it was read (`of`). Where it was taken before,
        the job's next due time is set all the same; else what is not taken changes nothing."""

    async def reset(self, job: Job, due: Due | None, *, not_before_ms: int) -> bool:
        """Gives a job that stands as it was read another next due time."""

    async def end(
        self, job_id: int, slot: str, state: SlotState, *, result: str | None = None, note: str = ""
    ) -> bool:
        """Writes what became of a slot that is not over; False when it is over, or unknown."""

    async def failed(
        self,
        job_id: int,
        *,
        slot: str | None = None,
        failures: int,
        not_before_ms: int,
        paused: str,
        again: Due | None = None,
    ) -> bool:
        """End the slot and write that the job failed so many times in a row; `paused` stops it. A
        job that is over gets the due time `again`. Return False if the slot is over."""

    async def put_off(self, job_id: int, slot: str, again: Due | None) -> bool:
        """End a slot whose run was not possible. If it comes `again`, do not count it as one of the
        job's runs, and run it then unless the job is due before. Return False if it is over."""

    async def worked(self, job_id: int) -> None:
        """Its failures are over."""

    async def open_runs(self) -> Sequence[JobRun]:
        """Slots that were taken and are not over, the oldest first."""

    async def runs(self, job_id: int, *, limit: int) -> Sequence[JobRun]:
        """The newest slots of a job first."""

    async def missed(self) -> Sequence[MissedDues]:
        """What was missed and is to be told, of each job together, in the order of its first."""

    async def keep_missed(self, missed: MissedDues) -> None:
        """Has it told, with what is to be told of its job already."""

    async def tell_missed(
        self, told: Sequence[MissedDues], cards: Sequence[NewMessage], *, asked: str
    ) -> Sequence[OutboxId]:
        """Puts the cards that tell of these into the outbox, and has none of them told again; what
        was asked about gets the note `asked`. Without cards nobody can be asked so far."""


# --- telling a person, unasked -----------------------------------------------------------------


class Held(StrEnum):
    """Why something waits to be told."""

    QUIET = "quiet"
    CAP = "cap"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTelling:
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
class Waiting:
    """Something that waits to be told. `job_name` is whose it is."""

    id: int
    person_id: PersonId
    lane: str
    text: str
    why: Held
    created_ms: int
    job_name: str = ""


class Tellings(Protocol):
    """What was told unasked, and what waits. Every method is one transaction.

    Raises StorageError.
    """

    async def count(self, person_id: PersonId, *, since_ms: int) -> int:
        """How many that count were told to a person."""

    async def findings(self, job_id: int, *, since_ms: int) -> Sequence[str]:
        """What a job told (or holds back) since then."""

    async def tell(self, new: NewTelling, message: NewMessage) -> OutboxId | None:
        """Sends it: the slot is TOLD, the message in the outbox and in the history of its chat.

        None when the slot is over.
        """

    async def hold(self, new: NewTelling, why: Held) -> bool:
        """Keeps it for later: the slot is WAITING. False when the slot is over."""

    async def waiting(self) -> Sequence[Waiting]:
        """All that waits, the oldest first."""

    async def tell_waiting(
        self, those: Sequence[Waiting], message: NewMessage, *, note: str
    ) -> OutboxId | None:
        """Sends one message in their place; their slots are TOLD. None when one was told before."""

    async def drop(self, those: Sequence[Waiting], *, why: str) -> int:
        """Tells none of them any more: their slots are FAILED. How many waited still."""

    async def quiet_hours(self, person_id: PersonId) -> tuple[int, int] | None:
        """From which minute of the day to which; None: there are none."""

    async def set_quiet_hours(self, person_id: PersonId, hours: tuple[int, int] | None) -> None:
        """Sets or drops them."""
