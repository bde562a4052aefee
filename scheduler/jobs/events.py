"""Events with their reminders, and what is to come of a person: noted, listed, and for the prompt.

The one place that says when an event is over, and when somebody is reminded of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from memory.records.errors import Permanent
from memory.records.facts import Coming, RecallWanted
from memory.records.job_specs import At
from memory.records.jobs import Job, JobKind, What
from memory.records.messages import PersonId, RunId
from memory.records.ports import Clock
from memory.records.schedule import (
    JobBook,
    JobWish,
    NewOccasion,
    Occasion,
    OccasionStore,
    OccasionWish,
    Recorded,
    Remind,
    TimeRead,
    moment_words,
)

COMING_DAYS = 7
COMING_MAX = 10
"""What a prompt says of the time ahead (SPEC §5, layer 17)."""

UNDATED_DAYS = 90
"""So long an event without a date stays."""

EVENTS_MAX = 500
"""Of one person, past ones aside."""

REMINDED_AT_HOUR = 9
"""Of the day before, and of the day itself for what lasts all day."""

ON_TIME = timedelta(hours=1)
"""So long before its time somebody is reminded of an event on its day."""

CALL = "event-"
"""How the calls begin that made a reminder of an event."""

_OTHER_TIME = " at 17:17"
"""Said behind a day without a time, it gives one; behind a time it makes no sense."""

_ZONES_APART = timedelta(hours=36)
"""More than a day of any zone lasts, with all that clocks may be set."""


class NotAnEvent(Permanent):
    """What cannot be noted as an event, with what to do instead."""


class EventAgenda:
    """Implements `memory.records.schedule.Agenda`. `coming` is what a prompt says of the time
    ahead."""

    def __init__(self, store: OccasionStore, book: JobBook, *, clock: Clock) -> None:
        self._store = store
        self._book = book
        self._clock = clock

    async def record(self, wish: OccasionWish) -> Recorded:
        """Keeps one with its reminders; the same call again changes nothing. Raises NotAnEvent."""
        zone = self._zone(wish.person_id)
        at, all_day = self._moment(wish, zone)
        if at is None and wish.remind:
            raise NotAnEvent("Without a date there is nothing to remind of; say when it is.")
        new = NewOccasion(
            person_id=wish.person_id,
            name=wish.name,
            at=at,
            zone=zone.key,
            all_day=all_day,
            note=wish.note,
            remind=wish.remind,
            scope=wish.scope,
            run_id=wish.run_id,
        )
        kept = await self._store.add(new, limit=EVENTS_MAX)
        if kept is None:
            raise NotAnEvent(f"This person has {EVENTS_MAX} events already: remove some first.")
        reminders, too_late = [], []
        for remind in kept.new.remind:
            moment = reminded_at(kept.new, remind, zone)
            if moment is None or moment <= self._clock.now():
                too_late.append(remind)
            else:
                reminders.append(await self._remind(kept, remind, moment, wish))
        return Recorded(occasion=kept, reminders=tuple(reminders), too_late=tuple(too_late))

    async def ahead(
        self, person_id: PersonId, scope: str, *, days: int | None = None
    ) -> Sequence[Occasion]:
        """Those that are not over, in order, those without a date last."""
        now = self._clock.now()
        found = await self._store.since(
            person_id,
            scope,
            since_ms=_ms(now - _ZONES_APART),
            undated_since_ms=_ms(now - timedelta(days=UNDATED_DAYS)),
        )
        until = None if days is None else now + timedelta(days=days)
        zone = self._zone(person_id)
        return [
            one
            for one in found
            if not is_over(one.new, now, zone)
            and (until is None or one.new.at is None or one.new.at <= until)
        ]

    async def remove(self, person_id: PersonId, scope: str, name: str) -> Occasion | None:
        """Drops the event `e5` with its reminders."""
        number = name.strip().lower().removeprefix("e")
        if not (number.isascii() and number.isdecimal() and len(number) < 16):
            return None
        dropped = await self._store.remove(person_id, int(number), scope)
        if dropped is not None:
            calls = {_call(dropped, remind) for remind in Remind}
            for job in await self._book.of(person_id):
                if job.new.run_id in calls:
                    await self._book.remove(job)
        return dropped

    async def coming(self, wanted: RecallWanted) -> Sequence[Coming]:
        """The next events and jobs within a week: in a private chat, the person's own, on the clock
        on their wall. Those without a date come last. Raises StorageError."""
        if wanted.scope or wanted.memory_off:
            return ()
        zone = self._zone(wanted.person_id)
        # Asked together, they are looked up together.
        events, kept = await asyncio.gather(
            self.ahead(wanted.person_id, "", days=COMING_DAYS), self._book.of(wanted.person_id)
        )
        until_ms = _ms(self._clock.now() + timedelta(days=COMING_DAYS))
        jobs = [
            job
            for job in kept
            if _is_told(job) and job.next is not None and job.next.at_ms <= until_ms
        ]
        found = [_of_event(one, zone) for one in events]
        found += [_of_job(job, zone) for job in jobs]
        found.sort(key=lambda one: (one.when is None, _ms(one.when) if one.when else 0))
        return found[:COMING_MAX]

    # --- parts --------------------------------------------------------------------------------

    def _zone(self, person_id: PersonId) -> ZoneInfo:
        zone = self._book.zone(person_id)
        return zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC")

    def _moment(self, wish: OccasionWish, zone: ZoneInfo) -> tuple[datetime | None, bool]:
        """When it is, and whether it lasts all day: its words name a day and no time."""
        if wish.time is None:
            return None, False
        if not isinstance(wish.time.when, At):
            raise NotAnEvent(
                f"An event is once, and {wish.when!r} is again and again. Use remind_me for what "
                "is to be said each time."
            )
        moment = wish.time.when.moment
        local = moment.astimezone(zone)
        other = self._book.read(wish.person_id, f"{wish.when.strip()}{_OTHER_TIME}")
        names_day = (
            (local.hour, local.minute) == (REMINDED_AT_HOUR, 0)
            and isinstance(other, TimeRead)
            and isinstance(other.when, At)
            and other.when.moment.astimezone(zone).date() == local.date()
        )
        if not names_day:
            return moment, False
        return local.replace(hour=0, minute=0, fold=0).astimezone(UTC), True

    async def _remind(
        self, occasion: Occasion, remind: Remind, moment: datetime, wish: OccasionWish
    ) -> Job:
        new = occasion.new
        assert new.at is not None, "it has a date"
        zone = self._zone(new.person_id)
        head = {Remind.BEFORE: "Tomorrow", Remind.ON: "Today"}[remind]
        at = moment_words(new.at, zone)
        text = f"{head}: {new.name} ({at.partition(',')[0] if new.all_day else at})"
        time = TimeRead(when=At(moment=moment, zone=zone.key), sentence=moment_words(moment, zone))
        return await self._book.add(
            JobWish(
                person_id=new.person_id,
                kind=JobKind.MESSAGE,
                what=What(text=f"{text}\n{new.note}".strip(), outside=wish.outside),
                time=time,
                deliver_to=wish.deliver_to,
                name=f"{new.name[:40].rstrip()} ({_TITLES[remind]})",
                run_id=_call(occasion, remind),
            )
        )


_TITLES = {Remind.BEFORE: "the day before", Remind.ON: "on the day"}


def reminded_at(new: NewOccasion, remind: Remind, zone: ZoneInfo) -> datetime | None:
    """When somebody is reminded, in UTC; None of an event without a date."""
    if new.at is None:
        return None
    local = new.at.astimezone(zone)
    if remind is Remind.ON and not new.all_day:
        return new.at - ON_TIME
    day = local.date() - timedelta(days=remind is Remind.BEFORE)
    at = datetime(day.year, day.month, day.day, REMINDED_AT_HOUR, tzinfo=zone)
    return at.astimezone(UTC)


def is_over(new: NewOccasion, now: datetime, zone: ZoneInfo) -> bool:
    """What lasts all day is over at its end, by the clock on the person's wall."""
    if new.at is None:
        return False
    if new.all_day:
        return new.at.astimezone(_zone_of(new, zone)).date() < now.astimezone(zone).date()
    return new.at < now


def _zone_of(new: NewOccasion, zone: ZoneInfo) -> ZoneInfo:
    """That in which it was noted: its day is that day, wherever its person is by now."""
    try:
        return ZoneInfo(new.zone)
    except (LookupError, ValueError, OSError):
        return zone


def _call(occasion: Occasion, remind: Remind) -> RunId:
    return RunId(f"{CALL}{occasion.id}:{remind}")


def _is_told(job: Job) -> bool:
    """A reminder of an event says nothing that the event does not say, and the heartbeat comes all
    the time. What stands in a group is the group's."""
    return (
        job.enabled
        and job.new.kind is not JobKind.HEARTBEAT
        and not (job.new.run_id or "").startswith(CALL)
    )


def _of_event(occasion: Occasion, zone: ZoneInfo) -> Coming:
    new = occasion.new
    words = f"{new.name} ({new.note})" if new.note else new.name
    if new.at is None:
        return Coming(id=occasion.key, when=None, text=words)
    if new.all_day:
        day = new.at.astimezone(_zone_of(new, zone)).replace(tzinfo=zone)
        return Coming(id=occasion.key, when=day, text=f"all day: {words}")
    return Coming(id=occasion.key, when=new.at.astimezone(zone), text=words)


def _of_job(job: Job, zone: ZoneInfo) -> Coming:
    assert job.next is not None, "it is due"
    when = datetime.fromtimestamp(job.next.at_ms / 1000, zone)
    what = "reminder" if job.new.kind is JobKind.MESSAGE else "job"
    return Coming(id=job.key, when=when, text=f"{what} {job.key}: {job.new.name}")


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
