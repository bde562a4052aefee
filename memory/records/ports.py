"""Ports: what the core needs from others, and what it offers them. Each Protocol is a contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from memory.records.facts import Compaction, Recalled, RecallWanted
from memory.records.messages import Address, ConversationId, InboxId, OutboxId, PersonId, RunId
from memory.records.rows import NewApproval, Outcome
from memory.records.transcript import Answered, Entry, ModelRequest, ModelTraits, Turn
from memory.records.usage import Charge

Json = dict[str, Any]
Redo = Literal["repeat", "idempotent", "once"]
"""What a kill in mid-step permits: run it again, or report that its fate is unknown (`once`)."""


class Clock(Protocol):
    """Time, passed in. Wall time for people, monotonic for pauses."""

    def now(self) -> datetime:
        """The current moment, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Waits; ends early only by cancellation."""


class Model(Protocol):
    """A language model behind one client. May be called for many turns at once.

    `answer` streams visible text through `on_text` (pieces, in order) and returns the whole. It
    raises the model errors of `memory.records.errors` and nothing else; it never retries by itself.
    A call that is cancelled closes its connection. The calls of one answer have different ids.
    """

    @property
    def name(self) -> str: ...

    @property
    def traits(self) -> ModelTraits: ...

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        """One answer, within the client's own time limit (ModelTimeout)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """The model of a conversation. `name` is recorded by turns, so that a resumed one asks the
    same model; prompts are made for its `traits`."""

    name: str
    traits: ModelTraits


class Models(Protocol):
    """The models that there are, by where they answer and by name. Raises StorageError."""

    async def at(self, lane: str, *, agent: str = "") -> InUse:
        """Return which one answers at an address; for this agent, where it is not that of the
        address."""

    async def named(self, name: str, *, agent: str = "") -> Model:
        """That one, with what stands in for it with this agent; the usual one where the name is of
        none."""

    def untold(self) -> Sequence[str]:
        """Return what the owner has to hear of keys and accounts, a sentence each; told once."""


class CheapModel(Protocol):
    """The model for work behind the scenes: extraction, compaction, insights (SPEC §1)."""

    async def traits(self, lane: str) -> ModelTraits:
        """Of the model that would be asked: its window bounds what a prompt may hold."""

    async def ask(self, prompt: str, charge: Charge, *, tokens_max: int) -> str:
        """The text of one answer of at most `tokens_max` tokens to one message, on the account of
        `charge`. Raises the model errors, SpendingRefused and StorageError."""


# --- the turn engine -----------------------------------------------------------------------


class RunStatus(StrEnum):
    """Where a run is. The last four are terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    JOINED = "joined"


class InboxState(StrEnum):
    """Where an inbound message is. All but the first two are terminal (SPEC §2.8)."""

    RECEIVED = "received"
    QUEUED = "queued"
    REPLIED = "replied"
    REFUSED = "refused"
    COMMAND = "command"
    JOINED = "joined"
    CANCELLED = "cancelled"
    FAILED = "failed"
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOf:
    """Whose subagent a run is: of the turn `run_id` in `lane`, which `waits` for its end or not.
    `head` is how its task begins, for a list."""

    run_id: RunId
    lane: str
    waits: bool
    head: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A turn that is to be run. `lane` is an address key: one turn at a time in each.

    `by` is the person whose later messages may steer it; `message_id` the platform's id of the
    message (for edits); `inbox_id` the row that reaches its terminal state with this run;
    `inbox_joined` further rows that are part of it from the start, and end as JOINED (an album).
    One that does not steer is never joined to another turn (a message of ours). `limit_s` is how
    many seconds it may take; None is what all turns may.
    """

    run_id: RunId
    lane: str
    by: PersonId
    payload: Json
    message_id: str = ""
    inbox_id: InboxId | None = None
    inbox_joined: tuple[InboxId, ...] = ()
    steers: bool = True
    limit_s: float | None = None
    child_of: ChildOf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as the journal keeps it. `resumes` counts resumptions since its last new step."""

    run: NewRun
    seq: int
    status: RunStatus
    stopping: str = ""
    resumes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRun:
    """A subagent as it stands. `number` counts those of its parent's chat; times are epoch
    milliseconds, `ended_ms` None while it is not over."""

    run_id: RunId
    number: int
    by: PersonId
    lane: str
    head: str
    waits: bool
    status: RunStatus
    created_ms: int
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A step that was begun; `output` is None while its fate is open (a `once` intent)."""

    n: int
    name: str
    output: Json | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """How the run of a job ended: its result, to be delivered or not. `ok` False: it failed, and
    `text` says why; `silent`: it said itself that there is nothing to report. `tainted`: the text
    may rest on text from outside. `put_off`: no model may be asked now; that is no failure."""

    job_id: int
    slot: str
    ok: bool
    text: str
    silent: bool = False
    tainted: bool = False
    put_off: PutOff | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """Whether a run has to be done `anew` (it had changed nothing yet), and from when on it can be,
    if that is known (epoch milliseconds)."""

    anew: bool
    free_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftNote:
    """A note that a turn leaves in another conversation; see `memory.stores.conversations`."""

    conversation: ConversationId
    text: str
    untrusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """How a turn ended: all of it is stored in one transaction, and nothing after it.

    `status` is DONE, FAILED or CANCELLED; `reply` None means nothing is said; `inbox` is the
    terminal state of the run's own message. `sent_from` moves the start of the history that is
    sent (a step, SPEC §5): an id of the message store; `shortened_to` is the one before which old
    tool results are sent shortened, and never moves back. `owner_notice` goes to the owner.
    `signals` are keys with their values, for turns that wait; `follow` is a run that begins because
    of this end; `notes_left` are told to the model at those conversations' next turns. `used` are
    the ids of facts that the prompt showed; `job` is what came of the run of a job.
    """

    status: RunStatus
    inbox: InboxState
    conversation: ConversationId
    turn: Turn
    reply_to: Address
    reply: str = ""
    notes_taken: tuple[int, ...] = ()
    sent_from: int | None = None
    shortened_to: int = 0
    owner_notice: str = ""
    signals: tuple[tuple[str, Json], ...] = ()
    follow: NewRun | None = None
    notes_left: tuple[LeftNote, ...] = ()
    used: tuple[int, ...] = ()
    job: JobEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What follows from an end, once it is stored: outbox rows that are ready, each with its chat;
    the runs that it woke, queued again; and the run of `TurnEnd.follow`, unless it was known."""

    ready: tuple[tuple[str, OutboxId], ...] = ()
    woken: tuple[RunId, ...] = ()
    followed: StoredRun | None = None


class Journal(Protocol):
    """Keeps runs and their steps. Every method is one transaction, durable when it returns.

    Raises StorageError. Safe to call from many tasks; writes are in order of the calls.
    """

    async def submit(self, run: NewRun, *, begins: bool = False) -> StoredRun | None:
        """Stores a queued run and marks its inbox row queued, and those of `inbox_joined` joined;
        None if `run_id` is known. With `begins` it is begun in the same transaction."""

    async def unfinished(self) -> Sequence[StoredRun]:
        """All runs that are not terminal, in order of submission."""

    async def begin(self, run_id: RunId) -> Mapping[int, StepRecord]:
        """Marks the run running, counts a resumption, and returns its steps by number."""

    async def parked(self, run_ids: Sequence[RunId]) -> None:
        """Takes the last resumption of each back: an orderly stop cut it off."""

    async def intend(self, run_id: RunId, n: int, name: str) -> None:
        """Writes that a `once` step is about to run."""

    async def record(
        self, run_id: RunId, n: int, name: str, output: Json, *, joined: Sequence[RunId] = ()
    ) -> None:
        """Writes a step's output; runs in `joined` (and their inbox rows) become JOINED with it."""

    async def suspend(self, run_id: RunId, key: str) -> bool:
        """Marks the run suspended on `key`; False if the key was already signalled."""

    async def signal(self, key: str, value: Json) -> RunId | None:
        """Keeps the value for `key`; returns the run that waits on it, now queued again."""

    async def signalled(self, key: str) -> Json | None:
        """The value of `key`, if it was signalled."""

    async def stopping(self, run_id: RunId, reason: str) -> None:
        """Writes that the run is to end, so that a restart does not revive it."""

    async def replace(self, lane: str, message_id: str, payload: Json) -> RunId | None:
        """Replaces the payload of a still queued run of this message; None if there is none."""

    async def finish(
        self, run_id: RunId, end: TurnEnd, *, steps: Sequence[StepRecord] = ()
    ) -> Finished:
        """History, outbox row, inbox state, run status, signals and the run that follows, in one
        transaction; with the `steps` that were not recorded before.

        A draft of this run becomes its reply; with an empty reply a draft that was never shown is
        dropped, one that was shown is left as it is. Nothing for a run that has ended already.
        """

    async def children(self, lane: str, *, limit: int) -> Sequence[ChildRun]:
        """Subagents that turns of this chat started: those that are not over, then the newest."""


class TurnContext(Protocol):
    """What a program may use. Nothing else in a turn touches clock, chance or I/O."""

    @property
    def run_id(self) -> RunId: ...

    async def step(
        self, name: str, arguments: object, *, redo: Redo = "repeat", listens: bool = False
    ) -> Json:
        """Runs the step function `name`, or returns what it returned before.

        While a step that `listens` runs, newer messages of the same person may steer the turn.
        Raises StepUnknown (a `once` step died in flight), TurnStopped, TurnChanged; whatever
        else the function raises ends the turn.
        """

    async def receive(self) -> Sequence[Json]:
        """Payloads of the messages that steer this turn now, oldest first; a recorded step."""

    async def wait(self, key: str) -> Json:
        """Suspends the turn until `key` is signalled; returns its value. Survives restarts."""


StepFunction = Callable[[TurnContext, Any], Awaitable[Json]]
"""It gets what the program gave to `TurnContext.step`, and returns what the journal keeps."""


class TurnProgram(Protocol):
    """A turn as plain code. It is run again from the start after a crash: recorded steps return."""

    async def run(self, ctx: TurnContext, payload: Json) -> TurnEnd:
        """Runs the turn to its end. Handles TurnStopped by closing it."""

    def failed(self, run: NewRun, error: Exception | None) -> TurnEnd:
        """The end of a turn that raised `error`, or (None) that kept dying with the process.

        Never raises, also for a payload that nobody can read.
        """

    @property
    def steps(self) -> Mapping[str, StepFunction]: ...


class TurnEngine(Protocol):
    """Runs turns durably: in order within a conversation, else in parallel, each step once."""

    async def start(self) -> None:
        """Takes up what is unfinished; then submissions run."""

    async def submit(self, run: NewRun) -> bool:
        """Stores a run and queues it. Idempotent by `run_id`: False if it is known."""

    def adopt(self, stored: StoredRun) -> None:
        """Queues a run that was stored in a transaction of somebody else's."""

    async def edit(self, lane: str, message_id: str, payload: Json) -> bool:
        """Replaces the payload of a run that has not begun; False when it is too late."""

    async def signal(self, key: str, value: Json) -> bool:
        """Wakes the run that waits for `key`; False if none waits yet (the value is kept)."""

    async def cancel(self, lane: str, *, by: PersonId | None = None) -> int:
        """End the running turn of a conversation, all that wait there and their subagents, of one
        person alone where `by` names one; returns how many."""

    async def stop(self, drain_s: float) -> None:
        """No new turns; waits `drain_s` for running ones, parks the rest for the next start."""


# --- what else the core needs ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """An entry of a conversation with its id; ids grow, and `run_id` groups a turn. It was stored
    at `at_ms` (epoch milliseconds)."""

    id: int
    run_id: RunId
    entry: Entry
    at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingNote:
    """A note that was not told yet; see `memory.stores.conversations`."""

    id: int
    text: str
    untrusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What of a conversation may be sent: entries from `sent_from` on, and notes not yet told."""

    entries: tuple[StoredEntry, ...]
    notes: tuple[WaitingNote, ...] = ()
    turns: int = 0
    """How many turns the conversation has had, also those that are not sent any more."""
    shortened_to: int = 0
    """Old tool results before this message id are sent shortened; a step moves it (SPEC §5)."""
    compaction: Compaction | None = None
    """What was summed up last, whether or not the history that is sent begins there already."""
    is_private: bool = False
    """Memory is off in this conversation."""


class Recall(Protocol):
    """Finds what is remembered for a prompt: only what this person may see in this place."""

    async def recall(self, wanted: RecallWanted) -> Recalled:
        """Return what is known, found and due. Raises StorageError."""


class Approvals(Protocol):
    """Calls that wait for a person's tap, and what was agreed to for always.

    Raises StorageError. The turn that waits is signalled with the key of `waits_on`, and the value
    `{"outcome": Outcome}`, once a person has answered or the time is over.
    """

    async def ask(self, approval: NewApproval) -> None:
        """Keeps it and sends the card with its buttons. Does nothing when the id is known."""

    async def outcome(self, approval_id: str) -> Outcome | None:
        """Return what came of it; None while it is open, and for an unknown id."""

    async def is_always(self, person_id: PersonId, agent: str, tool: str) -> bool:
        """Return whether this was agreed to once and for all."""


def waits_on(approval_id: str) -> str:
    """The signal of an approval's answer."""
    return f"approval:{approval_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """How well a text fits: `score` orders, `cosine` is of its meaning alone (0 without one)."""

    id: str
    score: float
    cosine: float


class Ranker(Protocol):
    """Ranks written things by how well they fit a text: by words, and by meaning where it can.

    Blocks for milliseconds; may be called from any thread. Raises nothing: without embeddings it
    ranks by words alone.
    """

    def rank(self, query: str, *, k: int) -> Sequence[Ranked]:
        """The best `k`, best first; ties by id."""


class Draft(Protocol):
    """What a person sees while a turn runs. Calls return at once and never raise."""

    def text(self, so_far: str) -> None:
        """The visible text up to now; replaces what was shown before."""

    def status(self, line: str) -> None:
        """What is being done, in plain words; empty takes the line away."""


class Drafts(Protocol):
    """Opens drafts; offered by the outbox."""

    def open(self, run_id: RunId, address: Address) -> Draft:
        """The draft of a run: typing begins when the turn is not over soon."""

    def close(self, run_id: RunId) -> None:
        """No further update; what was shown stays until the reply completes it."""
