"""The kinds that a model works on: `agent` follows instructions, `skill` those of a skill, `tool`
is one call that was agreed to when the job was made, `heartbeat` looks at a list.

Each makes the turn; who has taken the slot hands it to the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from agent.policy.tool_access import MAKES_JOBS
from memory.records.errors import Permanent
from memory.records.jobs import Due, Job, SlotState, Taking, list_name
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    JobOrder,
    Origin,
    TurnInput,
)
from memory.records.ports import NewRun
from scheduler.kinds.message import Hearing, require_target
from scheduler.notify.trivial import has_tasks


class SkillGone(Permanent):
    """A skill of a job cannot be used."""


class OpensConversations(Protocol):
    """Where the entries of a run are kept."""

    async def start_new(self, lane: str) -> ConversationId: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillWork:
    """What of a skill its job needs."""

    text: str
    full_context: bool = False
    no_tools: bool = False
    required_tools: tuple[str, ...] = ()
    max_steps: int = 0


class Skills(Protocol):
    """The skills that there are."""

    async def work(self, name: str) -> SkillWork:
        """Raises SkillGone, with a sentence, for one that is not there or not to be used."""


class Turns:
    """Makes the turn of a job."""

    def __init__(self, hearing: Hearing, conversations: OpensConversations) -> None:
        self._hearing = hearing
        self._conversations = conversations

    async def taking(self, job: Job, due: Due, text: str, order: JobOrder) -> Taking:
        """Raises TargetGone, StorageError."""
        person = require_target(self._hearing, job)
        lane = job.new.deliver_to
        turn = TurnInput(
            message=IncomingMessage(
                address=Address.parse(lane),
                message_id="",
                sender_id="",
                text=text,
                is_group=self._hearing.is_group(lane),
            ),
            conversation=await self._conversations.start_new(order.lane),
            person_id=person.id,
            role=person.role,
            person_name=person.name,
            time_zone=person.time_zone,
            language=person.language,
            language_hint=person.language_hint,
            origin=Origin.HEARTBEAT if order.is_heartbeat else Origin.JOB,
            job=order,
            agent=job.new.agent if order.is_heartbeat else self._hearing.agent_at(lane),
        )
        run = NewRun(
            run_id=order.run_id,
            lane=order.lane,
            by=person.id,
            payload=turn.to_json(),
            steers=False,
        )
        return Taking(job_id=job.id, due=due, next=None, state=SlotState.TAKEN, run=run)


class AgentKind:
    """Implements `scheduler.clock.timetable.Kind`: the instructions are the person's own."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Raises TargetGone, StorageError."""
        order = JobOrder(job_id=job.id, slot=due.slot, name=job.new.name)
        return await self._turns.taking(job, due, job.new.what.text, order)


class SkillKind:
    """Implements `scheduler.clock.timetable.Kind`: the instructions of a skill, with what it asks
    for."""

    def __init__(self, turns: Turns, skills: Skills) -> None:
        self._turns = turns
        self._skills = skills

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Raises SkillGone, TargetGone, StorageError."""
        work = await self._skills.work(job.new.what.skill)
        tools: tuple[str, ...] | None = work.required_tools or None
        if work.no_tools:
            tools = ()
        elif tools is not None:
            tools = (*tools, "nothing_to_report")
        order = JobOrder(
            job_id=job.id,
            slot=due.slot,
            name=job.new.name,
            full_context=work.full_context,
            tools=tools,
            steps_max=work.max_steps,
            makes_jobs=bool(MAKES_JOBS & set(work.required_tools)),
        )
        extra = job.new.what.text.strip()
        text = f"{work.text}\n\n{extra}" if extra else work.text
        return await self._turns.taking(job, due, text, order)


class ToolKind:
    """Implements `scheduler.clock.timetable.Kind`: one call, without a model."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Raises TargetGone, StorageError."""
        what = job.new.what
        order = JobOrder(
            job_id=job.id,
            slot=due.slot,
            name=job.new.name,
            tools=(what.tool,),
            call=(what.tool, what.arguments),
        )
        return await self._turns.taking(job, due, what.text or what.tool, order)


# --- the heartbeat -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveHours:
    """From one minute of the day up to another; equal ones are all day."""

    from_minute: int = 0
    to_minute: int = 0

    def holds(self, local: datetime) -> bool:
        """Of a moment by the clock on the wall."""
        minute = local.hour * 60 + local.minute
        if self.from_minute == self.to_minute:
            return True
        if self.from_minute < self.to_minute:
            return self.from_minute <= minute < self.to_minute
        return minute >= self.from_minute or minute < self.to_minute


class Check(Protocol):
    """A cheap look at whether a heartbeat is worth a model call."""

    @property
    def name(self) -> str: ...

    async def __call__(self) -> bool:
        """Whether something has changed since the last time it said so. Raises AssistantError."""


class KeepsBeats(Protocol):
    """The last heartbeats, for who asks why."""

    async def beat(self, agent: str, outcome: str, why: str) -> None: ...


class HeartbeatKind:
    """Implements `scheduler.clock.timetable.Kind`. With nothing to look at, no model is asked."""

    def __init__(
        self,
        turns: Turns,
        workspace: Path,
        beats: KeepsBeats,
        *,
        fresh: Callable[[], str],
        local: Callable[[Job], datetime],
        hours: ActiveHours,
        checks: Sequence[Check] = (),
    ) -> None:
        """The lists lie in the `workspace`; `fresh` is a new one in place of one that is missing.
        `local` is now on the wall of the job's person."""
        self._turns = turns
        self._workspace = workspace
        self._beats = beats
        self._fresh = fresh
        self._local = local
        self._hours = hours
        self._checks = tuple(checks)

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Raises TargetGone, StorageError."""
        skipped = await self._why_not(job)
        if isinstance(skipped, str):
            await self._beats.beat(job.new.agent, "skipped", skipped)
            return Taking(job_id=job.id, due=due, next=None, state=SlotState.SKIPPED, note=skipped)
        text = await asyncio.to_thread(self._read, job.new.agent)
        order = JobOrder(job_id=job.id, slot=due.slot, name=job.new.name, is_heartbeat=True)
        await self._beats.beat(job.new.agent, "began", "the list holds something to look at")
        return await self._turns.taking(job, due, text, order)

    async def _why_not(self, job: Job) -> str | None:
        if not self._hours.holds(self._local(job)):
            return "outside of the active hours"
        if not has_tasks(await asyncio.to_thread(self._read, job.new.agent)):
            return f"{list_name(job.new.agent)} holds nothing to look at"
        if not self._checks:
            return None
        changed = [check.name for check in self._checks if await check()]
        return None if changed else "no check found anything new"

    def _read(self, agent: str) -> str:
        path = self._workspace / list_name(agent)
        try:
            return path.read_text(encoding="utf-8-sig", errors="replace")[:LIST_CHARS_MAX]
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._fresh(), encoding="utf-8")
            return ""
        except OSError:
            return ""


LIST_CHARS_MAX = 20_000
