"""The tools for events: noted with their reminders, and listed."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated, Literal

from pydantic import Field

from agent.tools.groups.memory import PersonContext
from agent.tools.tool import Caller, Effect, Needs, tool
from memory.records.schedule import Event, Remind, due_words, moment_words
from scheduler.jobs.events import EventService
from scheduler.jobs.service import JobService
from scheduler.jobs.tool_calls import CallTimes, asker_of, call_of, listed

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
            words=words,
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
