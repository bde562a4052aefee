"""What was set up by this machine's time zone, for people who have none of their own, and who is to
be asked about it. Hears of it from the clerk of jobs, the tool for events and `/quiet`.
"""

from __future__ import annotations

from collections.abc import Callable

from agent.assumed_zones import AssumedTime, AssumedZoneStore, Timed
from agent.events import Occasion
from agent.jobbook import TimeRead
from agent.messages import PersonId, Role
from agent.scheduled import Job, SetBy
from bot.access import Access
from bot.approvals import is_shared
from bot.memories import person_of
from bot.ports import Person

AGAIN = "later-"
"""How the calls begin that put a reminder off: no time was named."""


class AssumedZones:
    """Implements `agent.assumed_zones.HearsOfTimes`. Everything may raise StorageError."""

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
        person = person_of(self._access, person_id)
        return person is not None and not person.time_zone

    # --- what was set up ----------------------------------------------------------------------

    async def kept(self, job: Job, *, anywhere: bool) -> None:
        """A job was kept or given other times."""
        new = job.new
        if (new.run_id or "").startswith(AGAIN):
            return
        is_by_hand = new.set_by is SetBy.PERSON and not anywhere
        if is_by_hand and self.is_assumed(new.person_id):
            await self._assume(new.person_id, Timed.JOB, job.id)
            await self.used(new.person_id, new.deliver_to)
        else:
            await self.store.settle_one(Timed.JOB, job.id)

    async def noted(self, occasion: Occasion, time: TimeRead, lane: str) -> None:
        """An event with a time was noted in a chat. May be told again of the same one."""
        person_id = occasion.new.person_id
        if self._is_anywhere(time) or not self.is_assumed(person_id):
            return
        if not occasion.new.scope:
            await self._assume(person_id, Timed.EVENT, occasion.id)
        await self.used(person_id, lane)

    async def used(self, person_id: PersonId, lane: str) -> None:
        """Something that was set up in a chat hangs on the clock on a person's wall: if that is not
        known, they are asked there, once, after the answer."""
        person = person_of(self._access, person_id)
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
