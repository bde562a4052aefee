"""Misfires: due times that passed while nothing ran; and the next one from here. Pure; called by
the timetable, and by what looks ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from types import MappingProxyType

from memory.records.jobs import (
    COUNTED_MAX,
    MADE_UP_MAX,
    At,
    Due,
    Job,
    MisfirePolicy,
    Misfires,
    SlotState,
    Taking,
    When,
)
from scheduler.clock.recurrence import slots

LATE_S = 60
"""So late a run may be and still count as on time (case SC-07)."""

NAGS_MAX = 30
"""So often a reminder is repeated; then nobody seems to be there."""

PAUSES_S = (60, 5 * 60, 15 * 60, 60 * 60)
"""How long a job waits after the first failure in a row, the second, …; the last one for all that
follow (SPEC §11)."""

_WIDER = 4
_FIRST_LOOK_BACK = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedDues:
    """What passed of one job: the first due time, at most MADE_UP_MAX of the newest (one at least),
    and how many there are, COUNTED_MAX standing for that many or more."""

    first: Due
    newest: tuple[Due, ...]
    count: int

    @property
    def last(self) -> Due:
        """The newest one."""
        return self.newest[-1]


def due_of(local: str, at: datetime) -> Due:
    """A due time of a slot."""
    return Due(slot=local, at_ms=int(at.timestamp() * 1000))


def moment(ms: int) -> datetime:
    """Epoch milliseconds as a moment in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def just_after(ms: int) -> datetime:
    """Return the end of a millisecond: a due time within it, cut to its beginning, is over."""
    return moment(ms) + timedelta(microseconds=999)


def first_due(when: When, *, after: datetime) -> Due | None:
    """Return the first due time later than an aware moment; None when there is none.

    Raise ZoneUnknown, CronWrong.
    """
    return next((due_of(one.local, one.at) for one in slots(when, after=after)), None)


def has_run_enough(job: Job, runs: int) -> bool:
    """Return whether so many runs are all that a job is to have."""
    return job.max_runs is not None and runs >= job.max_runs


def is_over(job: Job, due: Due) -> bool:
    """Return whether a job has expired by this due time."""
    return job.expires_ms is not None and due.at_ms >= job.expires_ms


def passed(job: Job, now_ms: int) -> PassedDues:
    """Return the due times from the next one up to now, as far as the job has not expired by them.

    Raise ZoneUnknown, CronWrong.
    """
    assert job.next is not None, "it is due"
    first = job.next
    if isinstance(job.when, At) or job.nag_s is not None:
        return PassedDues(first=first, newest=(first,), count=1)
    until_ms = now_ms
    if job.expires_ms is not None:
        until_ms = min(until_ms, job.expires_ms - 1)
    found = [first, *islice(_between(job.when, first.at_ms, until_ms), COUNTED_MAX - 1)]
    if len(found) < COUNTED_MAX:
        return PassedDues(first=first, newest=tuple(found[-MADE_UP_MAX:]), count=len(found))
    return PassedDues(
        first=first, newest=_newest(job.when, first.at_ms, until_ms), count=COUNTED_MAX
    )


_DONE: Mapping[MisfirePolicy, SlotState] = MappingProxyType(
    {
        MisfirePolicy.SKIP: SlotState.SKIPPED,
        MisfirePolicy.ASK: SlotState.ASKED,
        MisfirePolicy.ALL: SlotState.TAKEN,
        MisfirePolicy.ONCE: SlotState.TAKEN,
    }
)
"""What becomes of due times that were missed, by the rule of their job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a look at a job that is due finds: which due times are to be seen to, and by which rule;
    `missed` where they passed while nothing ran."""

    rule: MisfirePolicy
    dues: tuple[Due, ...]
    missed: Misfires | None = None


def look_at(job: Job, now_ms: int) -> Look:
    """Return what is to be done about a job whose next due time has come. Raise ZoneUnknown,
    CronWrong."""
    found = passed(job, now_ms)
    if (now_ms - found.first.at_ms) // 1000 <= LATE_S:
        # Late by a minute there may be two: each is in time, and none is left out.
        return Look(rule=MisfirePolicy.ALL, dues=found.newest)
    if (now_ms - job.not_before_ms) // 1000 <= LATE_S:
        # It waited after a failure: that is no time in which nothing ran.
        if job.missed is MisfirePolicy.ALL:
            return Look(rule=MisfirePolicy.ALL, dues=found.newest)
        return Look(rule=MisfirePolicy.ONCE, dues=(found.last,))
    # What its own rule says, as far as that makes up for what is so late (SPEC §11).
    within, late_s = job.missed_within_s, (now_ms - found.last.at_ms) // 1000
    rule = MisfirePolicy.SKIP if within is not None and late_s > within else job.missed
    missed = Misfires(
        job_id=job.id, count=found.count, first=found.first, last=found.last, done=_DONE[rule]
    )
    # Of all others the last one stands for those before it: news of yesterday is told once.
    dues = found.newest if rule is MisfirePolicy.ALL else (found.last,)
    return Look(rule=rule, dues=dues, missed=missed)


# --- how they are taken ------------------------------------------------------------------------


def nothing(job: Job, due: Due, *, next: Due | None, note: str) -> Taking:
    """A due time that is left out."""
    return Taking(job_id=job.id, due=due, next=next, state=SlotState.SKIPPED, note=note)


def failing(job: Job, due: Due, next_due: Due | None, missed: Misfires | None, why: str) -> Taking:
    """A due time that could not be run, and why."""
    left_out = nothing(job, due, next=next_due, note=why)
    return replace(left_out, state=SlotState.FAILED, missed=missed)


def moved(job: Job, due: Due) -> Due:
    """Its own slot for a due time whose slot is taken by one of another zone: the job moved."""
    zone = job.when.zone
    return due if due.slot.endswith(f" {zone}") else replace(due, slot=f"{due.slot} {zone}")


# --- what comes next -----------------------------------------------------------------------------


def due_after(job: Job, due: Due, *, now_ms: int, ran: bool) -> Due | None:
    """Return the next due time after this one that is not over yet; never one before it, wherever
    the clock was set to. `ran`: this one counts among the runs of the job.

    Raise ZoneUnknown, CronWrong.
    """
    if job.nag_s is not None:  # once more, until somebody says that it is done
        number = nags_of(due) + 1
        slot = f"{due.slot.partition(' again ')[0]} again {number}"
        next_nag = Due(slot=slot, at_ms=now_ms + job.nag_s * 1000)
        return next_nag if number <= NAGS_MAX else None
    if has_run_enough(job, job.runs + ran):
        return None
    found = first_due(job.when, after=just_after(max(due.at_ms, now_ms)))
    return None if found is None or is_over(job, found) else found


def due_again(job: Job, now_ms: int) -> Due | None:
    """An earlier next due time of a job, now that the clock was set back; None: it stands.

    What was run is in the ledger, so nothing of it runs twice. Raises ZoneUnknown, CronWrong.
    """
    if isinstance(job.when, At) and (job.next is None or job.nag_s is None):
        return None
    if job.next is None:
        # It may have expired on a day which is ahead again.
        if job.expires_ms is None or job.expires_ms <= now_ms or has_run_enough(job, job.runs):
            return None
        found = first_due(job.when, after=moment(now_ms))
        return None if found is None or is_over(job, found) else found
    if job.nag_s is not None:
        is_waiting = " again " in job.next.slot and job.next.at_ms > now_ms + job.nag_s * 1000
        sooner = Due(slot=job.next.slot, at_ms=now_ms + job.nag_s * 1000)
        return sooner if is_waiting else None
    found = first_due(job.when, after=moment(now_ms))
    return found if found is not None and found.at_ms < job.next.at_ms else None


def nags_of(due: Due) -> int:
    """Return how often a reminder was repeated by this due time."""
    number = due.slot.partition(" again ")[2].partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def _between(when: When, after_ms: int, until_ms: int) -> Iterator[Due]:
    """After the one, up to the other."""
    dues = (due_of(one.local, one.at) for one in slots(when, after=just_after(after_ms)))
    return takewhile(lambda due: due.at_ms <= until_ms, dues)


def _newest(when: When, after_ms: int, until_ms: int) -> tuple[Due, ...]:
    """Return the newest ones, looked for from the end: a job of every minute has half a million a
    year."""
    back = _FIRST_LOOK_BACK
    while True:
        since_ms = max(after_ms, until_ms - int(back.total_seconds() * 1000))
        found = list(_between(when, since_ms, until_ms))
        if len(found) >= MADE_UP_MAX or since_ms == after_ms:
            return tuple(found[-MADE_UP_MAX:])
        back *= _WIDER
