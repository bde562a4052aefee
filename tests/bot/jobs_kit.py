"""Dry runs of jobs, over a real store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agent.skills.skill import Skill, SkillPlace, SkillSchedule, SkillSet, SkillState
from agent.trace.dry_run import NO_MODEL, DryRunner, DryRunReport, Heard
from memory.database.connection import Database
from memory.records.messages import ConversationId, TurnInput
from memory.records.schedule import RunCost
from memory.records.transcript import ToolCall, Usage
from memory.stores.schedule import SqliteTellings
from scheduler.jobs.forecast import Rules
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.kinds.dry_run import JobDryRuns
from scheduler.kinds.kinds import TurnKind, read_list
from scheduler.notify.findings import has_tasks
from tests.scheduler.service_kit import ANN, BEN, LANE, Services

COST = RunCost(calls=3, tokens=9_000, dollars=0.01)

BRIEFING = Skill(
    name="briefing",
    description="d",
    text="Look at the day.",
    place=SkillPlace.SHIPPED,
    location="shipped/skills/briefing/SKILL.md",
    required_tools=("list_events",),
    state=SkillState.OFF,
    schedule=SkillSchedule(cron="0 6 * * *"),
)


class Stage:
    """Stands in for Rehearsing: shows the turn's own words, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[TurnInput] = []

    async def rehearse(self, turn: TurnInput | None) -> DryRunReport:
        if turn is None or (turn.job is not None and turn.job.call is not None):
            return NO_MODEL
        return DryRunReport(
            system="You are a helper.",
            user=turn.message.text,
            tools=("list_events", "nothing_to_report"),
            tokens=1_200,
            model="fake/model",
            cost=COST,
        )

    async def ask(self, turn: TurnInput) -> Heard:
        self.asked.append(turn)
        wish = ToolCall(id="1", name="list_events", arguments="{}")
        usage = Usage(prompt=1_200, completion=20)
        return Heard(text="Nothing today.", wishes=(wish,), usage=usage, dollars=0.002)


class Workshop(Services):
    """Where the operator asks about jobs; may be opened with or without a running bot."""

    dry_runs: JobDryRuns
    notifications: SqliteTellings

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.people.names = {ANN: "Ann", BEN: "Bob"}
        self.people.lanes = {ANN: {LANE}, BEN: {LANE}}
        self.stage = Stage()
        self.workspace = path
        self.skills: Sequence[Skill] = (BRIEFING,)

    def has_beats(self, text: str) -> None:
        """The list of the heartbeat."""
        (self.workspace / "HEARTBEAT.md").write_text(text, encoding="utf-8")

    async def current(self) -> SkillSet:
        return SkillSet(skills=tuple(self.skills))

    def build(self, database: Database) -> None:
        super().build(database)
        self.notifications = SqliteTellings(database)

        async def start_conversation(lane: str) -> ConversationId:
            raise AssertionError(f"a run was begun in {lane}")

        async def rules() -> Rules:
            text = await read_list(self.workspace, "default")
            return Rules(daily_max=3, heartbeats=has_tasks(text))

        self.dry_runs = JobDryRuns(
            self.jobs,
            self.notifications,
            TurnKind(
                self.people, self.current, self.workspace, start_conversation=start_conversation
            ),
            cast(DryRunner, self.stage),
            SkillJobs(
                self.store,
                self.current,
                self.people,
                clock=self.clock,
                changed=self.timetable.changed,
            ),
            clock=self.clock,
            rules=rules,
        )
