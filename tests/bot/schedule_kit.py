"""Commands about jobs over the real services and outbox;
messages get the platform's ids as they are
sent. A process can be ended and begun anew."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bot.channels.base import Pressed
from bot.commands.jobs.commands import JobCommands, TimeQuestions
from bot.commands.jobs.heartbeat import HeartbeatCommands
from bot.outbox.edits import QuestionMessages
from memory.records.jobs import Job
from memory.records.messages import Address, IncomingMessage, OutboxId, PersonId, Role
from memory.records.rows import Button, NewMessage, OutboxState, OutPart, PartState, Person
from memory.stores.approvals import SqliteCards
from memory.stores.outbox import SqliteOutbox
from tests.scheduler.service_kit import ANN, BEN, GROUP, LANE, Services

ANNA = Person(id=ANN, role=Role.OWNER, name="Ann")
BENNY = Person(id=BEN, role=Role.MEMBER, name="Ben")


class Chats:
    """Implements `bot.outbox.edits.SendsAndEdits` over the stored outbox: what is posted is sent at
    once."""

    def __init__(self, outbox: SqliteOutbox) -> None:
        self._outbox = outbox

    async def post(self, message: NewMessage) -> OutboxId:
        outbox_id = await self._outbox.add(message)
        await self.send(outbox_id)
        return outbox_id

    async def send(self, outbox_id: OutboxId) -> None:
        """It arrived, as the message of this id."""
        part = OutPart(n=0, state=PartState.SENT, message_id=f"m{outbox_id}")
        await self._outbox.plan(outbox_id, [part])
        await self._outbox.mark(outbox_id, part, end=OutboxState.SENT)

    async def revise(self, outbox_id: OutboxId, text: str) -> None:
        if await self._outbox.revise(outbox_id, text) is not None:
            await self._outbox.revised(outbox_id, text)


class Place:
    """What people type and press, and what they read."""

    counter: Services
    desk: JobCommands
    heartbeat: HeartbeatCommands
    chats: Chats

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counter = Services(path)
        self._presses = itertools.count(1)
        self._tokens = itertools.count(1)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Place]:
        """A life of the process."""
        async with self.counter.opened() as counter:
            self.outbox = SqliteOutbox(counter.database)
            self.chats = Chats(self.outbox)
            cards = QuestionMessages(self.chats, SqliteCards(counter.database))
            questions = TimeQuestions(
                counter.jobs,
                cards,
                clock=counter.clock,
                new_token=lambda: f"t{next(self._tokens)}",
            )
            self.desk = JobCommands(
                counter.jobs,
                counter.events,
                questions,
                cards,
                await_zone=lambda person_id, command: None,
            )
            self.heartbeat = HeartbeatCommands(counter.jobs, counter.heartbeats)
            yield self

    # --- what is typed ------------------------------------------------------------------------

    async def remind(self, text: str, *, lane: str = LANE, person: Person = ANNA) -> str:
        return await self.desk.remind(message(lane), person, text)

    async def job(self, text: str, *, lane: str = LANE, person: Person = ANNA) -> str:
        return await self.desk.job(message(lane), person, text)

    async def jobs(self, *, lane: str = LANE, person: Person = ANNA) -> str:
        return await self.desk.jobs(message(lane), person)

    async def quiet(self, text: str = "", *, person: Person = ANNA) -> str:
        return await self.desk.quiet(message(LANE), person, text)

    async def beat(self, text: str = "") -> str:
        return await self.heartbeat.tell(message(LANE), ANNA, text)

    # --- what is read and pressed -------------------------------------------------------------

    async def cards(self) -> list[tuple[OutboxId, str, Sequence[Button]]]:
        """All that was sent: id, text, buttons."""
        sql = "select id from outbox order by id"
        ids = await self.counter.database.read(lambda c: c.execute(sql).fetchall())
        rows = [await self.outbox.row(OutboxId(one)) for (one,) in ids]
        return [
            (row.id, row.text, [button for line in row.buttons for button in line])
            for row in rows
            if row is not None
        ]

    async def last(self) -> str:
        """The text of the newest message."""
        return (await self.cards())[-1][1]

    async def labels(self) -> list[str]:
        """Of the buttons of the newest message."""
        return [button.label for button in (await self.cards())[-1][2]]

    async def arrives(self) -> OutboxId:
        """The newest message, which the clock made, is sent."""
        outbox_id = (await self.cards())[-1][0]
        await self.chats.send(outbox_id)
        return outbox_id

    async def press(
        self,
        data: str,
        *,
        card: OutboxId | None = None,
        person: Person = ANNA,
        lane: str = LANE,
    ) -> str:
        """A button under a message, the newest unless said."""
        under = (await self.cards())[-1][0] if card is None else card
        pressed = Pressed(
            address=Address.parse(lane),
            message_id=f"m{under}",
            sender=lane,
            data=data,
            press_id=str(next(self._presses)),
        )
        return await self.desk.press(pressed, person)

    async def tap(self, label: str, *, person: Person = ANNA, lane: str = LANE) -> str:
        """The button of this label under the newest message."""
        buttons = (await self.cards())[-1][2]
        (data,) = [button.data for button in buttons if button.label == label]
        return await self.press(data, person=person, lane=lane)

    async def kept(self, person: PersonId = ANN) -> list[str]:
        """Key, name and next slot of the person's jobs."""
        jobs = await self.counter.jobs.of(person)
        return [
            f"{job.key} {job.name} {'-' if job.next is None else job.next.slot}" for job in jobs
        ]


def message(lane: str) -> IncomingMessage:
    return IncomingMessage(
        address=Address.parse(lane), message_id="1", sender_id="5", is_group=lane == GROUP
    )


def rings(place: Place) -> int:
    """How often the reminder about tea came."""
    return sum(text.startswith("drink tea") for text in place.counter.texts())


async def beating(place: Place) -> Job:
    """The heartbeat's job."""
    await place.counter.heartbeats.ensure()
    found = await place.counter.heartbeats.of(ANN, "default")
    assert found is not None
    return found
