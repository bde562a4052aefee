"""The local engine with turns that start two subagents each, until it is killed. Run by
test_engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.turn.engine import LocalEngine
from memory.database.connection import Database
from memory.records.messages import Address, ConversationId, PersonId, RunId
from memory.records.ports import (
    ChildOf,
    InboxState,
    Json,
    NewRun,
    RunStatus,
    StepFunction,
    TurnContext,
    TurnEnd,
)
from memory.records.transcript import Answered, Said, Turn
from memory.stores.conversations import SqliteConversations
from memory.stores.turns import SqliteJournal
from scheduler.clock.machine import SystemClock
from tests.agent.engine_child import say

LANES = 3


def turn(run_id: str, lane: str, at: Json, **more: str) -> NewRun:
    """`at` names the chat and its conversation."""
    payload = {"text": run_id, **at, **more}
    return NewRun(run_id=RunId(run_id), lane=lane, by=PersonId("p1"), payload=payload)


class Families:
    """Implements Program: NAME waits for NAME-k, and of NAME-b the run NAME-b-report tells."""

    engine: LocalEngine

    @property
    def steps(self) -> Mapping[str, StepFunction]:
        return {"start": self._start, "work": self._work}

    async def run(self, ctx: TurnContext, payload: Json) -> TurnEnd:
        name = ctx.run_id
        if name.endswith("-report"):
            return self._end(name, payload, payload["told"])
        if name.endswith(("-k", "-b")):
            await ctx.step("work", payload)
            return self._told_on(name, payload, self._end(name, payload, f"{name} did it"))
        await ctx.step("start", payload)
        value = await ctx.wait(f"child:{name}-k")
        return self._end(name, payload, f"{name} heard: {value['text']}")

    def failed(self, run: NewRun, error: Exception | None) -> TurnEnd:
        say("failed", run.run_id)
        return self._end(run.run_id, run.payload, "failed")

    async def _start(self, ctx: TurnContext, payload: Json) -> Json:
        at = {"lane": payload["lane"], "conversation": payload["conversation"]}
        for letter in "kb":
            name = f"{ctx.run_id}-{letter}"
            of = ChildOf(run_id=ctx.run_id, lane=payload["lane"], waits=letter == "k")
            await self.engine.submit(replace(turn(name, f"agent:{name}", at), child_of=of))
        return {}

    async def _work(self, ctx: TurnContext, payload: Json) -> Json:
        say("ran", ctx.run_id)
        return {}

    def _told_on(self, name: RunId, payload: Json, end: TurnEnd) -> TurnEnd:
        if name.endswith("-k"):
            value = {"text": end.reply}
            return replace(end, reply="", signals=((f"child:{name}", value),))
        at = {"lane": payload["lane"], "conversation": payload["conversation"]}
        report = turn(f"{name}-report", payload["lane"], at, told=f"told: {end.reply}")
        return replace(end, reply="", follow=replace(report, steers=False))

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
    at = {"lane": lane, "conversation": conversation}
    for n in range(100_000):
        await engine.submit(turn(f"{name}.{lane[-1]}.{n}", lane, at))
        await engine.idle(lane)


async def main(path: Path, name: str) -> None:
    async with Database.open(path, clock=SystemClock()) as database:
        conversations = SqliteConversations(database)
        program = Families()
        async with LocalEngine(
            SqliteJournal(database), program, clock=SystemClock(), deliver=lambda rows: None
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
