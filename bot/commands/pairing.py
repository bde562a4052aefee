"""Asks the owner whether somebody is let in: `/pair`, and a card once a stranger got a code.

A card is in the owner's private chat alone. Its buttons name a code; whether whoever presses may
decide is seen by their role then, and what a code stands for is looked up anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import structlog

from bot.channels.base import Pressed
from bot.commands.command import Answer
from bot.commands.people import asked_text
from bot.markup.command_text import as_typed
from bot.outbox.edits import QuestionMessages
from bot.people.access import Access, LastOwner, OwnerFirst, UnknownCode
from bot.people.register import plain_words
from memory.records.errors import StorageError
from memory.records.messages import IncomingMessage, PersonId, Role
from memory.records.ports import Clock
from memory.records.rows import Button, NewMessage, Pairing, Person

log = structlog.get_logger()

PREFIX = "pair"
MEMBER, GUEST, NO = "in", "guest", "no"

UNKNOWN = "This button no longer does anything."
OWNER_ALONE = "Only the owner lets people in."
GONE = "This was answered already, or the code is no longer good. `/pair` shows who asks."
PAST = (
    "The code was good for one hour and is past. Once they write to me again they get a new one, "
    "and I ask you again."
)
ASKS = "Somebody whom I do not know wrote to me, and got this code:"
LET_IN = (
    "You are let in now. What you wrote before was not kept, so please write it to me once more."
)
COMPARE = "Let them in only if they tell you the code: a name can be anybody's."


SpokenTo = Callable[[PersonId, datetime], Awaitable[datetime]]
"""From when on a person may be spoken to unasked: at this moment, or after their quiet hours. May
raise StorageError."""


class PairingQuestions:
    """An async context manager. Everything but `asked` may raise StorageError."""

    def __init__(
        self, access: Access, cards: QuestionMessages, spoken_to: SpokenTo, *, clock: Clock
    ) -> None:
        self._access = access
        self._cards = cards
        self._spoken_to = spoken_to
        self._clock = clock
        self._names: dict[str, str] = {}
        """What strangers are called whose codes are open; it is not stored with them."""
        self._chats: dict[str, str] = {}
        """Where they wrote, likewise."""
        self._group = asyncio.TaskGroup()
        self._waiting: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        await self._take_up()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._waiting:
            task.cancel()
        await self._group.__aexit__(kind, error, traceback)

    async def idle(self) -> None:
        """Return once no card waits for the end of quiet hours."""
        while self._waiting:
            await asyncio.wait(self._waiting)

    # --- asking -------------------------------------------------------------------------------

    async def asked(self, address: str, name: str, chat: str = "") -> None:
        """A stranger of this address was given a code; `name` is what they call themselves, `chat`
        the address of the chat in which they wrote. Asks the owner, once their quiet hours are
        over: if the code is past by then, not at all."""
        try:
            asking = {one.address: one for one in self._access.pairings.open()}
            kept = {one: name for one, name in self._names.items() if one in asking}
            self._names = {**kept, address: name}
            chats = {one: lane for one, lane in self._chats.items() if one in asking}
            self._chats = {**chats, address: chat}
            if address in asking:
                await self._ask(asking[address])
        except StorageError as trouble:
            log.warning("pair.owner_not_asked", why=str(trouble))

    async def offer(self, message: IncomingMessage) -> Answer | None:
        """Return a card for each who asks, the last one as the answer; None where nobody does."""
        lane = message.address.key
        asking = self._access.pairings.open()
        for pairing in asking[:-1]:
            await self._cards.post(self._card(pairing, lane))
        if not asking:
            return None
        last = self._card(asking[-1], lane)
        return Answer(text=last.text, buttons=last.buttons)

    async def _take_up(self) -> None:
        """A former process waited for the end of quiet hours that have not ended yet."""
        now = self._clock.now()
        for pairing in self._access.pairings.open():
            owner = await self._owner()
            if owner is None:
                return
            created = datetime.fromtimestamp(pairing.created_ms / 1000, UTC)
            until = await self._spoken_to(owner[0].id, now)
            if now < until == await self._spoken_to(owner[0].id, created):
                await self._ask(pairing)

    async def _ask(self, pairing: Pairing) -> None:
        owner = await self._owner()
        if owner is None:
            return
        now = self._clock.now()
        person, lane = owner
        until = await self._spoken_to(person.id, now)
        if until <= now:
            await self._send(pairing, lane)
        elif until.timestamp() * 1000 < pairing.expires_ms:
            wait_s = (until - now).total_seconds()
            task = self._group.create_task(self._later(pairing, wait_s), name="pair card")
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _later(self, pairing: Pairing, wait_s: float) -> None:
        await self._clock.sleep(wait_s)
        if pairing not in self._access.pairings.open():
            return
        try:
            if (owner := await self._owner()) is not None:
                await self._send(pairing, owner[1])
        except StorageError as trouble:
            log.warning("pair.owner_not_asked", why=str(trouble))

    async def _send(self, pairing: Pairing, lane: str) -> None:
        card = self._card(pairing, lane)
        text = f"{ASKS}\n\n{card.text}\n\n{COMPARE}"
        await self._cards.post(NewMessage(lane=lane, text=text, buttons=card.buttons))
        log.info("pair.owner_asked", address=pairing.address)

    async def _owner(self) -> tuple[Person, str] | None:
        """Return the first owner who can be asked in private, and where."""
        for person in self._access.directory.people:
            if person.role is Role.OWNER:
                for lane in await self._access.private_chats(person.id):
                    return person, lane
        return None

    def _card(self, pairing: Pairing, lane: str) -> NewMessage:
        now_ms = int(self._clock.now().timestamp() * 1000)
        name = plain_words(self._names.get(pairing.address, ""))
        text = asked_text(pairing, name=name, now_ms=now_ms)
        buttons = (
            Button(label="Let in", data=f"{PREFIX}:{MEMBER}:{pairing.code}", style="good"),
            Button(label="As guest", data=f"{PREFIX}:{GUEST}:{pairing.code}"),
            Button(label="No", data=f"{PREFIX}:{NO}:{pairing.code}", style="bad"),
        )
        return NewMessage(lane=lane, text=as_typed(text, lane), buttons=(buttons,))

    # --- answers ------------------------------------------------------------------------------

    async def press(self, pressed: Pressed, person: Person) -> str:
        """Act on a button with the data `pair:WORD:CODE`; return what who pressed it is told."""
        match pressed.data.split(":"):
            case [_, word, code] if word in {MEMBER, GUEST, NO}:
                pass
            case _:
                return UNKNOWN
        if person.role is not Role.OWNER:
            log.warning("pair.not_theirs", person=person.id)
            return OWNER_ALONE
        try:
            said = await self._outcome(word, code)
        except UnknownCode:
            said = GONE
        except (LastOwner, OwnerFirst) as error:
            return str(error)  # the question stays
        said = as_typed(said, pressed.address.channel)
        await self._cards.close(pressed, said)
        return said

    async def _outcome(self, word: str, code: str) -> str:
        pairing = self._access.pairings.of_code(code)
        if pairing is None:
            return GONE
        address = pairing.address
        if pairing.state != "pending":
            return f"{address} was shut out already. `/pair {address}` lets them in all the same."
        if pairing not in self._access.pairings.open():
            return PAST
        if word == NO:
            said = await self._access.deny(code)
            return f"{said} `/pair {address}` lets them in all the same."
        role = Role.MEMBER if word == MEMBER else Role.GUEST
        approved = await self._access.approve(code, role=role)
        if approved.is_new:
            await self._tell(address)
        return approved.text

    async def _tell(self, address: str) -> None:
        """Somebody is let in, and waits for that. They are, also where they cannot be told."""
        # Elsewhere than on Slack a private chat goes by its person's number.
        own = "" if address.startswith("slack:") else address
        lane = self._chats.pop(address, "") or own
        if not lane:
            log.info("pair.not_told", address=address, why="it is not known where they wrote")
            return
        try:
            await self._cards.post(NewMessage(lane=lane, text=LET_IN))
        except StorageError as trouble:
            log.warning("pair.not_told", address=address, why=str(trouble))
