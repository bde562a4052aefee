"""The assistant: one message in, at most one reply out.

It is the Program that a TurnEngine runs: `begin` fixes the prompt, the loop finds an answer, and
what came of it is handed back as one TurnEnd. Built by `bot.app`, called by `bot.inbox.intake`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import structlog

from agent.files.attachments import STEP as FILES
from agent.files.attachments import brought, left_alone
from agent.subagents.subagents import PeopleDrafts, is_subagents_end, unreadable
from agent.tools.groups.agents import SUBAGENT_STATUS
from agent.turn.active_runs import Suspended
from agent.turn.end import Named, TurnEndBuilder, Typed, nameless
from agent.turn.loop import Loop
from agent.turn.progress import TurnProgress
from agent.turn.steps.begin import BeginStep
from agent.turn.steps.model import ModelStep
from agent.turn.steps.tools import ToolStep
from memory.records.errors import TurnStopped
from memory.records.messages import JOB_RUN, Address, ConversationId, RunId, TurnInput
from memory.records.ports import (
    Drafts,
    InboxState,
    JobEnd,
    Json,
    NewRun,
    RunStatus,
    StepFunction,
    TurnContext,
    TurnEnd,
)
from memory.records.transcript import Turn, Unpaired
from memory.records.turns import BeginRequest, FixedPrompt, TurnState

# --- watched ------------------------------------------------------------------------------------
#
# What people see of turns that run or wait: typing and a status line go on while a subagent works.
#
# A turn that waits frees its queue. While a subagent works for it, its draft is open and says so;
# while a person is asked, by it or by the subagent, there is nothing to wait for but their answer,
# and it rests. Called by `agent.turn.assistant`.


class WatchedTurns:
    """The drafts of one process's turns. After a restart nothing is shown of a turn that waits
    until it goes on."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        self._waiting: dict[RunId, Address] = {}
        """Turns that wait for a subagent's end."""
        self._asking: dict[RunId, set[RunId]] = {}
        """Of a turn, its subagents that wait for a person's answer."""

    @contextmanager
    def watching(self, run_id: RunId, turn: TurnInput) -> Iterator[None]:
        """A turn that begins or goes on here, until it has ended, or waits for a signal."""
        self.begins(run_id, turn)
        waits_for = ""
        try:
            yield
        except Suspended as suspended:
            waits_for = suspended.key
            raise
        finally:
            self.leaves(run_id, turn, waits_for=waits_for)

    def begins(self, run_id: RunId, turn: TurnInput) -> None:
        """It begins, or goes on."""
        draft = self._drafts.open(run_id, turn.message.address)
        if self._waiting.pop(run_id, None) is not None:
            draft.status("")
        self._hears(run_id, turn, asks=False)

    def leaves(self, run_id: RunId, turn: TurnInput, *, waits_for: str = "") -> None:
        """It has ended, or waits for this signal."""
        if is_subagents_end(waits_for):
            self._waiting[run_id] = turn.message.address
            self._show(run_id)
            return
        self._drafts.close(run_id)
        self._hears(run_id, turn, asks=bool(waits_for))

    def broke(self, run_id: RunId) -> None:
        """It has ended, and not by itself."""
        self._waiting.pop(run_id, None)
        self._drafts.close(run_id)

    def _hears(self, child: RunId, turn: TurnInput, *, asks: bool) -> None:
        """The turn that waits for this one, if there is such a turn."""
        if turn.task is None or not turn.task.waits:
            return
        parent = turn.task.parent
        asking = self._asking.get(parent, set())
        if asks == (child in asking):
            return
        if now := asking | {child} if asks else asking - {child}:
            self._asking[parent] = now
        else:
            self._asking.pop(parent)
        self._show(parent)

    def _show(self, run_id: RunId) -> None:
        address = self._waiting.get(run_id)
        if address is None:
            return
        if run_id in self._asking:
            self._drafts.close(run_id)
        else:
            self._drafts.open(run_id, address).status(SUBAGENT_STATUS)


log = structlog.get_logger()


def as_written(text: str, where: Address) -> str:
    """Where commands are typed as they are written here."""
    return text


BROKEN_NOTICE = (
    "Something went wrong inside me while I worked on your message; it is in the log. "
    "Your message is kept. Please send it again."
)
GIVEN_UP_NOTICE = (
    "I had to give up on your last message: I was stopped many times while working on it. "
    "Please send it again, perhaps in smaller pieces."
)

BROKEN_TASK = "Something went wrong inside the program during this task; it is in the log."
GIVEN_UP_TASK = "It was given up: the program was stopped many times while working on it."
"""The same two, told to the turn that gave a task."""


class Assistant:
    """Implements `memory.records.ports.TurnProgram`."""

    def __init__(
        self,
        *,
        begin: BeginStep,
        model: ModelStep,
        tool: ToolStep,
        loop: Loop,
        drafts: Drafts,
        files: StepFunction = left_alone,
        typed: Typed = as_written,
        named: Named = nameless,
    ) -> None:
        """Without `files`, what comes with a message is named and not opened. `named` says in plain
        words what a tool does."""
        self._steps: Mapping[str, StepFunction] = {
            FILES: files,
            "begin": begin,
            "model": model,
            "gate": tool.ask,
            "tool": tool,
        }
        self._loop = loop
        self._watched = WatchedTurns(PeopleDrafts(drafts))
        self._typed = typed
        self._named = named
        self._endings: dict[RunId, TurnEndBuilder] = {}

    @property
    def steps(self) -> Mapping[str, StepFunction]:
        """The named functions that touch the world."""
        return self._steps

    async def run(self, ctx: TurnContext, payload: Json) -> TurnEnd:
        """One turn, a person's or a subagent's. See `memory.records.ports.TurnProgram.run`."""
        turn = TurnInput.from_json(payload)
        now = TurnProgress(state=TurnState(turn=turn))
        ending = self._endings[ctx.run_id] = self._ending(ctx.run_id, now)
        with self._watched.watching(ctx.run_id, turn):
            try:
                if turn.job is not None and turn.job.call is not None:
                    ending.hear()
                    trouble = await self._loop.call(ctx, now, turn.job.call)
                else:
                    # The messages and files that begin the turn, then its prompt.
                    ending.turns += [TurnInput.from_json(one) for one in await ctx.receive()]
                    tokens = 0
                    for number, one in enumerate(ending.turns):
                        # What a voice note says is among the words from then on.
                        came = await brought(ctx, one)
                        ending.turns[number] = came.turn
                        if came.note is not None:
                            ending.files[number] = came.note
                            tokens += came.tokens
                    turn = ending.turns[0]
                    now.state = replace(now.state, turn=turn)
                    request = BeginRequest(turn=turn, brought_tokens=tokens)
                    output = await ctx.step("begin", request)
                    now.state = replace(now.state, prompt=FixedPrompt.from_json(output))
                    ending.hear()
                    if turn.report is not None:
                        # Another conversation may have begun here since the task was given.
                        here = ConversationId(output["conversation"])
                        now.state = replace(now.state, turn=replace(turn, conversation=here))
                    trouble = await self._loop.run(ctx, now)
                end = ending.failed(trouble) if trouble else ending.answered()
            except TurnStopped as stop:
                end = ending.stopped(stop.reason)
        del self._endings[ctx.run_id]
        return ending.told_on(end)

    def failed(self, run: NewRun, error: Exception | None) -> TurnEnd:
        """The end of a turn that broke. See `memory.records.ports.TurnProgram.failed`."""
        self._watched.broke(run.run_id)
        broken = (BROKEN_NOTICE, BROKEN_TASK)
        notices = broken if error is not None else (GIVEN_UP_NOTICE, GIVEN_UP_TASK)
        notice = notices[run.child_of is not None or run.run_id.startswith(JOB_RUN)]
        ending = self._endings.pop(run.run_id, None)
        try:
            # What it did before it broke stays known: the person may well send it again.
            turn = TurnInput.from_json(run.payload)
            now = TurnProgress(state=TurnState(turn=turn))
            known = ending or self._ending(run.run_id, now)
            return known.told_on(known.told(notice))
        except (KeyError, TypeError, ValueError, Unpaired):
            log.exception("turn.unreadable", turn=run.run_id)
            # For a payload that no version of ours wrote: the notice, and nothing for history.
            end = TurnEnd(
                status=RunStatus.FAILED,
                inbox=InboxState.FAILED,
                conversation=ConversationId(""),
                turn=Turn(run_id=run.run_id, entries=()),
                reply_to=Address.parse(run.lane),
                reply=notice,
            )
            if run.run_id.startswith(JOB_RUN):
                job_id, _, slot = run.run_id.removeprefix(JOB_RUN).partition(":")
                return replace(
                    end,
                    reply="",
                    job=(
                        JobEnd(job_id=int(job_id), slot=slot, ok=False, text=notice)
                        if job_id.isdigit()
                        else None
                    ),
                )
            return end if run.child_of is None else unreadable(run, end, why=notice)

    def _ending(self, run_id: RunId, now: TurnProgress) -> TurnEndBuilder:
        return TurnEndBuilder(run_id, now, typed=self._typed, named=self._named)
