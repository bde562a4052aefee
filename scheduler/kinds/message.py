"""The kind `message`: a fixed text, as a reminder is. Needs no model, and no budget stops it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Protocol

from memory.records.errors import Permanent
from memory.records.job_specs import At
from memory.records.jobs import Due, Job, SetBy, SlotState, Taking
from memory.records.messages import PersonId, Role
from memory.records.rows import Button, ButtonRows, NewMessage
from scheduler.clock.misfire import LATE_S
from scheduler.notify.delivery import joins_note

# --- target -------------------------------------------------------------------------------------
#
# Whom a job is for, looked at again each time it is due: people go, and chats change hands.


class TargetGone(Permanent):
    """The person of a job is not let in any more, or its chat is not theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearer:
    """A person as a job needs them. Zone and languages may be empty
    (`memory.records.rows.Person`)."""

    id: PersonId
    role: Role
    name: str = ""
    time_zone: str = ""
    language: str = ""
    language_hint: str = ""


class Hearing(Protocol):
    """Who is let in, and which chats are whose."""

    def person(self, person_id: PersonId) -> Hearer | None:
        """None: nobody is known by this id."""

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        """Whether this chat is (still) one that this person's things may go to."""

    def is_group(self, lane: str) -> bool:
        """Whether others read along there."""

    def agent_at(self, lane: str) -> str:
        """The name of the agent that answers there."""


def require_target(hearing: Hearing, job: Job) -> Hearer:
    """The person. Raises TargetGone."""
    found = hearing.person(job.new.person_id)
    if found is None:
        raise TargetGone("its person is not let in any more")
    if found.role is Role.GUEST:
        raise TargetGone("its person is a guest now, and guests have no jobs")
    if not hearing.may_hear(found.id, job.new.deliver_to):
        raise TargetGone(f"{job.new.deliver_to} is no chat of {found.name or found.id} any more")
    return found


PRESSES = "job"
"""The prefix of a reminder's buttons (`bot.inbox.buttons.Press`)."""

SNOOZES = (("10m", "in 10 min"), ("1h", "in 1 h"), ("1d", "tomorrow"))


class MessageKind:
    """Implements `scheduler.clock.timetable.Kind`."""

    def __init__(self, hearing: Hearing, zone: Callable[[PersonId], tzinfo]) -> None:
        self._hearing = hearing
        self._zone = zone

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """The text, marked when it is late; with buttons where a person set it for itself.

        Raises TargetGone.
        """
        require_target(self._hearing, job)
        text = job.new.what.text
        if late_s > LATE_S:
            text = f"{text}\n\n_({late_words(due, late_s, self._zone(job.new.person_id))})_"
        buttons = reminder_buttons(job, due) if job.new.set_by is SetBy.PERSON else ()
        message = NewMessage(lane=job.new.deliver_to, text=text, buttons=buttons)
        return Taking(
            job_id=job.id,
            due=due,
            next=None,
            state=SlotState.TOLD,
            message=message,
            joins=joins_note(job),
            tainted=job.new.what.outside or self._hearing.is_group(job.new.deliver_to),
        )


def reminder_buttons(job: Job, due: Due) -> ButtonRows:
    """Done, and later. Each says in epoch seconds for which date it stands: what is due once may
    be moved to another one while the message is still there."""
    when = job.new.when
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
