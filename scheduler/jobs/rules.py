"""Rules of jobs: which may be kept, when they are due, and who may change what. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

from memory.records.errors import Permanent
from memory.records.jobs import OPERATOR, Asker, At, Due, Job, JobKind, MisfirePolicy, SetBy, When
from memory.records.schedule import JobChanges, due_words
from scheduler.clock.misfire import first_due, is_over, just_after
from scheduler.clock.recurrence import slot_of
from scheduler.clock.timetable import upcoming

NAME_CHARS_MAX = 80
TEXT_CHARS_MAX = 4_000
JOBS_MAX = 500
"""Of one person, those that are over aside."""

EVERY_S_MIN = 5 * 60
"""The shortest step between two runs of a job that asks a model or calls a tool."""

PACE_LOOKED_AT = 60
"""So many of the next due times are compared for that."""

NAG_S_MIN = 60
"""The shortest pause between two tellings of a reminder."""

BY_HAND = "by hand"
"""Why a job stands still that somebody paused."""

HEARTBEAT = "heartbeat"
"""The name of the job that looks at HEARTBEAT.md: no other has it."""

OF_SKILLS = "skill:"
"""How the names of the jobs of skills begin, and of no other."""

OF_EVENTS = "event-"
"""How the calls begin that made a reminder of an event."""

MADE_UP_WITHIN_S = 12 * 3_600
"""How late what runs again and again is made up for (SPEC §11)."""


class JobRefused(Permanent):
    """A job cannot be kept, or not be changed so; with what to do instead."""


class UnknownJob(JobRefused):
    """No job goes by this name, or several do."""


class NotYours(JobRefused):
    """The job is somebody else's."""


# --- who may what ---------------------------------------------------------------------------------


def is_for(job: Job, by: Asker) -> bool:
    """In a group others read along: there a job may be seen that is for it."""
    return not by.group or f"{job.deliver_to}:".startswith(f"{by.group}:")


def require_change(job: Job, done: str, by: Asker) -> None:
    """Raise JobRefused where this may not be `done` to a job by hand, or not by a model."""
    if by.is_model and done in {"moved", "changed"} and job.kind is not JobKind.MESSAGE:
        # What runs by itself was agreed to as it is.
        raise JobRefused(
            f"{job.key} is more than a reminder, and the person agreed to it as it is. Remove it "
            "and schedule it anew, which asks them; or they write "
            f"`/job {job.key} move …` or `/job {job.key} text …`"
        )
    is_kept_anew = done in {"moved", "changed"} or by != OPERATOR
    if job.kind is JobKind.HEARTBEAT and is_kept_anew:
        raise JobRefused(
            f"The heartbeat cannot be {done} so: `/heartbeat` on, off, now or why. Its times are "
            "in the settings ([heartbeat]), and its work is in HEARTBEAT.md."
        )
    if job.set_by is SetBy.SKILL and done != "stopped" and (is_kept_anew or job.enabled):
        raise JobRefused(
            f"{job.key} runs by the schedule of the skill {job.what.skill}, so it cannot be {done} "
            f"here: `hearthbot skills disable {job.what.skill}` ends it."
        )


def changed(
    job: Job, changes: JobChanges, *, by: Asker, now: datetime, others: Sequence[Job] = ()
) -> Job:
    """Return the job as somebody wants it; `others` are their other jobs, whose names are taken.
    Raise JobRefused."""
    new, time, text = job, changes.time, changes.text.strip()
    if text or changes.name or changes.missed or changes.quiet:
        require_change(job, "changed", by)
        if text and job.kind is JobKind.TOOL:
            raise JobRefused(f"{job.key} calls a tool and has no words of its own.")
        if len(text) > TEXT_CHARS_MAX:
            raise JobRefused(f"The words of a job have 1 to {TEXT_CHARS_MAX:,} characters.")
        new = replace(
            new,
            what=replace(job.what, text=text, outside=changes.outside) if text else job.what,
            name=free_name(named(changes.name), others) if changes.name else job.name,
            missed=changes.missed or job.missed,
            quiet=changes.quiet or job.quiet,
        )
    if time is not None:
        require_change(job, "moved", by)
        new = replace(new, when=time.when, max_runs=time.runs_max, expires_ms=time.expires_ms)
        new = going_on(new, require_due(new, now))
    if time is not None or changes.missed is not None:
        new = replace(new, missed_within_s=made_up_within_s(new.when, new.missed))
    if changes.paused is True and new.enabled:
        require_change(job, "stopped", by)
        new = replace(new, enabled=False, paused=BY_HAND)
    if changes.paused is False and not new.enabled:
        new = going_on(new, resumed_at(new, now))
    return new


# --- times ----------------------------------------------------------------------------------------


def require_due(job: Job, now: datetime) -> Due:
    """Return its first due time. Raise JobRefused for times at which it cannot be kept."""
    if job.kind is not JobKind.MESSAGE:
        dues = upcoming(job.when, after=now, n=PACE_LOOKED_AT)
        if any(late.at_ms - early.at_ms < EVERY_S_MIN * 1000 for early, late in pairwise(dues)):
            raise JobRefused("What asks a model or calls a tool runs every 5 minutes at most.")
    if job.nag_s is not None and not isinstance(job.when, At):
        raise JobRefused("Only what is due once can be repeated until it is done.")
    first = first_due(job.when, after=now)
    if first is None:
        raise JobRefused("That time is over.")
    return first


def next_dues(job: Job, *, n: int, after: datetime | None = None) -> Sequence[Due]:
    """Return the next due times of a job that is not over, the one that is set first, as often as
    it still runs; with `after`, those behind that moment. Raise ZoneUnknown, CronWrong."""
    if job.next is None:
        return ()
    left = n if job.max_runs is None else min(n, max(job.max_runs - job.runs, 1))
    if after is not None:
        found = upcoming(job.when, after=after, n=left)
    else:
        found = (job.next, *upcoming(job.when, after=just_after(job.next.at_ms), n=left - 1))
    return [due for due in found if not is_over(job, due)]


def resumed_at(job: Job, now: datetime) -> Due:
    """Return when it is due next, from now. Raise JobRefused where it is over."""
    if job.max_runs is not None and job.runs >= job.max_runs:
        raise JobRefused(f"{job.key} is over: it ran {job.runs} times, as often as wanted.")
    due: Due | None = None
    if not isinstance(job.when, At):
        due = first_due(job.when, after=now)
    elif job.next is not None and job.next.at_ms > to_ms(now):
        due = job.next
    elif job.next is not None or job.paused:
        # It stood still over its time, or failed and was stopped: it is due at once.
        slot = slot_of(job.when.moment, ZoneInfo(job.when.zone)).local
        at = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        due = Due(slot=f"{slot} resumed {at}", at_ms=to_ms(now))
    if due is None:
        raise JobRefused(f"{job.key} is over: its time was once.")
    if is_over(job, due):
        raise JobRefused(f"{job.key} is over: the day until which it was to run has passed.")
    return due


def going_on(job: Job, due: Due) -> Job:
    """Return the job as it runs again, from this due time on."""
    return replace(job, next=due, enabled=True, paused="", failures=0, not_before_ms=0)


def made_up_within_s(when: When, missed: MisfirePolicy) -> int | None:
    """Return how late a misfire is made up for: of what comes again and again half a day, unless
    somebody wants all that it missed, or to be asked; of what is due once without end."""
    if isinstance(when, At) or missed in {MisfirePolicy.ALL, MisfirePolicy.ASK}:
        return None
    return MADE_UP_WITHIN_S


def state_words(job: Job, zone: tzinfo) -> str:
    """Return `next Tue 1 Dec 2026, 17:00`, `over`, or why the job stands still."""
    if not job.enabled:
        return f"paused: {job.paused or BY_HAND}"
    return "over" if job.next is None else f"next {due_words(job.next, zone)}"


def was_moved(job: Job, told_s: int | None) -> bool:
    """Return whether a reminder was told for another date than it has by now."""
    return (
        told_s is not None
        and isinstance(job.when, At)
        and told_s != int(job.when.moment.timestamp())
    )


def later(now: datetime, delay: str, zone: ZoneInfo) -> datetime:
    """Return when something that was put off comes again: in minutes or an hour, or tomorrow at the
    time that the wall clock shows now."""
    if delay == "10m":
        return now + timedelta(minutes=10)
    if delay == "1h":
        return now + timedelta(hours=1)
    tomorrow = now.astimezone(zone).replace(tzinfo=None) + timedelta(days=1)
    return tomorrow.replace(tzinfo=zone).astimezone(now.tzinfo)


def to_ms(moment: datetime) -> int:
    """Return a moment in epoch milliseconds."""
    return int(moment.timestamp() * 1000)


# --- names ----------------------------------------------------------------------------------------


def named(text: str) -> str:
    """Return a name made of words: one line, not too long."""
    flat = re.sub(r"[^\w\s.,:;!?'’()&/-]", " ", " ".join(text.split()))
    flat = " ".join(flat.split()).strip(" .,:;-")
    if len(flat) > NAME_CHARS_MAX - 20:
        flat = f"{flat[: NAME_CHARS_MAX - 20].rstrip()}…"
    return flat or "job"


def free_name(name: str, others: Sequence[Job]) -> str:
    """Return the name, with a number behind it where another job has it, or only ours may."""
    taken = {one.name.casefold() for one in others} | {HEARTBEAT}
    if name.casefold().startswith(OF_SKILLS):
        name = f"{name[: len(OF_SKILLS) - 1]} {name[len(OF_SKILLS) :]}"
    if name.casefold() not in taken:
        return name
    numbers = (f"{name} {n}" for n in range(2, JOBS_MAX + 3))
    return next(one for one in numbers if one.casefold() not in taken)
