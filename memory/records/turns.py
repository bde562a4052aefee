"""A turn as its steps see it: the prompt that was fixed, and all that was said and done since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.records.codec import from_json
from memory.records.facts import FACT_SOURCE, fact_id_of
from memory.records.messages import PersonId, RunId, TurnInput
from memory.records.ports import Json, WaitingNote
from memory.records.rows import Outcome
from memory.records.transcript import Entry, ToolCall
from memory.records.usage import UsageSum


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPrompt:
    """What the `begin` step fixed: the rest of the turn builds on exactly this.

    History is sent from the id `since` up to `upto`, wherever its start moves meanwhile; `compacts`
    says that it can be summed up where it turns out to be too large.
    """

    upto: int = 0
    sent_from: int | None = None
    notes: tuple[WaitingNote, ...] = ()
    system: str = ""
    context: str = ""
    tools: tuple[str, ...] = ()
    whole_context: str = ""
    user: str = ""
    kind: str = "chat"
    direct: bool = False
    shortened_to: int = 0
    layers: tuple[Json, ...] = ()
    auto_invoke: tuple[Json, ...] = ()
    model: str = ""
    answered_last: str = ""
    tainted: str = ""
    remembered: bool = False
    cooler: float | None = None
    claims: bool = False
    result_chars: int = 0
    since: int = 0
    compacts: bool = False

    @classmethod
    def from_json(cls, data: Json) -> FixedPrompt:
        """Read the step's output, also that of an earlier version."""
        since = data["since"] if "since" in data else data["sent_from"] or 0
        return from_json(cls, {**data, "since": since})

    def facts(self) -> tuple[int, ...]:
        """Return the ids of the facts that the prompt shows."""
        sources = [source for layer in self.layers for source in layer.get("sources", ())]
        keys = (one.removeprefix(FACT_SOURCE) for one in sources if one.startswith(FACT_SOURCE))
        return tuple(found for key in keys if (found := fact_id_of(key)) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """Where a turn is: what its steps get, and all of it follows from what they returned before.

    `entries` are what the turn has said and done so far, and become the history of it. `sent_from`
    says where the history that was sent began, once not all of it fitted; `shortened_to` up to
    where its old tool results were shortened, once it was summed up on the way. `stand_in` is the
    model that gave the last answer and the usual one, where they differ; `for_owner` what the owner
    has to hear, a sentence each.
    """

    turn: TurnInput
    prompt: FixedPrompt = field(default_factory=FixedPrompt)
    entries: tuple[Entry, ...] = ()
    sent_from: int | None = None
    shortened_to: int = 0
    stand_in: tuple[str, str] | None = None
    for_owner: tuple[str, ...] = ()

    # The next question to the model: with tools or not, and with what was wrong with its answer.
    offered: bool = True
    hint: str = ""
    detail: str = ""
    sum_up: bool = False
    rounds_left: int | None = None
    """Rounds with tools that are left, where they became fewer on the way."""

    # Tries that were used up.
    shrinks: int = 0
    empties: int = 0
    cuts: int = 0
    written: int = 0
    claimed: int = 0
    malformed: int = 0
    unhelpful: bool = False

    # Changes by the calls of one answer: how many ran unasked, and whether somebody refused one
    # past the limit. After that nothing more of this answer is asked about.
    unasked: int = 0
    is_refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallState:
    """A tool call as the steps `gate` and `tool` get it.

    `entries` are those of the turn without calls past the limit of one answer. `tainted` says by
    what untrusted text the model was moved, if any, and `remembered` whether it knew anything of
    the person. `place` counts the answers so far. `agreed` is the approval it waited for.
    """

    state: TurnState
    call: ToolCall
    entries: Sequence[Entry]
    tainted: str
    remembered: bool
    place: int
    agreed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginRequest:
    """What the step `begin` gets. With `overflow` what was sent turned out to be too large;
    `brought_tokens` is what files add to the words."""

    turn: TurnInput
    overflow: bool = False
    brought_tokens: int = 0


# --- traces -------------------------------------------------------------------------------------
#
# What is recorded of a turn, and what stands behind a message that was sent.


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
