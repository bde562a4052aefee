"""Asks people for their time zone before the first thing that hangs on their clock is saved.

Nothing is saved on a guess: the wish is refused with a sentence that says how to go on, and after
that answer a card offers this machine's zone. Nobody has to press it: `/timezone` serves as well. A
command that waited for it is then answered by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC

import structlog

from agent.turn.aftermath import EndedTurn
from bot.channels.base import Pressed
from bot.markup.command_text import as_typed
from bot.people.access import Access
from bot.people.timezone import zone_of
from memory.records.errors import StorageError
from memory.records.messages import PersonId
from memory.records.ports import Clock
from memory.records.rows import Button, NewMessage, Person

log = structlog.get_logger()

PREFIX = "zone"
YES, OTHER = "yes", "other"

UNKNOWN = "This button no longer does anything."
NOT_YOURS = "Only the person who was asked can answer this."
HOW = "Send `/timezone CITY`, such as `/timezone Berlin`."


class ZoneQuestions:
    """Knows whose zone is not known, and asks them. Everything may raise StorageError."""

    def __init__(
        self,
        access: Access,
        *,
        zone: str,
        clock: Clock,
        post: Callable[[NewMessage], Awaitable[object]],
        close: Callable[[Pressed, str], Awaitable[None]],
        busy: Callable[[str], bool],
    ) -> None:
        """`zone` is this machine's. `post` sends a card, and `close` adds to one what came of a
        press; while a chat is `busy`, an answer is on its way."""
        self._access = access
        self._post = post
        self._close = close
        self._zone = zone
        self._clock = clock
        self._busy = busy
        # In memory alone: after a restart the refusal that named `/timezone` still stands in the
        # chat, and the next wish asks again.
        self._waiting: set[PersonId] = set()
        # In memory too: who has to write it again after a restart has lost one line.
        self._commands: dict[PersonId, Callable[[], Awaitable[str]]] = {}

    def is_open(self, person_id: PersonId) -> bool:
        """Return whether a person's zone is not known. Whoever writes in the terminal alone has
        this machine's clock on the wall."""
        person = self._access.person(person_id)
        return (
            person is not None
            and not person.time_zone
            and not all(address.startswith("console:") for address in person.addresses)
        )

    def ask(self, person_id: PersonId) -> str:
        """Return the question; its card follows the answer in which that is said."""
        self._waiting.add(person_id)
        return (
            f"In which time zone are you? I cannot tell: {self._now_here()} is only this machine's "
            "clock. `/timezone CITY` sets yours."
        )

    def await_zone(self, person_id: PersonId, command: Callable[[], Awaitable[str]]) -> None:
        """Have a command answered once a person's zone is known: the newest one of each."""
        self._commands[person_id] = command

    async def after(self, lane: str) -> None:
        """A command or a press in a chat is answered: now is the time to ask, unless a turn that is
        not at its end asked for it."""
        if not self._busy(lane):
            await self._ask_in(lane)

    async def after_turn(self, ended: EndedTurn) -> None:
        """The answer of a turn is stored."""
        await self._ask_in(ended.turn.message.address.key)

    async def _ask_in(self, lane: str) -> None:
        """Post the card in a private chat alone: in a group others read along."""
        person_id = await self._access.alone_in(lane) if self._waiting or self._commands else None
        if person_id is None:
            return
        if not self.is_open(person_id) and (command := self._commands.pop(person_id, None)):
            try:
                await self._post(NewMessage(lane=lane, text=as_typed(await command(), lane)))
            except StorageError:
                # Nobody was answered: the next answer here tries again, unless a newer one waits.
                self._commands.setdefault(person_id, command)
                raise
        if person_id not in self._waiting or not self.is_open(person_id):
            self._waiting.discard(person_id)
            return
        self._waiting.discard(person_id)
        text = f"Is it **{self._now_here()}** where you are? `/timezone CITY` if not."
        yes = Button(label="Yes", data=f"{PREFIX}:{YES}:{person_id}", style="good")
        other = Button(label="Other", data=f"{PREFIX}:{OTHER}:{person_id}")
        shown = as_typed(text, lane)
        await self._post(NewMessage(lane=lane, text=shown, buttons=((yes, other),)))
        log.info("zone.asked", person=person_id, zone=self._zone)

    def _now_here(self) -> str:
        now = self._clock.now().astimezone(zone_of(self._zone) or UTC)
        return f"{now:%H:%M} ({self._zone})"

    async def press(self, pressed: Pressed, person: Person) -> str:
        """Answer a button with the data `zone:WORD:PERSON`: what who pressed it is told."""
        match pressed.data.split(":"):
            case [_, _, whose] if whose != person.id:
                log.warning("zone.not_theirs", person=person.id)
                return NOT_YOURS
            case [_, word, _] if word == YES and person.time_zone not in {"", self._zone}:
                said = f"You have set {person.time_zone} since, and that stays."
            case [_, word, _] if word == YES:
                await self._access.set_time_zone(person, self._zone)
                said = f"Your time zone is {self._zone}."
                if person.id not in self._commands:
                    said += " Now say again what I shall save."
            case [_, word, _] if word == OTHER:
                said = as_typed(HOW, pressed.address.key)
            case _:
                return UNKNOWN
        await self._close(pressed, said)
        return said.replace("`", "")  # an answer to a press is no Markdown
