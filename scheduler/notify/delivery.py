"""Tells people what was found for them unasked: not nothing, nothing twice, not in the night, and
not too often. Called when a run of a job has ended, and by the clock for what had to wait.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

import structlog

from memory.records.jobs import (
    Held,
    HeldNotification,
    Job,
    JobKind,
    Notification,
    QuietPolicy,
    SetBy,
    SlotState,
)
from memory.records.messages import OutboxId, PersonId
from memory.records.ports import Clock
from memory.records.rows import NewMessage, Person
from memory.stores.jobs import SqliteJobs
from memory.stores.schedule import SqliteTellings
from scheduler.notify.findings import finding, is_told, is_trivial, without_token

# --- quiet hours --------------------------------------------------------------------------------
#
# Hours of the day: a person's quiet hours, and those in which the heartbeat is active. Pure.

MINUTES_OF_DAY = 24 * 60

_HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(?:-|–|—|to|until)\s*(\d{1,2})(?::(\d{2}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursOfDay:
    """From one minute of the day up to another, which may be on the next day."""

    from_minute: int
    to_minute: int

    def __str__(self) -> str:
        return f"{_spelled(self.from_minute)}-{_spelled(self.to_minute)}"

    def holds(self, moment: datetime, zone: tzinfo) -> bool:
        """Return whether the wall clock of this zone shows one of these minutes."""
        local = moment.astimezone(zone)
        minute = local.hour * 60 + local.minute
        if self.from_minute <= self.to_minute:
            return self.from_minute <= minute < self.to_minute
        return minute >= self.from_minute or minute < self.to_minute

    def end(self, moment: datetime, zone: tzinfo) -> datetime:
        """Return when they are over next; the moment itself where they do not hold.

        A minute that a change of clocks leaves out is over right after the gap.
        """
        if not self.holds(moment, zone):
            return moment
        local = moment.astimezone(zone).replace(second=0, microsecond=0, tzinfo=None)
        until = local.replace(hour=self.to_minute // 60, minute=self.to_minute % 60)
        if until <= local:
            until += timedelta(days=1)
        return until.replace(tzinfo=zone).astimezone(moment.tzinfo)


def read_hours(text: str) -> HoursOfDay | None:
    """Read `22:00-07:00`, `22-7` or `22:00 to 7:00`; None when it is none."""
    found = _HOURS.fullmatch(text.strip().casefold())
    if found is None:
        return None
    start, end = _minute(found[1], found[2]), _minute(found[3], found[4])
    if start is None or end is None or start == end:
        return None
    return HoursOfDay(from_minute=start, to_minute=end)


async def quiet_hours_of(notifications: SqliteTellings, person_id: PersonId) -> HoursOfDay | None:
    """Return those of a person; None: there are none. Raise StorageError."""
    found = await notifications.quiet_hours(person_id)
    return None if found is None else HoursOfDay(from_minute=found[0], to_minute=found[1])


def _minute(hour: str, minute: str | None) -> int | None:
    hours, minutes = int(hour), int(minute or 0)
    if minutes > 59 or hours > 24 or (hours == 24 and minutes):
        return None
    return (hours * 60 + minutes) % MINUTES_OF_DAY


def _spelled(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


log = structlog.get_logger()

DIGEST_HOUR = 8
"""When what was too much for one day is told on the next, by the clock on the person's wall."""

DIGEST_HEADS = {
    Held.QUIET: "**While it was quiet**",
    Held.CAP: "**What was too much for one day**",
}
DIGEST_NOTE = "What follows was sent on its own: results of jobs that had to wait."


class People(Protocol):
    """Who is let in, and which chats are whose. Looked at each time: people go."""

    def owner(self) -> PersonId | None:
        """None before there is one."""

    def person(self, person_id: PersonId) -> Person | None:
        """None: nobody is known by this id."""

    def zone(self, person_id: PersonId) -> ZoneInfo:
        """Return the person's, else this machine's."""

    async def home_of(self, person_id: PersonId) -> str:
        """Return the private chat for unasked words; empty: there is none. Raise StorageError."""

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        """Return whether this chat is (still) one that this person's things may go to."""

    def is_group(self, lane: str) -> bool:
        """Return whether others read along there."""

    def agent_at(self, lane: str) -> str:
        """Return the name of the agent that answers there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyOptions:
    """`daily_max` unasked messages a day to one person; the same finding is not told again within
    `repeat_h` hours. `phrases` are those that say nothing."""

    daily_max: int = 12
    repeat_h: float = 24.0
    phrases: Callable[[], Sequence[str]] = tuple
    likeness: Callable[[str, str], float] | None = None
    """A cosine of two texts; None: words alone. Blocks for milliseconds."""


class Notifier:
    """Decides, and tells. Every decision ends the slot or leaves it waiting, in one transaction."""

    def __init__(
        self,
        notifications: SqliteTellings,
        jobs: SqliteJobs,
        people: People,
        deliver: Callable[[Sequence[tuple[str, OutboxId]]], None],
        *,
        clock: Clock,
        options: NotifyOptions | None = None,
    ) -> None:
        self._notifications = notifications
        self._jobs = jobs
        self._people = people
        self._deliver = deliver
        self._clock = clock
        self._options = options or NotifyOptions()
        self._deciding = asyncio.Lock()

    async def tell(self, found: Notification) -> SlotState:
        """Return what becomes of a finding. Raise StorageError: it may then be asked again."""
        async with self._deciding:  # counts are of what was told before
            job, slot = found.job, found.due.slot
            text = without_token(found.text)
            if is_trivial(text, self._options.phrases()):
                return await self._end(found, SlotState.SILENT, "nothing to report")
            if not self._people.may_hear(job.person_id, job.deliver_to):
                return await self._end(found, SlotState.FAILED, _no_chat(job.deliver_to))
            compared = ""
            if job.kind is JobKind.HEARTBEAT:
                compared = finding(text, now=self._now_of(job.person_id))
                if await self._was_told(job, text):
                    return await self._end(found, SlotState.SILENT, "told already within a day")
            new = replace(
                found,
                text=text,
                finding=compared,
                counts=job.set_by is not SetBy.PERSON,
                note=joins_note(job),
                # What one member has a group told is outside text for the others.
                tainted=found.tainted or self._people.is_group(job.deliver_to),
            )
            held = await self._held(new)
            if held is Held.QUIET and job.quiet is QuietPolicy.DROP:
                return await self._end(found, SlotState.SILENT, "dropped: quiet hours")
            if held is not None:
                await self._notifications.hold(new, held)
                log.info("job.held", job=job.id, slot=slot, why=held)
                return SlotState.WAITING
            message = NewMessage(lane=job.deliver_to, text=text)
            outbox_id = await self._notifications.tell(new, message)
            if outbox_id is not None:
                self._deliver([(message.lane, outbox_id)])
                log.info("job.told", job=job.id, slot=slot, chars=len(text))
            return SlotState.TOLD

    async def _end(self, found: Notification, state: SlotState, why: str) -> SlotState:
        await self._jobs.end(found.job.id, found.due.slot, state, note=why)
        log.info("job.not_told", job=found.job.id, slot=found.due.slot, state=state, why=why)
        return state

    async def _was_told(self, job: Job, text: str) -> bool:
        now = self._now_of(job.person_id)
        since = now - timedelta(hours=self._options.repeat_h)
        former = await self._notifications.findings(job.id, since_ms=_ms(since))
        if not former:
            return False
        likeness = self._options.likeness
        return await asyncio.to_thread(is_told, text, former, now=now, likeness=likeness)

    def _now_of(self, person_id: PersonId) -> datetime:
        return self._clock.now().astimezone(self._people.zone(person_id))

    async def _held(self, new: Notification) -> Held | None:
        """Return why it has to wait; None: it need not."""
        job, person_id = new.job, new.job.person_id
        now, zone = self._clock.now(), self._people.zone(person_id)
        hours = await quiet_hours_of(self._notifications, person_id)
        passes = job.urgent or job.quiet is QuietPolicy.IGNORE
        if hours is not None and not passes and hours.holds(now, zone):
            return Held.QUIET
        if new.counts and not job.urgent:
            count = await self._notifications.count(
                person_id,
                since_ms=_ms(
                    now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
                ),
            )
            if count >= self._options.daily_max:
                return Held.CAP
        return None

    # --- what had to wait ---------------------------------------------------------------------

    async def look(self) -> int:
        """Send as digests what need not wait any more; return how many messages that made. What
        was for a chat or a person that is gone by then is given up.

        For the clock, every minute or so. Raise StorageError.
        """
        by_chat: dict[tuple[PersonId, str, Held], list[HeldNotification]] = {}
        for one in await self._notifications.waiting():
            by_chat.setdefault((one.person_id, one.lane, one.why), []).append(one)
        sent = 0
        for (person_id, lane, why), those in by_chat.items():
            due = [one for one in those if await self._is_over(one)]
            if not due:
                continue
            if not self._people.may_hear(person_id, lane):
                count = await self._notifications.drop(due, why=_no_chat(lane))
                log.warning("job.dropped", person=person_id, lane=lane, count=count)
                continue
            message = NewMessage(lane=lane, text=self._digest(due, why))
            outbox_id = await self._notifications.tell_waiting(due, message, note=DIGEST_NOTE)
            if outbox_id is not None:
                self._deliver([(lane, outbox_id)])
                log.info("job.digest", lane=lane, why=why, count=len(due))
                sent += 1
        return sent

    async def _is_over(self, one: HeldNotification) -> bool:
        now, zone = self._clock.now(), self._people.zone(one.person_id)
        hours = await quiet_hours_of(self._notifications, one.person_id)
        if hours is not None and hours.holds(now, zone):
            return False
        if one.why is Held.QUIET:
            return True
        local = now.astimezone(zone)
        began = datetime.fromtimestamp(one.created_ms / 1000, zone)
        if began > local:  # somebody has set the clock back
            return True
        return local.date() > began.date() and local.hour >= DIGEST_HOUR

    def _digest(self, those: Sequence[HeldNotification], why: Held) -> str:
        zone = self._people.zone(those[0].person_id)
        parts = [DIGEST_HEADS[why]]
        for one in those:
            at = datetime.fromtimestamp(one.created_ms / 1000, zone)
            named = f" {one.job_name}" if one.job_name else ""
            parts.append(f"_{at:%a %H:%M}{named}_\n{one.text}")
        return "\n\n".join(parts)


def joins_note(job: Job) -> str:
    """Return what history says before a message that came by the clock."""
    return f"What follows was sent on its own, by the job {job.key} ({job.name})."


def _no_chat(lane: str) -> str:
    return f"{lane} is no chat of this person any more"


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
