"""Times that were set up by a clock which may not be the person's: this machine's, for somebody who
never said where they live. The values, and the port between the bot and the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Protocol

from memory.records.jobs import Job
from memory.records.messages import OutboxId, PersonId
from memory.records.rows import NewMessage
from memory.records.schedule import Event


class Asking(StrEnum):
    """How far the question is: it shall be asked after the answer, it is asked, it is over."""

    WANTED = "wanted"
    ASKED = "asked"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneQuestion:
    """Whether `zone`, an IANA name, is a person's; asked in their private chat `lane`. `card` is
    the message that asks."""

    person_id: PersonId
    lane: str
    zone: str
    state: Asking
    card: OutboxId | None = None


class Timed(StrEnum):
    """What has a time."""

    JOB = "job"
    EVENT = "event"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedTime:
    """A job or an event of a person whose time was read on the clock of `zone`, an IANA name."""

    person_id: PersonId
    kind: Timed
    id: int
    zone: str


class AssumedZoneStore(Protocol):
    """Keeps them. Each method is one transaction, and may be repeated. Raises StorageError."""

    async def want(self, person_id: PersonId, *, lane: str, zone: str) -> bool:
        """Writes down that a person shall be asked; False for one about whom it was before."""

    async def wanted(self) -> Sequence[ZoneQuestion]:
        """Those that are to be asked yet."""

    async def ask(self, person_id: PersonId, message: NewMessage) -> OutboxId | None:
        """Adds the card to the outbox, once; None where it is not wanted (any more)."""

    async def question(self, person_id: PersonId) -> ZoneQuestion | None:
        """That of a person."""

    async def end(self, person_id: PersonId) -> None:
        """The question is over: it is neither asked nor asked again."""

    async def assume(self, time: AssumedTime) -> None:
        """One more, or the same one by another zone."""

    async def assumed(self, person_id: PersonId) -> Sequence[AssumedTime]:
        """Those of a person; some may be gone by now."""

    async def settle(self, person_id: PersonId) -> None:
        """None of a person's is assumed any more."""

    async def settle_one(self, kind: Timed, id: int) -> None:
        """This one is not."""

    async def move_event(self, person_id: PersonId, id: int, at: datetime, zone: str) -> bool:
        """Gives an event another time, which is no longer assumed. False where it is gone."""


class HearsOfTimes(Protocol):
    """Hears of times that were read on a clock which may not be the person's. Raises
    StorageError."""

    def is_assumed(self, person_id: PersonId) -> bool:
        """Whether the zone of a person is not known, so that another one stands in."""

    async def kept(self, job: Job, *, anywhere: bool) -> None:
        """A job was kept or given other times. `anywhere`: those are the same in every zone. May be
        told again of the same one."""

    async def used(self, person_id: PersonId, lane: str) -> None:
        """Something that was set up in a chat hangs on the wall clock of a person."""


# --- on another wall ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A job or an event that goes by the clock of `from_zone`, an IANA name, and when it would come
    next by the person's own; None: that time is over. `refused` says why it was not moved."""

    thing: Job | Event
    from_zone: str
    then: datetime | None
    refused: str = ""


class Moves(Protocol):
    """What goes by an assumed zone, and would come at another moment by the person's own. Raises
    StorageError."""

    async def of(self, person_id: PersonId, zone: tzinfo) -> Sequence[Move]:
        """Shows it for this zone; nothing is changed."""

    async def make(self, person_id: PersonId, zone: tzinfo) -> Sequence[Move]:
        """Moves it. What was moved before, or is gone, is left out: it may be called again."""
