"""Events: what somebody has noted, with or without a date. The values and ports between the tools
and doors, the scheduler that reminds of them, and the memory that keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from agent.jobbook import TimeRead
from agent.messages import PersonId, RunId
from agent.scheduled import Job


class Remind(StrEnum):
    """When a person is reminded: the day before at 09:00; on the day at 09:00 of what lasts all
    day, and an hour before of what has a time."""

    BEFORE = "before"
    ON = "on"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOccasion:
    """An event that is to be kept. `at` None: it has no date. What lasts `all_day` is at midnight,
    by the clock of `zone`. In a group `scope` is its chat; empty: it is the person's own.

    `run_id` names the call that made it.
    """

    person_id: PersonId
    name: str
    at: datetime | None
    zone: str
    all_day: bool = False
    note: str = ""
    remind: tuple[Remind, ...] = ()
    scope: str = ""
    run_id: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """An event as it is kept. `created_ms` is epoch milliseconds."""

    id: int
    new: NewOccasion
    created_ms: int = 0

    @property
    def key(self) -> str:
        """How people and models name it: `e5`."""
        return f"e{self.id}"


class OccasionStore(Protocol):
    """Keeps events. Each method is one transaction. Raises StorageError."""

    async def add(self, new: NewOccasion, *, limit: int) -> Occasion | None:
        """Keeps one; the one that is kept, where this call made one before. None when this person
        has so many already."""

    async def since(
        self, person_id: PersonId, scope: str, *, since_ms: int, undated_since_ms: int
    ) -> Sequence[Occasion]:
        """Those of a person in this scope from a moment on, in order, and then those without a date
        that were noted since another."""

    async def remove(self, person_id: PersonId, occasion_id: int, scope: str) -> Occasion | None:
        """Drops one; None when this person has no such one there."""


# --- what is done with them --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OccasionWish:
    """An event that somebody wants noted. `time` None: without a date; `when` are its words.
    Reminders of it go to `deliver_to`; `outside` as in `What`."""

    person_id: PersonId
    name: str
    when: str
    time: TimeRead | None
    deliver_to: str
    note: str = ""
    remind: tuple[Remind, ...] = ()
    scope: str = ""
    run_id: RunId | None = None
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event that is kept, the jobs that remind of it, and those reminders whose time was over
    before."""

    occasion: Occasion
    reminders: tuple[Job, ...] = ()
    too_late: tuple[Remind, ...] = ()


class Agenda(Protocol):
    """Notes events and reminds of them. Raises StorageError, and Permanent with a sentence for the
    person."""

    async def record(self, wish: OccasionWish) -> Recorded:
        """Keeps one with its reminders; the same call again changes nothing."""

    async def ahead(
        self, person_id: PersonId, scope: str, *, days: int | None = None
    ) -> Sequence[Occasion]:
        """Those that are not over, in order, those without a date last: all of 90 days."""

    async def remove(self, person_id: PersonId, scope: str, name: str) -> Occasion | None:
        """Drops the event `e5` with its reminders; None when there is no such one."""
