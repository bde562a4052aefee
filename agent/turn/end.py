"""How a turn ends: what history keeps of it, what the person is told, and what the owner is.

Called by `agent.turn.assistant`, which makes one TurnEndBuilder a turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from agent.guards.repetition import is_empty
from agent.guards.repetition import visible as unhidden
from agent.policy.taint import marked, tainted_by
from agent.prompt.layers import knowledge as notes
from agent.subagents.subagents import ASKED_BY, reported
from agent.tools.arguments import ArgumentsWrong
from agent.tools.discovery import resolved
from agent.turn.engine import BY_PERSON, TIME_LIMIT
from agent.turn.loop import CALL_FAILED
from agent.turn.progress import (
    INTERRUPTED,
    ModelTrouble,
    TurnProgress,
    heard,
    reply_of,
    said_nothing,
)
from agent.turn.steps.tools import UNKNOWN_FATE
from memory.records.messages import Address, ConversationId, Origin, Role, RunId, TurnInput
from memory.records.ports import InboxState, JobEnd, PutOff, RunStatus, TurnEnd
from memory.records.text import declines, one_line, visible
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    Note,
    Said,
    ToolCall,
    ToolResult,
    Turn,
)

Typed = Callable[[str, Address], str]
"""Markdown of ours, with the commands in it as they are typed at an address: channels differ."""

CUT_NOTICES = {
    "length": "_(Cut at the output limit. Say “continue” for the rest.)_",
    "filter": "_(The model service's content filter cut the answer off here.)_",
}
"""What is added to an answer that is not whole, by its `finish`."""

SHRUNK_NOTICE = "_(The conversation no longer fits the model, so older messages were left out.)_"

STAND_IN_NOTICE = "_(Answered by `{answered}`, as `{usual}` cannot answer now.)_"

NOTICES = {
    "RateLimited": "The model service asks for a pause. Please send that again in a minute.",
    "Overloaded": "The model service cannot be reached or is overloaded. Please try again soon.",
    "ModelTimeout": "The model took too long to answer. Please try again.",
    "BrokenAnswer": "The model's answer broke off on its way, several times. Please try again.",
    "AuthRefused": "The model service does not accept my key. The owner has to set a valid one.",
    "BillingRefused": "The model service says that the account has no credit left. "
    "The owner has to look at it.",
    "ContextTooLong": "That is more text than the model can take at once. "
    "Send it in smaller pieces, or start afresh with `/new`.",
    "ContentFiltered": "The model service's content filter held the answer back.",
    "MalformedCall": "The model wrote tool calls that its service could not read, again and again. "
    "Please put it another way.",
    "Empty": "I have no answer: the model returned nothing, twice. Please put it another way.",
}
"""What a person is told, by error class (SPEC §8.3)."""

OTHER_NOTICE = "The model service refused the request. The owner finds the reason in the log."

TIME_NOTICE = "This took longer than a turn may, so I stopped it."
NOTHING_DONE = "Nothing was changed."
STEPS_DONE = "Some steps were taken before that; ask me what was done before you repeat it."

STOPPED_JOB = "It was stopped."
"""What is written of a job that was ended from outside."""

FOR_THE_OWNER = frozenset({"AuthRefused", "BillingRefused"})
PUTS_OFF = FOR_THE_OWNER | {"SpendingRefused"}
"""Troubles that a job cannot help; its run is put off until they are over."""
NOTICES_ENOUGH = frozenset({"Empty", "ContentFiltered"})
"""What the service says beyond the notice is nothing the owner could use."""


class TurnEndBuilder:
    """Makes the TurnEnd: the log is closed, and the reply is what its answers say."""

    def __init__(self, run_id: RunId, now: TurnProgress, *, typed: Typed, named: Named) -> None:
        self._typed = typed
        self._named = named
        self.now = now
        self.run_id = run_id
        self.turns = [now.state.turn]
        self.files: dict[int, Note] = {}
        """The notes on the files of these messages, once they are opened."""
        self._trouble: ModelTrouble | None = None

    @property
    def turn(self) -> TurnInput:
        """Return what began the turn."""
        return self.now.state.turn

    def hear(self) -> None:
        """Notes first, then the words; the block of turn layers follows the last of them."""
        now, turn, prompt = self.now, self.turn, self.now.state.prompt
        now.add(*(Note(text=note.text, untrusted=note.untrusted) for note in prompt.notes))
        if turn.job is not None:
            now.add(Said(text=prompt.user or turn.message.text))
            return
        if turn.origin is Origin.SUBAGENT:
            # Words that no person wrote, and that may rest on text from outside, are somebody's
            # (`agent.policy.taint`).
            by = ASKED_BY if turn.task is not None and turn.task.tainted else ""
            by = by if turn.report is None else turn.report.child
            now.add(Said(text=turn.message.text, by=by))
            if prompt.context:
                now.add(Context(text=prompt.context))
            return
        last = len(self.turns) - 1
        for number, one in enumerate(self.turns):
            context = prompt.context if number == last else ""
            now.add(*heard(one, context=context, note=self.files.get(number)))

    def answered(self) -> TurnEnd:
        """The sunny end."""
        reply, last = reply_of(self.now.state.entries), self.now.state.entries[-1]
        if isinstance(last, Answered) and not self._is_chat():
            # Of a run that nobody watches its last answer counts, without what it said on the way
            # to it, also where that answer is that there is nothing to report.
            text = visible(last.text)
            if not is_empty(text):
                reply = text
            elif self.turn.job is not None and declines(last.text):
                reply = ""
        if isinstance(last, Answered) and last.finish in CUT_NOTICES:
            reply = f"{reply}\n\n{CUT_NOTICES[last.finish]}"
        if self.now.state.sent_from is not None and self._is_chat():
            reply = f"{SHRUNK_NOTICE}\n\n{reply}"
        state, where = self.now.state, self.turn.message.address
        stand_in = state.stand_in if self._is_chat() else None
        # Who answered in place of the usual model, unless it did last time too; and to the owner
        # alone, what they have to see to (SPEC §8.3).
        if stand_in is not None and stand_in[0] != state.prompt.answered_last:
            line = STAND_IN_NOTICE.format(answered=stand_in[0], usual=stand_in[1])
            reply = f"{reply}\n\n{self._typed(line, where)}"
        for text in state.for_owner if self._is_owner_alone() else ():
            reply = f"{reply}\n\n{self._typed(f'_({text})_', where)}"
        notice = "" if self._is_owner_alone() else "\n\n".join(state.for_owner)
        return self._end(RunStatus.DONE, InboxState.REPLIED, reply, owner_notice=notice)

    def told_on(self, end: TurnEnd) -> TurnEnd:
        """The end as it is stored: a subagent's goes to whoever gave the task, and to no chat; a
        job's is delivered, or not, by whoever keeps the clock."""
        if self.turn.job is not None:
            entries = end.turn.entries
            # Who may have acted is told of, and not made up for: that would act a second time.
            in_doubt = bool(self._doubts())
            trouble, put_off = self._trouble, None
            if trouble is not None and trouble.kind in PUTS_OFF and trouble.passes and not in_doubt:
                acted = any(isinstance(entry, ToolResult) and entry.effect for entry in entries)
                put_off = PutOff(anew=not acted, free_at_ms=trouble.free_at_ms)
            return replace(
                end,
                reply="",
                inbox=InboxState.SILENT,
                job=JobEnd(
                    job_id=self.turn.job.job_id,
                    slot=self.turn.job.slot,
                    ok=end.status is RunStatus.DONE or in_doubt,
                    text=end.reply or (STOPPED_JOB if end.status is RunStatus.CANCELLED else ""),
                    silent=said_nothing(entries) and not self._told_anyway(),
                    tainted=bool(tainted_by(entries, person_id=self.turn.person_id)),
                    put_off=put_off,
                ),
            )
        if self.turn.task is None:
            return end
        # What a subagent's parent makes of it is up to a model: the person is told all the same.
        return replace(reported(self.run_id, self.turn, end), reply=self._told_anyway())

    def _is_chat(self) -> bool:
        """Return whether a person reads along."""
        return self.turn.task is None and self.turn.job is None

    def failed(self, trouble: ModelTrouble) -> TurnEnd:
        """No answer: one honest message, after what was said before the trouble."""
        self._trouble = trouble
        if trouble.kind in {"SpendingRefused", CALL_FAILED}:
            return self.told(trouble.text)
        notice = NOTICES.get(trouble.kind, OTHER_NOTICE)
        for_owner = list(self.now.state.for_owner)
        if self._is_owner_alone():
            why = [] if trouble.kind in NOTICES_ENOUGH else [trouble.text]
            return self.told("\n\n".join([notice, *why, *for_owner]))
        if trouble.kind in FOR_THE_OWNER and not trouble.is_known:
            failed = f"A turn in {self.turn.message.address.key} failed. {trouble.text}"
            for_owner.insert(0, failed)
        return self.told(notice, owner_notice="\n\n".join(for_owner))

    def told(self, notice: str, *, owner_notice: str = "") -> TurnEnd:
        """Ends as failed with this notice, which history keeps as a note."""
        notice = self._typed(notice, self.turn.message.address)
        self._close_log()
        said = reply_of(self.now.state.entries)
        self.now.add(Note(text=notes.was_told(notice)))
        return self._end(
            RunStatus.FAILED,
            InboxState.FAILED,
            f"{said}\n\n{notice}" if said else notice,
            owner_notice=owner_notice,
        )

    def stopped(self, reason: str) -> TurnEnd:
        """Ended from outside: by /stop, or by the turn's time limit."""
        self._close_log()
        if reason == TIME_LIMIT:
            did_something = any(isinstance(entry, ToolResult) for entry in self.now.state.entries)
            return self.told(f"{TIME_NOTICE} {STEPS_DONE if did_something else NOTHING_DONE}")
        by_person = reason == BY_PERSON
        self.now.add(Note(text=notes.STOPPED if by_person else f"This turn was ended: {reason}."))
        return self._end(RunStatus.CANCELLED, InboxState.CANCELLED, "")

    def _end(
        self, status: RunStatus, inbox: InboxState, reply: str, *, owner_notice: str = ""
    ) -> TurnEnd:
        state, prompt = self.now.state, self.now.state.prompt
        was_tainted, person_id = bool(prompt.tainted), state.turn.person_id
        kept = marked(state.entries, was_tainted=was_tainted, person_id=person_id)
        sent_from = prompt.sent_from if state.sent_from is None else state.sent_from
        return TurnEnd(
            status=status,
            inbox=inbox,
            conversation=ConversationId(state.turn.conversation),
            turn=Turn(run_id=self.run_id, entries=kept),
            reply_to=state.turn.message.address,
            reply="\n\n".join(filter(None, (reply, self._told_anyway()))),
            notes_taken=tuple(note.id for note in prompt.notes),
            sent_from=sent_from,
            shortened_to=max(state.shortened_to, prompt.shortened_to),
            owner_notice=owner_notice,
            used=prompt.facts(),
        )

    def _doubts(self) -> str:
        """Return what is told of calls that a kill left in doubt, whatever the model says of
        them."""
        is_shared = self.turn.message.is_group
        return "\n\n".join(doubts(self.now.state.entries, self._named, is_shared=is_shared))

    def _told_anyway(self) -> str:
        """The same, and what protected files have lost by the end of the turn."""
        results = (
            one for one in self.now.state.entries if isinstance(one, ToolResult) and one.file
        )
        lost = {result.file: result.lost for result in results}
        lines = [self._typed(line, self.turn.message.address) for line in lost.values() if line]
        return "\n\n".join(filter(None, [self._doubts(), *lines]))

    def _close_log(self) -> None:
        """The words are in it, also when the prompt was never fixed; each call has a result."""
        if not self.now.state.entries:
            self.hear()
        self.now.close(INTERRUPTED)

    def _is_owner_alone(self) -> bool:
        here = self.turn.role is Role.OWNER and not self.turn.message.is_group
        return here and self._is_chat()


# --- calls in doubt ------------------------------------------------------------------------------

ASKED_CHARS_MAX = 120
"""Of what was asked, as the person is reminded of it."""

DOUBT = (
    "I was stopped while trying to {what}, and I do not know whether it was done: please look "
    "before you ask for it again."
)

Named = Callable[[str], str]
"""What a tool does, in plain words that go on after "trying to"."""


def nameless(tool: str) -> str:
    """Where nobody has words for it."""
    return "use a tool"


def doubts(entries: Sequence[Entry], named: Named, *, is_shared: bool) -> list[str]:
    """Return a sentence of Markdown for each such call of a turn, in order. Where others read along
    (`is_shared`) it does not say with which arguments."""
    found = []
    calls: dict[str, ToolCall] = {}  # ids may come again from one answer to another
    for entry in entries:
        if isinstance(entry, Answered):
            calls = {call.id: call for call in entry.calls}
        # A server could write the same words: its results are never ours.
        if not isinstance(entry, ToolResult) or entry.ok or entry.untrusted:
            continue
        call = calls.get(entry.call_id) if entry.content == UNKNOWN_FATE else None
        if call is None:
            continue
        with suppress(ArgumentsWrong):  # then it is told as it was written
            call = resolved(call)
        asked = "" if is_shared else _asked(call.arguments)
        what = named(call.name)
        found.append(DOUBT.format(what=f"{what} (`{asked}`)" if asked else what))
    return found


def _asked(arguments: str) -> str:
    """Return the values in one short line, which ends no span of code."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = arguments
    if isinstance(values, dict):
        values = ", ".join(f"{name}: {_value(value)}" for name, value in values.items())
    shown = one_line(unhidden(_value(values)), chars_max=ASKED_CHARS_MAX)
    return shown.replace("`", "'").strip()


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return json.dumps(value, ensure_ascii=False)
