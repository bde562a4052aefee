"""The kinds that a model works on: `agent` follows instructions, `skill` those of a skill, `tool`
is one call that was agreed to when the job was made, `heartbeat` looks at a list.

Each makes the turn; who has taken the slot hands it to the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent.skills.skill import Skill, SkillSet, SkillState
from agent.tools.toolbox import MAKES_JOBS
from memory.records.errors import Permanent
from memory.records.jobs import Due, Job, JobKind, SlotState, Taking, list_name
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    JobOrder,
    Origin,
    TurnInput,
)
from memory.records.ports import NewRun
from scheduler.kinds.checks import Check
from scheduler.kinds.message import require_target
from scheduler.notify.delivery import HoursOfDay, People
from scheduler.notify.trivial import has_tasks


class SkillGone(Permanent):
    """A skill of a job cannot be used."""


def usable_skill(shelf: SkillSet, name: str) -> Skill:
    """Return a skill that a job may follow. Raise SkillGone."""
    skill = shelf.get(name)
    if skill is None:
        raise SkillGone(f"there is no skill {name!r} any more")
    if skill.state is not SkillState.USABLE:
        raise SkillGone(f"the skill {name} is {skill.state.value}: hearthbot skills show {name}")
    return skill


class TurnKind:
    """Implements `scheduler.clock.timetable.Kind` for what is a turn: a person's own instructions,
    those of a skill, or one call without a model."""

    def __init__(
        self,
        people: People,
        start_conversation: Callable[[str], Awaitable[ConversationId]],
        skill: Callable[[str], Awaitable[Skill]],
    ) -> None:
        """The entries of a run are kept in a conversation of its own. `skill` raises SkillGone for
        one that is not there, or not to be used."""
        self._people = people
        self._start_conversation = start_conversation
        self._skill = skill

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Raise SkillGone, TargetGone, StorageError."""
        what, text = job.what, job.what.text
        order = JobOrder(job_id=job.id, slot=due.slot, name=job.name)
        if job.kind is JobKind.TOOL:
            order = replace(order, tools=(what.tool,), call=(what.tool, what.arguments))
            text = text or what.tool
        elif job.kind is JobKind.SKILL:
            skill = await self._skill(what.skill)
            text = f"{skill.text.strip()}\n\n{text.strip()}".strip()
            tools = (*skill.required_tools, "nothing_to_report") if skill.required_tools else None
            order = replace(
                order,
                full_context=skill.full_context,
                tools=() if skill.no_tools else tools,
                steps_max=skill.max_steps or 0,
                makes_jobs=bool(MAKES_JOBS & set(skill.required_tools)),
            )
        return await self.taking(job, due, text, order)

    async def taking(self, job: Job, due: Due, text: str, order: JobOrder) -> Taking:
        """Raise TargetGone, StorageError."""
        person = require_target(self._people, job)
        lane = job.deliver_to
        turn = TurnInput(
            message=IncomingMessage(
                address=Address.parse(lane),
                message_id="",
                sender_id="",
                text=text,
                is_group=self._people.is_group(lane),
            ),
            conversation=await self._start_conversation(order.lane),
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
        run = NewRun(
            run_id=order.run_id,
            lane=order.lane,
            by=person.id,
            payload=turn.to_json(),
            steers=False,
        )
        return Taking(job_id=job.id, due=due, next=None, state=SlotState.TAKEN, run=run)


# --- the heartbeat -------------------------------------------------------------------------------


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
        """The lists lie in the `workspace`. `beat` keeps what came of a heartbeat: of which agent,
        what, and why. `hours` are those in which it looks; None: always. `fresh` is a new list in
        place of one that is missing. `local` is now, by the wall clock of the job's person."""
        self._turns = turns
        self._workspace = workspace
        self._beat = beat
        self._fresh = fresh
        self._local = local
        self._hours = hours
        self._checks = tuple(checks)

    async def __call__(self, job: Job, due: Due, *, late_s: int) -> Taking:
        """Raise TargetGone, StorageError."""
        skipped = await self._why_not(job)
        if isinstance(skipped, str):
            await self._beat(job.agent, "skipped", skipped)
            return Taking(job_id=job.id, due=due, next=None, state=SlotState.SKIPPED, note=skipped)
        text = await asyncio.to_thread(self._read, job.agent)
        order = JobOrder(job_id=job.id, slot=due.slot, name=job.name, is_heartbeat=True)
        await self._beat(job.agent, "began", "the list holds something to look at")
        return await self._turns.taking(job, due, text, order)

    async def _why_not(self, job: Job) -> str | None:
        local = self._local(job)
        if self._hours is not None and not self._hours.holds(local, local.tzinfo or UTC):
            return "outside of the active hours"
        if not has_tasks(await asyncio.to_thread(self._read, job.agent)):
            return f"{list_name(job.agent)} holds nothing to look at"
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
