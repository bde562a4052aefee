"""One turn on its way, and what can be said of the entries that it has made so far.

Made by `agent.turn.assistant`; `agent.turn.loop` and `agent.turn.steps.tools` bring it forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent.guards.action_claims import ANYTHING, BACKED_BY, ClaimKind, Ledger, asks_to_be_told
from agent.guards.repetition import RepeatGuard, is_empty
from agent.guards.tool_call_text import called_name
from agent.policy.gate import UNASKED_MAX
from agent.prompt.layers import knowledge as notes
from memory.records.messages import TurnInput
from memory.records.text import visible
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
from memory.records.turns import TurnState

INTERRUPTED = "Interrupted: the turn was ended before this call finished."
"""The result of a call whose turn ended."""


@dataclass(slots=True, kw_only=True)
class TurnProgress:
    """A turn on its way: its `state` is replaced, never altered. All of it follows from the
    recorded steps."""

    state: TurnState
    repeats: RepeatGuard = field(default_factory=RepeatGuard)

    def add(self, *entries: Entry) -> None:
        """What was said or done, in order."""
        self.state = replace(self.state, entries=(*self.state.entries, *entries))

    def again(self, hint: str, detail: str = "") -> None:
        """The same question once more, with what was wrong with the answer."""
        self.state = replace(self.state, hint=hint, detail=detail)

    def begin_answer(self) -> None:
        """The calls of another answer: none of them has changed anything yet."""
        self.state = replace(self.state, unasked=0, is_refused=False)

    def sum_up(self) -> None:
        """From now on the model is to answer with what there is."""
        self.state = replace(self.state, sum_up=True)

    def ran_unasked(self) -> None:
        """A call that may change something ran, and nobody was asked about it."""
        self.state = replace(self.state, unasked=self.state.unasked + 1)

    def was_refused(self) -> None:
        """Somebody said no: past the limit nothing more of this answer is asked about."""
        self.state = replace(self.state, is_refused=self.state.unasked >= UNASKED_MAX)

    def begin_round(self, *, is_last: bool) -> None:
        """A round has tools, unless it is the last one, or only to sum up."""
        state = self.state
        left = None if state.rounds_left is None else state.rounds_left - 1
        offered = not is_last and not state.sum_up and (left is None or left >= 0)
        self.state = replace(state, rounds_left=left, offered=offered)

    def close(self, why: str) -> None:
        """Gives every open call a result, so that each call has exactly one.

        Only calls of the last answer can be open; ids may come again from one answer to another.
        """
        calls: tuple[ToolCall, ...] = ()
        answered: set[str] = set()
        for entry in self.state.entries:
            if isinstance(entry, Answered):
                calls, answered = entry.calls, set()
            elif isinstance(entry, ToolResult):
                answered.add(entry.call_id)
        for call in calls:
            if call.id not in answered:
                self.add(ToolResult(call_id=call.id, content=why, ok=False))


def heard(turn: TurnInput, *, context: str = "", note: Note | None = None) -> list[Entry]:
    """The person's words as typed, after a note of what came with them, before the block.
    `note` is that on its files, where they were opened."""
    message = turn.message
    entries: list[Entry] = []
    if note is not None:
        entries.append(note)
    elif told := notes.came_along(message):
        entries.append(Note(text=told))
    said = Said(
        text=message.text,
        sender=message.sender_name if message.is_group else "",
        quote=message.quote,
        by=turn.person_id if message.is_group else "",
        forwarded=bool(message.forwarded),
    )
    entries.append(said)
    if context:
        entries.append(Context(text=context))
    return entries


def reply_of(entries: Sequence[Entry]) -> str:
    """All the answers' texts that a person may see, in order: what was streamed stands."""
    texts = (visible(entry.text) for entry in entries if isinstance(entry, Answered))
    return "\n\n".join(text for text in texts if not is_empty(text))


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


def without_surplus(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries without the calls past the limit of one answer, and their results."""
    kept: list[Entry] = []
    results = 0
    for entry in entries:
        results = results + 1 if isinstance(entry, ToolResult) else 0
        if isinstance(entry, Answered):
            kept.append(_first_calls(entry))
        elif results <= CALLS_MAX:
            kept.append(entry)
    return kept


@changed_once
def _first_calls(answer: Answered) -> Answered:
    is_short = len(answer.calls) <= CALLS_MAX
    return answer if is_short else replace(answer, calls=answer.calls[:CALLS_MAX])


NOTHING = "nothing_to_report"
"""The tool by which a run that nobody watches ends itself in silence (SPEC §6)."""


def said_nothing(entries: Sequence[Entry]) -> bool:
    """Return whether the last answer called that tool, and it worked."""
    done: set[str] = set()
    for entry in reversed(entries):
        if isinstance(entry, ToolResult) and entry.ok:
            done.add(entry.call_id)
        elif isinstance(entry, Answered):
            return any(called_name(call) == NOTHING and call.id in done for call in entry.calls)
    return False


def ledger_of(entries: Sequence[Entry]) -> Ledger:
    """Return what a turn has done so far, by the effects of its calls."""
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
