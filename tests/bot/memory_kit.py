"""The commands over a real home with a past, and cards that are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.channels.base import Pressed
from bot.commands.memory.commands import MemoryCommands
from bot.commands.memory.erasure import ForgetQuestions
from memory.records.messages import Address, IncomingMessage, OutboxId, PersonId, Role
from memory.records.rows import ButtonRows, NewMessage, Person
from memory.service import MemoryService
from memory.stores.outbox import SqliteOutbox
from tests.memory.forgetting_kit import (
    ANN,
    ANNS_CHAT,
    BEN,
    BENS_CHAT,
    Opened,
    opened_home,
)
from tests.memory.kit import StillClock

ANNA = Person(id=ANN, role=Role.OWNER, name="Ann", addresses=(ANNS_CHAT,))
BENN = Person(id=BEN, role=Role.MEMBER, name="Ben", addresses=(BENS_CHAT,))
GUEST = Person(id=PersonId("p_gus"), role=Role.GUEST, name="Gus", addresses=("telegram:7",))


@dataclass(slots=True)
class Cards:
    """Keeps cards in the real outbox, and what they came to read."""

    store: SqliteOutbox
    sent: dict[OutboxId, str] = field(default_factory=dict)
    buttons: dict[OutboxId, ButtonRows] = field(default_factory=dict)

    async def post(self, message: NewMessage) -> OutboxId:
        outbox_id = await self.store.add(message)
        self.sent[outbox_id] = message.text
        self.buttons[outbox_id] = message.buttons
        return outbox_id

    async def revise(self, outbox_id: OutboxId, text: str) -> None:
        await self.store.revise(outbox_id, text)
        self.sent[outbox_id] = text
        self.buttons[outbox_id] = ()

    @property
    def last(self) -> str:
        return list(self.sent.values())[-1]

    def data(self, word: str) -> str:
        """Of the button of the last card with this word."""
        rows = list(self.buttons.values())[-1]
        return next(b.data for row in rows for b in row if b.data.endswith(f":{word}"))


@dataclass(slots=True, kw_only=True)
class Chat:
    """What a person says, and what they are told."""

    opened: Opened
    clock: StillClock
    cards: Cards
    memory: MemoryService
    commands: MemoryCommands
    questions: ForgetQuestions

    async def says(self, text: str, *, by: Person = ANNA, group: bool = False) -> str:
        return await self.commands.tell(message_of(by, group=group), by, text)

    async def remember(self, text: str, *, by: Person = ANNA, group: bool = False) -> str:
        return await self.commands.remember(message_of(by, group=group), by, text)

    async def presses(self, word: str, *, by: Person = ANNA) -> str:
        said = await self.questions.press(pressed(self.cards.data(word), by), by)
        await self.questions.idle()
        return said


def message_of(person: Person, *, group: bool = False) -> IncomingMessage:
    chat = "-100" if group else person.addresses[0].split(":")[1]
    return IncomingMessage(
        address=Address(channel="telegram", chat_id=chat),
        message_id="1",
        sender_id=person.addresses[0].split(":")[1],
        sender_name=person.name,
        is_group=group,
    )


def pressed(data: str, person: Person) -> Pressed:
    message = message_of(person)
    return Pressed(
        address=message.address,
        message_id="2",
        sender=message.sender,
        data=data,
        press_id="x",
    )


@asynccontextmanager
async def opened_chat(root: Path) -> AsyncIterator[Chat]:
    clock = StillClock()
    async with opened_home(root, clock) as opened:
        database = opened.database
        cards = Cards(SqliteOutbox(database))
        memory = opened.memory
        async with ForgetQuestions(memory, cards, clock=clock, root=root) as questions:
            commands = MemoryCommands(memory, questions, host_zone="Europe/Oslo")
            yield Chat(
                opened=opened,
                clock=clock,
                cards=cards,
                memory=memory,
                commands=commands,
                questions=questions,
            )


def called(person: Person, name: str) -> Person:
    return replace(person, name=name)
