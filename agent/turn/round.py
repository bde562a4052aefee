"""One turn's rounds as values: what was fixed, what was said and done, what is counted.

Made by `agent.turn.loop`, which runs the rounds; `agent.turn.steps.tools` runs the calls of one
answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent.guards.action_claims import ANYTHING, BACKED_BY, ClaimKind, Ledger, asks_to_be_told
from agent.guards.text import RepeatGuard, is_empty, visible
from agent.policy.gate import UNASKED_MAX
from agent.policy.taint import called_name
from agent.prompt.layers import knowledge as notes
from memory.records.facts import FACT_SOURCE, fact_id_of
from memory.records.messages import TurnInput
from memory.records.ports import Json, TurnContext, WaitingNote
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    Note,
    Said,
    ToolCall,
    ToolResult,
    changed_once,
)

INTERRUPTED = "Interrupted: the turn was ended before this call finished."
"""The result of a call whose turn ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPrompt:
    """What the `begin` step fixed: the rest of the turn builds on exactly this.

    History is sent from the id `since` up to `upto`, wherever its start moves meanwhile; `compacts`
    says that it can be summed up where it turns out to be too large.
    """

    upto: int
    sent_from: int | None
    notes: tuple[WaitingNote, ...]
    system: str
    context: str
    tools: tuple[str, ...]
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
        """Reads the step's output."""
        return cls(
            upto=data["upto"],
            sent_from=data["sent_from"],
            notes=tuple(_waiting(*note) for note in data["notes"]),
            system=data["system"],
            context=data["context"],
            tools=tuple(data["tools"]),
            whole_context=data.get("whole_context", ""),
            user=data.get("user", ""),
            kind=data.get("kind", "chat"),
            direct=data.get("direct", False),
            shortened_to=data.get("shortened_to", 0),
            layers=tuple(data.get("layers", ())),
            auto_invoke=tuple(data.get("auto_invoke", ())),
            model=data.get("model", ""),
            answered_last=data.get("answered_last", ""),
            tainted=data.get("tainted", ""),
            remembered=data.get("remembered", False),
            cooler=data.get("cooler"),
            claims=data.get("claims", False),
            result_chars=data.get("result_chars", 0),
            since=data["since"] if "since" in data else data["sent_from"] or 0,
            compacts=data.get("compacts", False),
        )

    def facts(self) -> tuple[int, ...]:
        """The ids of the facts that the prompt shows."""
        sources = [source for layer in self.layers for source in layer.get("sources", ())]
        keys = (one.removeprefix(FACT_SOURCE) for one in sources if one.startswith(FACT_SOURCE))
        return tuple(found for key in keys if (found := fact_id_of(key)) is not None)


def _waiting(note_id: int, text: str, untrusted: bool = False) -> WaitingNote:
    """Versions before this one recorded no mark."""
    return WaitingNote(id=note_id, text=text, untrusted=untrusted)


@dataclass(slots=True)
class TurnLog:
    """What this turn has said and done so far; becomes the Turn that history keeps."""

    entries: list[Entry] = field(default_factory=list)
    sent_from: int | None = None
    """Where the history that was sent began, once not all of it fitted."""
    shortened_to: int = 0
    """Up to where its old tool results were sent shortened, once it was summed up on the way."""
    stand_in: tuple[str, str] | None = None
    """The model that gave the last answer, and the usual one, where they differ."""
    for_owner: list[str] = field(default_factory=list)
    """What the owner has to hear, a sentence each."""

    def hear(self, turn: TurnInput, *, context: str = "", note: Note | None = None) -> None:
        """The person's words as typed, after a note of what came with them, before the block.
        `note` is that on its files, where they were opened."""
        message = turn.message
        if note is not None:
            self.add(note)
        elif told := notes.came_along(message):
            self.add(Note(text=told))
        sender = message.sender_name if message.is_group else ""
        by = turn.person_id if message.is_group else ""
        said = Said(
            text=message.text,
            sender=sender,
            quote=message.quote,
            by=by,
            forwarded=bool(message.forwarded),
        )
        self.add(said)
        if context:
            self.add(Context(text=context))

    def add(self, *entries: Entry) -> None:
        """In order."""
        self.entries.extend(entries)

    def reply(self) -> str:
        """All the answers' texts that a person may see, in order: what was streamed stands."""
        texts = (visible(entry.text) for entry in self.entries if isinstance(entry, Answered))
        return "\n\n".join(text for text in texts if not is_empty(text))

    def close(self, why: str) -> None:
        """Gives every open call a result, so that each call has exactly one.

        Only calls of the last answer can be open; ids may come again from one answer to another.
        """
        calls: tuple[ToolCall, ...] = ()
        answered: set[str] = set()
        for entry in self.entries:
            if isinstance(entry, Answered):
                calls, answered = entry.calls, set()
            elif isinstance(entry, ToolResult):
                answered.add(entry.call_id)
        for call in calls:
            if call.id not in answered:
                self.add(ToolResult(call_id=call.id, content=why, ok=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrouble:
    """Why there is no answer. `kind` is an error class, `text` a sentence for the owner, who has
    heard it where it `is_known`. `passes` and `free_at_ms` are those of SpendingRefused."""

    kind: str
    text: str
    is_known: bool = False
    passes: bool = True
    free_at_ms: int | None = None


CALLS_MAX = 64
"""Calls of one answer that are run at most: a model in a loop writes thousands."""


@dataclass(slots=True)
class UnaskedChanges:
    """What the calls of one answer change: how many ran `unasked`, and whether somebody refused one
    past the limit. After a refusal nothing more of this answer is asked about."""

    unasked: int = 0
    is_refused: bool = False

    def refuse(self) -> None:
        """Note that a person did not agree to a call."""
        self.is_refused = self.unasked >= UNASKED_MAX


@dataclass(slots=True)
class Rounds:
    """What the rounds of one turn count. All of it follows from the recorded steps."""

    begun: FixedPrompt
    repeats: RepeatGuard = field(default_factory=RepeatGuard)
    changes: UnaskedChanges = field(default_factory=UnaskedChanges)
    shrinks: int = 0
    empties: int = 0
    cuts: int = 0
    sum_up: bool = False
    hint: str = ""
    detail: str = ""
    unhelpful: bool = False
    written: int = 0
    claimed: int = 0
    malformed: int = 0
    left: int | None = None
    """Rounds with tools that are left, where they became fewer on the way."""

    def again(self, hint: str, detail: str = "") -> None:
        """The same question once more, with what was wrong with the answer."""
        self.hint, self.detail = hint, detail

    def take(self) -> bool:
        """Whether this round may still have tools."""
        if self.left is None:
            return not self.sum_up
        self.left -= 1
        return self.left >= 0 and not self.sum_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """Where a turn is: what its steps are made of."""

    ctx: TurnContext
    turn: TurnInput
    rounds: Rounds
    log: TurnLog


def without_surplus(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries without the calls past the limit of one answer, and their results."""
    kept: list[Entry] = []
    results = 0
    for entry in entries:
        results = results + 1 if isinstance(entry, ToolResult) else 0
        if isinstance(entry, Answered):
            kept.append(_with_first_calls(entry))
        elif results <= CALLS_MAX:
            kept.append(entry)
    return kept


def _first_calls(answer: Answered) -> Answered:
    is_short = len(answer.calls) <= CALLS_MAX
    return answer if is_short else replace(answer, calls=answer.calls[:CALLS_MAX])


_with_first_calls = changed_once(_first_calls)


NOTHING = "nothing_to_report"
"""The tool by which a run that nobody watches ends itself in silence (SPEC §6)."""


def said_nothing(entries: Sequence[Entry]) -> bool:
    """Whether the last answer called that tool, and it worked."""
    done: set[str] = set()
    for entry in reversed(entries):
        if isinstance(entry, ToolResult) and entry.ok:
            done.add(entry.call_id)
        elif isinstance(entry, Answered):
            return any(called_name(call) == NOTHING and call.id in done for call in entry.calls)
    return False


def ledger_of(entries: Sequence[Entry]) -> Ledger:
    """What a turn has done so far, by the effects of its calls."""
    done: set[ClaimKind] = set()
    names: dict[str, str] = {}  # ids may come again from one answer to another
    is_read, said = False, Said(text="")
    for entry in entries:
        match entry:
            case Answered():
                names = {call.id: called_name(call) for call in entry.calls}
            case ToolResult(ok=True, effect=""):
                is_read = True
            case ToolResult(ok=True):
                done |= BACKED_BY.get(names.get(entry.call_id, ""), ANYTHING)
            case Said():
                said = entry
            case _:
                pass
    tells = is_read or bool(said.quote) or said.forwarded or asks_to_be_told(said.text)
    return Ledger(done=frozenset(done), tells=tells)
