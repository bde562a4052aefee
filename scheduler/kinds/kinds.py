"""The kinds of jobs. `message` sends a fixed text, as a reminder is: it needs no model, and no
budget stops it. The others are turns: `agent` follows instructions, `skill` those of a skill,
`tool` is one call that was agreed to when the job was made, `heartbeat` looks at a list.

Each prepares what is sent or run; who has taken the slot hands it on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from agent.skills.skill import SkillSet, SkillState
from agent.tools.toolbox import MAKES_JOBS
from memory.records.errors import Permanent
from memory.records.jobs import At, Due, Job, JobKind, SetBy, SlotState, Taking, list_name
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    JobOrder,
    Origin,
    Role,
    TurnInput,
)
from memory.records.ports import NewRun
from memory.records.rows import Button, ButtonRows, NewMessage, Person
from scheduler.clock.misfire import LATE_S
from scheduler.jobs.skill_jobs import usable_skill
from scheduler.kinds.checks import Check
from scheduler.notify.delivery import HoursOfDay, People, joins_note
from scheduler.notify.findings import has_tasks

LIST_CHARS_MAX = 20_000


class TargetGone(Permanent):
    """The person of a job is not let in any more, or its chat is not theirs."""


def require_target(people: People, job: Job) -> Person:
    """Return the person. Raise TargetGone."""
    found = people.person(job.person_id)
    if found is None:
        raise TargetGone("its person is not let in any more")
    # Looked at when it is due, not when it was made: rights may have been taken since.
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


# --- what a model works on -----------------------------------------------------------------------


async def read_list(workspace: Path, agent: str) -> str:
    """Return the list of an agent's heartbeat; empty where there is none."""
    path = workspace / list_name(agent)
    try:
        text = await asyncio.to_thread(path.read_text, "utf-8-sig", "replace")
    except OSError:
        return ""
    return text[:LIST_CHARS_MAX]


class TurnKind:
    """Implements `scheduler.clock.timetable.Kind` for what is a turn: a person's own instructions,
    those of a skill, one call without a model, or a look at a list."""

    def __init__(
        self,
        people: People,
        shelf: Callable[[], Awaitable[SkillSet]],
        workspace: Path,
        *,
        start_conversation: Callable[[str], Awaitable[ConversationId]],
    ) -> None:
        """The entries of a run are kept in a conversation of its own; the lists of heartbeats lie
        in the `workspace`."""
        self._people = people
        self._shelf = shelf
        self._workspace = workspace
        self._start_conversation = start_conversation

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Raise SkillGone, TargetGone, StorageError."""
        turn = await self.turn(job, due)
        order = turn.job
        assert order is not None, "it was made for one"
        turn = replace(turn, conversation=await self._start_conversation(order.lane))
        run = NewRun(
            run_id=order.run_id,
            lane=order.lane,
            by=turn.person_id,
            payload=turn.to_json(),
            steers=False,
        )
        return Taking(job_id=job.id, due=due, next=None, state=SlotState.TAKEN, run=run)

    async def turn(
        self, job: Job, due: Due, *, states: Sequence[SkillState] = (SkillState.USABLE,)
    ) -> TurnInput:
        """Return the turn, which has no conversation yet; `states` are those in which a skill may
        be. Raise SkillGone, TargetGone."""
        person = require_target(self._people, job)
        what, text, lane = job.what, job.what.text, job.deliver_to
        order = JobOrder(job_id=job.id, slot=due.slot, name=job.name)
        if job.kind is JobKind.TOOL:
            order = replace(order, tools=(what.tool,), call=(what.tool, what.arguments))
            text = text or what.tool
        elif job.kind is JobKind.HEARTBEAT:
            order = replace(order, is_heartbeat=True)
            text = await read_list(self._workspace, job.agent)
        elif job.kind is JobKind.SKILL:
            skill = usable_skill(await self._shelf(), what.skill, states)
            text = f"{skill.text.strip()}\n\n{text.strip()}".strip()
            tools = (*skill.required_tools, "nothing_to_report") if skill.required_tools else None
            order = replace(
                order,
                full_context=skill.full_context,
                tools=() if skill.no_tools else tools,
                steps_max=skill.max_steps or 0,
                makes_jobs=bool(MAKES_JOBS & set(skill.required_tools)),
            )
        return TurnInput(
            message=IncomingMessage(
                address=Address.parse(lane),
                message_id="",
                sender_id="",
                text=text,
                is_group=self._people.is_group(lane),
            ),
            conversation=ConversationId(""),
            person_id=person.id,
            role=person.role,
            person_name=person.name,
            time_zone=person.time_zone,
            language=person.language,
            language_hint=person.language_hint,
            origin=Origin.HEARTBEAT if order.is_heartbeat else Origin.JOB,
            job=order,
            agent=job.agent if order.is_heartbeat else self._people.agent_at(lane),
        )


class HeartbeatKind:
    """Implements `scheduler.clock.timetable.Kind`. With nothing to look at, no model is asked."""

    def __init__(
        self,
        turns: TurnKind,
        workspace: Path,
        beat: Callable[[str, str, str], Awaitable[None]],
        *,
        fresh: Callable[[], str],
        local: Callable[[Job], datetime],
        hours: HoursOfDay | None = None,
        checks: Sequence[Check] = (),
    ) -> None:
        """`beat` keeps what came of a heartbeat: of which agent, what, and why. `hours` are those
        in which it looks; None: always. `fresh` is a new list in place of one that is missing.
        `local` is now, by the wall clock of the job's person."""
        self._turns = turns
        self._workspace = workspace
        self._beat = beat
        self._fresh = fresh
        self._local = local
        self._hours = hours
        self._checks = tuple(checks)

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Raise TargetGone, StorageError."""
        if skipped := await self._why_not(job):
            await self._beat(job.agent, "skipped", skipped)
            return Taking(job_id=job.id, due=due, next=None, state=SlotState.SKIPPED, note=skipped)
        await self._beat(job.agent, "began", "the list holds something to look at")
        return await self._turns(job, due, late_s=late_s)

    async def _why_not(self, job: Job) -> str:
        local = self._local(job)
        if self._hours is not None and not self._hours.holds(local, local.tzinfo or UTC):
            return "outside of the active hours"
        path = self._workspace / list_name(job.agent)
        if not await asyncio.to_thread(path.exists):
            await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            await asyncio.to_thread(path.write_text, self._fresh(), "utf-8")
        if not has_tasks(await read_list(self._workspace, job.agent)):
            return f"{list_name(job.agent)} holds nothing to look at"
        # Each is asked, so that all of them remember what they saw.
        changed = [check.name for check in self._checks if await check()]
        return "no check found anything new" if self._checks and not changed else ""
