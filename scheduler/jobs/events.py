"""Events with their reminders, and what is to come of a person: noted, listed, and for the prompt.

The one place that says when an event is over, and when somebody is reminded of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from agent.tools.groups.memory import PersonContext
from agent.tools.tool import Caller, Effect, Needs, tool
from memory.records.errors import Permanent
from memory.records.facts import Coming, RecallWanted
from memory.records.jobs import Asker, At, Job, JobKind, What
from memory.records.messages import PersonId, RunId
from memory.records.ports import Clock
from memory.records.schedule import Event, RecordedEvent, Remind, TimeRead, due_words, moment_words
from memory.stores.schedule import SqliteEvents
from scheduler.jobs.rules import OF_EVENTS, to_ms
from scheduler.jobs.service import JobService
from scheduler.jobs.times import CallTimes, asker_of, call_of, listed

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

_ZONES_APART = timedelta(hours=36)
"""More than a day of any zone lasts, with all that clocks may be set."""


class NotAnEvent(Permanent):
    """What cannot be noted as an event, with what to do instead."""


class UnknownEvent(Permanent):
    """No event goes by this name here."""


class EventService:
    """Notes events and reminds of them. Raises StorageError, and Permanent with a sentence for the
    person."""

    def __init__(self, store: SqliteEvents, jobs: JobService, *, clock: Clock) -> None:
        self._store = store
        self._jobs = jobs
        self._clock = clock

    async def record(
        self,
        draft: Event,
        time: TimeRead | None,
        *,
        deliver_to: str,
        outside: bool = False,
    ) -> RecordedEvent:
        """Keep an event with its reminders; the same call again changes nothing. `time` None: it
        has no date. Reminders go to `deliver_to`; `outside` as in `What`. Raise NotAnEvent."""
        zone = self._zone(draft.person_id)
        new = replace(draft, zone=zone.key)
        if time is None and draft.remind:
            raise NotAnEvent("Without a date there is nothing to remind of; say when it is.")
        if time is not None:
            if not isinstance(time.when, At):
                raise NotAnEvent(
                    f"An event is once, and {time.sentence!r} is again and again. Use remind_me "
                    "for what is to be said each time."
                )
            at = time.when.moment
            if time.is_day:
                at = at.astimezone(zone).replace(hour=0, minute=0, fold=0).astimezone(UTC)
            new = replace(new, at=at, all_day=time.is_day)
        event = await self._store.add(new, limit=EVENTS_MAX)
        if event is None:
            raise NotAnEvent(f"This person has {EVENTS_MAX} events already: remove some first.")
        reminders, too_late = [], []
        for remind in event.remind:
            moment = reminded_at(event, remind, zone)
            if moment is None or moment <= self._clock.now():
                too_late.append(remind)
                continue
            job = reminder_of(event, remind, moment, deliver_to=deliver_to, outside=outside)
            reminders.append(await self._jobs.add(job, by=Asker(person_id=event.person_id)))
        return RecordedEvent(event=event, reminders=tuple(reminders), too_late=tuple(too_late))

    async def ahead(
        self, person_id: PersonId, scope: str, *, days: int | None = None
    ) -> Sequence[Event]:
        """Those that are not over, in order, those without a date last."""
        now = self._clock.now()
        found = await self._store.since(
            person_id,
            scope,
            since_ms=to_ms(now - _ZONES_APART),
            undated_since_ms=to_ms(now - timedelta(days=UNDATED_DAYS)),
        )
        until = None if days is None else now + timedelta(days=days)
        zone = self._zone(person_id)
        return [
            one
            for one in found
            if not is_over(one, now, zone) and (until is None or one.at is None or one.at <= until)
        ]

    async def remove(self, ref: str, *, by: Asker) -> Event:
        """Drop the event `e5` with its reminders. Raise UnknownEvent."""
        self._jobs.require_member(by)
        number = ref.strip().lower().removeprefix("e")
        dropped = None
        if (
            by.person_id is not None
            and number.isascii()
            and number.isdecimal()
            and len(number) < 16
        ):
            dropped = await self._store.remove(by.person_id, int(number), by.group)
        if dropped is None:
            raise UnknownEvent(
                f"There is no event {ref.strip().lower()[:20]} here; `/jobs` lists them."
            )
        calls = {reminder_call(dropped, remind) for remind in Remind}
        for job in await self._jobs.of(dropped.person_id):
            if job.run_id in calls:
                await self._jobs.remove(job.key, by=Asker(person_id=dropped.person_id))
        return dropped

    async def coming(self, wanted: RecallWanted) -> Sequence[Coming]:
        """Return the next events and jobs within a week: in a private chat, the person's own, on
        the clock on their wall. Those without a date come last. Raise StorageError."""
        if wanted.scope or wanted.memory_off:
            return ()
        zone = self._zone(wanted.person_id)
        # Asked together, they are looked up together.
        events, kept = await asyncio.gather(
            self.ahead(wanted.person_id, "", days=COMING_DAYS), self._jobs.of(wanted.person_id)
        )
        until_ms = to_ms(self._clock.now() + timedelta(days=COMING_DAYS))
        # A reminder of an event says nothing that the event does not say, and the heartbeat comes
        # all the time. What stands in a group is the group's.
        jobs = [
            job
            for job in kept
            if (
                job.enabled
                and job.kind is not JobKind.HEARTBEAT
                and not (job.run_id or "").startswith(OF_EVENTS)
            )
            and job.next is not None
            and job.next.at_ms <= until_ms
        ]
        found = [_of_event(one, zone) for one in events]
        for job in jobs:
            assert job.next is not None, "it is due"
            when = datetime.fromtimestamp(job.next.at_ms / 1000, zone)
            what = "reminder" if job.kind is JobKind.MESSAGE else "job"
            found.append(Coming(id=job.key, when=when, text=f"{what} {job.key}: {job.name}"))
        found.sort(key=lambda one: (one.when is None, to_ms(one.when) if one.when else 0))
        return found[:COMING_MAX]

    # --- parts --------------------------------------------------------------------------------

    def _zone(self, person_id: PersonId) -> ZoneInfo:
        return self._jobs.times.zone(person_id)


def reminder_of(
    event: Event, remind: Remind, moment: datetime, *, deliver_to: str, outside: bool
) -> Job:
    """Return the job that reminds of an event, in the zone in which that was noted."""
    assert event.at is not None, "it has a date"
    zone = ZoneInfo(event.zone)
    head = {Remind.BEFORE: "Tomorrow", Remind.ON: "Today"}[remind]
    at = moment_words(event.at, zone)
    text = f"{head}: {event.name} ({at.partition(',')[0] if event.all_day else at})"
    return Job(
        person_id=event.person_id,
        what=What(text=f"{text}\n{event.note}".strip(), outside=outside),
        when=At(moment=moment, zone=zone.key),
        deliver_to=deliver_to,
        name=f"{event.name[:40].rstrip()} ({_TITLES[remind]})",
        run_id=reminder_call(event, remind),
    )


_TITLES = {Remind.BEFORE: "the day before", Remind.ON: "on the day"}


def reminded_at(event: Event, remind: Remind, zone: ZoneInfo) -> datetime | None:
    """Return when somebody is reminded, in UTC; None of an event without a date."""
    if event.at is None:
        return None
    local = event.at.astimezone(zone)
    if remind is Remind.ON and not event.all_day:
        return event.at - ON_TIME
    day = local.date() - timedelta(days=remind is Remind.BEFORE)
    at = datetime(day.year, day.month, day.day, REMINDED_AT_HOUR, tzinfo=zone)
    return at.astimezone(UTC)


def is_over(event: Event, now: datetime, zone: ZoneInfo) -> bool:
    """Return what lasts all day is over at its end, by the clock on the person's wall."""
    if event.at is None:
        return False
    if event.all_day:
        return event.at.astimezone(_zone_of(event, zone)).date() < now.astimezone(zone).date()
    return event.at < now


def _zone_of(event: Event, zone: ZoneInfo) -> ZoneInfo:
    """That in which it was noted: its day is that day, wherever its person is by now."""
    try:
        return ZoneInfo(event.zone)
    except (LookupError, ValueError, OSError):
        return zone


def reminder_call(event: Event, remind: Remind) -> RunId:
    """Return the call that makes a reminder of an event."""
    return RunId(f"{OF_EVENTS}{event.id}:{remind}")


def _of_event(event: Event, zone: ZoneInfo) -> Coming:
    words = f"{event.name} ({event.note})" if event.note else event.name
    if event.at is None:
        return Coming(id=event.key, when=None, text=words)
    if event.all_day:
        day = event.at.astimezone(_zone_of(event, zone)).replace(tzinfo=zone)
        return Coming(id=event.key, when=day, text=f"all day: {words}")
    return Coming(id=event.key, when=event.at.astimezone(zone), text=words)


# --- tools --------------------------------------------------------------------------------------

REMINDERS = {
    "none": (),
    "before": (Remind.BEFORE,),
    "on": (Remind.ON,),
    "both": (Remind.BEFORE, Remind.ON),
}
_SPOKEN = {Remind.BEFORE: "the day before", Remind.ON: "on the day"}


class EventTools:
    """The event service, for a model in a person's name."""

    def __init__(
        self, jobs: JobService, events: EventService, household: PersonContext, times: CallTimes
    ) -> None:
        self._jobs = jobs
        self._events = events
        self._household = household
        self._times = times

    def _noting(self, caller: Caller, name: str, when: str) -> Needs:
        rows = [f"event: {name}"]
        if when.strip():
            rows += self._times.rows(self._times.read(caller, when.strip(), name), caller)
        return Needs(shows=(*rows, f"goes to: {caller.address.key}"))

    @tool(
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        needs=_noting,
        status="noting it …",
    )
    async def record_event(
        self,
        caller: Caller,
        name: Annotated[str, Field(min_length=1, max_length=120)],
        when: Annotated[
            str,
            Field(
                max_length=300,
                description="in the person's words, or ISO; a day without a time lasts all day; "
                "empty: no date",
            ),
        ] = "",
        note: Annotated[str, Field(max_length=1_000)] = "",
        remind: Annotated[
            Literal["none", "before", "on", "both"],
            Field(
                description="before: the day before at 09:00; on: at 09:00 of an all-day event, an "
                "hour before one with a time",
            ),
        ] = "none",
    ) -> str:
        """Note an event of the person (appointment, birthday, deadline), with or without a date,
        and reminders of it. For a mere reminder use remind_me."""
        asker = asker_of(caller)
        self._jobs.require_member(asker)
        await self._household.check_writable(caller)
        words = when.strip()
        time = self._times.read(caller, words, name) if words else None
        recorded = await self._events.record(
            Event(
                person_id=caller.person_id,
                name=" ".join(name.split()),
                note=note.strip(),
                remind=REMINDERS[remind],
                scope=asker.group,
                run_id=call_of(caller, "record_event", name, when, note, remind),
            ),
            time,
            deliver_to=caller.address.key,
            outside=caller.tainted,
        )
        zone = self._jobs.times.zone(caller.person_id)
        lines = [f"Noted: {event_words(recorded.event, zone)}."]
        for job in recorded.reminders:
            at = due_words(job.next, zone) if job.next is not None else "was sent already"
            lines.append(f"Reminder {job.key}: {at} ({zone}).")
        lines += [f"No reminder {_SPOKEN[one]}: that time is over." for one in recorded.too_late]
        return "\n".join(lines)

    @tool(
        group="schedule",
        effect=Effect.NONE,
        redo="repeat",
        status="looking at the calendar …",
    )
    async def list_events(
        self,
        caller: Caller,
        days: Annotated[int, Field(ge=1, le=3_660, description="how far ahead")] = 90,
    ) -> str:
        """List the events that are noted for the person, those without a date last."""
        if await self._household.is_off(caller):
            return "Memory is off in this chat, so events are not looked up here."
        found = await self._events.ahead(caller.person_id, asker_of(caller).group, days=days)
        if not found:
            return f"No event is noted within {days} days."
        zone = self._jobs.times.zone(caller.person_id)
        return listed([f"- {event_words(one, zone)}" for one in found])


def event_words(event: Event, zone: tzinfo) -> str:
    """`e5 Dentist: Thu 3 Dec 2026, 10:00 (Europe/Berlin)`, with its note."""
    if event.at is None:
        when = "no date"
    else:
        at = moment_words(event.at, zone)
        when = f"{at.partition(',')[0]}, all day" if event.all_day else f"{at} ({zone})"
    note = f" – {event.note}" if event.note else ""
    return f"{event.key} {event.name}: {when}{note}"
