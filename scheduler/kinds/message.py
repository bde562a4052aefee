"""The kind `message`: a fixed text, as a reminder is. Needs no model, and no budget stops it."""

from __future__ import annotations

from datetime import datetime, tzinfo

from memory.records.errors import Permanent
from memory.records.jobs import Due, Job, SetBy, SlotState, Taking
from memory.records.messages import Role
from memory.records.recurrence import At
from memory.records.rows import Button, ButtonRows, NewMessage, Person
from scheduler.clock.misfire import LATE_S
from scheduler.notify.delivery import People, joins_note


class TargetGone(Permanent):
    """The person of a job is not let in any more, or its chat is not theirs."""


def require_target(people: People, job: Job) -> Person:
    """Return the person. Raise TargetGone."""
    found = people.person(job.person_id)
    if found is None:
        raise TargetGone("its person is not let in any more")
    if found.role is Role.GUEST:
        raise TargetGone("its person is a guest now, and guests have no jobs")
    if not people.may_hear(found.id, job.deliver_to):
        raise TargetGone(f"{job.deliver_to} is no chat of {found.name or found.id} any more")
    return found


PRESSES = "job"
"""The prefix of a reminder's buttons (`bot.inbox.commands.Press`)."""

SNOOZES = (("10m", "in 10 min"), ("1h", "in 1 h"), ("1d", "tomorrow"))


class MessageKind:
    """Implements `scheduler.clock.timetable.Kind`."""

    def __init__(self, people: People) -> None:
        self._people = people

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """The text, marked when it is late; with buttons where a person set it for itself.

        Raises TargetGone.
        """
        require_target(self._people, job)
        text = job.what.text
        if late_s > LATE_S:
            text = f"{text}\n\n_({late_words(due, late_s, self._people.zone(job.person_id))})_"
        buttons = reminder_buttons(job, due) if job.set_by is SetBy.PERSON else ()
        message = NewMessage(lane=job.deliver_to, text=text, buttons=buttons)
        return Taking(
            job_id=job.id,
            due=due,
            next=None,
            state=SlotState.TOLD,
            message=message,
            joins=joins_note(job),
            tainted=job.what.outside or self._people.is_group(job.deliver_to),
        )


def reminder_buttons(job: Job, due: Due) -> ButtonRows:
    """Done, and later. Each says in epoch seconds for which date it stands: what is due once may
    be moved to another one while the message is still there."""
    when = job.when
    date_s = int(when.moment.timestamp()) if isinstance(when, At) else due.at_ms // 1000

    def data(word: str) -> str:
        return f"{PRESSES}:{job.id}:{word}:{date_s}"

    later = tuple(Button(label=label, data=data(word)) for word, label in SNOOZES)
    return ((Button(label="Done", data=data("done"), style="good"),), later)


def late_words(due: Due, late_s: int, zone: tzinfo) -> str:
    """`late by 2 h: it was due Mon 1 Jun, 09:00`."""
    at = datetime.fromtimestamp(due.at_ms / 1000, zone)
    return f"late by {spell_s(late_s)}: it was due {at:%a} {at.day} {at:%b}, {at:%H:%M}"


def spell_s(seconds: int) -> str:
    """Roughly, in the largest unit that tells something."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size or (seconds >= size and seconds % size < size // 4):
            return f"{round(seconds / size)} {unit}"
    return f"{seconds} s"
