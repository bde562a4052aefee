"""What is recorded of a turn, and what stands behind a message that was sent."""

from __future__ import annotations

from dataclasses import dataclass

from memory.records.messages import PersonId, RunId
from memory.records.ports import Json
from memory.records.rows import Outcome
from memory.records.transcript import Entry
from memory.records.usage import UsageSum


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """A recorded step. Times are epoch milliseconds; `output` None: its fate is open."""

    name: str
    output: Json | None
    started_ms: int
    ended_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """A call that a person was asked about; `outcome` None: nobody has answered yet."""

    tool: str
    outcome: Outcome | None
    by: PersonId | None = None
    at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """All that is kept of a turn. `ended_ms` None: it still runs, or waits. `is_erased`: its steps
    were erased on somebody's wish; `is_private`: memory is off in its conversation, of which
    nothing is to stay once it is over. `spent`, a sum for each model, has what
    its subagents took as well; `before` are
    the `begin` steps of earlier turns that were sent along, the newest first."""

    run_id: RunId
    person_id: PersonId
    started_ms: int
    ended_ms: int | None
    is_erased: bool = False
    is_private: bool = False
    steps: tuple[RecordedStep, ...] = ()
    entries: tuple[Entry, ...] = ()
    agreed: tuple[Agreed, ...] = ()
    spent: tuple[UsageSum, ...] = ()
    subagents: int = 0
    before: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSlot:
    """A due time of a job that a message came from; `run_id` is empty where no turn was needed."""

    job_id: int
    due_ms: int
    late_s: int = 0
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What stands behind a message of ours: the turn that it answers, or the due times that it
    tells of (several in a digest). `gone` is how the history names a job that is not there any
    more. All empty: a command's answer, a notice, or what a tool sent."""

    sent_ms: int
    run_id: RunId | None = None
    slots: tuple[DueSlot, ...] = ()
    gone: str = ""
