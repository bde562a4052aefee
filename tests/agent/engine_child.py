"""The local engine with turns of four conversations, until it is killed. Run by test_engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from agent.turn.engine import LocalEngine
from memory.database.connection import Database
from memory.records.errors import StepUnknown
from memory.records.messages import Address, ConversationId, PersonId, RunId
from memory.records.ports import (
    Finished,
    InboxState,
    Json,
    NewRun,
    RunStatus,
    StepFunction,
    StepRecord,
    TurnContext,
    TurnEnd,
)
from memory.records.transcript import Answered, Said, Turn
from memory.stores.conversations import SqliteConversations
from memory.stores.turns import SqliteJournal
from scheduler.clock.machine import SystemClock

LANES = 4
TOGETHER = 3


def say(*words: object) -> None:
    """What has happened in the world, and no kill takes back."""
    print(*words, flush=True)


def run(run_id: str, lane: str, conversation: str) -> NewRun:
    payload = {"text": run_id, "lane": lane, "conversation": conversation}
    return NewRun(run_id=RunId(run_id), lane=lane, by=PersonId("p1"), payload=payload)


class TellingJournal(SqliteJournal):
    async def record(
        self, run_id: RunId, n: int, name: str, output: Json, *, joined: Sequence[RunId] = ()
    ) -> None:
        await super().record(run_id, n, name, output, joined=joined)
        say("recorded", f"{run_id}:{name}")

    async def finish(
        self, run_id: RunId, end: TurnEnd, *, steps: Sequence[StepRecord] = ()
    ) -> Finished:
        ended = await super().finish(run_id, end, steps=steps)
        for step in steps:
            say("recorded", f"{run_id}:{step.name}")
        return ended


class Chat:
    """Implements Program: a model, a tool during which a message comes, a tool that acts once."""

    engine: LocalEngine

    @property
    def steps(self) -> Mapping[str, StepFunction]:
        return {name: partial(self._step, name) for name in ("think", "look", "send", "answer")}

    async def run(self, ctx: TurnContext, payload: Json) -> TurnEnd:
        await ctx.step("think", payload)
        await ctx.step("look", payload, listens=True)
        heard = [payload["text"], *(other["text"] for other in await ctx.receive())]
        try:
            await ctx.step("send", payload, redo="once")
        except StepUnknown:
            say("unknown", ctx.run_id)
        await ctx.step("answer", payload)
        return self._end(ctx.run_id, payload, "+".join(heard))

    def failed(self, run: NewRun, error: Exception | None) -> TurnEnd:
        say("failed", run.run_id)
        return self._end(run.run_id, run.payload, "failed")

    async def _step(self, name: str, ctx: TurnContext, arguments: Json) -> Json:
        say("ran", f"{ctx.run_id}:{name}")
        if name == "look" and not ctx.run_id.endswith("s"):
            steering = run(f"{ctx.run_id}s", arguments["lane"], arguments["conversation"])
            await self.engine.submit(steering)
        return {}

    def _end(self, run_id: RunId, payload: Json, reply: str) -> TurnEnd:
        return TurnEnd(
            status=RunStatus.DONE,
            inbox=InboxState.REPLIED,
            conversation=ConversationId(payload["conversation"]),
            turn=Turn(run_id=run_id, entries=(Said(text=run_id), Answered(text=reply))),
            reply_to=Address.parse(payload["lane"]),
            reply=reply,
        )


async def chat(engine: LocalEngine, lane: str, conversation: str, name: str) -> None:
    for n in range(0, 100_000, TOGETHER):
        for k in range(TOGETHER):
            await engine.submit(run(f"{name}.{lane[-1]}.{n + k}", lane, conversation))
        await engine.idle(lane)


async def main(path: Path, name: str) -> None:
    async with Database.open(path, clock=SystemClock()) as database:
        conversations = SqliteConversations(database)
        program = Chat()
        async with LocalEngine(
            TellingJournal(database), program, clock=SystemClock(), deliver=lambda rows: None
        ) as engine:
            program.engine = engine
            await engine.start()
            if name == "last":
                return await engine.idle()
            async with asyncio.TaskGroup() as chats:
                for n in range(LANES):
                    lane = f"telegram:{n}"
                    conversation = await conversations.current(lane)
                    chats.create_task(chat(engine, lane, conversation, name))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
