"""Intakes and outboxes over a real database and a real channel, for tests of buttons: a process
that can be ended and begun anew. What stands behind them is a question that is answered once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bot.channels.base import Channel, Pressed
from bot.inbox.commands import Press
from bot.inbox.intake import Intake, IntakeHooks
from bot.outbox.outbox import Outbox
from bot.people.access import Access
from memory.database.connection import Database
from memory.records.errors import Permanent
from memory.records.messages import OutboxId, Role
from memory.records.rows import Button, NewMessage, Person
from memory.stores.inbox import SqliteInbox
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqlitePeople
from scheduler.clock.machine import SystemClock
from tests.laid import lay

CARD = "May I run **ls -la**?"
ALLOW, DENY = "ask:1:yes", "ask:1:no"
ROWS = (
    (
        Button(label="Allow once", data=ALLOW, style="good"),
        Button(label="Deny", data=DENY, style="bad"),
    ),
)
OUTCOME = "Allowed once by the owner: ls -la"


class Question:
    """Answered by the owner, once. `calls` are all presses, `answers` what had an effect."""

    def __init__(self) -> None:
        self.calls: list[Pressed] = []
        self.answers: list[str] = []
        self.outcome = ""

    async def press(self, pressed: Pressed, person: Person) -> str:
        self.calls.append(pressed)
        if person.role is not Role.OWNER:
            return "Only the owner may answer this."
        if self.answers:
            return "This was answered already."
        self.answers.append(pressed.data)
        return "Noted."


async def fails(pressed: Pressed, person: Person) -> str:
    """A press that cannot be acted on."""
    raise Permanent("The approval is gone. Ask again.")


@dataclass(slots=True, kw_only=True)
class Process:
    """What one process has open."""

    door: Intake
    outbox: Outbox
    store: SqliteOutbox
    access: Access
    inbox: SqliteInbox
    database: Database

    async def card(self, lane: str, text: str = CARD) -> OutboxId:
        """A message with buttons, once it was sent."""
        outbox_id = await self.outbox.post(NewMessage(lane=lane, text=text, buttons=ROWS))
        await self.sent()
        return outbox_id

    async def revised(self, outbox_id: OutboxId, text: str = OUTCOME) -> None:
        """The message reads otherwise."""
        await self.outbox.revise(outbox_id, text)
        await self.sent()

    async def sent(self) -> None:
        """Nothing is on its way any more."""
        async with asyncio.timeout(10):
            await self.outbox.idle()

    async def events(self) -> list[tuple[Any, ...]]:
        """State, reason and whether anything of it is kept, of all events in order."""
        sql = "select state, reason, payload is not null from inbox order by id"
        return await self.database.read(lambda c: c.execute(sql).fetchall())


@asynccontextmanager
async def process(
    folder: Path,
    channel: Channel,
    presses: Mapping[str, Press],
    *,
    people: tuple[str, ...] = (),
    resume: bool = True,
) -> AsyncIterator[Process]:
    """A process from its start to its end; `people` are let in first, the owner before all."""
    clock = SystemClock()
    channels = {channel.name: channel}
    lay(folder / "hearthbot.db")
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            Database.open(folder / "hearthbot.db", clock=clock)
        )
        access = Access(SqlitePeople(database), policy="pairing", allowed=(), clock=clock)
        await access.load()
        for address in people:
            await access.approve(address)
        store, inbox = SqliteOutbox(database), SqliteInbox(database)
        outbox = await stack.enter_async_context(Outbox(store, channels, clock=clock))
        nobody = cast(Any, None)  # a press asks neither the engine nor the history
        door = await stack.enter_async_context(
            Intake(
                inbox,
                access,
                nobody,
                nobody,
                outbox,
                command_tools=nobody,
                clock=clock,
                hooks=IntakeHooks(presses=presses),
            )
        )
        await outbox.start()
        if resume:
            await door.resume(channels)
        yield Process(
            door=door, outbox=outbox, store=store, access=access, inbox=inbox, database=database
        )
