"""Asks people whether a call may run: cards with buttons, their answers, and `/approve`.

The core asks by the port `memory.records.ports.Approvals`; buttons come from the intake. An answer
is checked against the person who was recognised, never against what a button says (SPEC §4, §6).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC
from types import TracebackType
from typing import Self

import structlog

from bot.channels.base import Pressed
from bot.markup.command_text import all_as_typed
from bot.people import approval_messages as words
from bot.people.access import Access
from bot.people.timezone import zone_of
from memory.records.errors import StorageError
from memory.records.messages import Address, IncomingMessage, OutboxId, PersonId, Role
from memory.records.ports import Clock, Json, waits_on
from memory.records.rows import (
    NewApproval,
    NewMessage,
    Outcome,
    Person,
    StoredApproval,
)
from memory.stores.approvals import SqliteApprovals

log = structlog.get_logger()

VALID_S = 600.0
"""How long a question waits for its answer (SPEC §6)."""

LOOK_EVERY_S = 60.0
"""How often is looked, while something is open, for what is over: also turns that were stopped,
and a wall clock that was set."""

PAUSE_S = 5.0
"""Pause before the next look while storage is in trouble or the card of a question is late."""

CODE_CHARS_MIN = 4
"""Of an id that is typed; fewer are no intention."""

Signal = Callable[[str, Json], Awaitable[object]]
"""Wakes the turn that waits for a key; may be repeated, the first value stands. Raises
StorageError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuestionPlace:
    """Where a question goes: an address key, or nowhere, and who reads it there. `is_here`: where
    the turn is."""

    lane: str
    reader: Person | None
    is_here: bool


class ApprovalService:
    """Implements `memory.records.ports.Approvals`. An async context manager; `start` takes up what
    a former process left."""

    def __init__(
        self,
        store: SqliteApprovals,
        access: Access,
        signal: Signal,
        *,
        deliver: Callable[[Sequence[tuple[str, OutboxId]]], None],
        revise: Callable[[OutboxId, str], Awaitable[None]],
        clock: Clock,
        valid_s: float = VALID_S,
        host_zone: str = "UTC",
    ) -> None:
        """`deliver` sends rows that are stored, `revise` makes a message read so, without buttons;
        it may be repeated, and raises StorageError. `host_zone` is that of people who set none."""
        self._store = store
        self._access = access
        self._signal = signal
        self._deliver = deliver
        self._revise = revise
        self._clock = clock
        self._valid_s = valid_s
        self._host_zone = host_zone
        self._changed = asyncio.Event()
        self._settling = asyncio.Lock()
        self._group = asyncio.TaskGroup()
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        await self._group.__aexit__(kind, error, traceback)

    async def start(self) -> None:
        """Tells turns that still wait what was decided, and watches the time from now on. Once the
        outbox and the engine have started. Raises StorageError."""
        await self._catch_up()
        self._watcher = self._group.create_task(self._watch(), name="approvals")

    # --- the port -----------------------------------------------------------------------------

    async def ask(self, approval: NewApproval) -> None:
        """Keeps it and sends the card with its buttons. Does nothing when the id is known."""
        person = self._access.person(approval.person_id)
        place = await self._place(approval, person)
        expires_ms = self._now_ms() + round(self._valid_s * 1000)
        minutes = words.minutes_of(self._valid_s)
        text = words.card_text(
            approval,
            person=person,
            reader=place.reader,
            is_shared=is_shared(place.lane),
            answer=f"within {minutes}",
        )
        card = NewMessage(lane=place.lane, text=text, buttons=words.buttons(approval))
        elsewhere = words.notice_text(approval, minutes=minutes, is_asked=bool(place.lane))
        ready = await self._store.add(
            approval,
            role=person.role if person is not None else Role.GUEST,
            expires_ms=expires_ms,
            card=card if place.lane else None,
            notices=[] if place.is_here else [NewMessage(lane=approval.lane, text=elsewhere)],
        )
        if ready is None:
            return
        log.info("approval.asked", id=approval.id, tool=approval.tool, card=place.lane)
        self._deliver(ready)
        self._changed.set()

    async def outcome(self, approval_id: str) -> Outcome | None:
        """Return what came of it; None while it is open, and for an unknown id."""
        found = await self._store.get(approval_id)
        return None if found is None else found.outcome

    async def is_always(self, person_id: PersonId, agent: str, tool: str) -> bool:
        """Return whether this was agreed to once and for all."""
        return await self._store.is_always(person_id, agent, tool)

    # --- answers ------------------------------------------------------------------------------

    async def press(self, pressed: Pressed, person: Person) -> str:
        """A button with the data `ok:ID:WORD`; returns what the person who pressed it is told."""
        match pressed.data.split(":"):
            case ["ok", approval_id, word] if word in words.ANSWERS:
                text = await self.answer(person, approval_id, word)
            case _:
                text = words.UNKNOWN
        return all_as_typed(text, pressed.address.channel)

    async def answer(self, person: Person, approval_id: str, word: str) -> str:
        """An answer of a person, by a word of `ANSWERS`; the first one stands."""
        outcome = words.ANSWERS.get(word.lower())
        if outcome is None:
            return words.USE
        found = await self._store.get(approval_id)
        if found is None:
            return words.UNKNOWN
        if refused := self._refusal(found, person):
            log.warning("approval.not_theirs", id=found.id, person=person.id)
            return refused
        if outcome is Outcome.ALWAYS and found.asked.once_only:
            return words.NOT_ALWAYS
        decided = await self._store.decide(found.id, outcome, by=person.id)
        if decided is None:
            return words.UNKNOWN
        now = decided.approval
        if decided.won or now.outcome is Outcome.EXPIRED:
            log.info("approval.decided", id=now.id, outcome=now.outcome, person=person.id)
            # The answer is stored: trouble with what follows from it is no failure of the answer.
            # Nothing is left to do where the watch has seen it first.
            try:
                async with self._settling:
                    if any(one.id == now.id for one in await self._store.unsettled()):
                        await self._settle(now)
            except StorageError as trouble:
                log.error("approval.unsettled", id=now.id, why=str(trouble))
                self._changed.set()
        text = words.answer_text(now, by=self._by(now), at=self._spelled(now.decided_ms, person))
        is_other = now.outcome not in {outcome, Outcome.EXPIRED}
        return f"{words.BEFORE} {text}" if is_other else text

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/approve`: what is open, one of it, an answer, or taking something back. An answer to
        nothing in particular answers nothing."""
        said = rest.split()
        if message.is_group and not (len(said) == 2 and said[1].lower() in words.ANSWERS):
            return words.IN_PRIVATE
        match said:
            case []:
                return await self._overview(person)
            case [word] if word.lower() in words.ANSWERS:
                which = words.which(word.lower()) if await self._theirs(person) else ""
                return f"{which}\n\n{await self._overview(person)}".strip()
            case ["revoke", tool]:
                count = await self._store.revoke(person.id, tool)
                log.info("approval.revoked", tool=tool[:64], person=person.id, count=count)
                return words.revoked_text(tool, count=count)
            case [code] if code.lower() != "revoke":
                found = await self._open_one(person, code)
                if found is None:
                    return words.UNKNOWN
                return words.card_text(
                    found.asked,
                    person=self._access.person(found.asked.person_id),
                    reader=person,
                    is_shared=False,
                    answer=f"by {self._spelled(found.expires_ms, person)}",
                )
            case [code, word] if word.lower() in words.ANSWERS:
                found = await self._open_one(person, code)
                return await self.answer(person, found.id if found is not None else code, word)
            case _:
                return words.USE

    def _refusal(self, approval: StoredApproval, person: Person) -> str:
        """Why this person's answer does not count; empty when it does."""
        if approval.asked.owner_alone:
            return "" if person.role is Role.OWNER else words.OWNER_ALONE
        if person.id != approval.asked.person_id:
            return words.others_only(self._access.person(approval.asked.person_id))
        if person.role is Role.GUEST:
            return words.NO_GUESTS
        if person.role not in {approval.role, Role.OWNER}:
            return words.OTHER_ROLE
        return ""

    async def _open_one(self, person: Person, code: str) -> StoredApproval | None:
        """The open question of this code that this person may answer; None where none is, or where
        several begin so."""
        if len(code) < CODE_CHARS_MIN:
            return None
        found = [one for one in await self._theirs(person) if one.id.startswith(code.lower())]
        return found[0] if len(found) == 1 else None

    async def _theirs(self, person: Person) -> list[StoredApproval]:
        now_ms = self._now_ms()
        return [
            one
            for one in await self._store.open_ones()
            if one.expires_ms > now_ms and not self._refusal(one, person)
        ]

    async def _overview(self, person: Person) -> str:
        lines = []
        for one in await self._theirs(person):
            of = self._access.person(one.asked.person_id)
            whose = None if of is None or of.id == person.id else of
            until = self._spelled(one.expires_ms, person)
            lines.append((one, words.open_line(one.asked, person=whose, until=until)))
        return words.overview(lines, await self._store.grants(person.id))

    # --- cards --------------------------------------------------------------------------------

    async def _place(self, asked: NewApproval, person: Person | None) -> _QuestionPlace:
        """In the chat of the turn, if whoever may answer is there and nobody reads along who has
        no business with it; else in the owner's private chat. What stands in a private chat is
        never shown in a group."""
        is_owners = person is not None and person.role is Role.OWNER
        if not asked.owner_alone or (is_owners and not is_shared(asked.lane)):
            return _QuestionPlace(lane=asked.lane, reader=person, is_here=True)
        for owner in sorted(self._access.owners(), key=lambda one: one.id != asked.person_id):
            for lane in await self._access.private_chats(owner.id):
                return _QuestionPlace(lane=lane, reader=owner, is_here=False)
        return _QuestionPlace(lane="", reader=None, is_here=False)

    # --- what follows -------------------------------------------------------------------------

    async def _settle(self, approval: StoredApproval) -> None:
        """Tells the turn, then shows the outcome; each may be repeated after a crash."""
        assert approval.outcome is not None, "it is decided"
        await self._signal(waits_on(approval.id), {"outcome": approval.outcome.value})
        if approval.card is not None:
            by = self._by(approval)
            reader = by or self._access.person(approval.asked.person_id)
            at = self._spelled(approval.decided_ms, reader)
            await self._revise(approval.card, words.decided_text(approval, by=by, at=at))
        await self._store.settle(approval.id)

    async def _catch_up(self) -> None:
        expired = await self._store.expire()
        if expired:
            log.info("approval.expired", count=expired)
        async with self._settling:
            for approval in await self._store.unsettled():
                await self._settle(approval)

    async def _watch(self) -> None:
        """Closes what is over, for as long as the bot runs. All open ones have the same time, so
        the first is the next; trouble with the storage is told once."""
        is_told = False
        while True:
            self._changed.clear()
            try:
                await self._catch_up()
                next_ms = await self._store.next_expiry()
                is_told = False
            except StorageError as trouble:
                if not is_told:
                    log.error("approval.storage", why=str(trouble))
                is_told = True
                await self._clock.sleep(PAUSE_S)
                continue
            if next_ms is None:
                await self._changed.wait()
            else:
                left_s = (next_ms - self._now_ms()) / 1000
                # Past its time, yet open: its card is on its way, and the time runs from then.
                await self._clock.sleep(min(left_s if left_s > 0 else PAUSE_S, LOOK_EVERY_S))

    # --- people and times ---------------------------------------------------------------------

    def _by(self, approval: StoredApproval) -> Person | None:
        return None if approval.decided_by is None else self._access.person(approval.decided_by)

    def _spelled(self, ms: int, reader: Person | None) -> str:
        named = reader.time_zone if reader is not None else ""
        zone = zone_of(named) or zone_of(self._host_zone) or UTC
        return words.spelled(ms, zone, now_ms=self._now_ms())

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


def is_shared(lane: str) -> bool:
    """Return whether others may read along at an address; also where that is not known."""
    try:
        address = Address.parse(lane)
    except ValueError:
        return True
    match address.channel:
        case "telegram":
            return not address.chat_id.isdecimal()
        case "slack":
            return not address.chat_id.partition(".")[2].startswith("D")
        case "console":
            return False
        case _:
            return True
