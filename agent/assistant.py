"""The assistant: one message in, at most one reply out.

It is the Program that a TurnEngine runs: `begin` fixes the prompt, the loop finds an answer, and
what came of it is handed back as one TurnEnd. Built by `bot.app`, called by `bot.door`.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.asking import Asking
from agent.beginning import Beginning
from agent.doing import Doing
from agent.errors import TurnStopped
from agent.loop import INTERRUPTED, Begun, Log, Loop, Trouble
from agent.messages import ConversationId, Role, RunId, TurnInput
from agent.ports import (
    Drafts,
    InboxState,
    Json,
    RunStatus,
    StepFunction,
    TurnContext,
    TurnEnd,
)
from agent.transcript import Answered, Entry, Note, Turn
from agent.turns import TIME_LIMIT

CUT_NOTICE = "_(Cut at the output limit. Say “continue” for the rest.)_"
SHRUNK_NOTICE = "_(The conversation no longer fits the model, so older messages were left out.)_"

NOTICES = {
    "RateLimited": "The model service asks for a pause. Please send that again in a minute.",
    "Overloaded": "The model service cannot be reached or is overloaded. Please try again soon.",
    "ModelTimeout": "The model took too long to answer. Please try again.",
    "BrokenAnswer": "The model's answer broke off on its way, several times. Please try again.",
    "AuthRefused": "The model service does not accept my key. The owner has to set a valid one.",
    "BillingRefused": "The model service says that the account has no credit left. "
    "The owner has to look at it.",
    "ContextTooLong": "That is more text than the model can take at once. "
    "Send it in smaller pieces, or start afresh with /new.",
    "ContentFiltered": "The model service's content filter held the answer back.",
    "Empty": "I have no answer: the model returned nothing, twice. Please put it another way.",
}
"""What a person is told, by error class (SPEC §8.3)."""

OTHER_NOTICE = "The model service refused the request. The owner finds the reason in the log."
BROKEN_NOTICE = (
    "Something went wrong inside me while I worked on your message; it is in the log. "
    "Your message is kept. Please send it again."
)
GIVEN_UP_NOTICE = (
    "I had to give up on your last message: I was stopped many times while working on it. "
    "Please send it again, perhaps in smaller pieces."
)

FOR_THE_OWNER = frozenset({"AuthRefused", "BillingRefused"})


class Assistant:
    """Implements `agent.ports.Program`."""

    def __init__(
        self, *, begin: Beginning, model: Asking, tool: Doing, loop: Loop, drafts: Drafts
    ) -> None:
        self._steps: Mapping[str, StepFunction] = {"begin": begin, "model": model, "tool": tool}
        self._loop = loop
        self._drafts = drafts

    @property
    def steps(self) -> Mapping[str, StepFunction]:
        """The named functions that touch the world."""
        return self._steps

    async def run(self, ctx: TurnContext, payload: Json) -> TurnEnd:
        """One chat turn. See `agent.ports.Program.run`."""
        turn = TurnInput.from_json(payload)
        closing = _Closing(ctx.run_id, turn)
        self._drafts.open(ctx.run_id, turn.message.address)
        try:
            joined = [TurnInput.from_json(other) for other in await ctx.receive()]
            begun = Begun.from_json(await ctx.step("begin", payload))
            closing.begun = begun
            closing.hear([turn, *joined])
            trouble = await self._loop.run(ctx, turn, begun, closing.log)
        except TurnStopped as stop:
            return closing.stopped(stop.reason)
        finally:
            self._drafts.close(ctx.run_id)
        return closing.failed(trouble) if trouble else closing.answered()

    def failed(self, run_id: RunId, payload: Json, error: Exception | None) -> TurnEnd:
        """The end of a turn that broke. See `agent.ports.Program.failed`."""
        self._drafts.close(run_id)
        closing = _Closing(run_id, TurnInput.from_json(payload))
        closing.hear([closing.turn])
        return closing.told(BROKEN_NOTICE if error is not None else GIVEN_UP_NOTICE)


class _Closing:
    """Makes the TurnEnd: the log is closed, and the reply is what its answers say."""

    def __init__(self, run_id: RunId, turn: TurnInput) -> None:
        self.run_id = run_id
        self.turn = turn
        self.log = Log()
        self.begun: Begun | None = None

    def hear(self, turns: list[TurnInput]) -> None:
        """Notes first, then the words; the block of turn layers follows the last of them."""
        for _, text in self.begun.notes if self.begun else ():
            self.log.add(Note(text=text))
        for turn in turns[:-1]:
            self.log.hear(turn)
        self.log.hear(turns[-1], context=self.begun.context if self.begun else "")

    def answered(self) -> TurnEnd:
        """The sunny end."""
        reply = self.log.reply()
        last = self.log.entries[-1]
        if isinstance(last, Answered) and last.finish == "length":
            reply = f"{reply}\n\n{CUT_NOTICE}"
        if self.log.shrunk:
            reply = f"{SHRUNK_NOTICE}\n\n{reply}"
        return self._end(RunStatus.DONE, InboxState.REPLIED, reply)

    def failed(self, trouble: Trouble) -> TurnEnd:
        """No answer: one honest message, after what was said before the trouble."""
        notice = NOTICES.get(trouble.kind, OTHER_NOTICE)
        if self.turn.role is Role.OWNER and trouble.kind != "Empty":
            notice = f"{notice}\n\n{trouble.text}"
        return self.told(notice, owner=trouble if trouble.kind in FOR_THE_OWNER else None)

    def told(self, notice: str, *, owner: Trouble | None = None) -> TurnEnd:
        """Ends as failed with this notice, which history keeps as a note."""
        self.log.close(INTERRUPTED)
        said = self.log.reply()
        self.log.add(Note(text=f"The person was told: {notice}"))
        elsewhere = owner if self.turn.role is not Role.OWNER else None
        return self._end(
            RunStatus.FAILED,
            InboxState.FAILED,
            f"{said}\n\n{notice}" if said else notice,
            owner_notice=f"A turn of another person failed. {elsewhere.text}" if elsewhere else "",
        )

    def stopped(self, reason: str) -> TurnEnd:
        """Ended from outside: by /stop, or by the turn's time limit."""
        if not self.log.entries:
            self.hear([self.turn])
        if reason == TIME_LIMIT:
            done = _done_so_far(self.log.entries)
            return self.told(f"This took longer than a turn may, so I stopped it. {done}")
        self.log.close(INTERRUPTED)
        self.log.add(Note(text="The person ended this turn with /stop."))
        return self._end(RunStatus.CANCELLED, InboxState.CANCELLED, "")

    def _end(
        self, status: RunStatus, inbox: InboxState, reply: str, *, owner_notice: str = ""
    ) -> TurnEnd:
        begun = self.begun
        return TurnEnd(
            status=status,
            inbox=inbox,
            conversation=ConversationId(self.turn.conversation),
            turn=Turn(run_id=self.run_id, entries=tuple(self.log.entries)),
            reply_to=self.turn.message.address,
            reply=reply,
            notes_taken=tuple(number for number, _ in begun.notes) if begun else (),
            sent_from=self._sent_from(),
            owner_notice=owner_notice,
        )

    def _sent_from(self) -> int | None:
        """Where the history that is sent begins from now on; what did not fit is told once."""
        if self.begun is None:
            return None
        return self.begun.upto + 1 if self.log.shrunk else self.begun.sent_from


def _done_so_far(entries: list[Entry]) -> str:
    names = [call.name for entry in entries if isinstance(entry, Answered) for call in entry.calls]
    if not names:
        return "Nothing was changed."
    return "Tools that were called until then: " + ", ".join(dict.fromkeys(names)) + "."
