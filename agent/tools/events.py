"""The tools for events: noted with their reminders, and listed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agent.events import Agenda, Occasion, OccasionWish, Remind
from agent.jobbook import JobBook, due_words, moment_words
from agent.tools.arguments import Arguments
from agent.tools.household import Household
from agent.tools.times import Readings, call_of, read_rows, require_member, scope_of
from agent.tools.tool import Caller, Effect, Needs, ToolCard, Trust

NAME_CHARS_MAX = 120
NOTE_CHARS_MAX = 1_000
LISTED_MAX = 50

REMINDERS = {
    "none": (),
    "before": (Remind.BEFORE,),
    "on": (Remind.ON,),
    "both": (Remind.BEFORE, Remind.ON),
}
_SPOKEN = {Remind.BEFORE: "the day before", Remind.ON: "on the day"}


class RecordArguments(Arguments):
    """Of record_event."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)]
    when: Annotated[
        str,
        Field(
            default="",
            max_length=300,
            description="in the person's words, or ISO; a day without a time lasts all day; empty: "
            "no date",
        ),
    ]
    note: Annotated[str, Field(default="", max_length=NOTE_CHARS_MAX)]
    remind: Annotated[
        Literal["none", "before", "on", "both"],
        Field(
            default="none",
            description="before: the day before at 09:00; on: at 09:00 of an all-day event, an "
            "hour before one with a time",
        ),
    ]


class ListEventsArguments(Arguments):
    """Of list_events."""

    days: Annotated[int, Field(default=90, ge=1, le=3_660, description="how far ahead")]


class RecordEvent:
    """Notes something that will happen, with reminders of it."""

    card = ToolCard(
        name="record_event",
        description=(
            "Note an event of the person (appointment, birthday, deadline), with or without a "
            "date, and reminders of it. For a mere reminder use remind_me."
        ),
        arguments=RecordArguments,
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="noting it …",
    )

    def __init__(
        self, agenda: Agenda, book: JobBook, household: Household, readings: Readings
    ) -> None:
        self._agenda = agenda
        self._book = book
        self._household = household
        self._readings = readings

    def needs(self, arguments: RecordArguments, caller: Caller) -> Needs:
        """See SaysNeeds: what is read, for a turn in which it is asked about."""
        rows = [f"event: {arguments.name}"]
        if arguments.when.strip():
            time = self._readings.of(arguments, caller, arguments.when)
            rows += read_rows(time, self._book.zone(caller.person_id))
        return Needs(shows=(*rows, f"goes to: {caller.address.key}"))

    async def run(self, arguments: RecordArguments, caller: Caller) -> str:
        """What was noted, and when it reminds."""
        require_member(caller)
        await self._household.check_writable(caller)
        words = arguments.when.strip()
        time = self._readings.of(arguments, caller, words) if words else None
        recorded = await self._agenda.record(
            OccasionWish(
                person_id=caller.person_id,
                name=" ".join(arguments.name.split()),
                when=words,
                time=time,
                deliver_to=caller.address.key,
                note=arguments.note.strip(),
                remind=REMINDERS[arguments.remind],
                scope=scope_of(caller),
                run_id=call_of(arguments, caller, self.card.name),
                outside=caller.tainted,
            )
        )
        if time is not None:
            await self._household.noted(recorded.occasion, time, caller.address.key)
        zone = self._book.zone(caller.person_id)
        lines = [f"Noted: {event_words(recorded.occasion, self._book)}."]
        for job in recorded.reminders:
            at = due_words(job.next, zone) if job.next is not None else "was sent already"
            lines.append(f"Reminder {job.key}: {at} ({zone}).")
        lines += [f"No reminder {_SPOKEN[one]}: that time is over." for one in recorded.too_late]
        return "\n".join(lines)


class ListEvents:
    """What is noted ahead."""

    card = ToolCard(
        name="list_events",
        description="List the events that are noted for the person, those without a date last.",
        arguments=ListEventsArguments,
        group="schedule",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
        status="looking at the calendar …",
    )

    def __init__(self, agenda: Agenda, book: JobBook, household: Household) -> None:
        self._agenda = agenda
        self._book = book
        self._household = household

    async def run(self, arguments: ListEventsArguments, caller: Caller) -> str:
        """One line each."""
        if await self._household.is_off(caller):
            return "Memory is off in this chat, so events are not looked up here."
        found = await self._agenda.ahead(caller.person_id, scope_of(caller), days=arguments.days)
        if not found:
            return f"No event is noted within {arguments.days} days."
        lines = [f"- {event_words(one, self._book)}" for one in found[:LISTED_MAX]]
        if len(found) > LISTED_MAX:
            lines.append(f"… and {len(found) - LISTED_MAX} more")
        return "\n".join(lines)


def event_words(occasion: Occasion, book: JobBook) -> str:
    """`e5 Dentist: Thu 3 Dec 2026, 10:00 (Europe/Berlin)`, with its note."""
    new = occasion.new
    zone = book.zone(new.person_id)
    if new.at is None:
        when = "no date"
    else:
        at = moment_words(new.at, zone)
        when = f"{at.partition(',')[0]}, all day" if new.all_day else f"{at} ({zone})"
    note = f" – {new.note}" if new.note else ""
    return f"{occasion.key} {new.name}: {when}{note}"
