"""A bot without a model: turns in four chats until it is killed. Run by test_crash."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from memory.database.connection import Database
from memory.records.messages import RunId
from memory.records.rows import OutboxState, OutPart, PartState
from memory.records.transcript import Answered, Entry, Said, ToolCall, ToolResult
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from memory.stores.turns import SqliteJournal
from tests.memory.kit import event, opened, run, turn_end

ENTRIES_IN_A_TURN = 4


def say(*words: object) -> None:
    """What the platform has been told, and may rely on."""
    print(*words, flush=True)


class Bot:
    def __init__(self, database: Database) -> None:
        self._inbox = SqliteInbox(database)
        self._journal = SqliteJournal(database)
        self._outbox = SqliteOutbox(database)
        self._conversations = SqliteConversations(database)

    async def take_up(self) -> None:
        """What the last kill left: events, turns and replies."""
        for stored in await self._inbox.unfinished():
            new = run(stored.event.event_id, lane=stored.event.lane, inbox_id=stored.id)
            await self._journal.submit(new)
        for known in await self._journal.unfinished():
            await self._turn(known.run.run_id, known.run.lane)
        for row in await self._outbox.open_rows():
            await self._deliver(row.run_id or RunId(""))

    async def chat(self, name: str, lane: str) -> None:
        for n in range(100_000):
            event_id = f"{name}-{n}"
            (stored,) = await self._inbox.store([event(event_id, lane=lane)])
            say("confirmed", event_id)
            await self._journal.submit(run(event_id, lane=lane, inbox_id=stored.id))
            await self._turn(RunId(event_id), lane)
            await self._deliver(RunId(event_id))

    async def _turn(self, run_id: RunId, lane: str) -> None:
        steps = await self._journal.begin(run_id)
        for n, name in enumerate(("model", "tool", "model")):
            if n not in steps:
                await self._journal.record(run_id, n, name, {"n": n})
                say("recorded", run_id, n)
        call = ToolCall(id="t", name="clock", arguments="{}")
        entries: tuple[Entry, ...] = (
            Said(text=run_id),
            Answered(text="", calls=(call,)),
            ToolResult(call_id="t", content="noon"),
            Answered(text=f"reply to {run_id}"),
        )
        conversation = await self._conversations.current(lane)
        end = turn_end(run_id, conversation, entries=entries, reply=f"reply to {run_id}")
        await self._journal.finish(run_id, end)
        say("finished", run_id)

    async def _deliver(self, run_id: RunId) -> None:
        row = await self._outbox.row_of_run(run_id)
        assert row is not None
        await self._outbox.plan(row.id, [OutPart(n=0, source=row.text)])
        await self._outbox.mark(row.id, OutPart(n=0, state=PartState.SENDING))
        say("delivered", run_id)
        sent = OutPart(n=0, state=PartState.SENT, message_id="1")
        await self._outbox.mark(row.id, sent, end=OutboxState.SENT)


async def main(path: Path, name: str) -> None:
    async with opened(path) as database:
        bot = Bot(database)
        await bot.take_up()
        async with asyncio.TaskGroup() as chats:
            for chat in range(4):
                chats.create_task(bot.chat(f"{name}.{chat}", f"telegram:{chat}"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
