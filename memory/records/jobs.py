"""Jobs: when one runs (once, in steps, or by cron text), its runs, and what is told of them.

These values travel between scheduler, memory and the bot, with a form for JSON. What a recurrence
means in time is `scheduler.clock.recurrence`'s to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import NewType

from memory.records import codec
from memory.records.messages import DEFAULT_AGENT, OutboxId, PersonId, RunId
from memory.records.ports import NewRun, StoredRun
from memory.records.rows import NewMessage

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


# --- jobs -----------------------------------------------------------------------------------------
#
# A slot is a due time as the wall clock of the job's zone shows it: it is run at most once,
# whatever happens.

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
        """Return how people and models name it: `j12`."""
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
