"""Asks people for their time zone, once, and moves what was set up by another one.

The question comes after the answer, as a card in the private chat where something that hangs on the
clock was set up. It is written down with its card, so that it is asked once whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import Protocol, assert_never

import structlog

from agent.turn.aftermath import EndedTurn
from bot.channels.base import Pressed
from bot.commands.people import Offer
from bot.commands.schedule_messages import event_words, name_of
from bot.markup.command_text import as_typed
from bot.people.access import Access
from bot.people.approvals import is_shared
from bot.people.timezone import zone_of
from memory.records.jobs import Job, SetBy
from memory.records.messages import IncomingMessage, OutboxId, PersonId, Role
from memory.records.ports import Clock
from memory.records.rows import Button, ButtonRows, NewMessage, Person
from memory.records.schedule import Event, TimeRead, due_words, moment_words
from memory.records.zones import (
    Asking,
    AssumedTime,
    AssumedZoneStore,
    Move,
    Moves,
    Timed,
    ZoneQuestion,
)

# --- assumed zones ------------------------------------------------------------------------------
#
# What was set up by this machine's time zone, for people who have none of their own, and who is to
# be asked about it. Hears of it from the job service, the tool for events and `/quiet`.

AGAIN = "later-"
"""How the calls begin that put a reminder off: no time was named."""


class AssumedZones:
    """Implements `memory.records.zones.HearsOfTimes`. Everything may raise StorageError."""

    def __init__(
        self,
        store: AssumedZoneStore,
        access: Access,
        *,
        zone: str,
        is_anywhere: Callable[[TimeRead], bool],
    ) -> None:
        """`zone` is this machine's; `is_anywhere` says of a time that was read whether it is the
        same in every zone."""
        self.store = store
        self.zone = zone
        self._access = access
        self._is_anywhere = is_anywhere
        self._waiting: dict[str, PersonId] = {}

    def is_assumed(self, person_id: PersonId) -> bool:
        """Whether this machine's zone stands in for a person's."""
        person = self._access.person(person_id)
        return person is not None and not person.time_zone

    # --- what was set up ----------------------------------------------------------------------

    async def kept(self, job: Job, *, anywhere: bool) -> None:
        """A job was kept or given other times."""
        if (job.run_id or "").startswith(AGAIN):
            return
        is_by_hand = job.set_by is SetBy.PERSON and not anywhere
        if is_by_hand and self.is_assumed(job.person_id):
            await self._assume(job.person_id, Timed.JOB, job.id)
            await self.used(job.person_id, job.deliver_to)
        else:
            await self.store.settle_one(Timed.JOB, job.id)

    async def noted(self, event: Event, time: TimeRead, lane: str) -> None:
        """An event with a time was noted in a chat. May be told again of the same one."""
        person_id = event.person_id
        if self._is_anywhere(time) or not self.is_assumed(person_id):
            return
        if not event.scope:
            await self._assume(person_id, Timed.EVENT, event.id)
        await self.used(person_id, lane)

    async def used(self, person_id: PersonId, lane: str) -> None:
        """Something that was set up in a chat hangs on the clock on a person's wall: if that is not
        known, they are asked there, once, after the answer."""
        person = self._access.person(person_id)
        if person is None or not _is_asked(person, lane):
            return
        if await self.store.want(person_id, lane=lane, zone=self.zone):
            self._waiting[lane] = person_id

    async def _assume(self, person_id: PersonId, kind: Timed, id: int) -> None:
        time = AssumedTime(person_id=person_id, kind=kind, id=id, zone=self.zone)
        await self.store.assume(time)

    # --- who is to be asked -------------------------------------------------------------------

    def waiting_in(self, lane: str) -> PersonId | None:
        """Who is to be asked in a chat."""
        return self._waiting.get(lane)

    def asked_in(self, lane: str) -> None:
        """They were."""
        self._waiting.pop(lane, None)


def _is_asked(person: Person, lane: str) -> bool:
    """Whoever sits at this machine has its clock on the wall; in a group others read along."""
    at_home = lane.partition(":")[0] == "console"
    return (
        not person.time_zone
        and person.role is not Role.GUEST
        and not at_home
        and not is_shared(lane)
    )


log = structlog.get_logger()

PREFIX = "zone"
YES, MOVE = "yes", "move"

SHOWN_MAX = 15
"""Things that are named; the others are counted."""

UNKNOWN = "This button no longer does anything."
NOT_YOURS = "Only the person who was asked can answer this."
OVER = "that time is over there"
NOTHING_LEFT = "There is nothing left to move."
IN_PRIVATE = (
    "Some of your reminders still go by the zone that I took for you before: `/timezone` in a "
    "private chat shows them, and moves them."
)


class ClosesZoneQuestions(Protocol):
    """See `bot.outbox.edits.QuestionMessages`."""

    async def close(self, pressed: Pressed, said: str) -> None: ...

    async def revise(self, card: OutboxId, text: str) -> None: ...


class ZoneQuestions:
    """Everything may raise StorageError."""

    def __init__(
        self,
        assumed: AssumedZones,
        access: Access,
        moves: Moves,
        cards: ClosesZoneQuestions,
        *,
        clock: Clock,
        deliver: Callable[[Sequence[tuple[str, OutboxId]]], None],
        busy: Callable[[str], bool],
    ) -> None:
        """`deliver` sends what is in the outbox; while a chat is `busy`, an answer is on its
        way."""
        self._assumed = assumed
        self._store = assumed.store
        self._access = access
        self._moves = moves
        self._cards = cards
        self._clock = clock
        self._deliver = deliver
        self._busy = busy

    # --- asking -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Asks whom a former process did not come to ask."""
        for question in await self._store.wanted():
            await self._ask(question.person_id, question.lane)

    async def after(self, lane: str) -> None:
        """A command or a press in a chat is answered: now is the time to ask, unless a turn that is
        not at its end asked for it."""
        if (waiting := self._assumed.waiting_in(lane)) is not None and not self._busy(lane):
            await self._ask(waiting, lane)

    async def after_turn(self, ended: EndedTurn) -> None:
        """The answer of a turn is stored."""
        lane = ended.turn.message.address.key
        if (waiting := self._assumed.waiting_in(lane)) is not None:
            await self._ask(waiting, lane)

    async def _ask(self, person_id: PersonId, lane: str) -> None:
        person = self._access.person(person_id)
        if person is None or person.time_zone:
            await self._store.end(person_id)
        else:
            card = NewMessage(lane=lane, text=self._question(lane), buttons=_yes(person_id))
            if (row := await self._store.ask(person_id, card)) is not None:
                self._deliver([(lane, row)])
                log.info("zone.asked", person=person_id, zone=self._assumed.zone)
        self._assumed.asked_in(lane)

    def _question(self, lane: str) -> str:
        zone = self._assumed.zone
        now = self._clock.now().astimezone(zone_of(zone) or UTC)
        text = (
            f"Is it **{now:%H:%M}** where you are? I take {zone}, this machine's zone, for you.\n"
            "`/timezone CITY` if not."
        )
        return as_typed(text, lane)

    # --- presses ------------------------------------------------------------------------------

    async def press(self, pressed: Pressed, person: Person) -> str:
        """A button with the data `zone:WORD:PERSON`; returns what who pressed it is told."""
        match pressed.data.split(":"):
            case [_, _, whose] if whose != person.id:
                log.warning("zone.not_theirs", person=person.id)
                return NOT_YOURS
            case [_, word, _] if word == YES:
                return await self._on_yes(pressed, person)
            case [_, word, _] if word == MOVE:
                return await self._on_move(pressed, person)
            case _:
                return UNKNOWN

    async def _on_yes(self, pressed: Pressed, person: Person) -> str:
        question = await self._store.question(person.id)
        if question is None:
            return UNKNOWN
        if person.time_zone and person.time_zone != question.zone:
            said = f"You have set {person.time_zone} since, and that stays."
        else:
            await self._access.set_time_zone(person, question.zone)
            await self._store.settle(person.id)
            said = f"Your time zone is {question.zone}."
        await self._store.end(person.id)
        await self._cards.close(pressed, said)
        return said

    async def _on_move(self, pressed: Pressed, person: Person) -> str:
        zone = zone_of(person.time_zone) if person.time_zone else None
        moved = () if zone is None else await self._moves.make(person.id, zone)
        said = _outcome(moved) if moved else NOTHING_LEFT
        await self._cards.close(pressed, said)
        return said.partition("\n")[0]

    # --- what goes by another zone ------------------------------------------------------------

    async def offer(self, message: IncomingMessage) -> Offer:
        """What still goes by an assumed zone, now that a person's own is known; the open question
        is answered by that. In a group nothing is named: others read along."""
        person = self._access.who(message.sender)
        zone = zone_of(person.time_zone) if person is not None and person.time_zone else None
        if person is None or zone is None:
            return Offer()
        await self._answered(person)
        if not await self._store.assumed(person.id):
            return Offer()
        moves = await self._moves.of(person.id, zone)
        if not moves:
            # What is alike in both is theirs from now on: it stays where they go next.
            await self._store.settle(person.id)
            return Offer()
        if is_shared(message.address.key):
            return Offer(text=IN_PRIVATE)
        button = Button(label=_label(person), data=_data(MOVE, person.id), style="good")
        return Offer(text=_moves_text(moves, zone), buttons=((button,),))

    async def _answered(self, person: Person) -> None:
        """Their question is answered without its button."""
        question = await self._store.question(person.id)
        if question is None or question.state is Asking.OVER:
            return
        if question.card is not None:
            said = f"You have set {person.time_zone}."
            await self._cards.revise(question.card, f"{self._as_asked(question)}\n\n{said}")
        await self._store.end(person.id)
        self._assumed.asked_in(question.lane)

    def _as_asked(self, question: ZoneQuestion) -> str:
        """Without its time of day, which is another one by now."""
        return f"Is {question.zone}, this machine's zone, yours?"


def _yes(person_id: PersonId) -> ButtonRows:
    return ((Button(label="Yes", data=_data(YES, person_id), style="good"),),)


def _data(word: str, person_id: PersonId) -> str:
    return f"{PREFIX}:{word}:{person_id}"


def _label(person: Person) -> str:
    return f"Move to {person.time_zone}"[:40]


def _moves_text(moves: Sequence[Move], zone: tzinfo) -> str:
    zones = " and ".join(dict.fromkeys(move.from_zone for move in moves))
    lines = [f"- {_line(move, zone)}" for move in moves[:SHOWN_MAX]]
    if len(moves) > SHOWN_MAX:
        lines.append(f"… and {len(moves) - SHOWN_MAX} more")
    head = (
        f"Set up by {zones} before I knew your zone, and still at these times; moved, each keeps "
        f"its time of the day in {zone}:"
    )
    return "\n".join([head, *lines])


def _line(move: Move, zone: tzinfo) -> str:
    """How it stands, and how it would: both on the person's clock."""
    then = OVER if move.then is None else f"moved: {moment_words(move.then, zone)}"
    match move.thing:
        case Job() as job:
            now = "stands still" if job.next is None else due_words(job.next, zone)
            return f"{job.key} {name_of(job)}: {now}; {then}"
        case Event() as event if event.all_day:
            # Its day is the same in every zone; when somebody is reminded of it is not.
            return f"{event_words(event, zone_of(move.from_zone) or zone)}; moved: its reminders"
        case Event() as event:
            return f"{event_words(event, zone)}; {then}"
    assert_never(move.thing)


def _outcome(moves: Sequence[Move]) -> str:
    done = [move.thing.key for move in moves if move.then is not None and not move.refused]
    left = [
        f"{move.thing.key} stays: {move.refused or OVER}"
        for move in moves
        if move.then is None or move.refused
    ]
    head = f"Moved: {', '.join(done)}." if done else "Nothing was moved."
    return "\n".join([head, *left])
